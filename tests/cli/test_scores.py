"""Scores of the command line, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.cli.scores import class_scores
from treelens.evaluation.metrics import number_scores


def test_scores_against_their_definitions():
    truth, mean, std = (
        np.array([1.0, 2.0, 4.0]),
        np.array([1.5, 2.0, 1.0]),
        np.array([1.0, 1.0, 1.0]),
    )
    found = number_scores(truth, mean, std)
    assert found["rmse"] == pytest.approx(np.sqrt((0.25 + 9.0) / 3))
    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["nlpd"] == pytest.approx(0.5 * (9.25 / 3 + np.log(2 * np.pi)))
    chances = np.array(
        [[0.1, 0.9], [0.8, 0.2], [0.4, 0.6]]
    )  # classes 9 and 10: texts sort otherwise
    classes = np.array([9, 10])
    scores = class_scores(np.array([10, 9, 9]), chances, classes)
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["log_loss"] == pytest.approx(-np.log([0.9, 0.8, 0.4]).mean())
    assert scores["roc_auc"] == 1.0
    strange = class_scores(np.array(["10", "11", "9"]), chances, classes)
    assert (strange["roc_auc"], strange["log_loss"]) == (None, None)
    assert strange["accuracy"] == pytest.approx(1 / 3)
