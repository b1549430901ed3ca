"""Cross-validated scores of several models, and tests of their differences."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from treelens.evaluation.validation import (
    codes_among,
    cross_validate,
    holm,
    mean_scores,
    paired_tests,
    positive_class,
    said_numbers,
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


class Named(ClassifierMixin, BaseEstimator):
    """Says of every graph the class that it is told to."""

    def __init__(self, answer="b"):
        self.answer = answer

    def fit(self, graphs, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, graphs):
        return np.full(len(graphs), self.answer)

    def predict_proba(self, graphs):
        return np.tile((self.classes_ == self.answer).astype(float), (len(graphs), 1))


def test_models_are_copied_and_every_split_has_its_scores():
    y = np.array(["a", "b"] * 6)
    splits = [(np.arange(6), np.arange(6, 12)), (np.arange(6, 12), np.arange(3))]
    model, told = Named(), []
    found = cross_validate(
        {"b": model}, np.arange(12), y, splits, positive="b",
        progress=lambda name, seconds: told.append(name),
    )  # fmt: skip
    assert not hasattr(model, "classes_")
    assert found["b"]["scores"]["accuracy"] == pytest.approx([1 / 2, 1 / 3])
    assert found["b"]["scores"]["recall"] == [1.0, 1.0]
    assert found["b"]["n_one_class"] == 2
    assert told == ["b"]


def test_the_rarer_class_of_all_is_the_positive_one():
    """Not that of a test part, where it may be the commoner one."""
    y = np.array(["a"] * 8 + ["b"] * 3)
    split = [(np.array([0, 1, 9]), np.array([2, 8, 10]))]
    found = cross_validate({"b": Named()}, np.arange(11), y, split)
    assert found["b"]["scores"]["recall"] == [1.0]
    found = cross_validate({"b": Named()}, np.arange(11), y, split, positive="a")
    assert found["b"]["scores"]["recall"] == [0.0]


def test_numbers_come_with_deviations_where_a_model_has_them():
    class Sure:
        def predict(self, graphs, return_std=False):
            return (np.ones(2), np.zeros(2)) if return_std else np.ones(2)

    class Plain:
        def predict(self, graphs):
            return np.ones(2)

    assert said_numbers(Sure(), None)[1].tolist() == [0.0, 0.0]
    assert said_numbers(Plain(), None)[1] is None
