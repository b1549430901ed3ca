"""Probabilities from decision values, and thresholds for a rare class."""

import numpy as np
import pytest
from sklearn import metrics as theirs
from sklearn.linear_model import LogisticRegression

from treelens.models.thresholds import (
    Threshold,
    calibrated,
    choose_threshold,
    fit_slope,
    parse_threshold,
)


def test_slope_is_that_of_a_logistic_regression_without_intercept():
    rng = np.random.default_rng(0)
    decisions = rng.normal(size=(400, 1))
    codes = (rng.uniform(size=400) < 1 / (1 + np.exp(-3 * decisions[:, 0]))).astype(int)
    theirs = LogisticRegression(C=1e10, fit_intercept=False).fit(decisions, codes)
    slope = fit_slope(decisions, codes, np.ones(400))
    # the classes are a little less than certain here, so the slope is a little smaller
    assert 0.9 * theirs.coef_[0, 0] < slope < theirs.coef_[0, 0]
    np.testing.assert_allclose(
        calibrated(decisions, slope), theirs.predict_proba(decisions), atol=0.03
    )


def test_the_most_probable_class_has_the_largest_decision():
    decisions = np.random.default_rng(1).normal(size=(50, 4))
    probabilities = calibrated(decisions, 2.0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (probabilities.argmax(axis=1) == decisions.argmax(axis=1)).all()


def test_certain_decisions_overflow_nothing():
    assert calibrated(np.array([[1e6], [-1e6]]), 1e3).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(2)
    codes = (rng.random(400) < 0.08).astype(int)
    chance = np.clip(0.08 + 0.12 * codes + 0.08 * rng.normal(size=400), 0.001, 0.6).round(3)
    return np.column_stack([1 - chance, chance]), codes


@pytest.fixture(scope="module")
def tried(rare):
    """Threshold, MCC, recall, precision, missed and false alarms of all thresholds."""
    chances, codes = rare
    rows = []
    for value in np.unique(chances[:, 1]):
        named = (chances[:, 1] >= value).astype(int)
        scores = (theirs.matthews_corrcoef, theirs.recall_score, theirs.precision_score)
        missed, alarms = ((named == 0) & (codes == 1)).sum(), ((named == 1) & (codes == 0)).sum()
        rows.append((value, *(score(codes, named) for score in scores), missed, alarms))
    return np.array(rows).T


@pytest.mark.parametrize("asked", ["auto", "recall=0.9", "precision=0.5", "cost=10"])
def test_thresholds_are_the_best_of_all(asked, rare, tried):
    value, mcc, recall, precision, missed, alarms = tried
    cost = 10 * missed + alarms
    best = {
        "auto": value[mcc >= 0.99 * mcc.max()].min(),
        "recall=0.9": value[recall >= 0.9].max(),
        "precision=0.5": value[precision >= 0.5].min(),
        "cost=10": value[cost == cost.min()].max(),
    }[asked]
    assert choose_threshold(asked, *rare) == Threshold(pytest.approx(best), 1)
    chances, codes = rare
    other = choose_threshold(asked, chances[:, ::-1], 1 - codes)  # the rare class first
    assert other == Threshold(pytest.approx(best), 0)


def test_auto_leaves_common_classes_alone(rare):
    chances, codes = rare
    assert choose_threshold("auto", chances, np.arange(400) % 2) is None
    assert choose_threshold(0.5, chances, codes) is None
    assert choose_threshold(0.2, chances, codes) == Threshold(0.2, 1)
    assert choose_threshold("auto", np.full((400, 2), 0.5), codes) is None  # nothing to tell apart
    assert choose_threshold("auto", np.full((6, 3), 1 / 3), np.arange(6) % 3) is None


@pytest.mark.parametrize(
    "asked", ["best", "recall", "recall=", "recall=0", "recall=1.5", "cost=0", "cost=inf", "x=0.5",
              1.5, 0, None, "nan"]
)  # fmt: skip
def test_what_is_no_threshold_is_refused(asked):
    with pytest.raises(ValueError, match="'auto', a number between 0 and 1"):
        parse_threshold(asked)


def test_several_classes_have_no_threshold():
    with pytest.raises(ValueError, match="is for two classes, and there are 3"):
        choose_threshold("recall=0.9", np.full((6, 3), 1 / 3), np.arange(6) % 3)
