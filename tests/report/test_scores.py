"""Scores of the report, held against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from treelens.report import summarize
from treelens.report.scores import wilson_interval


def test_scores_are_those_of_scikit_learn(learned, synthetic):
    graphs, _ = synthetic
    y = np.random.default_rng(0).choice(learned.classes_, len(graphs))  # so that some are wrong
    found = summarize(learned.model_, graphs, y)["scores"]
    predicted, decisions = learned.predict(graphs), learned.decision_function(graphs)
    assert found["accuracy"] == metrics.accuracy_score(y, predicted)
    assert found["balanced_accuracy"] == metrics.balanced_accuracy_score(y, predicted)
    assert found["confusion"] == metrics.confusion_matrix(y, predicted).tolist()
    assert found["roc_auc"] == metrics.roc_auc_score(y, decisions)
    report = metrics.classification_report(y, predicted, output_dict=True)
    for part in found["per_class"]:
        expected = report[part["class"]]
        for ours, theirs in (("precision", "precision"), ("recall", "recall"), ("n", "support")):
            assert part[ours] == pytest.approx(expected[theirs])
    curve = found["roc"][0]
    area = metrics.auc(curve["false_positive_rate"], curve["true_positive_rate"])
    assert area == pytest.approx(curve["auc"])


def test_held_out_scores_are_those_of_the_search(learned):
    found = summarize(learned.model_)["held_out"]
    (decisions,) = learned.cv_results_.decisions.values()
    truth = learned.train_codes_
    assert found["accuracy"] == np.mean((decisions[:, 0] > 0) == truth)
    assert found["roc_auc"] == metrics.roc_auc_score(truth, decisions[:, 0])


def test_the_interval_is_that_of_wilson():
    # Newcombe (1998), table 1: 81 of 263.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
