"""Several models at once: one table, read once, with the columns of each under its target."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from cli.conftest import ALCOHOLS, AMINES, SMALL, run, write_csv
from cli.test_bad_input import refused
from cli.test_commands import tiny_tu
from cli.test_read_once import _opened, parses  # noqa: F401 (fixture)
from treelens.patterns.forest import PatternForest

ROWS = [
    (f"m{k}", s, round(0.37 * s.count("C") + 2.0 * s.count("N"), 3), 10.0 * s.count("C") + k / 7,
     "amine" if "N" in s else "alcohol")
    for k, s in enumerate(ALCOHOLS + AMINES)
]  # fmt: skip
HEADER = "id,smiles,logP,mass,kind"
NEW = [("n1", "CCCCO"), ("n2", "no smiles"), ("n3", "CCCN"), ("n4", "")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("several")


@pytest.fixture(scope="module")
def models(folder: Path) -> list[Path]:
    data = write_csv(folder / "train.csv", ROWS, HEADER)
    done = run("fit", data, "--target", "logP,mass,kind", "--out", folder / "m.treelens", *SMALL)
    assert done.code == 0, done.err
    return [folder / f"m-{name}.treelens" for name in ("logP", "mass", "kind")]


@pytest.fixture(scope="module")
def charged(folder: Path) -> Path:
    """A model that reads molecules in another way than the others."""
    done = run(
        "fit", folder / "train.csv", "--target", "mass", "--out", folder / "charged.treelens",
        "--atom-label", "element+charge", "--standardize", *SMALL,
    )  # fmt: skip
    assert done.code == 0, done.err
    return folder / "charged.treelens"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "new.csv", NEW, "id,smiles")


def predicted(path: Path, *arguments: object) -> pd.DataFrame:
    done = run("predict", *arguments, "--out", path, "--jobs", 1)
    assert done.code == 0, done.err
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def test_each_model_says_what_it_says_alone_under_its_target(models, new, tmp_path):
    together = predicted(tmp_path / "all.csv", *models, new)
    shared = ["row", "id", "smiles"]
    names = [*shared]
    for path, target in zip(models, ("logP", "mass", "kind"), strict=True):
        alone = predicted(tmp_path / "one.csv", path, new)
        own = alone.drop(columns=[*shared, "problem"])
        names += [f"{target}_{name}" for name in own]
        found = together[[f"{target}_{name}" for name in own]].set_axis(list(own), axis=1)
        pd.testing.assert_frame_equal(found, own)
        pd.testing.assert_frame_equal(together[[*shared, "problem"]], alone[[*shared, "problem"]])
    assert together.columns.tolist() == [*names, "problem"]
    assert together["problem"].isna().tolist() == [True, False, True, False]


def test_the_table_is_read_once_and_molecules_are_made_once(
    models, new, charged, tmp_path, parses  # noqa: F811
):  # fmt: skip
    before = Counter(_opened)
    predicted(tmp_path / "p.csv", *models, new)
    assert _opened[str(new)] - before[str(new)] == 1
    with_reasons = parses.calls  # why the two bad rows are bad is asked as well
    parses.calls = 0
    predicted(tmp_path / "p.csv", models[0], new)
    assert parses.calls == with_reasons
    parses.calls, before = 0, Counter(_opened)
    predicted(tmp_path / "p.csv", models[0], charged, new)
    assert _opened[str(new)] - before[str(new)] == 1
    assert parses.calls > with_reasons


def test_every_model_refines_every_graph_once(models, new, tmp_path, monkeypatch):
    sizes, honest = [], PatternForest.transform

    def counted(self, graphs, *more):
        sizes.append(len(graphs))
        return honest(self, graphs, *more)

    monkeypatch.setattr(PatternForest, "transform", counted)
    predicted(tmp_path / "p.csv", *models, new)
    assert sizes == [2, 2, 2]


def test_models_that_read_molecules_otherwise_get_their_own(models, charged, new, tmp_path):
    together = predicted(tmp_path / "all.csv", models[0], charged, new)
    alone = predicted(tmp_path / "one.csv", charged, new)
    assert together["mass_prediction"].equals(alone["prediction"])
    assert together["mass_standard_smiles"].equals(alone["standard_smiles"])
    assert "logP_standard_smiles" not in together


def test_what_all_read_alike_stands_there_once(charged, folder, new, tmp_path):
    other = folder / "charged-logP.treelens"
    done = run(
        "fit", folder / "train.csv", "--target", "logP", "--out", other, "--atom-label",
        "element+charge", "--standardize", *SMALL,
    )  # fmt: skip
    assert done.code == 0, done.err
    names = predicted(tmp_path / "all.csv", charged, other, new).columns.tolist()
    assert names[:5] == ["row", "id", "smiles", "standard_smiles", "mass_prediction"]
    assert sum("standard_smiles" in name for name in names) == 1


def test_parts_make_the_same_table(models, charged, tmp_path):
    rows = [(f"n{k}", s) for k, s in enumerate([*ALCOHOLS[:5], "", "no", "C(C", *AMINES[:3]])]
    new = write_csv(tmp_path / "new.csv", rows, "id,smiles")
    some = [models[0], models[2], charged]
    whole = predicted(tmp_path / "whole.csv", *some, new)
    out = tmp_path / "parts.csv"
    done = run("predict", *some, new, "--out", out, "--part-size", 3, "--jobs", 1, "--json")
    assert done.code == 0, done.err
    parts = pd.read_csv(out, keep_default_na=False, na_values=[""])
    pd.testing.assert_frame_equal(parts, whole, rtol=1e-9)
    assert (done.data["n_rows"], done.data["n_unreadable"], done.data["n_parts"]) == (11, 3, 4)
    assert [each["target"] for each in done.data["models"]] == ["logP", "kind", "mass"]
    assert sum(done.data["models"][1]["predicted"].values()) == 8


def test_scores_of_each_model(models, folder, tmp_path):
    some = [models[0], models[2]]
    done = run("predict", *some, folder / "train.csv", "--target", "kind,logP", "--json")
    assert done.code == 0, done.err
    numbers, classes = done.data["models"]
    assert numbers["target"] == "logP"
    assert numbers["r2"] > 0.9
    assert classes["accuracy"] > 0.9
    other = write_csv(tmp_path / "x.csv", ROWS, "id,smiles,found,mass,class")
    done = run("predict", *some, other, "--target", "found,class", "--json")
    assert done.data["models"][0]["r2"] == pytest.approx(numbers["r2"])
    assert done.data["models"][1]["accuracy"] == classes["accuracy"]


def test_an_own_target_can_be_scored_alone(models, folder):
    done = run("predict", *models[:2], folder / "train.csv", "--target", "mass", "--json")
    assert "r2" not in done.data["models"][0]
    assert done.data["models"][1]["n_scored"] == len(ROWS)


def test_what_is_told_names_the_target(models, new):
    done = run("predict", *models, new)
    assert done.code == 0, done.err
    assert "4 rows; 2 not readable." in done.err
    assert done.err.count("could not be read") == 1
    for name in ("logP: predicted from", "mass: predicted from", "kind: predicted "):
        assert name in done.err


@pytest.mark.parametrize("parts", [[], ["--part-size", "2"]], ids=["at once", "in parts"])
def test_two_models_of_one_target_are_refused(models, charged, new, tmp_path, parts):
    out = tmp_path / "p.csv"
    done = run("predict", models[1], charged, new, "--out", out, *parts)
    refused(done, "both predict 'mass'", "one model for each target")
    assert not out.exists()
    assert not out.with_name("p.csv.parts").exists()


def test_models_of_molecules_and_of_other_graphs_are_refused(models, new, tmp_path):
    other = tmp_path / "tu.treelens"
    assert run("fit", tiny_tu(tmp_path / "tu"), "--out", other, *SMALL).code == 0
    refused(
        run("predict", models[0], other, new),
        "was fitted to molecules", "graphs that are none (TU files", "one after the other",
    )  # fmt: skip


def test_models_after_the_data_are_refused(models, new):
    refused(run("predict", new, models[0]), "Models come first", "MODEL... DATA")


def test_too_few_columns_with_the_truth_are_refused(models, folder):
    done = run("predict", *models, folder / "train.csv", "--target", "logP,smiles")
    refused(done, "these are 2 columns, and there are 3 models (logP, mass, kind)")


def test_two_columns_of_smiles_are_refused_and_can_be_chosen_from(models, folder, tmp_path):
    rows = [(row[1], row[3]) for row in ROWS]
    data = write_csv(tmp_path / "other.csv", rows, "Structure,weight")
    other = tmp_path / "other.treelens"
    assert run("fit", data, "--target", "weight", "--out", other, *SMALL).code == 0
    both = write_csv(tmp_path / "both.csv", [("CCO", "CCN")], "smiles,Structure")
    done = run("predict", models[0], other, both)
    refused(done, "column 'smiles'", "'Structure'", "the table has both", "--smiles COLUMN")
    assert run("predict", models[0], other, both, "--smiles", "Structure").code == 0
    one = write_csv(tmp_path / "one.csv", [("CCO", 1)], "Structure,x")
    assert run("predict", models[0], other, one).code == 0
