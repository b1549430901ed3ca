"""``fragments_``: what the table promises, on molecules and on other graphs."""

import numpy as np
import pandas as pd
import pytest

import treelens as tl

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


def test_the_planted_group_is_first_and_named(table):
    first = table.iloc[0]
    assert "nitro" in first["name"]
    assert first["effect"] > 0
    assert first["support toxic"] == 10
    assert first["support safe"] == 0
    assert len(first["examples"]) == 3


def test_columns(table):
    assert isinstance(table, pd.DataFrame)
    for column in ("name", "smarts", "pattern", "depth", "effect", "error", "support", "examples",
                   "conditional_effect", "conditional_error", "total", "support safe"):  # fmt: skip
        assert column in table, column
    assert (table["depth"] >= 1).all()
    assert (table["support"] == table["support safe"] + table["support toxic"]).all()
    assert table.index.tolist() == list(range(1, len(table) + 1))
    assert table.attrs["toward"] == "toxic"
    assert table.attrs["left_out"]
    assert table.attrs["size"]["effect"] == pytest.approx(
        table.attrs["size"]["per_node"] * table.attrs["size"]["mean_nodes"]
    )


def test_smarts_match_exactly_the_molecules_that_hold_the_fragment(table):
    from rdkit import Chem

    molecules = [Chem.MolFromSmiles(smiles) for smiles in MOLECULES]
    for _, row in table.iterrows():
        query = Chem.MolFromSmarts(row["smarts"])
        assert query.GetNumAtoms() > 1
        assert sum(m.HasSubstructMatch(query) for m in molecules) == row["support"], row["smarts"]


def test_the_table_is_a_copy(model):
    copy = model.fragments_
    copy.loc[1, "effect"] = 99.0
    assert model.fragments_.loc[1, "effect"] != 99.0


def test_the_other_class_turns_signs(model, table):
    y = np.repeat(["toxic", "safe", "safe"], len(TAILS))
    other = model.fragments(MOLECULES, y, class_label="safe")
    np.testing.assert_allclose(other["effect"], -table["effect"])
    assert other["smarts"].tolist() == table["smarts"].tolist()


def test_a_loaded_model_finds_the_same_on_its_training_graphs(model, table, tmp_path):
    model.save(tmp_path / "m.tlm")
    loaded = tl.load(tmp_path / "m.tlm")
    with pytest.raises(AttributeError, match=r"fragments\(graphs\)"):
        _ = loaded.fragments_
    again = loaded.fragments(MOLECULES)
    np.testing.assert_allclose(again["effect"], table["effect"], atol=1e-8)
    assert "support toxic" not in again  # nobody said which class


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


def test_a_part_of_the_table_is_shown_as_any_frame(table):
    assert "<table" in table[["effect"]]._repr_html_()


def test_bad_input_is_named(model):
    with pytest.raises(ValueError, match="class_label must be one of"):
        model.fragments(MOLECULES, class_label="green")
    with pytest.raises(ValueError, match="y has 2 entries for 30 graphs"):
        model.fragments(MOLECULES, ["toxic", "safe"])
    with pytest.raises(ValueError, match="none of the classes"):
        model.fragments(MOLECULES, ["green"] * 30)
    with pytest.raises(ValueError, match="refits needs y"):
        model.fragments(MOLECULES, refits=2)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_planted_pattern_of_other_graphs_is_first(seed):
    graphs, y = tl.make_synthetic(10, random_state=seed)
    table = tl.GraphClassifier(depth=2).fit(graphs, y).fragments_
    assert table["pattern"].iloc[0] == "0(0,1,2)"
    assert "smarts" not in table
    assert "<svg" in table._repr_html_()


def test_numbers():
    values = np.array([5.0] * 10 + [1.0] * 20) + 0.1 * np.arange(30)
    table = tl.GraphRegressor(depth=2).fit(MOLECULES, values).fragments_
    assert "mean_value" in table
    assert table.attrs["toward"] is None
    nitro = table[table["name"].str.contains("nitro")].iloc[0]
    assert nitro["effect"] > 0
    with pytest.raises(ValueError, match="predicts numbers"):
        tl.GraphRegressor(depth=1).fit(MOLECULES, values).fragments(MOLECULES, class_label=1)


def test_several_classes_name_their_own():
    y = np.repeat(["nitro", "arene", "amide"], len(TAILS))
    model = tl.GraphClassifier(depth=1).fit(MOLECULES, y)
    table = model.fragments_
    assert {"nitro", "amide"} <= set(table["class_label"])
    first = table[table["class_label"] == "amide"].iloc[0]
    assert first["support amide"] > 0
    only = model.fragments(MOLECULES, y, class_label="amide")
    assert set(only["class_label"]) == {"amide"}


def test_explanations_show_themselves(model):
    explained = model.explain(MOLECULES[0])
    page = explained._repr_html_()
    assert "<svg" in page
    assert "base" in page
    total = explained.base + explained.atom_contributions.sum()
    assert total == pytest.approx(explained.decision)
