"""What two models see differently."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import cohen_kappa_score

import treelens as tl
from treelens.explain.comparison import SPREAD_UNITS, TARGET_UNITS, joined
from treelens.graphs.molecules import smiles_to_collection

TAILS = ["C" * k for k in range(1, 13)]
NITRO = [f"{t}c1ccc([N+](=O)[O-])cc1" for t in TAILS]
CHLORO = [f"{t}CCl" for t in TAILS]
PLAIN = [f"{t}O" for t in TAILS]
SMILES = [*NITRO, *CHLORO, *PLAIN]


@pytest.fixture(scope="module")
def alerts():
    """One model learned that nitro groups are bad, the other that chlorides are."""
    one = tl.GraphClassifier(depth=1).fit(SMILES, ["bad"] * 12 + ["good"] * 24)
    other = tl.GraphClassifier(depth=1).fit(SMILES, ["good"] * 12 + ["bad"] * 12 + ["good"] * 12)
    return one, other


@pytest.fixture(scope="module")
def machine():
    y = ["bad"] * 12 + ["good"] * 24
    return tl.GraphSVC("tanimoto", 2, 0, 1.0, 10.0).fit(SMILES, y)


def test_fragments_that_only_one_model_goes_by_come_first(alerts):
    found = alerts[0].compare(alerts[1], SMILES)
    first = found.fragments.iloc[:4]
    assert first["sure"].all()
    assert any("nitro" in name for name in first["name"])
    assert any("chloride" in name for name in first["name"])
    nitro = first[first["name"].str.contains("nitro")].iloc[0]
    chloride = first[first["name"].str.contains("chloride")].iloc[0]
    assert found.toward == "good"
    assert nitro["difference"] > 0 > chloride["difference"]
    surely = found.fragments["difference"].abs() - 2 * found.fragments["error"]
    assert surely.is_monotonic_decreasing


def test_a_model_compared_with_itself_differs_nowhere(alerts):
    found = alerts[0].compare(alerts[0], SMILES)
    assert found.agreement["same"] == found.agreement["kappa"] == 1.0
    assert found.agreement["rank_correlation"] == pytest.approx(1.0)
    assert (found.fragments["difference"] == 0).all()
    assert (found.fragments["found_by"] == "both").all()
    assert not found.fragments["sure"].any()
    assert (found.graphs["difference"] == 0).all()


def test_swapping_the_models_turns_the_signs(alerts):
    one, other = alerts
    ab, ba = one.compare(other, SMILES), other.compare(one, SMILES)
    a, b = (x.fragments.set_index("pattern")["difference"] for x in (ab, ba))
    common = a.index.intersection(b.index)
    assert len(common) > 3
    np.testing.assert_allclose(a[common], -b[common])
    np.testing.assert_allclose(
        ab.graphs["difference"].sort_index(), -ba.graphs["difference"].sort_index()
    )


def test_effects_are_those_of_each_models_own_table(alerts):
    one, other = alerts
    found = one.compare(other, SMILES, n_fragments=60).fragments.set_index("pattern")
    for side, model in zip("ab", alerts, strict=True):
        own = model.fragments(SMILES).set_index("pattern")
        common = own.index.intersection(found.index)
        assert len(common)
        np.testing.assert_allclose(found.loc[common, f"effect_{side}"], own.loc[common, "effect"])
        np.testing.assert_allclose(found.loc[common, f"error_{side}"], own.loc[common, "error"])


def test_differences_of_graphs_speak_for_the_class_that_effects_speak_for(alerts):
    one, other = alerts
    for k, name in enumerate(["bad", "good"]):
        found = one.compare(other, SMILES, class_label=name)
        gap = other.predict_proba(SMILES)[:, k] - one.predict_proba(SMILES)[:, k]
        np.testing.assert_allclose(found.graphs["difference"].sort_index(), gap, atol=1e-12)
        assert f"probability in b less in a, of {name}" in found._repr_html_()
    with pytest.raises(ValueError, match="class_label must be one of"):
        one.compare(other, SMILES, class_label="ugly")


def test_agreement_against_scikit_learn(alerts):
    y = ["bad"] * 12 + ["good"] * 24
    one, other = alerts
    found = one.compare(other, SMILES, y)
    a, b = one.predict(SMILES), other.predict(SMILES)
    assert found.agreement["same"] == (a == b).mean()
    assert found.agreement["kappa"] == pytest.approx(cohen_kappa_score(a, b))
    assert found.agreement["score_a"] == (a == np.array(y)).mean()
    order = found.graphs.index[:24]
    assert set(order) == set(range(24)), "the graphs whose classes the two learned differently"
    gap = other.predict_proba(SMILES)[:, 1] - one.predict_proba(SMILES)[:, 1]
    np.testing.assert_allclose(found.graphs["difference"].sort_index(), gap)


def test_numbers():
    values = np.array([float(len(s)) for s in SMILES])
    one = tl.GraphRegressor(depth=1).fit(SMILES, values)
    other = tl.GraphRegressor(depth=1).fit(SMILES, values + 3.0 * np.repeat([1, 0, 0], 12))
    found = one.compare(other, SMILES, values)
    apart = other.predict(SMILES) - one.predict(SMILES)
    assert found.agreement["rms_difference"] == pytest.approx(np.sqrt(np.mean(apart**2)))
    assert found.agreement["mean_difference"] == pytest.approx(apart.mean())
    assert found.agreement["score_b"] > found.agreement["score_a"]
    assert set(found.graphs.index[:12]) == set(range(12))
    assert found.toward is None
    assert found.fragments.attrs["units"] == TARGET_UNITS
    assert found._repr_html_().count("<table>") == 2


def test_a_process_and_a_machine_are_compared_in_common_units(alerts, machine):
    found = alerts[0].compare(machine, SMILES)
    assert found.fragments.attrs["units"] == SPREAD_UNITS
    nitro = found.fragments[found.fragments["name"].str.contains("nitro")].iloc[0]
    assert nitro["effect_a"] < 0
    assert nitro["effect_b"] < 0
    mirrored = machine.compare(alerts[0], SMILES)
    assert len(mirrored.fragments)


def test_fragments_of_a_machine(machine):
    first = machine.fragments_.iloc[0]
    assert "nitro" in first["name"]
    assert first["effect"] < 0  # against "good"
    assert not machine.fragments_.attrs["left_out"]
    assert first["support bad"] == 12


def test_three_classes(alerts):
    y = ["x"] * 12 + ["y"] * 12 + ["z"] * 12
    one = tl.GraphClassifier(depth=1).fit(SMILES, y)
    other = tl.GraphSVC("tanimoto", 1, 0, 1.0, 10.0).fit(SMILES, y)
    found = one.compare(other, SMILES, y)
    assert set(found.fragments["class_label"]) <= set("xyz")
    assert found.agreement["same"] == 1.0
    assert "for x" in found._repr_html_()
    for model in (one, other):
        assert model.classes_.tolist() == ["x", "y", "z"]
    apart = other.predict_proba(SMILES) - one.predict_proba(SMILES)
    of_class = np.searchsorted(["x", "y", "z"], found.graphs["class_label"])
    np.testing.assert_allclose(
        found.graphs["difference"], apart[found.graphs.index, of_class], atol=1e-9
    )
    np.testing.assert_allclose(
        found.graphs["difference"].abs(), np.sort(np.abs(apart).max(axis=1))[::-1], atol=1e-9
    )
    only = one.compare(other, SMILES, class_label="y")
    assert only.toward == "y"
    np.testing.assert_allclose(only.graphs["difference"].sort_index(), apart[:, 1], atol=1e-9)
    assert "probability in b less in a, of y" in only._repr_html_()
    with pytest.raises(ValueError, match="different classes"):
        one.compare(alerts[0], SMILES)


def test_hydrogens_as_nodes_leave_no_common_ground(alerts):
    with_h = smiles_to_collection(SMILES, hydrogens=True)
    other = tl.GraphClassifier(depth=1).fit(with_h, ["bad"] * 12 + ["good"] * 24)
    found = alerts[0].compare(other, SMILES)
    assert len(found.fragments) == 0
    assert "no fragments that both models" in repr(found)
    assert found._repr_html_().count("<table>") == 1


def test_bad_input(alerts):
    one = alerts[0]
    with pytest.raises(TypeError, match="other is a str"):
        one.compare("model.npz", SMILES)
    with pytest.raises(ValueError, match="y has 2 entries for 36 graphs"):
        one.compare(alerts[1], SMILES, [1, 2])
    numbers = tl.GraphRegressor(depth=0).fit(SMILES, np.arange(36.0))
    with pytest.raises(ValueError, match="classes and the other numbers"):
        one.compare(numbers, SMILES)


def test_names_are_escaped(alerts):
    graphs = tl.as_graph_collection(SMILES)
    evil = ["<script>x</script>"] * len(graphs)
    graphs = tl.GraphCollection(**{**graphs._arguments(), "names": evil})
    page = alerts[0].compare(alerts[1], graphs)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_drawings_come_in_pairs_on_one_scale(alerts):
    found = alerts[0].compare(alerts[1], SMILES)
    index = next(iter(found.drawn))
    one, other = found.draw(index)
    assert one.startswith("<svg") or "<svg" in one
    assert "in a; together" in one
    assert "in b; together" in other
    with pytest.raises(KeyError, match="was not drawn"):
        found.draw(-1)


def test_fragments_on_mostly_the_same_nodes_are_one():
    def covers(*nodes):
        return sparse.csr_array((np.ones(len(nodes)), ([0] * len(nodes), nodes)), shape=(1, 20))

    nine, ten = covers(*range(9)), covers(*range(10))
    assert joined([[nine], [covers(15), ten]]) == [(0, 0, "both"), (1, 0, "b")]
    assert joined([[covers(*range(7))], [ten]]) == [(0, 0, "a"), (1, 0, "b")]
