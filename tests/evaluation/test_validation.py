"""Cross-validated scores of several models, and tests of their differences."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score

from treelens.evaluation.validation import (
    codes_among,
    cross_validate,
    level_with_best,
    mean_scores,
    paired_tests,
    resampled,
)


def test_one_split_has_neither_error_nor_p_value():
    (test,) = paired_tests({"a": [0.9], "b": [0.8]}, 0.25, {"a": "b", "b": "a"}.__getitem__)
    assert test["difference"] == pytest.approx(0.1)
    assert test["standard_error"] is test["interval"] is test["p_value"] is test["p_holm"] is None


def test_two_models_are_tested_against_each_other_once():
    rng = np.random.default_rng(0)
    base = rng.normal(0.8, 0.02, 10)
    scores = {"a": base, "b": base + 0.1 + rng.normal(0, 0.001, 10), "c": [*base[:9], None]}
    rivals = {"a": "b", "b": "a", "c": "a"}
    tests = paired_tests(scores, 1 / 9, rivals.__getitem__)
    assert [(t["model"], t["against"]) for t in tests] == [("a", "b"), ("c", "a")]
    assert tests[0]["p_holm"] == 2 * tests[0]["p_value"] < 0.001
    assert tests[1]["difference"] == 0.0  # on the nine that both have
    assert tests[1]["p_value"] == 1.0  # equal differences are no evidence


def test_what_cannot_be_told_from_the_best_on_splits_that_all_have():
    scores = {
        "a": [0.90, 0.85, 0.80, 0.88, 0.1],
        "b": [0.88, 0.86, 0.81, 0.87, 0.9],
        "c": [0.60, 0.52, 0.49, 0.55, None],
    }
    assert level_with_best(scores, True, 0.25) == ("a", "b")
    assert level_with_best(scores, False, 0.25) == ("c",)
    assert level_with_best({"a": [0.9], "b": [0.8]}, True, 0.25) is None
    assert level_with_best({"a": [0.9, 0.8]}, True, 0.25) is None


def test_means_are_over_what_is_known():
    found = mean_scores({"roc_auc": [0.5, None, 0.7], "recall": [None, None, None]})
    assert found["roc_auc"] == pytest.approx(0.6)
    assert found["roc_auc_std"] == pytest.approx(0.1)
    assert found["recall"] is None
    assert mean_scores({"rmse": [0.5]}) == {"rmse": 0.5, "rmse_std": None}


def test_classes_are_compared_as_texts():
    assert codes_among(np.array([10, 9]), np.array(["10", "9"])).tolist() == [0, 1]
    assert codes_among(np.array(["10", "9", "x"]), np.array([9, 10])).tolist() == [1, 0, -1]


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
        {"b": model},
        np.arange(12),
        y,
        splits,
        positive="b",
        progress=lambda name, seconds: told.append(name),
    )
    assert not hasattr(model, "classes_")
    assert found["b"]["scores"]["accuracy"] == pytest.approx([1 / 2, 1 / 3])
    assert found["b"]["scores"]["recall"] == [1.0, 1.0]
    assert found["b"]["n_one_class"] == 2
    parts = found["b"]["held_out"]
    assert [part.scores()["accuracy"] for part in parts] == found["b"]["scores"]["accuracy"]
    assert parts[0].scores(np.array([1, 1, 3]))["accuracy"] == 1.0
    drawn = [resampled(parts[0], score) for score in ("accuracy", "recall", "roc_auc")]
    assert drawn[0].mean() == pytest.approx(0.5, abs=0.05)
    assert drawn[0].std() == pytest.approx(0.5 / np.sqrt(6), rel=0.1)
    assert (drawn[1][np.isfinite(drawn[1])] == 1.0).all()
    assert np.isnan(drawn[2]).mean() == pytest.approx(2 * 0.5**6, abs=0.02)  # of one class alone
    assert told == ["b"]
    y[:8], y[8:] = "a", "b"  # the second class of all is the positive one
    split = [(np.array([0, 1, 9]), np.array([2, 8, 10]))]
    for positive, recall in ((None, 1.0), ("a", 0.0)):
        found = cross_validate({"b": Named()}, np.arange(12), y, split, positive=positive)
        assert found["b"]["scores"]["recall"] == [recall]


class FirstTarget(RegressorMixin, BaseEstimator):
    """Predicts the graphs, which are numbers here, plus the first target of the training part."""

    def fit(self, graphs, y):
        self.shift_ = y[0]
        return self

    def predict(self, graphs):
        return graphs + self.shift_


def test_r2_is_pooled_over_splits():
    """Two splits whose targets hardly vary within a split: the mean of their R2 is meaningless."""
    y = np.array([0.0, 0.1, 5.0, 5.1, 0.05, 5.05])
    splits = [(np.array([4, 5]), np.array([0, 1])), (np.array([4, 5]), np.array([2, 3]))]
    found = cross_validate({"m": FirstTarget()}, y, y, splits)["m"]
    predictions = np.concatenate([y[test] + y[4] for _, test in splits])
    truth = np.concatenate([y[test] for _, test in splits])
    assert found["r2"] == pytest.approx(r2_score(truth, predictions))
    assert found["r2"] > 0.99
    assert np.mean(found["scores"]["r2"]) < 0.5
    assert found["r2_std"] is None
