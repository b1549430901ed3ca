"""Probabilities from decision values."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from treelens.models.calibration import calibrated, fit_slope


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
