"""``treelens evaluate``: models side by side on splits that mean something."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import treelens as tl
from cli.conftest import MOLECULES, run, write_csv
from cli.test_bad_input import refused
from cli.test_commands import tiny_tu
from cli.test_evidence import NUMBERS
from treelens.cli.data import read_training_data
from treelens.cli.evaluate_models import model_names, models_for, rival_of
from treelens.cli.split_option import column_values, splits_for

FAST = ["--folds", "2", "--depth", "1", "--jobs", "1"]
RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCOC1", "c1ccsc1"]
# Rings with tails; which class, and when it was measured.
RINGED = [
    (ring + tail, "acid" if "=O" in tail else "other", 2000 + 3 * k % 8)
    for ring in RINGS
    for k, tail in enumerate(["C", "CC", "CC(=O)O", "CCC(=O)O", "N", "CN", "C(=O)O", "CCC"])
]


@pytest.fixture
def ringed(tmp_path: Path) -> Path:
    rows = [(s, label, year, "ab"[i % 2]) for i, (s, label, year) in enumerate(RINGED)]
    return write_csv(tmp_path / "rings.csv", rows, "smiles,label,year,lab")


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "x.csv", NUMBERS, "smiles,value")


def test_classes_have_all_the_scores_and_baselines_stand_beside(ringed):
    done = run("evaluate", ringed, *FAST, "--split", "scaffold", "--baselines", "--json")
    assert done.code == 0, done.err
    found = done.data
    names = ["evidence", "evidence_uniform", "ecfp_forest", "ecfp_gp", "ecfp_svm"]
    assert [row["model"] for row in found["models"]] == names
    for row in found["models"]:
        for score in ("roc_auc", "pr_auc", "mcc", "accuracy", "balanced_accuracy", "recall"):
            assert len(row["scores"][score]) == 2
            assert row[score] == pytest.approx(np.mean(row["scores"][score]))
    against = {t["model"]: t["against"] for t in found["tests"]}
    assert against == {
        "evidence": "evidence_uniform", "ecfp_forest": "evidence", "ecfp_gp": "evidence",
        "ecfp_svm": "evidence",
    }  # fmt: skip
    assert (found["tested"], found["positive"], found["split"]) == ("roc_auc", "acid", "scaffold")
    assert found["positive_share"] == pytest.approx(15 / 40)
    assert found["models"][0]["roc_auc"] > 0.9


def test_the_table_for_people(ringed):
    done = run("evaluate", ringed, *FAST, "--models", "evidence_uniform,ecfp_gp", "--score", "mcc")
    assert done.code == 0, done.err
    for words in ("ROC AUC", "PR AUC", "MCC", "balanced", "majority class", "62.5 %",
                  "Differences of MCC, positive is better", "about the class 'acid' (37.5 %",
                  "random folds"):  # fmt: skip
        assert words in done.out, words


def test_numbers(numbers):
    done = run("evaluate", numbers, *FAST, "--baselines", "--json")
    assert done.code == 0, done.err
    rows = {row["model"]: row for row in done.data["models"]}
    assert list(rows) == ["evidence", "evidence_uniform", "ecfp_forest", "ecfp_gp"]
    assert all(len(row["scores"]["rmse"]) == 2 for row in rows.values())
    assert {"rmse", "mae", "r2", "nlpd", "coverage"} <= set(rows["evidence"])
    assert rows["ecfp_forest"]["nlpd"] is None
    assert rows["ecfp_gp"]["nlpd"] is not None
    assert rows["evidence"]["rmse"] < done.data["mean_rmse"]
    shown = run("evaluate", numbers, *FAST, "--models", "evidence_uniform")
    for words in ("RMSE", "MAE", "NLPD", "within 90 %", "mean of the values", "negative is better"):
        assert words in shown.out
    refused(
        run("evaluate", numbers, "--models", "evidence,wwl"),
        "--models wwl: it learns classes, and this is a regression",
    )
    refused(run("evaluate", numbers, "--models", "ecfp_svm"), "ecfp_svm: it learns classes")
    refused(run("evaluate", numbers, "--folds", 30), "Use --folds 20")


def test_the_published_kernels_are_still_there(molecules):
    done = run("evaluate", molecules, "--kernels", "wl_oa,wwl,learned_wl_oa", *FAST, "--json")
    assert done.code == 0, done.err
    assert [row["model"] for row in done.data["models"]] == ["wl_oa", "wwl", "learned_wl_oa"]
    assert done.data["majority"] == 0.5
    assert [(t["model"], t["against"]) for t in done.data["tests"]] == [
        ("wwl", "wl_oa"), ("learned_wl_oa", "wl_oa"),
    ]  # fmt: skip
    refused(run("evaluate", molecules, "--models", "magic"), "--models magic: there is no such")
    few = run("evaluate", molecules, "--models", "wl_oa", "--folds", 30)
    refused(few, "Use --folds 20")
    several = run("evaluate", molecules, "--depth", "1,2")
    refused(several, "--depth 1,2: evidence takes one depth", "--models")


def test_a_learned_kernel_learns_even_where_uniform_is_as_good(molecules):
    graphs, y = tl.read_smiles(molecules)  # every kernel gets all of these right
    made = models_for(["wwl", "learned_wwl"], "classification", "1", None, seed=0, jobs=1)
    assert made["wwl"].fit(graphs, y).best_params_["weight_radius"] == 0
    assert made["learned_wwl"].fit(graphs, y).fitted_.best_params_["weight_radius"] > 0


def test_names_of_models():
    assert model_names(None, None) == ["evidence", "evidence_uniform"]
    assert model_names("auto, wwl,wwl", None) == ["svc", "wwl"]
    assert model_names("evidence", "all")[1:] == ["ecfp_forest", "ecfp_gp", "ecfp_svm"]


def test_what_learns_is_tested_against_itself_without():
    names = ["wl_oa", "wwl", "learned_wwl", "evidence", "evidence_uniform"]
    assert [rival_of(name, names) for name in names] == [
        None, "wl_oa", "wwl", "evidence_uniform", "wl_oa",
    ]  # fmt: skip


def test_covariates_are_tested_against_covariates():
    with_them = ["evidence+covariates", "evidence_uniform+covariates"]
    names = [*with_them, "evidence", "evidence_uniform", "ecfp_forest"]
    assert [rival_of(name, names) for name in names] == [
        "evidence", "evidence+covariates", "evidence_uniform", "evidence", "evidence",
    ]  # fmt: skip
    for name in names:  # the only pair of which one has none is a model and itself without
        rival = str(rival_of(name, names))
        apart = name.endswith("+covariates") != rival.endswith("+covariates")
        assert not apart or name.removesuffix("+covariates") == rival
    alone = ["evidence_uniform+covariates", "evidence_uniform", "ecfp_forest"]
    assert [rival_of(name, alone) for name in alone] == [
        "evidence_uniform", None, "evidence_uniform",
    ]  # fmt: skip


# --- splits -------------------------------------------------------------------------------------


def split_by(path: Path, split: str, n_folds: int = 2, n_repeats: int = 1):
    notes: list[str] = []
    data = read_training_data(str(path), task="auto", duplicates="keep")
    return data, splits_for(data, split, n_folds, n_repeats, 0, notes.append), notes


def test_scaffolds_stay_whole(ringed):
    data, splits, _ = split_by(ringed, "scaffold", n_folds=3, n_repeats=2)
    rings = np.array([next(r for r in RINGS if text.startswith(r)) for text in data.texts])
    assert len(splits) == 6
    for train, test in splits:
        assert not set(rings[train]) & set(rings[test])


def test_time_and_columns(ringed):
    data, splits, notes = split_by(ringed, "time=year", n_folds=2, n_repeats=2)
    years = column_values(data, "year").astype(int)
    assert all(years[train].max() < years[test].min() for train, test in splits)
    assert "--repeats 2 is not used" in notes[0]
    data, splits, _ = split_by(ringed, "column=lab", n_folds=5)
    labs = column_values(data, "lab")
    assert len(splits) == 2
    assert all(not set(labs[a]) & set(labs[b]) for a, b in splits)


def test_dates_are_read_as_dates(tmp_path):
    rows = [(f"{'C' * n}O", n + 0.5, f"{n}/1/2020") for n in range(1, 13)]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,value,day")  # as texts 10/1 is before 2/1
    _, splits, _ = split_by(data, "time=day", n_folds=2)
    assert [test.tolist() for _, test in splits] == [[4, 5, 6, 7], [8, 9, 10, 11]]


def test_train_and_test_as_published_without_copies(tmp_path):
    rows = [(f"{'C' * n}O", n + 0.5, "Train") for n in range(1, 25)]
    rows += [("OCC", 9.5, "test"), ("CCCCN", 5.5, "test"), ("CCCN", 3.5, "test")]
    path = write_csv(tmp_path / "x.csv", rows, "smiles,value,part")
    _, splits, notes = split_by(path, "column=part")
    ((train, test),) = splits
    assert (len(train), test.tolist()) == (24, [25, 26])
    assert "1 test molecules have a copy in their training part" in notes[0]
    done = run(
        "evaluate", path, "--models", "evidence_uniform", "--split", "column=part", *FAST[2:]
    )
    assert done.code == 0, done.err
    assert "one test part" in done.out


def test_splits_that_cannot_be(ringed, molecules, tmp_path):
    refused(run("evaluate", ringed, "--split", "best"), "--split best: expected random, scaffold")
    refused(run("evaluate", ringed, "--split", "time="), "--split time=: expected")
    refused(run("evaluate", ringed, "--split", "time=yeer"), "Did you mean 'year'?")
    refused(run("evaluate", molecules, "--split", "scaffold"), "There are 1 scaffolds for 5 folds")
    refused(run("evaluate", ringed, "--score", "rmse"), "--score rmse: expected one of roc_auc")
    refused(run("evaluate", ringed, "--positive", "base"), "--positive base: expected one of two")
    refused(run("evaluate", ringed, "--threshold", "high"), "--threshold high: threshold must be")
    same = write_csv(tmp_path / "s.csv", [(s, c, "x") for s, c in MOLECULES], "smiles,label,lab")
    refused(run("evaluate", same, "--split", "column=lab"), "holds one value only ('x')")
    gaps = [(s, c, "" if i == 3 else i) for i, (s, c) in enumerate(MOLECULES)]
    path = write_csv(tmp_path / "g.csv", gaps, "smiles,label,when")
    refused(run("evaluate", path, "--split", "time=when"), "empty in 1 rows, the first row 4")
    folder = tiny_tu(tmp_path / "TINY")
    refused(run("evaluate", folder, "--split", "time=x", *FAST), "has no columns")


def test_graphs_that_are_no_molecules_have_no_fingerprints(tmp_path):
    folder = tiny_tu(tmp_path / "TINY")
    done = run("evaluate", folder, "--models", "evidence_uniform", "--baselines", *FAST)
    assert done.code == 0, done.err
    assert "ecfp_gp is left out: these graphs were not read from molecules" in done.err


def test_a_model_that_names_one_class_is_called_that(tmp_path):
    classes = np.random.default_rng(0).permutation([1] * 4 + [0] * 36)
    rows = [(f"{'C' * n}O", c) for n, c in enumerate(classes, start=1)]
    path = write_csv(tmp_path / "x.csv", rows)
    done = run("evaluate", path, "--models", "evidence_uniform", *FAST, "--threshold", "0.5")
    assert done.code == 0, done.err
    assert "evidence_uniform names one class throughout in 2 of 2 test parts" in done.out
