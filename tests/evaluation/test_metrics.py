"""Scores against scikit-learn and their definitions; thresholds against trying all of them."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import metrics as theirs

from treelens.evaluation.metrics import CLASS_SCORES, class_scores, number_scores, rarer_code


def test_scores_of_numbers_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth, mean, std = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.5, 2, 50)
    ours = number_scores(truth, mean, std)
    assert ours["rmse"] == pytest.approx(theirs.root_mean_squared_error(truth, mean))
    assert ours["mae"] == pytest.approx(theirs.mean_absolute_error(truth, mean))
    assert ours["r2"] == pytest.approx(theirs.r2_score(truth, mean))
    assert ours["nlpd"] == pytest.approx(-norm.logpdf(truth, mean, std).mean())
    low, high = norm.interval(0.9, mean, std)
    assert ours["coverage"] == pytest.approx(np.mean((low <= truth) & (truth <= high)))
    assert number_scores(truth, mean)["coverage"] is None
    assert number_scores(np.ones(3), np.ones(3))["r2"] is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(1)
    codes = rng.choice(n_classes, 80, p=[0.7, 0.3] if n_classes == 2 else [0.5, 0.3, 0.2])
    chances = rng.dirichlet(np.ones(n_classes), 80)
    named = chances.argmax(axis=1)
    ours = class_scores(codes, named, chances)
    assert ours["accuracy"] == pytest.approx(theirs.accuracy_score(codes, named))
    assert ours["balanced_accuracy"] == pytest.approx(theirs.balanced_accuracy_score(codes, named))
    assert ours["mcc"] == pytest.approx(theirs.matthews_corrcoef(codes, named))
    assert ours["log_loss"] == pytest.approx(theirs.log_loss(codes, chances))
    if n_classes == 2:
        assert ours["roc_auc"] == pytest.approx(theirs.roc_auc_score(codes, chances[:, 1]))
        assert ours["pr_auc"] == pytest.approx(theirs.average_precision_score(codes, chances[:, 1]))
        assert ours["recall"] == pytest.approx(theirs.recall_score(codes, named))
        assert ours["precision"] == pytest.approx(theirs.precision_score(codes, named))
    else:
        assert ours["roc_auc"] == pytest.approx(
            theirs.roc_auc_score(codes, chances, multi_class="ovr")
        )
        assert ours["recall"] is None
    for name in CLASS_SCORES:
        assert class_scores(codes, named, chances, only=name)[name] == ours[name]


def test_recall_is_that_of_the_second_class_or_of_the_one_asked_for():
    codes, named = np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1])
    chances = np.eye(2)[named]
    assert class_scores(codes, named, chances)["precision"] == 1.0
    assert class_scores(codes, named, chances, positive=0)["precision"] == 0.5
    assert rarer_code(codes) == 0


def test_undefined_scores_are_none():
    one = class_scores(np.zeros(3, int), np.zeros(3, int), np.full((3, 2), 0.5))
    assert one["roc_auc"] is one["balanced_accuracy"] is None
    assert not one["names_one_class"]  # there was one class to name
    strange = class_scores(np.array([0, -1, 1]), np.array([0, 0, 0]), np.full((3, 2), 0.5))
    assert strange["roc_auc"] is strange["log_loss"] is None
    assert strange["names_one_class"]
    assert strange["mcc"] == 0.0
