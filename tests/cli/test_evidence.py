"""The usual way of ``treelens fit`` and what follows: Gaussian processes on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, MOLECULES, QUICK, SMALL, run, write_csv
from cli.test_bad_input import refused
from cli.test_commands import tiny_tu
from cli.test_executable import execute
from cli.test_executable import pytestmark as needs_executable
from treelens.cli import demo
from treelens.cli.data import read_training_data

# A number that atoms decide: 0.37 for each carbon, two more for each nitrogen.
NUMBERS = [(s, round(0.37 * s.count("C") + 2.0 * s.count("N"), 3)) for s in ALCOHOLS + AMINES]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("numbers") / "x.csv", NUMBERS, "smiles,value")


@pytest.fixture(scope="module")
def regression(numbers: Path) -> Path:
    done = run("fit", numbers, "--out", numbers.with_name("reg.treelens"), *SMALL)
    assert done.code == 0, done.err
    return numbers.with_name("reg.treelens")


@pytest.fixture(scope="module")
def classifier(numbers: Path) -> Path:
    data = write_csv(numbers.with_name("classes.csv"), MOLECULES)
    done = run("fit", data, "--out", numbers.with_name("class.treelens"), *SMALL)
    assert done.code == 0, done.err
    return numbers.with_name("class.treelens")


# --- fit ----------------------------------------------------------------------------------------


def test_fit_learns_numbers_where_the_column_holds_them(numbers, tmp_path):
    done = run("fit", numbers, "--out", tmp_path / "m", *SMALL)
    assert done.code == 0, done.err
    assert "there is no column 'label': the target is 'value'" in done.err
    said = "column 'value' holds numbers: fitting a regression; --task classification to overrule"
    assert said in done.err
    for words in ("Leave-one-out scores", "RMSE", "within 90 % interval", "mean of the values",
                  "predicted from all the others", "nats a graph", "came to rest after",
                  "mean with it", "value from 0.74 to 6.44"):  # fmt: skip
        assert words in done.out, words
    model = tl.load(tmp_path / "m")
    assert isinstance(model, tl.GraphRegressor)
    assert model.loo_.r2 > 0.9


def test_fit_learns_classes_where_the_column_holds_them(molecules, tmp_path):
    done = run("fit", molecules, "--out", tmp_path / "m", *SMALL)
    assert done.code == 0, done.err
    for words in ("Leave-one-out scores", "majority class", "50.0 %", "AUC", "class",
                  "alcohol (20), amine (20)", "nats a graph"):  # fmt: skip
        assert words in done.out, words
    assert "holds numbers" not in done.err
    loaded = tl.load(tmp_path / "m")
    assert isinstance(loaded, tl.GraphClassifier)
    assert loaded.predict(["CCCO", "CCCN"]).tolist() == ["alcohol", "amine"]


def test_fit_as_json(numbers, molecules, tmp_path):
    found = run("fit", numbers, "--out", tmp_path / "m", *SMALL, "--json", "--top", 3).data
    model = tl.load(tmp_path / "m")
    assert (found["method"], found["task"]) == ("evidence", "regression")
    assert found["leave_one_out"]["model"]["rmse"] == model.loo_.rmse
    assert found["leave_one_out"]["mean"]["rmse"] == np.std([y for _, y in NUMBERS])
    assert found["learning_gain"]["sentence"] == model.learning_gain_.sentence
    assert (found["converged"], found["weights"]) == (True, "branches")
    assert len(found["patterns"]) == 3
    found = run("fit", molecules, "--out", tmp_path / "m", *SMALL, "--json").data
    assert found["task"] == "classification"
    assert found["leave_one_out"]["model"]["accuracy"] == tl.load(tmp_path / "m").loo_.accuracy
    assert found["leave_one_out"]["majority"]["accuracy"] == 0.5


def test_the_weights_that_are_learned_can_be_chosen(numbers, tmp_path):
    done = run("fit", numbers, "--out", tmp_path / "m", *SMALL, "--weights", "uniform", "--json")
    assert done.data["learning_gain"]["sentence"].startswith("The weights are uniform")
    assert tl.load(tmp_path / "m").weights == "uniform"
    shown = run("patterns", tmp_path / "m")
    assert "(weights are uniform)" in shown.out


def test_the_task_can_be_overruled(numbers, tmp_path):
    levels = [(s, [0.5, 1.5][i % 2]) for i, (s, _) in enumerate(MOLECULES)]
    data = write_csv(tmp_path / "levels.csv", levels)
    args = ["fit", data, "--out", tmp_path / "m", *SMALL, "--json"]
    assert run(*args).data["task"] == "classification"  # two numbers can pass for classes
    assert tl.load(tmp_path / "m").classes_.tolist() == ["0.5", "1.5"]
    assert run(*args, "--task", "regression").data["task"] == "regression"
    many = [(s, [0.5, 1.5, 2.5, 3.5, 4.5][i % 5]) for i, (s, _) in enumerate(MOLECULES)]
    write_csv(data, many)
    assert run(*args).data["task"] == "regression"
    assert run(*args, "--task", "classification").data["task"] == "classification"
    refused(
        run("fit", numbers, "--out", tmp_path / "m", *SMALL, "--task", "classification"),
        "a measurement (regression)", "--task regression",
    )  # fmt: skip


def test_many_whole_numbers_are_a_regression(tmp_path):
    rows = [(s, f"{7 * i}.0") for i, (s, _) in enumerate(MOLECULES)]
    data = write_csv(tmp_path / "x.csv", rows)
    args = ["fit", data, "--out", tmp_path / "m", *SMALL, "--json"]
    assert run(*args, "--task", "regression").data["task"] == "regression"
    assert run(*args).data["data"]["values"]["largest"] == 273.0
    assert tl.load(tmp_path / "m").train_values_.dtype == np.float64


def test_numbers_with_decimals_are_read_as_they_are(tmp_path):
    data = write_csv(tmp_path / "x.csv", [("C", "1.5"), ("CC", "2"), ("CCC", "-3.0")], "smiles,v")
    _, y = tl.read_smiles(data, target="v")
    assert y.tolist() == [1.5, 2.0, -3.0]
    assert y.dtype == np.float64


@pytest.mark.parametrize(
    ("columns", "expected"),
    [("value,label", "label"), ("target,value", "value"), ("y,target", "target"),
     ("Y,other", "Y"), ("class,activity", "class")],
)  # fmt: skip
def test_the_target_is_found_by_its_name(columns, expected, tmp_path):
    rows = [(s, c, c) for s, c in MOLECULES]
    data = write_csv(tmp_path / "x.csv", rows, f"smiles,{columns}")
    notes: list[str] = []
    assert read_training_data(str(data), note=notes.append).target == expected
    assert notes == (
        [] if expected == "label"
        else [f"there is no column 'label': the target is {expected!r}; --target names another."]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [(["--kernel", "wwl-linear"], "--kernel is an option of support vector machines"),
     (["--weight-radius", "0"], "--weight-radius is an option of support vector machines"),
     (["--scoring", "accuracy"], "--scoring is an option of support vector machines"),
     (["--no-edge-labels"], "--edge-labels is an option of support vector machines"),
     (["--depth", "1,2"], "--depth 1,2: expected auto, or one whole number from 0 to 20"),
     (["--depth", "-1"], "--depth -1: expected"), (["--depth", "21"], "--depth 21: expected"),
     (["--weights", "best"], "--weights best: expected one of branches"),
     (["--task", "guess"], "--task guess: expected one of auto"),
     (["--method", "magic"], "--method magic: expected one of evidence, svc"),
     (["--jobs", "0"], "--jobs 0: expected"),
     (["--method", "svc", "--weights", "depths"], "--weights is an option of --method evidence"),
     (["--method", "svc", "--task", "regression"], "--method svc learns classes only")],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(given, words, molecules, tmp_path):
    refused(run("fit", molecules, "--out", tmp_path / "m", *given), words)
    assert not (tmp_path / "m").exists()


def test_targets_that_are_no_numbers_or_leave_nothing_to_learn(molecules, tmp_path):
    refused(
        run("fit", molecules, "--out", tmp_path / "m", *SMALL, "--task", "regression"),
        "should hold numbers for a regression", "row 1 holds 'alcohol'", "--task classification",
    )  # fmt: skip
    same = write_csv(tmp_path / "same.csv", [(s, 1.5) for s in ALCOHOLS], "smiles,value")
    refused(
        run("fit", same, "--out", tmp_path / "m", *SMALL, "--task", "regression"),
        "holds one value only (1.5, 20 times)",
    )


def test_repeated_rows_with_other_values_are_told(tmp_path):
    rows = [*NUMBERS, NUMBERS[0], (NUMBERS[1][0], 99.5)]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,value")
    done = run("fit", data, "--out", tmp_path / "m", *SMALL)
    assert "2 rows repeat the molecule of another row: each molecule counts once" in done.err
    assert "1 repeated molecule with values far apart: row 2: 1.11, row 42: 99.5" in done.err
    found = tl.load(tmp_path / "m").train_values_
    assert found[:2].tolist() == [NUMBERS[0][1], (NUMBERS[1][1] + 99.5) / 2]


def test_the_seed_settles_everything(numbers, tmp_path):
    for name in ("a", "b"):
        assert run("fit", numbers, "-o", tmp_path / name, *SMALL, "--seed", 3).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# --- predict ------------------------------------------------------------------------------------


def test_predict_numbers_with_intervals(regression, tmp_path):
    data = write_csv(tmp_path / "new.csv", [("CCCCO",), ("no molecule",), ("CC[Si]",)], "smiles")
    done = run("predict", regression, data, "--out", tmp_path / "out.csv")
    assert done.code == 0, done.err
    table = pd.read_csv(tmp_path / "out.csv", float_precision="round_trip")
    assert list(table.columns) == [
        "row", "smiles", "prediction", "std", "lower_90", "upper_90", "out_of_vocabulary",
        "in_domain", "expected_error", "similarity", "problem",
    ]  # fmt: skip
    mean, std = tl.load(regression).predict(["CCCCO", "CC[Si]"], return_std=True)
    np.testing.assert_array_equal(table["prediction"][[0, 2]], mean)
    np.testing.assert_array_equal(table["std"][[0, 2]], std)
    assert (table["upper_90"] - table["lower_90"])[0] == pytest.approx(
        2 * 1.6449 * std[0], rel=1e-4
    )
    assert table.iloc[1, 2:10].isna().all()
    assert table["out_of_vocabulary"][0] == 0 < table["out_of_vocabulary"][2]


def test_predict_scores_numbers_where_the_truth_is_known(regression, numbers):
    done = run("predict", regression, numbers, "--target", "value")
    assert done.code == 0, done.err
    for words in ("RMSE: ", "R2: ", "Within the 90 % interval: ", "predicted from "):
        assert words in done.err
    found = run("predict", regression, numbers, "--target", "value", "--json").data
    said = np.array([row["prediction"] for row in found["predictions"]])
    truth = np.array([y for _, y in NUMBERS])
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((said - truth) ** 2)))
    assert found["r2"] > 0.95
    assert "rmse" not in run("predict", regression, numbers, "--json").data


def test_predict_refuses_truths_that_are_no_numbers(regression, molecules):
    done = run("predict", regression, molecules, "--target", "label")
    refused(done, "should hold numbers", "row 1")


def test_predict_classes(classifier, molecules):
    done = run("predict", classifier, molecules, "--target", "label")
    assert "ROC AUC: 1.000. PR AUC: 1.000. MCC: 1.000. Accuracy: 100.0 %." in done.err
    found = run("predict", classifier, molecules, "--target", "label", "--json").data
    assert (found["accuracy"], found["roc_auc"]) == (1.0, 1.0)
    row, model = found["predictions"][0], tl.load(classifier)
    assert row["class"] == "alcohol"
    graphs = [s for s, _ in MOLECULES]
    assert row["probability"] == row["probability alcohol"] == model.predict_proba(graphs)[0, 0]
    assert row["decision"] == model.decision_function(graphs)[0]
    assert row["out_of_vocabulary"] == 0.0


# --- looking at models --------------------------------------------------------------------------


def test_patterns_of_numbers(regression, tmp_path):
    done = run("patterns", regression, "--sort", "difference", "--json")
    differences = [row["difference"] for row in done.data["patterns"]]
    assert differences == [row["mean_with"] - row["mean_without"] for row in done.data["patterns"]]
    assert differences == sorted(differences, key=abs, reverse=True)
    assert min(differences) < 0 < max(differences)
    assert "with less without" in run("patterns", regression).out
    assert (done.data["method"], done.data["learned"]) == ("evidence", True)
    assert run("patterns", regression, "--out", tmp_path / "p.csv").code == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == len(tl.load(regression).patterns_)


def test_patterns_of_classes(classifier):
    done = run("patterns", classifier, "--top", 4)
    assert "class" in done.out
    assert "nats a graph" in done.out


@pytest.mark.parametrize("kind", ["regression", "classifier"])
def test_explain_hands_over_to_the_report(kind, request, numbers, molecules, tmp_path, monkeypatch):
    model = request.getfixturevalue(kind)
    calls: list[Any] = []

    def report(self: Any, path: Any, X: Any = None, y: Any = None, *, names: Any = None) -> None:
        calls.append((self, path, len(X), y, names))

    for estimator in (tl.GraphRegressor, tl.GraphClassifier):
        monkeypatch.setattr(estimator, "report", report, raising=False)
    data, target = (numbers, "value") if kind == "regression" else (molecules, "label")
    done = run("explain", model, data, "--target", target, "--out", tmp_path / "r.html")
    assert done.code == 0, done.err
    (fitted, path, n_graphs, y, names), = calls  # fmt: skip
    assert type(fitted) is type(tl.load(model))
    assert (path, n_graphs, names) == (tmp_path / "r.html", 40, str(data))
    assert y.dtype.kind == ("f" if kind == "regression" else "U")


# --- demo, other graphs, the executable ---------------------------------------------------------


def test_the_demo_learns_and_reports_on_what_it_held_out(tmp_path, monkeypatch):
    full, story = demo.demo_data()
    small = full.pick(np.arange(60))
    monkeypatch.setattr(demo, "demo_data", lambda: (small, story))
    calls: list[Any] = []
    monkeypatch.setattr(
        tl.GraphRegressor, "report", lambda *given, **more: calls.append(given), raising=False
    )
    done = run("demo", "--out", tmp_path / "demo.html", "--jobs", 1)
    assert done.code == 0, done.err
    assert "48 graphs; pIC50 from" in done.out
    ((fitted, path, graphs, y),) = calls
    assert (len(fitted.train_values_), len(graphs), len(y)) == (48, 12, 12)
    assert path == tmp_path / "demo.html"


def test_a_tu_folder_goes_all_the_way(tmp_path):
    folder = tiny_tu(tmp_path / "TINY")
    assert run("fit", folder, "--out", tmp_path / "m", *SMALL).code == 0
    assert run("predict", tmp_path / "m", folder, "--json").data["predicted"] == {"0": 8, "1": 8}


@needs_executable[0]
@needs_executable[1]
def test_the_executable_predicts_activities(tmp_path):
    """Real molecules with measured activities, which come with RDKit."""
    data, _ = demo.demo_data()
    chosen = np.arange(0, len(data.graphs), 10)
    smiles = [data.graphs.graph_data["smiles"][i] for i in chosen]
    rows = list(zip(smiles, data.y[chosen], strict=True))
    train = write_csv(tmp_path / "train.csv", rows[:80], "smiles,value")
    new = write_csv(tmp_path / "new.csv", rows[80:], "smiles,value")
    fitted = execute("fit", train, "--out", tmp_path / "m.treelens", "--depth", 2, "--json")
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["task"] == "regression"
    assert "holds numbers: fitting a regression" in fitted.stderr
    out = tmp_path / "out.csv"
    done = execute("predict", tmp_path / "m.treelens", new, "--target", "value", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "RMSE: " in done.stderr
    with out.open(newline="") as file:
        said = [float(row["prediction"]) for row in csv.DictReader(file)]
    # Another process, the same bits: decimal text holds a float exactly.
    assert said == tl.load(tmp_path / "m.treelens").predict([s for s, _ in rows[80:]]).tolist()


def test_a_machine_is_still_there(molecules, tmp_path):
    assert run("fit", molecules, "--out", tmp_path / "m", *QUICK).code == 0
    assert isinstance(tl.load(tmp_path / "m"), tl.GraphSVC)


def test_notes_of_a_fit_stand_in_the_json(numbers, tmp_path):
    done = run("fit", numbers, "--out", tmp_path / "m", *SMALL, "--json")
    assert any("fitting a regression" in note for note in done.data["notes"])
