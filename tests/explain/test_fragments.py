"""Tables of fragments of molecules and of other graphs."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from treelens.explain.effects import effects_of_graphs, inverse_covariances

TAILS = ["", "C", "CC", "CCC", "C(C)C", "OC", "CO", "CCO", "C=C", "CC=C"]
MOLECULES = [
    *(f"{t}c1ccc([N+](=O)[O-])cc1" for t in TAILS),
    *(f"{t}c1ccccc1" if t else "c1ccccc1" for t in TAILS),
    *(f"CC{t}C(=O)NC" for t in TAILS),
]


@pytest.fixture(scope="module")
def model():
    y = np.array(["toxic"] * len(TAILS) + ["safe"] * 2 * len(TAILS))
    return tl.GraphClassifier(depth=2, random_state=0).fit(MOLECULES, y)


@pytest.fixture(scope="module")
def table(model):
    return model.fragments_


def test_the_effect_of_size_is_the_mean_over_graphs_not_over_nodes(model, table):
    expansion, graphs = model.model_.expansion, model._new_graphs(MOLECULES)
    found = effects_of_graphs(expansion, graphs, inverses=inverse_covariances(expansion))
    means = [phi.mean() for phi in np.split(found.phi, graphs.node_offsets[1:-1])]
    size = table.attrs["size"]
    assert size["per_node"] == pytest.approx(np.mean(means))
    assert size["error"] == pytest.approx(np.std(means, ddof=1) / np.sqrt(30))
    assert size["effect"] == pytest.approx(np.mean(means) * graphs.sizes.mean())


def test_the_planted_group_is_first_and_named(table):
    from rdkit import Chem

    first = table.iloc[0]
    assert "nitro" in first["name"]
    assert first["effect"] > 0
    assert (first["support toxic"], first["support safe"]) == (10, 0)
    assert len(first["examples"]) == 3
    assert set(table) == {
        "name",
        "smarts",
        "pattern",
        "depth",
        "effect",
        "error",
        "conditional_effect",
        "conditional_error",
        "total",
        "support",
        "support safe",
        "support toxic",
        "examples",
        "drawing",
    }
    assert (table["depth"] >= 1).all()
    assert (table["support"] == table["support safe"] + table["support toxic"]).all()
    assert table.index.tolist() == list(range(1, len(table) + 1))
    assert table.attrs["toward"] == "toxic"
    assert table.attrs["left_out"]
    molecules = [Chem.MolFromSmiles(smiles) for smiles in MOLECULES]
    for smarts, support in zip(table["smarts"], table["support"], strict=True):
        query = Chem.MolFromSmarts(smarts)
        assert query.GetNumAtoms() > 1
        assert sum(m.HasSubstructMatch(query) for m in molecules) == support, smarts


def test_the_other_class_turns_signs_and_bad_input_is_named(model, table):
    y = np.repeat(["toxic", "safe", "safe"], len(TAILS))
    other = model.fragments(MOLECULES, y, class_label="safe")
    np.testing.assert_allclose(other["effect"], -table["effect"])
    assert other["smarts"].tolist() == table["smarts"].tolist()
    assert other.attrs["toward"] == "safe"
    with pytest.raises(ValueError, match="class_label must be one of"):
        model.fragments(MOLECULES, class_label="green")
    with pytest.raises(ValueError, match="There are 30 graphs but 2 values in y"):
        model.fragments(MOLECULES, ["toxic", "safe"])
    with pytest.raises(ValueError, match="none of the classes"):
        model.fragments(MOLECULES, ["green"] * 30)


def test_a_loaded_model_finds_the_same_on_its_training_graphs(model, table, tmp_path):
    model.save(tmp_path / "m.tlm", training_data=False)
    loaded = tl.load(tmp_path / "m.tlm")
    with pytest.raises(AttributeError, match=r"fragments\(graphs\)"):
        _ = loaded.fragments_
    again = loaded.fragments(MOLECULES)
    np.testing.assert_allclose(again["effect"], table["effect"], atol=1e-8)
    assert "support toxic" not in again  # without y
    some = [*MOLECULES[:15], "CCCCOc1ccccc1", "CC(C)c1ccc([N+](=O)[O-])cc1CC"]
    assert again.attrs["left_out"]
    assert not loaded.fragments(some).attrs["left_out"]  # some are new


def test_drawings_have_text_and_nothing_unescaped(table):
    picture = table.draw(1)
    assert picture.startswith("<svg")
    assert "<title>Fragment 1:" in picture
    assert table.draw(1, format="png")[:4] == b"\x89PNG"
    page = table._repr_html_()
    assert page.count("<svg xmlns") >= len(table)
    evil = table.head(2)
    evil.loc[1, "name"] = "<script>alert(1)</script>"
    assert "<script>" not in evil._repr_html_()
    with pytest.raises(KeyError, match="no fragment 99"):
        table.draw(99)


def drawn_beside(page: str) -> list[tuple[str, str]]:
    """The fragment that the picture of each row names, and what the row itself says."""
    rows = page.split("<tr")[2:]
    pictures = [re.search(r"<title>Fragment \d+: (.*?), \d+ nodes .*?</title>", r) for r in rows]
    cells = [re.findall(r"<td>([^<]*)</td>", row) for row in rows]
    return [(found[1], cells[k]) for k, found in enumerate(pictures)]


def rearranged(table):
    yield table.sort_values("support")
    yield table.sort_values("effect").reset_index()
    yield table.sort_values("error", ignore_index=True)
    yield table[table["effect"] < 0].reset_index(drop=True)
    yield pd.concat([table.tail(3), table.head(3)])
    yield pd.concat([table.iloc[::-1], table], ignore_index=True)
    yield table.iloc[::-1].set_index("pattern", drop=False)


def test_each_row_keeps_its_own_drawing():
    y = np.repeat(["nitro", "arene", "amide"], len(TAILS))
    model = tl.GraphClassifier(depth=1).fit(MOLECULES, y)
    table = model.fragments(MOLECULES, y, class_label="amide")
    assert table["pattern"].is_unique
    assert len(table) > 4
    for changed in rearranged(table):
        shown = drawn_beside(changed._repr_html_())
        assert len(shown) == min(len(changed), 40)
        for drawn, row in shown:
            assert drawn in row
        for label, row in changed.iterrows():
            if (changed.index == label).sum() == 1:
                original = table[table["pattern"] == row["pattern"]].index[0]
                assert changed.draw(label) == table.draw(original)
    twice = pd.concat([table, table])
    with pytest.raises(KeyError, match="2 rows have the index 1"):
        twice.draw(1)
    with pytest.raises(KeyError, match="column 'drawing'"):
        table[["name", "effect"]].draw(1)
    assert "<svg" not in table[["name", "effect"]]._repr_html_()


@pytest.mark.parametrize("seed", [0, 1])
def test_the_planted_pattern_of_other_graphs_is_first(seed):
    graphs, y = tl.make_synthetic(10, random_state=seed)
    table = tl.GraphClassifier(depth=2).fit(graphs, y).fragments_
    assert table["pattern"].iloc[0] == "0(0,1,2)"
    assert "smarts" not in table
    assert "<svg" in table._repr_html_()


def test_numbers_and_several_classes():
    values = np.array([5.0] * 10 + [1.0] * 20) + 0.1 * np.arange(30)
    table = tl.GraphRegressor(depth=2).fit(MOLECULES, values).fragments_
    assert "mean_value" in table
    assert table.attrs["toward"] is None
    nitro = table[table["name"].str.contains("nitro")].iloc[0]
    assert nitro["effect"] > 0
    with pytest.raises(ValueError, match="predicts numbers"):
        tl.GraphRegressor(depth=1).fit(MOLECULES, values).fragments(MOLECULES, class_label=1)
    y = np.repeat(["nitro", "arene", "amide"], len(TAILS))
    model = tl.GraphClassifier(depth=1).fit(MOLECULES, y)
    table = model.fragments_  # each class has its own
    assert {"nitro", "amide"} <= set(table["class_label"])
    first = table[table["class_label"] == "amide"].iloc[0]
    assert first["support amide"] > 0
    only = model.fragments(MOLECULES, y, class_label="amide")
    assert set(only["class_label"]) == {"amide"}
    assert (table.attrs["toward"], only.attrs["toward"]) == (None, "amide")


def test_a_fragment_of_nearly_all_graphs_is_no_finding(table):
    acids = [f"OC(=O)C{s}" for s in MOLECULES]
    values = np.array([len(s) for s in MOLECULES], dtype=float)
    found = tl.GraphRegressor(depth=1).fit(acids, values).fragments_
    assert len(found)
    assert (found["support"] < 0.95 * len(acids)).all()


def test_rows_are_certain_and_have_different_names_however_many_are_asked_for(table, model):
    for n in (1, 2, 5):
        few = model.fragments(MOLECULES, n_fragments=n)
        assert len(few) == min(n, len(table))
        assert few["pattern"].tolist() == model.fragments_["pattern"].tolist()[:n]
    assert (table["effect"].abs() > 2 * table["error"]).all()
    titles = [table.title(rank) for rank in table.index]
    assert len(set(titles)) == len(titles)


def test_ring_atoms_are_not_written_as_chiral():
    smiles = [f"{t}C1CCCCC1" for t in TAILS] + [f"{t}CCCCC" for t in TAILS]
    model = tl.GraphRegressor(depth=1).fit(smiles, np.repeat([1.0, 0.0], 10))
    texts = [
        *model.fragments_["pattern"],
        *model.patterns_["pattern"],
    ]
    found = model.explain(smiles[0]).pattern_contributions
    texts += found["pattern"][found["tree"] != "paths"].tolist()  # whose @ is a distance
    assert not any("@" in text for text in texts)
    assert any("CH2;R" in text for text in texts)


def test_an_explanation_predicts_what_the_model_predicts_by_its_threshold():
    rng = np.random.default_rng(0)
    smiles = [f"{'C' * rng.integers(1, 9)}{e}" for e in ["O"] * 45 + ["Cl"] * 6]
    y = np.array(["no"] * 45 + ["yes", "no", "yes", "no", "yes", "no"])
    model = tl.GraphClassifier(depth=1).fit(smiles, y)
    assert model.threshold_ is not None
    predicted = [model.explain(s).predicted_class for s in smiles]
    assert predicted == model.predict(smiles).tolist()
    assert "yes" in predicted
