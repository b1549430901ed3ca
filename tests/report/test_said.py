"""What a Gaussian process says of graphs: which it knows, doubts, and is wrong about."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.evaluation.metrics import NINETY
from treelens.models.predictions import Predictions
from treelens.models.thresholds import Threshold
from treelens.report.evidence_page import render_evidence
from treelens.report.said import SaidOfGraphs, said_of


def test_graphs_that_were_trained_on_are_no_test_set(number_model, molecules):
    graphs, y = molecules
    found = number_model.summary(graphs[::2], y[::2])
    assert found["scores"] is None
    page = render_evidence(found)
    assert "No test set" in page
    assert "<h2>Test set</h2>" not in page


def test_through_landmarks_all_training_graphs_are_known_not_only_landmarks(molecules):
    graphs, y = molecules
    model = tl.GraphRegressor(depth=1, exact_size=10, n_landmarks=5, random_state=0)
    assert model.fit(graphs[::2], y[::2]).summary(graphs[::2], y[::2])["scores"] is None


def test_scores_leave_out_what_was_trained_on(number_model, molecules):
    graphs, y = molecules
    found = number_model.summary(graphs, y)
    new = number_model.predict(graphs[1::2]) - y[1::2]
    assert found["scores"]["n_graphs"] == len(new)
    assert found["scores"]["rmse"] == pytest.approx(np.sqrt(np.mean(new**2)))
    assert found["scores"]["points"]["index"] == list(range(1, len(y), 2))
    assert "without 30 that have exactly" in render_evidence(found)


def said(truth=None, **more) -> SaidOfGraphs:
    """Of four graphs without the model that said it."""
    graphs = tl.as_graph_collection([([(0, 1)], {0: "a", 1: "b"})] * 4)
    given = {
        "decisions": np.array([[1.0], [2.0], [3.0], [4.0]]), "margins": np.zeros((4, 1)),
        "out_of_vocabulary": np.array([0.0, 0.0, 0.5, 0.0]), "graphs": None,
        "variance": np.array([4.0, 1.0, 9.0, 1.0]), "similarity": np.array([0.2, 1.0, 1.0, 0.9]),
    }  # fmt: skip
    return SaidOfGraphs(graphs, graphs, truth, Predictions(**given), **more)


CLASSES = {
    "classes": np.array(["no", "yes"]),
    "probabilities": np.array([[0.9, 0.1], [0.4, 0.6], [0.55, 0.45], [0.2, 0.8]]),
}


def test_numbers_are_ordered_by_error_and_by_width():
    found = said(np.array([1.5, 2.0, 0.0, 3.0]))
    assert found.most_wrong.tolist() == [2, 3, 0, 1]
    assert found.most_uncertain.tolist() == [2, 0, 1, 3]
    assert said().most_wrong.tolist() == []


def test_only_the_same_counts_without_anything_new_are_the_same():
    """A graph may be as similar as can be and still hold patterns that training never saw."""
    assert said().same_as_training.tolist() == [False, True, False, False]
    assert said().most_typical.tolist() == [2, 3, 0]


def test_classes_are_named_by_the_threshold_where_there_is_one():
    assert said(**CLASSES).predicted.tolist() == [1, 1, 1, 1]  # by the sign of the decision
    rare = said(**CLASSES, threshold=Threshold(0.45, 1))
    assert rare.predicted.tolist() == [0, 1, 1, 1]


def test_wrong_classes_are_the_surest_first_and_doubtful_ones_the_closest():
    truth = np.array([0, 0, 0, 0])
    found = said(truth, **CLASSES, threshold=Threshold(0.5, 1))
    assert found.most_wrong.tolist() == [3, 1]
    assert found.most_uncertain.tolist() == [2, 1, 3, 0]


def test_facts_of_a_number_and_of_a_class():
    facts = said(np.array([1.5, 2.0, 0.0, 3.0])).facts(2)
    low, high = facts["interval"]
    assert (facts["predicted"], facts["measured"], facts["error"]) == (3.0, 0.0, 3.0)
    assert (low + high) / 2 == pytest.approx(3.0)
    assert (high - low) / 2 == pytest.approx(3.0 * NINETY)
    assert facts["in_domain"] is None
    assert said().facts(0)["error"] is None
    facts = said(np.array([0, 0, 0, 0]), **CLASSES).facts(1)
    assert (facts["predicted"], facts["probability"], facts["class"]) == ("yes", 0.6, "no")


def test_targets_without_graphs_are_refused():
    assert said_of(None, None, None) is None
    with pytest.raises(ValueError, match="y was given without X"):
        said_of(None, None, [1.0])
