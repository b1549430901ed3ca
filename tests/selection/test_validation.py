"""Cross-validated scores of several models, and tests of their differences."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.selection.validation import (
    codes_among,
    holm,
    mean_scores,
    paired_tests,
    positive_class,
)


def test_holm_against_the_definition():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_two_models_are_tested_against_each_other_once():
    rng = np.random.default_rng(0)
    base = rng.normal(0.8, 0.02, 10)
    scores = {"a": base, "b": base + 0.1 + rng.normal(0, 0.001, 10), "c": [*base[:9], None]}
    rivals = {"a": "b", "b": "a", "c": "a"}
    tests = paired_tests(scores, 1 / 9, rivals.__getitem__)
    assert [(t["model"], t["against"]) for t in tests] == [("a", "b"), ("c", "a")]
    assert tests[0]["p_holm"] < 0.001
    assert tests[1]["difference"] == 0.0  # on the nine that both have
    assert tests[1]["p_value"] == 1.0  # equal differences are no evidence


def test_means_are_over_what_is_known():
    found = mean_scores({"roc_auc": [0.5, None, 0.7], "recall": [None, None, None]})
    assert found["roc_auc"] == pytest.approx(0.6)
    assert found["roc_auc_std"] == pytest.approx(0.1)
    assert found["recall"] is None


def test_classes_are_compared_as_texts():
    assert codes_among(np.array([10, 9]), np.array(["10", "9"])).tolist() == [0, 1]
    assert positive_class(np.array([1, 1, 0])) == 0
    assert positive_class(np.array([0, 1, 2])) is None
