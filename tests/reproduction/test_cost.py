"""The study of cost: what a row holds, how runs are stopped, ratios in words."""

import numpy as np
import pytest
from reproduction.cost import CLASS_LINES, first_split
from reproduction.data import StudyOptions
from reproduction.page_speed import _cost_parts, times_ours
from reproduction.rows import read_rows

import treelens as tl
from reproduction import cost


def made_row(name, method, seconds):
    score = {"accuracy": 0.9} if name == "NCI1" else {"rmse": 0.5}
    return {
        "set": name, "method": method, "fit_cpu": 0.75 * seconds, "predict_cpu": 0.25 * seconds,
        "wall": 2 * seconds, "megabytes": 300.0, "megabytes_before": 200.0, "n_train": 90,
        "n_test": 10, **score,
    }  # fmt: skip


def test_rivals_are_compared_with_our_machine_of_the_same_kernel():
    seconds = {"treelens": 100.0, "svc_wl": 2.0, "grakel_wl": 30.0, "svc_wwl": 3.0}
    rows = [made_row("NCI1", *pair) for pair in seconds.items()]
    rows += [{"set": "NCI1", "method": "wwl", "stopped": 300}]
    text = "\n".join(_cost_parts([*rows, made_row("ESOL", "treelens", 10.0)]))
    assert "| NCI1, 90 + 10 | GraKeL WL subtree, `SVC` | 22.5 | 7.5 | 15 | 300 | 90.0 |" in text
    assert "| NCI1 | wwl, `SVC` | > 300, stopped |  | > 100 |  |  |" in text
    assert times_ours({"stopped": 300}, made_row("NCI1", "treelens", 400.0)) == ""


@pytest.mark.parametrize("method", ["grakel_wl", "grakel_wl_oa", "wwl"])
def test_a_rival_says_what_our_machine_with_the_same_kernel_says(method):
    line = CLASS_LINES[method]
    pytest.importorskip(line.packages[0].lower(), reason="needs the rival")
    graphs, y = tl.make_synthetic(n_per_substructure=6, random_state=1)
    train, test = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    theirs = line.fit(line.convert(graphs[train]), y[train], line.convert(graphs[test]))()
    ours = CLASS_LINES[line.twin].fit(graphs[train], y[train], graphs[test])()
    assert theirs.tolist() == ours.tolist()


def test_a_row_is_that_of_the_first_fold(tmp_path, data_folder):
    cost.run(StudyOptions(tmp_path, sets=["MUTAG"], methods=["treelens_uniform"]))
    (row,) = read_rows(tmp_path / "rows" / "cost.jsonl")
    assert row["accuracy"] > 0.75
    assert row["fit_cpu"] > 0
    assert row["megabytes"] >= row["megabytes_before"] > 1
    assert row["n_train"] + row["n_test"] == 188
    assert len(first_split("MUTAG").y_train) == row["n_train"]


def test_a_rival_is_stopped_at_the_limit(monkeypatch, data_folder):
    pytest.importorskip("grakel", reason="needs the rival")
    monkeypatch.setattr(cost, "LIMIT", 1)
    assert cost.measured("ENZYMES", "grakel_wl_oa") == {"stopped": 1}
