"""``treelens evaluate``: models side by side on splits that mean something."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import treelens as tl
from cli.conftest import FAST, refused, run, tiny_tu, write_csv
from cli.test_fit import NUMBERS
from treelens.cli import evaluate
from treelens.cli.evaluate import rival_of
from treelens.cli.options import Training
from treelens.estimators.baselines import BASELINES


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "x.csv", NUMBERS, "smiles,value")


def test_classes_have_all_the_scores_and_baselines_stand_beside(ringed):
    done = run("evaluate", ringed, *FAST, "--split", "scaffold", "--models",
               "evidence,evidence_uniform,ecfp_gp", "--json")  # fmt: skip
    assert done.code == 0, done.err
    found = done.data
    names = ["evidence", "evidence_uniform", "ecfp_gp"]
    assert [row["model"] for row in found["models"]] == names
    for row in found["models"]:
        for score in ("roc_auc", "pr_auc", "mcc", "accuracy", "balanced_accuracy", "recall"):
            assert len(row["scores"][score]) == 2
            assert row[score] == pytest.approx(np.mean(row["scores"][score]))
    against = {t["model"]: t["against"] for t in found["tests"]}
    assert against == {"evidence": "evidence_uniform", "ecfp_gp": "evidence"}
    assert (found["tested"], found["positive"], found["split"]) == ("roc_auc", "other", "scaffold")
    assert found["positive_share"] == pytest.approx(25 / 40)
    assert found["models"][0]["roc_auc"] > 0.9


def test_baselines_are_added_by_their_names():
    assert evaluate._model_names("evidence", True) == ["evidence", *evaluate.BASELINE_NAMES]
    assert set(evaluate.BASELINE_NAMES) == set(BASELINES)
    for name in evaluate.BASELINE_NAMES:
        for k, task in enumerate(("classification", "regression")):
            made = evaluate._model(name, task, Training(jobs=1))
            assert type(made) is BASELINES[name][k]


def test_the_table_for_people(ringed):
    done = run("evaluate", ringed, *FAST, "--models", "evidence_uniform,ecfp_gp", "--score", "mcc")
    assert done.code == 0, done.err
    for words in ("ROC AUC", "PR AUC", "MCC", "balanced", "frequent", "62.5 %",
                  "Differences of MCC, positive is better", "about the class 'other' (62.5 %",
                  "random folds"):  # fmt: skip
        assert words in done.out, words


def test_numbers(numbers):
    done = run(
        "evaluate", numbers, *FAST, "--models", "evidence,evidence_uniform,ecfp_gp", "--json"
    )
    assert done.code == 0, done.err
    rows = {row["model"]: row for row in done.data["models"]}
    assert list(rows) == ["evidence", "evidence_uniform", "ecfp_gp"]
    assert all(len(row["scores"]["rmse"]) == 2 for row in rows.values())
    assert {"rmse", "mae", "r2", "nlpd", "coverage"} <= set(rows["evidence"])
    assert rows["ecfp_gp"]["nlpd"] is not None
    assert rows["evidence"]["rmse"] < done.data["mean_rmse"]
    shown = run("evaluate", numbers, *FAST, "--models", "evidence_uniform")
    for words in ("RMSE", "MAE", "NLPD", "within 90 %", "mean of all", "negative is better"):
        assert words in shown.out
    refused(
        run("evaluate", numbers, "--models", "evidence,wwl"),
        "--models wwl: it learns classes, and this is a regression",
    )
    refused(run("evaluate", numbers, "--folds", 30), "Use 20 folds")


def test_the_published_kernels_are_still_there(molecules):
    done = run("evaluate", molecules, "--models", "wl_oa,wwl,learned_wl_oa", *FAST, "--json")
    assert done.code == 0, done.err
    assert [row["model"] for row in done.data["models"]] == ["wl_oa", "wwl", "learned_wl_oa"]
    assert done.data["majority"] == 0.5
    assert [(t["model"], t["against"]) for t in done.data["tests"]] == [
        ("wwl", "wl_oa"), ("learned_wl_oa", "wl_oa"),
    ]  # fmt: skip
    refused(run("evaluate", molecules, "--models", "magic"), "--models magic: expected one of")
    few = run("evaluate", molecules, "--models", "wl_oa", "--folds", 30)
    refused(few, "Use 20 folds")
    several = run("evaluate", molecules, "--depth", "1,2")
    refused(several, "--depth 1,2: expected")


def test_a_learned_kernel_learns_even_where_uniform_is_as_good(molecules):
    graphs, y = tl.read_smiles(molecules)  # every kernel gets all of these right
    plain, learned = (
        evaluate._model(name, "classification", Training(depth="1", jobs=1))
        for name in ("wwl", "learned_wwl")
    )
    assert plain.fit(graphs, y).best_params_["weight_radius"] == 0
    assert learned.fit(graphs, y).fitted_.best_params_["weight_radius"] > 0


@pytest.mark.parametrize(("positive", "share"), [("acid", 15 / 40), ("other", 25 / 40)])
def test_the_share_is_that_of_the_positive_class(positive, share, ringed):
    args = ["evaluate", ringed, *FAST, "--models", "evidence_uniform", "--positive", positive]
    assert run(*args, "--json").data["positive_share"] == pytest.approx(share)
    assert f"{positive!r} ({100 * share:.1f} %" in run(*args).out


def test_one_test_part_has_no_spread_and_no_p_value(tmp_path):
    rows = [(s, y, "train" if k % 4 else "test") for k, (s, y) in enumerate(NUMBERS)]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,value,part")
    done = run("evaluate", data, "--split", "column=part", "--depth", 1, "--jobs", 1)
    assert done.code == 0, done.err
    assert "one test part" in done.out
    assert "±" not in done.out
    assert "P-values" not in done.out


def test_what_learns_is_tested_against_itself_without():
    names = ["wl_oa", "wwl", "learned_wwl", "evidence", "evidence_uniform"]
    assert [rival_of(name, names) for name in names] == [
        None, "wl_oa", "wwl", "evidence_uniform", "wl_oa",
    ]  # fmt: skip
    with_them = ["evidence+covariates", "evidence_uniform+covariates"]
    names = [*with_them, "evidence", "evidence_uniform", "ecfp_forest"]
    assert [rival_of(name, names) for name in names] == [
        "evidence", "evidence+covariates", "evidence_uniform", "evidence", "evidence",
    ]  # fmt: skip
    alone = ["evidence_uniform+covariates", "evidence_uniform", "ecfp_forest"]
    assert [rival_of(name, alone) for name in alone] == [
        "evidence_uniform", None, "evidence_uniform",
    ]  # fmt: skip


def test_what_cannot_be_asked_for(ringed, tmp_path):
    for option, value in (("--split", "best"), ("--score", "rmse"), ("--positive", "base"),
                          ("--threshold", "high"), ("--models", "magic")):  # fmt: skip
        refused(run("evaluate", ringed, option, value), value)
    folder = tiny_tu(tmp_path / "TINY")
    refused(run("evaluate", folder, "--split", "time=x", *FAST), "has no columns")


# --- splits -------------------------------------------------------------------------------------


def test_graphs_that_are_no_molecules_have_no_fingerprints(tmp_path):
    folder = tiny_tu(tmp_path / "TINY")
    done = run("evaluate", folder, "--models", "evidence_uniform", "--baselines", *FAST)
    assert done.code == 0, done.err
    assert "these graphs were not read from molecules" in done.err


def test_a_model_that_names_one_class_is_called_that(tmp_path):
    classes = np.random.default_rng(0).permutation([1] * 4 + [0] * 36)
    rows = [(f"{'C' * n}O", c) for n, c in enumerate(classes, start=1)]
    path = write_csv(tmp_path / "x.csv", rows)
    done = run("evaluate", path, "--models", "evidence_uniform", *FAST, "--threshold", "0.5")
    assert done.code == 0, done.err
    assert "evidence_uniform predicts one class throughout in 2 of 2 test parts" in done.out


@pytest.mark.parametrize(
    ("difference", "error", "shown"),
    [(0.0, 0.0, ["none", "b", ""]), (3e-17, 1e-17, ["none", "b", ""]),
     (0.1, 0.0, ["+0.1", "b", ""]), (0.1, None, ["+0.1", "b", ""]),
     (0.0012345, 0.0123, ["+0.001 ± 0.012", "b", "0.500"])],
)  # fmt: skip
def test_equal_predictions_have_no_difference(difference, error, shown):
    """Of the same model under two names: not +0.000 ± 0."""
    test = {"difference": difference, "standard_error": error, "p_holm": 0.5, "against": "b"}
    assert evaluate._verdict(test) == shown
