"""What a report finds in the graphs: twins, contradictions, what training had."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.report import summarize
from treelens.report.diagnostics import equal_groups, refined_keys


def test_graphs_known_from_training_are_counted_and_scored_apart(learned, synthetic, summary):
    graphs, y = synthetic
    new = np.arange(len(y)) % 4 == 0
    known = summary["data"]["known_from_training"]
    assert known["n_graphs"] >= 48
    apart = summary["scores"]["new_graphs"]
    assert apart["n_graphs"] == len(y) - known["n_graphs"] > 0
    only_new = summarize(learned.model_, graphs[new], y[new])
    assert only_new["data"]["known_from_training"]["n_graphs"] < new.sum()


def test_twins_and_contradictions():
    path = ([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})
    turned = ([(2, 1), (1, 0)], {0: "O", 1: "C", 2: "C"})  # the same graph, renumbered
    other = ([(0, 1), (1, 2)], {0: "C", 1: "O", 2: "C"})
    graphs = tl.as_graph_collection([path, turned, other, path, other, other])
    y = ["a", "b", "b", "a", "b", "b"]
    model = tl.GraphSVC("wwl-linear", 1, 0, C=1.0, cv=2, progress=False).fit(graphs, y)
    found = summarize(model.model_, graphs, y)["data"]
    twins = found["twins"]
    assert (twins["n_groups"], twins["n_graphs"]) == (2, 6)
    assert twins["n_conflicting_groups"] == 1
    assert twins["conflicts"] == [{"n": 3, "graphs": [0, 1, 3], "classes": {"a": 2, "b": 1}}]
    assert found["indistinguishable"]["best_accuracy"] == pytest.approx(5 / 6)
    assert found["classes"][0] == {"class": "a", "n": 2, "share": pytest.approx(1 / 3)}


def test_edge_labels_tell_twins_apart():
    single = ([(0, 1)], {0: "C", 1: "O"}, {(0, 1): "-"})
    double = ([(0, 1)], {0: "C", 1: "O"}, {(0, 1): "="})
    graphs = tl.as_graph_collection([single, double, single])
    assert equal_groups(refined_keys(graphs)) == [[0, 2]]


def test_unseen_patterns_are_reported(learned):
    strange = ([(0, 1), (1, 2)], {0: 9, 1: 9, 2: 9})
    found = summarize(learned.model_, [strange])
    assert found["data"]["unseen"]["most"] == 1.0
    assert found["data"]["unseen"]["n_above_limit"] == 1
    assert "never saw 100%" in found["graphs"]["rows"][0]["warning"]
    assert found["scores"] is None
    assert found["examples"]["most_wrong"] == []
