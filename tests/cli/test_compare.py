"""What two models can be compared on: the target they recorded, the classes they share."""

from __future__ import annotations

import pytest

from cli.conftest import ALCOHOLS, AMINES, SMALL, run, write_csv

THIOLS = [f"{'C' * n}S" for n in range(2, 12)]
TWO = [(s, "alcohol") for s in ALCOHOLS] + [(s, "amine") for s in AMINES]
THREE = [*TWO, *((s, "thiol") for s in THIOLS)]
OTHER = [(s, "x") for s in ALCOHOLS] + [(s, "y") for s in AMINES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables whose target is called ``kind``, and a model fitted to each."""
    folder = tmp_path_factory.mktemp("kinds")
    for name, rows in (("two", TWO), ("three", THREE), ("other", OTHER)):
        data = write_csv(folder / f"{name}.csv", rows, "smiles,kind")
        done = run("fit", data, "--target", "kind", "-o", folder / f"{name}.treelens", *SMALL)
        assert done.code == 0, done.err
    return folder


def compare(folder, a, b, data, *more):
    return run("compare", folder / f"{a}.treelens", folder / f"{b}.treelens", data, *more)


def test_the_target_is_the_column_that_the_models_were_fitted_to(folder):
    done = compare(folder, "two", "two", folder / "two.csv", "--json")
    assert done.code == 0, done.err
    assert done.data["accuracy_a"] == 1.0
    assert any("the target is 'kind'" in note for note in done.data["notes"])


def test_an_option_overrules_the_recorded_target(folder, tmp_path):
    swapped = [(s, {"alcohol": "amine", "amine": "alcohol"}[y], y) for s, y in TWO]
    data = write_csv(tmp_path / "x.csv", swapped, "smiles,other,kind")
    done = compare(folder, "two", "two", data, "--target", "other", "--json")
    assert done.data["accuracy_a"] == 0.0
    assert compare(folder, "two", "two", data, "--json").data["accuracy_a"] == 1.0


def test_models_of_different_columns_ask_which_one_is_meant(folder, molecules, tmp_path):
    renamed = tmp_path / "m.treelens"
    assert run("fit", molecules, "-o", renamed, *SMALL).code == 0
    done = run("compare", folder / "two.treelens", renamed, molecules)
    assert done.code == 2
    assert "A was fitted to the column 'kind' and B to 'label'" in done.err
    assert "--target" in done.err
    assert (
        run("compare", folder / "two.treelens", renamed, molecules, "--target", "label").code == 0
    )


def test_a_table_without_the_recorded_column_is_told(folder, molecules):
    done = compare(folder, "two", "two", molecules)
    assert done.code == 2
    assert "no column 'kind'" in done.err


def test_models_of_different_classes_are_compared_on_those_in_common(folder):
    done = compare(folder, "two", "three", folder / "three.csv", "--json")
    assert done.code == 0, done.err
    assert done.data["n_graphs"] == len(TWO)
    assert (done.data["accuracy_a"], done.data["accuracy_b"]) == (1.0, 1.0)
    assert done.data["scores_a"]["roc_auc"] is None
    (note,) = (note for note in done.data["notes"] if "different classes" in note)
    assert "only B knows 'thiol'" in note
    assert f"{len(THIOLS)} graphs of others left out" in note
    mirrored = compare(folder, "three", "two", folder / "three.csv", "--json").data
    assert any("only A knows 'thiol'" in note for note in mirrored["notes"])


def test_no_page_is_drawn_of_models_with_different_classes(folder, tmp_path):
    page = tmp_path / "x.html"
    done = compare(folder, "two", "three", folder / "three.csv", "--out", page)
    assert done.code == 2
    assert "'thiol'" in done.err
    assert "Leave --out away" in done.err
    assert not page.exists()


def test_models_without_a_common_class_cannot_be_compared(folder):
    done = compare(folder, "two", "other", folder / "two.csv")
    assert done.code == 2
    assert done.err.count("Error") == 1
    assert "A knows the classes 'alcohol', 'amine' and B 'x', 'y'" in done.err


def test_data_of_other_classes_is_no_truth(folder):
    done = compare(folder, "two", "two", folder / "other.csv")
    assert done.code == 2
    assert "'kind' holds 'x', 'y'" in done.err


def test_graphs_of_an_unknown_class_are_counted(folder):
    done = compare(folder, "two", "two", folder / "three.csv", "--json")
    assert done.data["n_graphs"] == len(THREE)
    assert any(f"{len(THIOLS)} graphs of a class" in note for note in done.data["notes"])


def test_fragments_of_several_classes_say_which(folder, tmp_path):
    shown = compare(folder, "three", "three", folder / "three.csv", "--out", tmp_path / "x.html")
    assert "thiol, for thiol" in shown.out


@pytest.mark.parametrize(
    ("more", "units"), [([], "units of the target"), (["--transform", "log10"], "log10 of the tar")]
)
def test_effects_of_numbers_are_in_units_of_the_target(more, units, tmp_path):
    rows = [(s, round(1.0 + 0.37 * len(s), 3)) for s in ALCOHOLS + AMINES]
    data = write_csv(tmp_path / "n.csv", rows, "smiles,value")
    model, page = tmp_path / "n.treelens", tmp_path / "n.html"
    assert run("fit", data, "-o", model, *more, *SMALL).code == 0
    done = run("compare", model, model, data, "--out", page)
    assert done.code == 0, done.err
    for text in (done.out, page.read_text()):
        assert units in text
        assert "units of the decision" not in text
