"""``treelens evaluate``: models side by side on splits that mean something."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cli.conftest import FAST, ok, refused, run, tiny_tu, write_csv
from cli.test_fit import NUMBERS
from treelens.chem.baselines import BASELINES
from treelens.cli import console, evaluate


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "x.csv", NUMBERS, "smiles,value")


def test_classes_have_all_the_scores_and_baselines_stand_beside(ringed):
    done = ok(
        "evaluate",
        ringed,
        *FAST,
        "--split",
        "scaffold",
        "--models",
        "gp,gp_uniform,ecfp_gp",
        "--json",
    )
    found = done.data
    names = ["gp", "gp_uniform", "ecfp_gp"]
    assert [row["model"] for row in found["models"]] == names
    for row in found["models"]:
        for score in ("roc_auc", "pr_auc", "mcc", "accuracy", "balanced_accuracy", "recall"):
            assert len(row["scores"][score]) == 2
            assert row[score] == pytest.approx(np.mean(row["scores"][score]))
    against = {t["model"]: t["against"] for t in found["tests"]}
    assert against == {"gp": "gp_uniform", "ecfp_gp": "gp"}
    assert (found["tested"], found["positive"], found["split"]) == ("roc_auc", "other", "scaffold")
    assert found["positive_share"] == pytest.approx(25 / 40)
    assert found["models"][0]["roc_auc"] > 0.9
    assert set(evaluate.BASELINE_NAMES) == set(BASELINES)


def test_the_table_for_people_fits_80_columns(ringed, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "_WIDTH_OF_A_FILE", 80)
    done = ok(
        "evaluate",
        ringed,
        *FAST,
        "--covariates",
        "lab",
        "--models",
        "gp_uniform,ecfp_gp",
        "--score",
        "mcc",
    )
    for words in (
        "ROC AUC",
        "PR AUC",
        "MCC",
        "frequent",
        "62.5 %",
        "Differences of MCC, positive is better",
        "about the class 'other' (62.5 %",
        "split by random",
    ):
        assert words in done.out, words
    lines = done.out.splitlines()
    scores, test = (line.split() for line in lines if line.startswith("  gp_uniform+covariates "))
    assert (scores[-1], test[1]) == ("%", "gp_uniform")  # no cell is folded
    args = ["evaluate", ringed, *FAST, "--models", "gp_uniform", "--positive", "acid"]
    assert "about the class 'acid' (37.5 %" in run(*args).out
    text = ringed.read_text().replace("acid", "active").replace("other", "inactive")
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(text)
    assert "about the class 'active' (37.5 %" in run("evaluate", renamed, *args[2:-2]).out


def test_numbers(numbers):
    done = ok("evaluate", numbers, *FAST, "--models", "gp,gp_uniform,ecfp_gp", "--json")
    rows = {row["model"]: row for row in done.data["models"]}
    assert list(rows) == ["gp", "gp_uniform", "ecfp_gp"]
    assert all(len(row["scores"]["rmse"]) == 2 for row in rows.values())
    assert {"rmse", "mae", "r2", "nlpd", "coverage"} <= set(rows["gp"])
    assert rows["ecfp_gp"]["nlpd"] is not None
    assert rows["gp"]["rmse"] < done.data["mean_rmse"]
    shown = run("evaluate", numbers, *FAST, "--models", "gp_uniform")
    for words in ("RMSE", "MAE", "R2", "within 90 %", "mean of all", "negative is better"):
        assert words in shown.out
    refused(run("evaluate", numbers, "--models", "gp,wwl"), "--models wwl: it learns classes")


def test_the_published_kernels_are_still_there(molecules):
    done = ok("evaluate", molecules, "--models", "wl_oa,wwl,learned_wl_oa", *FAST, "--json")
    assert [row["model"] for row in done.data["models"]] == ["wl_oa", "wwl", "learned_wl_oa"]
    assert done.data["majority"] == 0.5
    assert [(t["model"], t["against"]) for t in done.data["tests"]] == [
        ("wwl", "wl_oa"),
        ("learned_wl_oa", "wl_oa"),
    ]
    refused(run("evaluate", molecules, "--models", "wl_oa", "--folds", 30), "Use 20 folds")
    refused(run("evaluate", molecules, "--depth", "1,2"), "--depth 1,2: expected")


def test_one_test_part_has_intervals_of_its_graphs_and_no_p_value(tmp_path):
    rows = [(s, y, "train" if k % 4 else "test") for k, (s, y) in enumerate(NUMBERS)]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,value,part")
    args = ("evaluate", data, "--split", "column=part", "--depth", 1, "--jobs", 1)
    args += ("--models", "gp_uniform,ecfp_gp")
    done = ok(*args)
    assert "one test part" in done.out
    assert "95 % intervals of a bootstrap of the test part" in done.out
    assert "±" not in done.out
    assert "P-values" not in done.out
    found = ok(*args, "--json").data
    for model in found["models"]:
        low, high = found["intervals"][model["model"]]
        assert low < model["rmse"] < high
        assert f"({console.score_text('rmse', low)} to " in done.out
    (test,) = found["tests"]
    assert test["p_value"] is test["p_holm"] is test["standard_error"] is None
    assert test["interval"][0] <= test["difference"] <= test["interval"][1]
    assert found["level_with_best"] is None


def test_models_that_are_level_with_the_best_are_named(molecules):
    models = ("--models", "gp_uniform,gp_depths,ecfp_gp", "--score", "accuracy")
    args = ("evaluate", molecules, *FAST, *models)
    level = ok(*args, "--json").data["level_with_best"]
    assert level
    words = " ".join(ok(*args).out.split())
    others = ", ".join(level[1:]) or "none"
    assert f"Best: {level[0]}; not distinguishable from it (Tukey's HSD, 5 %): {others}." in words


def test_what_cannot_be_asked_for(ringed, tmp_path):
    for option, value in (
        ("--split", "best"),
        ("--score", "rmse"),
        ("--positive", "base"),
        ("--threshold", "high"),
        ("--models", "magic"),
    ):
        refused(run("evaluate", ringed, option, value), value)
    folder = tiny_tu(tmp_path / "TINY")
    refused(run("evaluate", folder, "--split", "time=x", *FAST), "has no columns")
    done = ok("evaluate", folder, "--models", "gp_uniform", "--baselines", *FAST)
    assert "these graphs were not read from molecules" in done.err


def test_a_model_that_names_one_class_is_called_that(tmp_path):
    classes = np.random.default_rng(0).permutation([1] * 4 + [0] * 36)
    rows = [(f"{'C' * n}O", c) for n, c in enumerate(classes, start=1)]
    path = write_csv(tmp_path / "x.csv", rows)
    done = ok("evaluate", path, "--models", "gp_uniform", *FAST, "--threshold", "0.5")
    assert "gp_uniform predicts one class throughout in 2 of 2 test parts" in done.out


@pytest.mark.parametrize(
    ("difference", "error", "interval", "shown"),
    [
        (3e-17, 1e-17, None, ["none", ""]),
        (0.1, None, None, ["+0.1", ""]),
        (0.1, None, (-0.0123, 0.2123), ["+0.1 (-0.012 to +0.21)", ""]),
        (0.0012345, 0.0123, (-0.02, 0.02), ["+0.001 ± 0.012", "0.500"]),
    ],
)
def test_equal_predictions_have_no_difference(difference, error, interval, shown):
    """Of the same model under two names: not +0.000 ± 0."""
    test = {"difference": difference, "standard_error": error, "p_holm": 0.5}
    test["interval"] = interval
    assert evaluate._verdict(test | {"model": "a", "against": "b"}) == ["a", "b", *shown]
