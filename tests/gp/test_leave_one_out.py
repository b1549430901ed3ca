"""Scores of left-out predictions, against scikit-learn and SciPy."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import metrics

from treelens.gp.choice import Candidate
from treelens.gp.leave_one_out import learning_gain, left_out_classes, left_out_numbers
from treelens.gp.posterior import LeaveOneOut, Targets


def test_scores_of_numbers(rng):
    values, mean, std = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.5, 2.0, 50)
    unscaled = Targets(values[:, None], np.zeros(1), 1.0, np.ones(50))
    found = left_out_numbers(LeaveOneOut(mean[:, None], std**2), unscaled, values)
    assert found.rmse == pytest.approx(np.sqrt(metrics.mean_squared_error(values, mean)))
    assert found.r2 == pytest.approx(metrics.r2_score(values, mean))
    assert found.nlpd == pytest.approx(-norm.logpdf(values, mean, std).mean())
    low, high = norm.interval(0.9, mean, std)
    assert found.coverage == pytest.approx(((low <= values) & (values <= high)).mean())


def test_numbers_come_back_in_their_own_units(rng):
    values = rng.normal(100.0, 7.0, 20)
    targets = Targets.standardized(values[:, None], np.ones(20), None)
    exact = LeaveOneOut(targets.values, np.full(20, 0.25))
    found = left_out_numbers(exact, targets, values)
    np.testing.assert_allclose(found.predictions, values)
    np.testing.assert_allclose(found.std, 0.5 * values.std())


def test_scores_of_classes(rng):
    classes, codes = np.array(["a", "b", "c"]), rng.integers(3, size=60)
    found = left_out_classes(rng.normal(size=(60, 3)), codes, classes, 2.0)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    assert found.accuracy == metrics.accuracy_score(classes[codes], found.predictions)
    assert found.log_loss == pytest.approx(metrics.log_loss(codes, found.probabilities))


def test_a_threshold_changes_names_and_nothing_else(rng):
    classes, codes = np.array([0, 1]), (rng.random(60) < 0.4).astype(int)
    decisions = rng.normal(size=(60, 1))
    plain = left_out_classes(decisions, codes, classes, 2.0, 0.5)
    low = left_out_classes(decisions, codes, classes, 2.0, 0.2)
    np.testing.assert_array_equal(plain.probabilities, low.probabilities)
    assert (low.predictions == 1).sum() > (plain.predictions == 1).sum()
    np.testing.assert_array_equal(low.predictions, low.probabilities[:, 1] >= 0.2)


@pytest.mark.parametrize(
    ("n", "shift", "chosen", "words"),
    [(200, 1.0, "branches", "better than uniform"), (200, -1.0, "uniform", "worse than uniform"),
     (200, 0.0, "depths", "about equally well"), (10, 1.0, "branches", "too few")],
)  # fmt: skip
def test_the_gain_is_a_difference_of_scores(rng, n, shift, chosen, words):
    scores = rng.normal(size=(3, n)) - 2.0
    scores[2] = scores[0] + shift + 0.1 * rng.normal(size=n)
    scores[1] = scores[2] - 0.01
    kinds = ("uniform", "depths", "branches")
    candidates = [Candidate(k, 1, [], s) for k, s in zip(kinds, scores, strict=True)]
    used = candidates[kinds.index(chosen)]
    gain = learning_gain(SimpleNamespace(candidates=candidates, chosen=used))
    learned = used if chosen != "uniform" else candidates[2]
    assert gain.difference == pytest.approx((learned.scores - scores[0]).mean())
    assert gain.learned - gain.uniform == pytest.approx(gain.difference)
    assert set(gain.compared) == set(kinds)
    assert words in str(gain)


def test_without_learned_weights_nothing_is_compared():
    uniform = Candidate("uniform", 2, [], np.empty(0))
    gain = learning_gain(SimpleNamespace(candidates=[uniform], chosen=uniform))
    assert gain.difference == 0.0
    assert "depth 2" in str(gain)
