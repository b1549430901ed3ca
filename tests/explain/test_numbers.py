"""What numbers add to predictions, column by column and atom by atom."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import treelens as tl
from naive import explain as naive
from strategies import make_random_graphs
from treelens import chem
from treelens.explain import effects, numbers
from treelens.explain.effects import inverse_covariances
from treelens.explain.jackknife import jackknife_errors

pytest.importorskip("rdkit")
pytestmark = pytest.mark.filterwarnings("ignore:Training never saw")


def _molecules(n, seed):
    rng, found = np.random.default_rng(seed), []
    parts = ["C", "C(C)", "C(O)", "C(N)", "C(=O)", "C(Cl)", "c1ccccc1", "OC", "NC"]
    for _ in range(n):
        chosen = rng.choice(parts, rng.integers(2, 7))
        chain = "".join(part for part in chosen if part != "c1ccccc1")
        found.append("C" + chain + ("c1ccccc1" if "c1ccccc1" in chosen else ""))
    return found


SMILES = _molecules(60, 0)
COUNTS = np.array([text.upper().count("N") + text.upper().count("O") for text in SMILES], float)
HEAT = np.random.default_rng(1).normal(size=60)


@pytest.fixture(scope="module")
def model():
    """Descriptors are the whole truth, but for a covariate."""
    fitted = tl.GraphRegressor(depth=1, weights="uniform", descriptors="compact", n_jobs=1)
    return fitted.fit(SMILES, COUNTS + np.sin(HEAT), covariates={"heat": HEAT})


def explained(model, k):
    one = tl.as_graph_collection(SMILES[k : k + 1]).with_data({"heat": HEAT[k : k + 1]})
    return model.explain(one), model.predict(one)[0]


def test_base_nodes_and_rest_add_up_from_one_base(model):
    bases = set()
    for k in range(8):
        found, predicted = explained(model, k)
        total = found.base + found.node_contributions.sum() + found.rest["contribution"].sum()
        assert total == pytest.approx(found.decision, abs=1e-10)
        assert total == pytest.approx(predicted, abs=1e-9)
        views = found.view_contributions
        assert found.base + views.sum() == pytest.approx(predicted, abs=1e-9)
        assert views["descriptors"] == pytest.approx(
            found.descriptor_contributions["contribution"].sum(), abs=1e-9
        )
        assert found.rest["name"].tolist() == ["heat"]
        assert found.rest["value"].tolist() == [HEAT[k]]
        bases.add(found.base)
    assert len(bases) == 1
    stranger = model.explain(
        tl.as_graph_collection(["[Au]"]).with_data({"heat": [0.0]})
    )  # with patterns and values that training never saw
    assert stranger.base in bases


def test_the_atoms_that_are_counted_are_found(model):
    areas = []
    for k in range(30):
        found, _ = explained(model, k)
        counted = np.isin([str(x)[0] for x in found.graph.node_labels], ["N", "O"])
        if counted.any() and not counted.all():
            areas.append(roc_auc_score(counted, found.node_contributions))
    assert np.mean(areas) > 0.98


def test_columns_are_divided_as_by_the_naive_twin(model):
    fitted = model.model_
    place = fitted.view_names.index("descriptors")
    (part,) = [x for x in fitted.expansion.numbers if x.view == place]
    found, _ = explained(model, 3)
    graphs = tl.as_graph_collection(SMILES[3:4])
    length, amplitude = part.kernel.kernel.length, part.kernel.amplitude

    def kernel(one, other):
        square = sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
        return amplitude * math.exp(-square / (2 * length**2))

    row, basis = part.table.encode(graphs)[0], fitted.expansion.basis.numbers(place)
    expected = naive.column_contributions(
        kernel, part.start, row, basis.tolist(), fitted.coefficients[0].tolist(), 60
    )
    names = [name.removeprefix("rdkit:") for name in part.table.names]
    ours = found.descriptor_contributions.set_index("name")["contribution"]
    np.testing.assert_allclose(ours[names], expected, atol=1e-4)
    assert found.descriptor_contributions.set_index("name")["divided"]["Kappa2"] == "evenly"
    by_terms = found.descriptor_contributions["divided"] == "by terms"
    assert by_terms.sum() == 20
    assert (found.descriptor_contributions["reference"][by_terms] == 0).all()


def test_left_out_molecules_add_up_to_leave_one_out_predictions(model):
    graphs, expansion = model._train_graphs, model.model_.expansion
    inverses = inverse_covariances(expansion)
    found = effects.effects_of_graphs(expansion, graphs, inverses=inverses)
    np.testing.assert_allclose(found.decisions, model.loo_.predictions, atol=1e-7)
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
    rest = np.sum(
        [x.by_column.sum(axis=1) for x in found.numbers if x.part.table.names == ["heat"]], axis=0
    )
    total = found.base + np.bincount(owner, found.phi) + rest
    np.testing.assert_allclose(total, found.decisions, atol=1e-9)


def test_the_jackknife_is_that_of_leaving_each_training_molecule_out(model):
    """Against models without one training molecule each, of the same weights and scales."""
    expansion = model.model_.expansion
    new = tl.as_graph_collection(_molecules(5, 7)).with_data({"heat": np.zeros(5)})
    inverses = inverse_covariances(expansion)
    (inverse,) = inverses
    found = effects.effects_of_graphs(expansion, new, inverses=inverses)
    nodes = np.arange(0, new.n_nodes, 2)
    weights = np.linspace(0.5, 1.5, len(nodes))
    (error,) = jackknife_errors(found, [(nodes, weights)], inverses)
    alpha, sums = expansion.coefficients[0], []
    for g in range(len(alpha)):
        without = alpha - alpha[g] * inverse[g] / inverse[g, g]
        without[g] = 0.0
        other = dataclasses.replace(expansion, coefficients=without[None, :])
        sums.append(float(weights @ effects.effects_of_graphs(other, new).phi[nodes]))
    n = len(alpha)
    expected = np.sqrt((n - 1) / n * ((np.array(sums) - np.mean(sums)) ** 2).sum())
    known = [k for group in found.copies for k in group]
    assert not known
    assert error == pytest.approx(expected, rel=1e-6)


def test_blocks_of_graphs_change_nothing(model, monkeypatch):
    graphs = model._train_graphs
    whole = effects.effects_of_graphs(model.model_.expansion, graphs)
    monkeypatch.setattr(effects, "_BLOCK", 1)
    monkeypatch.setattr(effects, "_LEAST_ROWS", 7)
    parts = effects.effects_of_graphs(model.model_.expansion, graphs)
    np.testing.assert_allclose(parts.phi, whole.phi, atol=1e-10)


def test_a_sum_whose_terms_cancel_is_divided_by_them_all_the_same(model):
    """A zwitterion has no charge, but each of its ends has one."""
    (part,) = [x for x in model.model_.expansion.numbers if len(x.table.names) > 1]
    graphs = tl.as_graph_collection(["C[N+](C)(C)CC(=O)[O-]"])
    rows = part.table.encode(graphs)
    shares = numbers.node_shares(part, graphs, rows)
    np.testing.assert_allclose(shares.sum(axis=0), rows[0] - part.start, atol=1e-9)
    charge = shares[:, part.table.names.index("rdkit:FormalCharge")]
    assert charge[1] == -charge[-1]


def test_tables_of_the_users_are_named_in_the_rest():
    graphs = make_random_graphs(40, n_nodes=(5, 9), n_labels=3, random_state=0)
    graphs = graphs.with_names([str(k) for k in range(40)])
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 6)), columns=list("abcdef"))
    table["kind"] = list("xy" * 20)
    y = table["a"] + graphs.sizes + (table["kind"] == "x")
    views = [tl.WLPatterns(), tl.Table(table.assign(id=graphs.names), name="measured")]
    model = tl.GraphRegressor(depth=1, views=views).fit(graphs, y)
    rows = table.assign(id=graphs.names)
    found = model.explain(graphs[:1], tables=rows)
    assert found.rest["view"].unique().tolist() == ["measured"]
    assert found.rest["name"].tolist() == [f"measured: {x}" for x in [*"abcdef", "kind"]]
    ((name, value),) = found.rest_in_words  # of many columns, by view
    assert (name, value) == ("measured", pytest.approx(found.rest["contribution"].sum()))
    nodes = found.node_contributions.sum()
    assert found.base + nodes + value == pytest.approx(found.decision)
    assert found.decision == pytest.approx(model.predict(graphs[:1], tables=rows)[0])
    assert found.descriptor_contributions.empty


@pytest.mark.parametrize("views", [[chem.Ecfp(2)], [chem.Ecfp(1), tl.Paths()], [tl.Paths()]])
def test_models_without_weisfeiler_lehman_patterns_are_explained(views, tmp_path):
    """Environments belong to the atoms within their radius."""
    model = tl.GraphRegressor(views=views, descriptors=False, weights="uniform")
    model.fit(SMILES[:50], COUNTS[:50])
    for k in range(48, 53):
        found = model.explain(SMILES[k])
        total = found.base + found.node_contributions.sum()
        assert total == pytest.approx(model.predict([SMILES[k]])[0], abs=1e-9)
        assert found.node_out_of_vocabulary.max() <= 1
        assert "<svg" in found.draw()
    strange = model.explain("CCCBr")
    assert strange.node_out_of_vocabulary[3] > strange.node_out_of_vocabulary[0]
    assert len(model.fragments_)
    page = model.report(tmp_path / "report.html", SMILES[50:], COUNTS[50:])
    assert "Fragments" in page.read_text()


def test_an_environment_is_shared_by_the_atoms_within_its_radius():
    graphs = tl.as_graph_collection(["CCCCO"])
    source, found = chem.ecfp.FingerprintForest.fit(graphs, 2)
    rows = source.count(found).rows
    shares = source.shares_of_nodes(found, rows).toarray()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    texts = dict(zip(source.texts(rows.indices), shares, strict=True))
    oxygen = [share for text, share in texts.items() if text.startswith("0:") and share[4] == 1]
    assert len(oxygen) == 1
    widths = {(share > 0).sum() for text, share in texts.items() if text.startswith("1:")}
    assert widths <= {2, 3, 4}  # two methylenes may have the same one
    assert source.unseen_at_nodes(found).tolist() == [0] * 5
