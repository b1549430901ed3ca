"""The study of cost: what a row holds, and how runs are stopped."""

import numpy as np
import pytest
from reproduction.cost import CLASS_LINES, first_split
from reproduction.data import StudyOptions
from reproduction.rows import read_rows
from reproduction.tables.speed import times_ours

import treelens as tl
from reproduction import cost


def test_a_rival_that_was_stopped_before_ours_ended_has_no_ratio():
    ours = {"fit_cpu": 300.0, "predict_cpu": 100.0}
    assert [times_ours({"stopped": limit}, ours) for limit in (300, 600)] == ["", "> 1.5"]


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
