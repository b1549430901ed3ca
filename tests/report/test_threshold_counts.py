"""Hits and misses at every threshold, held against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from treelens.models.thresholds import Threshold
from treelens.report.evidence_page import render_evidence
from treelens.report.threshold_counts import threshold_counts


@pytest.mark.parametrize("code", [0, 1])
def test_counts_at_every_threshold_against_scikit_learn(code):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=80)
    said = np.round(rng.random(80), 2)  # values that lie on thresholds exactly
    chances = np.column_stack([1 - said, said])[:, [1, 0] if code == 0 else [0, 1]]
    counts = threshold_counts(codes, chances, np.array(["a", "b"]), Threshold(0.3, code))
    assert (counts["positive"], counts["at"]) == ("ab"[code], 30)
    for percent in range(101):
        named = np.where(chances[:, code] >= percent / 100, code, 1 - code)
        matrix = confusion_matrix(codes, named, labels=[1 - code, code])
        assert counts["alarms"][percent] == matrix[0, 1]
        assert counts["found"][percent] == matrix[1, 1]


def test_more_than_two_classes_have_no_threshold():
    chances = np.full((3, 3), 1 / 3)
    assert threshold_counts(np.arange(3), chances, np.array(["a", "b", "c"]), None) is None


def test_the_page_has_the_models_own_threshold(class_model, synthetic):
    graphs, y = synthetic
    summary = class_model.summary(graphs[1::2], y[1::2])
    known = summary["scores"]["thresholds"]
    matrix = np.array(summary["scores"]["confusion"])
    assert known["found"][known["at"]] == matrix[1, 1]
    assert known["alarms"][known["at"]] == matrix[0, 1]
    assert 'id="threshold"' in render_evidence(summary)
