"""``treelens predict``: rows, columns and scores, of one model or of several."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import treelens as tl
from cli.conftest import (
    ALCOHOLS,
    AMINES,
    MOLECULES,
    QUICK,
    SMALL,
    ok,
    refused,
    run,
    tiny_tu,
    write_csv,
)
from treelens.cli import predicting
from treelens.cli.main import app

ROWS = [
    (
        f"m{k}",
        s,
        round(0.37 * s.count("C") + 2.0 * s.count("N"), 3),
        round(2.0 * 1.5 ** s.count("C"), 2),
        "amine" if "N" in s else "alcohol",
    )
    for k, s in enumerate(ALCOHOLS + AMINES)
]
HEADER = "id,smiles,logP,IC50 (nM),kind"
TARGETS = ("logP", "IC50 (nM)", "kind")
NEW = [("n1", "CCCCO"), ("n2", "no smiles"), ("n3", "CCCN"), ("n4", "")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("several")


@pytest.fixture(scope="module")
def models(folder: Path) -> list[Path]:
    """Numbers, numbers on a logarithmic scale, classes."""
    data = write_csv(folder / "train.csv", ROWS, HEADER)
    paths = [folder / f"{k}.treelens" for k in range(3)]
    for target, path in zip(TARGETS, paths, strict=True):
        scale = ["--transform", "log10"] if "IC50" in target else []
        ok("fit", data, "--target", target, "-o", path, *SMALL, *scale, "--fragments", 0)
    return paths


@pytest.fixture(scope="module")
def charged(folder: Path, models: list[Path]) -> Path:
    """A model that reads molecules in another way than the others."""
    ok(
        "fit",
        folder / "train.csv",
        "--target",
        "IC50 (nM)",
        "-o",
        folder / "c.treelens",
        "--atom-label",
        "element+charge",
        "--standardize",
        *SMALL,
    )
    return folder / "c.treelens"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "new.csv", NEW, "id,smiles")


def predicted(path: Path, *arguments: object) -> pd.DataFrame:
    ok("predict", *arguments, "--out", path, "--jobs", 1)
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


# --- one model ------------------------------------------------------------------------------------


def test_rows_that_cannot_be_read_stay_empty(model, new, tmp_path):
    done = run("predict", model, new, "--out", tmp_path / "p.csv")
    assert "2 of 4 rows could not be read" in done.err
    table = predicted(tmp_path / "p.csv", model, new)
    assert list(table.columns) == [
        "row",
        "id",
        "smiles",
        "class",
        "probability",
        "decision",
        "probability_alcohol",
        "probability_amine",
        "out_of_vocabulary",
        "problem",
    ]
    assert table["class"].tolist()[::2] == ["alcohol", "amine"]
    assert table.iloc[[1, 3], 3:9].isna().all(axis=None)
    assert table["problem"].isna().tolist() == [True, False, True, False]
    assert table["problem"][3] == "an empty cell"
    fitted = tl.load(model)
    good = ["CCCCO", "CCCN"]
    expected = fitted.decision_function(good)
    np.testing.assert_allclose(table["decision"][[0, 2]], expected, rtol=1e-5)
    assert table["probability"][0] == pytest.approx(fitted.predict_proba(good)[0, 0])


@pytest.mark.parametrize("kind", ["numbers", "log10", "classes", "svc"])
def test_scores_where_the_truth_is_known(kind, models, model, folder, tmp_path):
    which = {"numbers": 0, "log10": 1, "classes": 2}.get(kind, 2)
    path = model if kind == "svc" else models[which]
    rows = [(*row[:2], *(("",) * 3 if k == 5 else row[2:])) for k, row in enumerate(ROWS)]
    data = write_csv(tmp_path / "x.csv", rows, HEADER)
    done = run("predict", path, data, "--target", TARGETS[which], "--json")
    assert "1 row without" in done.err
    found, truth = done.data, [row[2 + which] for k, row in enumerate(ROWS) if k != 5]
    assert found["n_scored"] == 39
    assert "39 of 39 scored molecules are training molecules" in done.err
    said = [row for k, row in enumerate(found["predictions"]) if k != 5]
    if which == 2:
        assert found["accuracy"] == np.mean(
            [r["class"] == t for r, t in zip(said, truth, strict=True)]
        )
        assert (found["positive"], found["roc_auc"]) == ("amine", 1.0)
        return
    scale = np.log10 if kind == "log10" else (lambda x: x)
    point = "median" if kind == "log10" else "prediction"
    errors = scale(np.array([r[point] for r in said])) - scale(np.array(truth))
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert "rmse" not in run("predict", path, data, "--json").data


def test_truths_of_another_kind(models, model, folder, tmp_path):
    done = run("predict", models[0], folder / "train.csv", "--target", "kind")
    refused(done, "numbers", "row 1")
    assert "--task" not in done.err  # which predict does not have
    odd = write_csv(tmp_path / "x.csv", [("CCO", "x"), ("CCN", "y")])
    assert "None of the true classes" in run("predict", model, odd, "--target", "label").err
    refused(run("predict", model, odd, "--target", "lable"), "Did you mean 'label'")
    data = write_csv(tmp_path / "new.csv", [("[Si][Ge]",), ("[Se][Ge]",)], "smiles")
    assert "100.0 % of the patterns" in run("predict", model, data).err
    nothing = write_csv(tmp_path / "x.csv", [("?",), ("!",)], "smiles")
    done = run("predict", model, nothing)
    assert done.code == 0
    assert "2 of 2 rows could not be read" in done.err
    refused(run("predict", model, write_csv(tmp_path / "e.csv", [])), "no rows")


def test_truths_in_another_unit(models, folder, tmp_path):
    """Scores are those in the unit of the model, whatever that of the table."""
    expected = run(
        "predict", models[1], folder / "train.csv", "--target", "IC50 (nM)", "--json"
    ).data
    rows = [(row[1], row[3] / 1e3, "uM") for row in ROWS]
    data = write_csv(tmp_path / "other.csv", [*rows, ("CCO", 5, "%")], "smiles,value,unit")
    done = run("predict", models[1], data, "--target", "value", "--json")
    assert done.data["rmse"] == pytest.approx(expected["rmse"], rel=1e-9)
    assert "1 rows cannot be converted to nM" in done.err
    assert f"uM ({len(ROWS)}), % (1): values were converted to nM" in done.err


def test_a_molecule_with_too_many_atoms_is_a_row_with_a_problem(model, tmp_path):
    large = "C" * 6000
    data = write_csv(tmp_path / "x.csv", [("CCO",), (large,), ("CCN",)], "smiles")
    done = ok("predict", model, data, "--out", tmp_path / "p.csv")
    assert "row 2 (6,000 atoms, more than --max-atoms 5000)" in done.err
    rows = pd.read_csv(tmp_path / "p.csv")
    assert rows["class"].isna().tolist() == [False, True, False]
    assert rows["problem"][1] == "6,000 atoms, more than max_atoms=5000"
    done = ok("predict", model, data, "--max-atoms", 6000)
    assert "could not be read" not in done.err
    table = write_csv(tmp_path / "train.csv", [*MOLECULES, (large, "alcohol")])
    fitted = ok("fit", table, "--out", tmp_path / "m.treelens", *QUICK)
    assert "(6,000 atoms, more than --max-atoms 5000)" in fitted.err
    refused(run("fit", table, *QUICK, "--max-atoms", 2), "5 atoms, more than --max-atoms 2")


def test_salts_are_noted_once(model, tmp_path, monkeypatch):
    monkeypatch.setattr(predicting, "CHUNK_ROWS", 2)
    rows = [("CCO",), ("CCN.Cl",), ("CCCO",), ("CCO.[Na+]",), ("CCC",)]
    data = write_csv(tmp_path / "salts.csv", rows, "smiles")
    done = run("predict", model, data, "--out", tmp_path / "p.csv", "--jobs", 1)
    assert done.err.count("several fragments") == 1
    assert (
        "2 of 5 molecules have several fragments (salts, solvents), the first in row 2" in done.err
    )
    assert "they are read whole" in done.err


def test_salts_are_read_as_in_fit(molecules, tmp_path):
    model, data = tmp_path / "m.treelens", tmp_path / "salts.csv"
    ok("fit", molecules, *SMALL, "--standardize", "--fragments", 0, "--out", model)
    write_csv(data, [("CCO",), ("CCO.Cl",), ("CCO.[Na+].[Cl-]",)], "smiles")
    done = run("predict", model, data, "--out", tmp_path / "p.csv", "--jobs", 1)
    assert "2 of 3 molecules have several fragments" in done.err
    assert "the largest is read, as of the molecules that the model was fitted to" in done.err
    assert pd.read_csv(tmp_path / "p.csv")["decision"].round(9).nunique() == 1


def test_a_model_of_depth_zero_says_what_it_compares(molecules, tmp_path):
    for depth, told in ((0, True), (1, False)):
        path = tmp_path / f"{depth}.treelens"
        ok("fit", molecules, "--depth", depth, "--jobs", 1, "--fragments", 0, "--out", path)
        done = run("predict", path, "COCC", "--jobs", 1)
        assert ("similarities compare atoms alone" in done.err) == told


def test_columns_that_name_the_rows(model, folder, tmp_path):
    for ids, expected in (
        ("kind,id", ["kind", "id"]),
        ("none", []),
        ("all", ["id", "logP", "IC50 (nM)", "kind"]),
    ):
        table = predicted(tmp_path / "p.csv", model, folder / "train.csv", "--id", ids)
        assert table.columns[1 : 2 + len(expected)].tolist() == [*expected, "smiles"]
    refused(run("predict", model, folder / "train.csv", "--id", "number"), "no column 'number'")
    data = write_csv(tmp_path / "x.csv", [("CCO", "a", 7)], "smiles,class,row")
    table = predicted(tmp_path / "p.csv", model, data, "--id", "class,row")
    assert table.columns[:4].tolist() == ["row", "class (given)", "row (given)", "smiles"]


# --- other places for molecules -----------------------------------------------------------------


def test_one_smiles_and_standard_input(models):
    expected = tl.load(models[1]).predict(["CCO", "CCCN"])
    found = run("predict", models[1], "CCO", "--json").data
    assert found["predictions"][0]["prediction"] == pytest.approx(expected[0])
    for text in (
        "CCO first\nCCCN second\n",
        "name,smiles\nfirst,CCO\nsecond,CCCN\n",
        "SMILES\nCCO\nCCCN\n",
    ):
        done = CliRunner().invoke(app, ["predict", str(models[1]), "-"], input=text)
        assert done.exit_code == 0, done.stderr
        table = pd.read_csv(io.StringIO(done.stdout))
        np.testing.assert_allclose(table["prediction"], expected, rtol=1e-5)
        if "first" in text:
            assert table["name"].tolist() == ["first", "second"]
    refused(run("predict", models[1], "CC(O"), "nor a SMILES")
    refused(run("predict", models[1], "CCO", "CCCN"), "CCO does not exist")


# --- several models -------------------------------------------------------------------------------


def test_each_model_says_what_it_says_alone_under_its_target(models, new, tmp_path):
    together = predicted(tmp_path / "all.csv", *models, new)
    names = shared = ["row", "id", "smiles"]
    for path, target in zip(models, TARGETS, strict=True):
        alone = predicted(tmp_path / "one.csv", path, new)
        own = alone.drop(columns=[*shared, "problem"])
        names = names + [f"{target}_{name}" for name in own]
        found = together[[f"{target}_{name}" for name in own]].set_axis(list(own), axis=1)
        pd.testing.assert_frame_equal(found, own)
        pd.testing.assert_frame_equal(together[[*shared, "problem"]], alone[[*shared, "problem"]])
    assert together.columns.tolist() == [*names, "problem"]
    done = run("predict", *models, new)
    assert done.err.count("could not be read") == 1
    for name in TARGETS:
        assert f"{name}: predicted " in done.err


def test_scores_of_each_model(models, folder, tmp_path):
    some = [models[0], models[2]]
    done = run("predict", *some, folder / "train.csv", "--target", "kind,logP", "--json")
    numbers, classes = done.data["models"]
    assert numbers["target"] == "logP"
    assert numbers["r2"] > 0.9
    assert classes["accuracy"] > 0.9
    other = write_csv(tmp_path / "x.csv", ROWS, "id,smiles,found,mass,class")
    done = run("predict", *some, other, "--target", "found,class", "--json")
    assert done.data["models"][0]["r2"] == pytest.approx(numbers["r2"])
    one = run("predict", *some, folder / "train.csv", "--target", "kind", "--json").data["models"]
    assert "r2" not in one[0]
    assert one[1]["n_scored"] == len(ROWS)
    refused(
        run("predict", *models, folder / "train.csv", "--target", "logP,smiles"),
        "these are 2 columns for 3 models",
    )


def test_models_that_read_molecules_otherwise_or_cannot_stand_side_by_side(
    models, charged, new, tmp_path
):
    together = predicted(tmp_path / "all.csv", models[0], charged, new)
    alone = predicted(tmp_path / "one.csv", charged, new)
    assert together["IC50 (nM)_prediction"].equals(alone["prediction"])
    assert together["IC50 (nM)_standard_smiles"].equals(alone["standard_smiles"])
    refused(run("predict", models[1], charged, new), "both predict 'IC50 (nM)'")
    other = tmp_path / "tu.treelens"
    ok("fit", tiny_tu(tmp_path / "tu"), "--out", other, *SMALL)
    refused(run("predict", models[0], other, new), "was fitted to molecules", "one after the other")


def test_two_columns_of_smiles_can_be_chosen_from(models, tmp_path):
    data = write_csv(tmp_path / "other.csv", [(row[1], row[3]) for row in ROWS], "Structure,weight")
    other = tmp_path / "other.treelens"
    ok("fit", data, "--target", "weight", "--out", other, *SMALL)
    both = write_csv(tmp_path / "both.csv", [("CCO", "CCN")], "smiles,Structure")
    refused(run("predict", models[0], other, both), "the table has both", "--smiles COLUMN")
    ok("predict", models[0], other, both, "--smiles", "Structure")
    one = write_csv(tmp_path / "one.csv", [("CCO", 1)], "Structure,x")
    ok("predict", models[0], other, one)


def test_model_and_data_in_each_others_place(model, molecules, tmp_path):
    refused(run("predict", model), "Expected a MODEL and then DATA")
    odd = shutil.copy(model, tmp_path / "m.treelens")
    for words in (["predict", model, odd], ["evaluate", odd], ["fit", odd, "-o", tmp_path / "n"]):
        refused(run(*words), "m.treelens has an unknown ending: expected a table")
    refused(run("predict", model, shutil.copy(model, tmp_path / "m.csv")), "m.csv is no text")
    for command in ("predict", "explain", "fragments"):
        refused(run(command, molecules, molecules), "cannot be read as a model")
    half = tmp_path / "half.treelens"
    half.write_bytes(model.read_bytes()[:1000])
    refused(run("predict", half, molecules), "cut off, damaged")
