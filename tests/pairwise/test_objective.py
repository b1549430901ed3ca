"""Value and gradient of the objective: against the mean over pairs, and by finite differences."""

import numpy as np
import pytest

from naive import learning as naive
from treelens.kernels import gram as gram_module
from treelens.pairwise.objective import (
    AllPairsObjective,
    Margins,
    curvature_guess,
    largest_pair_norm,
    pair_weights,
)

pytestmark = pytest.mark.interpreted

MARGINS = Margins(alpha1=0.8, alpha2=0.6, sigma=0.15)


def all_pairs(features, labels, balance=True, n_jobs=1):
    return AllPairsObjective(features, labels, MARGINS, balance, n_jobs)


@pytest.fixture
def weights(features, rng):
    return rng.uniform(0, 2, features.n_patterns)


@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("dense_share", [0.0, 0.125, 2.0])
def test_gradient_is_the_mean_of_all_pair_gradients(
    features, labels, weights, balance, dense_share, monkeypatch
):
    """Whether patterns are laid out as dense columns, as lists, or as some of both."""
    monkeypatch.setattr(gram_module, "_DENSE_SHARE", dense_share)
    value, gradient = all_pairs(features, labels, balance).value_and_gradient(weights)
    expected = naive.objective(
        naive.all_pair_features(features), labels, naive.ordered_pair_weights(labels, balance),
        weights, MARGINS,
    )  # fmt: skip
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-15)


def test_more_graphs_than_lanes(make_features):
    """Rows longer than one block of partial sums, and every remainder of one."""
    features = make_features(150, depth=1)
    labels = np.arange(150) % 4
    weights = np.linspace(0, 2, features.n_patterns)
    value, gradient = all_pairs(features, labels).value_and_gradient(weights)
    expected = naive.objective(
        naive.all_pair_features(features), labels, naive.ordered_pair_weights(labels, True),
        weights, MARGINS,
    )  # fmt: skip
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-15)


def test_gradient_by_finite_differences(features, labels, weights, rng):
    sums = all_pairs(features, labels)
    value, gradient = sums.value_and_gradient(weights)
    assert sums.value(weights) == pytest.approx(value, rel=1e-13)
    for _ in range(10):
        direction, h = rng.normal(size=len(weights)), 1e-5
        difference = sums.value(weights + h * direction) - sums.value(weights - h * direction)
        assert difference / (2 * h) == pytest.approx(gradient @ direction, rel=1e-5, abs=1e-8)


def test_convex_along_lines(features, labels, rng):
    sums = all_pairs(features, labels)
    a, b = rng.uniform(0, 2, (2, features.n_patterns))
    middle = sums.value(0.5 * (a + b))
    assert middle <= 0.5 * (sums.value(a) + sums.value(b)) + 1e-15


def test_same_bits_on_any_number_of_threads(features, labels, weights):
    value, gradient = all_pairs(features, labels).value_and_gradient(weights)
    for n_jobs in (2, 3, 8):
        again = all_pairs(features, labels, n_jobs=n_jobs).value_and_gradient(weights)
        assert again[0] == value
        np.testing.assert_array_equal(again[1], gradient)


def test_pair_norm_is_the_largest_over_all_pairs(features):
    norms = np.linalg.norm(naive.all_pair_features(features), axis=-1)
    assert largest_pair_norm(features) == pytest.approx(norms.max(), rel=1e-12)


def test_curvature_guess_is_the_mean_presence(features):
    diagonal = naive.all_pair_features(features)[np.arange(20), np.arange(20)].mean(axis=0)
    expected = np.maximum(diagonal / diagonal.max(), 1e-3)
    np.testing.assert_allclose(curvature_guess(features), expected, rtol=1e-12)


def test_pair_weights_sum_to_one_over_ordered_pairs(labels):
    for balance in (True, False):
        different, same = pair_weights(labels, balance)
        n_same = (np.bincount(labels) ** 2).sum()
        n_different = len(labels) ** 2 - n_same
        assert 0.5 * (different * n_different + same * n_same) == pytest.approx(1.0)
