"""Rows of the result tables: what a row holds, who makes it, and the sums of the choice page."""

import json
from itertools import chain

import numpy as np
import pytest

pytest.importorskip("rdkit")

from reproduction.choices import comparisons, counts, learning_gains
from reproduction.data import StudyOptions
from reproduction.pages import paired
from reproduction.rows import RowFile, read_rows
from reproduction.tables import molecules, standing

import treelens as tl
from reproduction import compare

SMILES = ["C" * n + end for n in range(1, 11) for end in ("O", "N", "Cl", "F[C@H](Br)")[:3]]


def tiny_numbers(name: str) -> compare.Data:
    graphs = tl.as_graph_collection(SMILES)
    y = np.random.default_rng(len(name)).normal(size=len(SMILES))
    cliff = np.arange(len(SMILES)) % 2 == 0
    return compare.Data(graphs, y, False, np.arange(len(SMILES)) >= 20, cliff)


def tiny_classes(name: str) -> compare.Data:
    return compare.Data(tl.as_graph_collection(SMILES), np.arange(len(SMILES)) % 2, True)


@pytest.fixture
def tiny(monkeypatch):
    parts = {
        "numbers": compare.Part(("a", "bb"), tiny_numbers, compare.published_split, ("auto",)),
        "classes": compare.Part(
            ("a",),
            tiny_classes,
            compare.table2_splits,
            ("uniform",),
            1,
            methods_of={"a": ("uniform", "forest")},
        ),
    }
    monkeypatch.setattr(compare, "PARTS", parts)


def test_a_row_has_every_score_and_what_was_chosen(tiny, tmp_path):
    compare.run(StudyOptions(tmp_path, part="numbers"))
    row, _ = read_rows(tmp_path / "rows" / "compare_numbers.jsonl")
    fields = "rmse mae r2 nlpd coverage rmse_cliff cpu_seconds settings commit defaults best_depth"
    assert {*fields.split(), "best_weights", "uses_descriptors"} <= set(row)
    assert row["calibration"]["0.9"] == row["coverage"]
    assert np.sqrt(np.mean(np.square(row["errors"]))) == pytest.approx(row["rmse"], abs=2e-3)
    compare.run(StudyOptions(tmp_path, part="classes", repeats=1, seconds=0.0001))
    assert len(read_rows(tmp_path / "rows" / "compare_classes.jsonl")) <= 1
    compare.run(StudyOptions(tmp_path, part="classes", methods=["uniform"]))
    row, *others = read_rows(tmp_path / "rows" / "compare_classes.jsonl")
    assert len(others) == 9
    assert {"accuracy", "roc_auc", "pr_auc", "mcc", "brier", "log_loss"} <= set(row)
    assert 0.0 <= row["brier"] <= 1.0


def test_rivals_have_the_settings_that_their_first_split_chose(tmp_path, monkeypatch):
    part = compare.Part(("a",), tiny_numbers, compare.published_split, ("forest",))
    monkeypatch.setattr(compare, "PARTS", {"numbers": part})
    monkeypatch.setattr(compare, "ASIDE", {"a"})  # nothing of ours can be chosen by a rival
    compare.run_tuning(StudyOptions(tmp_path))
    (tuned,) = read_rows(tmp_path / "rows" / "tuned.jsonl")
    assert set(tuned["at_an_end"]) < {"max_features", "min_samples_leaf"}
    kind = compare.METHODS["forest"][1]
    monkeypatch.setattr(kind, "_axes", None)  # nothing is tuned again
    monkeypatch.setattr(compare, "_compile", lambda *_: None)
    compare.run(StudyOptions(tmp_path, methods=["forest"]))
    (row,) = read_rows(tmp_path / "rows" / "compare_numbers.jsonl")
    assert row["best_params"] == tuned["best_params"]
    assert row["cpu_seconds"] > tuned["cpu_seconds"]
    for value, at_an_end in (("sqrt", True), (0.3, False), (1.0, False)):  # 1: all features
        axis = ("sqrt", 0.1, 0.3, 1.0)
        assert compare._is_open_end("max_features", axis, value) == at_an_end


def test_workers_divide_the_rows_and_share_a_file(tiny, tmp_path):
    part = compare.PARTS["classes"]
    everything = [key for key, *_ in compare.works(part, StudyOptions(tmp_path))]
    shares = [
        [key for key, *_ in compare.works(part, StudyOptions(tmp_path, worker=(k, 3)))]
        for k in range(3)
    ]
    assert sorted(map(json.dumps, chain(*shares))) == sorted(map(json.dumps, everything))
    assert all(len(share) >= 6 for share in shares)
    path = tmp_path / "rows.jsonl"
    with RowFile(path, ("k",), shared=True) as one, RowFile(path, ("k",), shared=True) as other:
        for k in range(3):
            (one if k % 2 else other).append({"k": k})
    assert [row["k"] for row in read_rows(path)] == [0, 1, 2]


def test_assays_that_were_kept_aside_need_frozen_defaults(monkeypatch, tmp_path):
    monkeypatch.setattr(compare, "source_of_library", lambda: {"commit": "x", "defaults": None})
    part = compare.PARTS["moleculeace"]
    with pytest.raises(ValueError, match="before the defaults are frozen"):
        next(compare.works(part, StudyOptions(tmp_path, sets=[compare.NEW_ASSAYS[0]])))
    assert len(compare.NEW_ASSAYS) == 18
    assert not set(compare.NEW_ASSAYS) & set(compare.OLD_ASSAYS)


@pytest.mark.parametrize("load", [tiny_numbers, tiny_classes])
def test_copies_and_stereoisomers_are_on_one_side(load, monkeypatch):
    smiles = [f"{'C' * n}[C@{at}H](F)Br" for n in range(1, 21) for at in ("", "@")]
    graphs = tl.as_graph_collection(smiles + ["C1CCCCC1", "C1CCNCC1", "c1ccccc1", "C1CC1"] * 2)
    data = load("")._replace(graphs=graphs, y=np.arange(len(graphs)) % 2)
    keys = compare.molecule_keys(graphs)
    assert len(np.unique(keys)) == 24
    splits = list(compare.random_and_scaffold_splits(data, 3))
    assert [kind for kind, *_ in splits].count("scaffold") == 5
    for _, _, train, test in splits:
        assert not set(keys[train]) & set(keys[test])
        assert sorted([*train, *test]) == list(range(len(graphs)))


# --- sums of the pages ------------------------------------------------------------------------


def of_accuracies(scores, name):
    """Rows of a set: the accuracies by method, split by split."""
    return [
        {"set": name, "kind": "random", "split": split, "method": method, "accuracy": value}
        | {"n_train": 80, "n_test": 20}
        for method, values in scores.items()
        for split, value in enumerate(values)
    ]


def test_gains_of_learning_are_sorted_and_have_intervals():
    base = {"auto": [0.8, 0.7, 0.9], "uniform": [0.8, 0.7, 0.9]}
    rows = [
        *of_accuracies({**base, "branches": [0.7, 0.9, 0.8]}, "same"),
        *of_accuracies({**base, "branches": [0.9, 0.78, 0.99]}, "better"),
    ]
    found = comparisons({"table2": rows})
    gains = learning_gains(found)
    assert [name for name, _ in gains] == ["better", "same"]
    test = gains["better", "points"]["branches"]
    assert test.difference == pytest.approx(9.0)
    assert 0 < test.interval[0] < test.difference
    assert test.p_value < 0.05
    _, classes = counts(found)
    assert classes[1:] == [2, "+4.50 points", 1, 0, 1, "better"]


def test_a_lead_has_to_survive_the_number_of_lines():
    """Alone, the lead on either set would be significant; among two lines it is not."""
    apart = 0.01 * (3.5 + np.arange(-2, 3))
    rows = [
        {"set": name, "kind": "random", "split": split, "method": method, "rmse": rmse}
        | {"n_train": 80, "n_test": 20}
        for name in ("ESOL", "FreeSolv")
        for split, lead in enumerate(apart)
        for method, rmse in (("auto", 1.0), ("forest", 1.0 + lead))
    ]
    test = paired([r for r in rows if r["set"] == "ESOL"], "auto", "forest", "rmse", ("split",))
    assert 0.025 < test.p_value < 0.05
    none = [[]] * 6
    _, _, line, _ = standing.standing(rows, *none).splitlines()
    assert line == f"| ESOL, 5 random splits |  | +3.4 %, ECFP4 forest ({2 * test.p_value:.3f}) |"
    _, _, line, _ = molecules.numbers(rows, []).splitlines()
    assert line == "| ESOL, 5 random splits | **1.000\xa0±\xa00.000** | 1.035\xa0±\xa00.016 |"
