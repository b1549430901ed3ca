"""The objective by its definition and by finite differences; hinges and margins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import learning as naive
from treelens.kernels import gram as gram_module
from treelens.pairwise import objective as objective_module
from treelens.pairwise.objective import (
    DIFFERENT_QUANTILE,
    SAME_QUANTILE,
    SIGMA_SHARE,
    AllPairsObjective,
    Margins,
    choose_margins,
    curvature_guess,
    distance_quantiles,
    smooth_hinge_different,
    smooth_hinge_same,
)

pytestmark = pytest.mark.interpreted

MARGINS = Margins(alpha1=0.8, alpha2=0.6, sigma=0.15)


def all_pairs(features, labels, balance=True, n_jobs=1):
    return AllPairsObjective(features, labels, MARGINS, balance, n_jobs)


def check_against_twin(features, labels, weights, balance):
    value, gradient = all_pairs(features, labels, balance).value_and_gradient(weights)
    expected = naive.objective(
        naive.all_pair_features(features),
        labels,
        naive.ordered_pair_weights(labels, balance),
        weights,
        MARGINS,
    )
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-15)


@pytest.fixture
def weights(features, rng):
    return rng.uniform(0, 2, features.n_patterns)


@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize(("dense_share", "most"), [(0.0, 99), (0.125, 99), (0.125, 2), (2.0, 99)])
def test_gradient_is_the_mean_of_all_pair_gradients(
    features, labels, weights, balance, dense_share, most, monkeypatch
):
    """Whether patterns are laid out as dense columns, as lists, or as some of both."""
    monkeypatch.setattr(gram_module, "_DENSE_SHARE", dense_share)
    monkeypatch.setattr(gram_module, "_MOST_DENSE", most)
    check_against_twin(features, labels, weights, balance)


def test_more_graphs_than_lanes(make_features):
    """Rows longer than one block of partial sums, and every remainder of one."""
    features = make_features(150, depth=1)
    check_against_twin(features, np.arange(150) % 4, np.linspace(0, 2, features.n_patterns), True)


def test_gradient_by_finite_differences(features, labels, weights, rng):
    sums = all_pairs(features, labels)
    value, gradient = sums.value_and_gradient(weights)
    assert sums.value(weights) == pytest.approx(value, rel=1e-13)
    for _ in range(10):
        direction, h = rng.normal(size=len(weights)), 1e-5
        difference = sums.value(weights + h * direction) - sums.value(weights - h * direction)
        assert difference / (2 * h) == pytest.approx(gradient @ direction, rel=1e-5, abs=1e-8)


def test_curvature_guess_is_the_mean_presence(features):
    diagonal = naive.all_pair_features(features)[np.arange(20), np.arange(20)].mean(axis=0)
    expected = np.maximum(diagonal / diagonal.max(), 1e-3)
    np.testing.assert_allclose(curvature_guess(features), expected, rtol=1e-12)


@given(st.floats(-10, 10))
def test_hinges_are_those_of_the_definition(d):
    margins = Margins(alpha1=3.0, alpha2=2.0, sigma=1.5)
    hinges = (True, smooth_hinge_same, 2.0), (False, smooth_hinge_different, 3.0)
    for is_same, hinge, alpha in hinges:
        expected, slope = naive.hinge(d, is_same, margins)
        below, here, above = (hinge(d + h, alpha, 1.5) for h in (-1e-6, 0.0, 1e-6))
        assert here == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert (above - below) / 2e-6 == pytest.approx(slope, abs=1e-5)


def test_quantiles_are_those_of_the_distances(features):
    similarities = naive.all_pair_features(features).sum(axis=-1)
    distances = -similarities[np.triu_indices(features.n_graphs, 1)]
    shares = [0.1, 0.25, 0.5, 0.9]
    largest = float(np.diag(similarities).max())
    for n_jobs in (1, 2):
        found = distance_quantiles(features, largest, shares, n_jobs)
        for share, quantile in zip(shares, found, strict=True):
            near = np.quantile(distances, [max(share - 0.02, 0), share + 0.02])
            assert near[0] - 1e-3 <= quantile <= near[1] + 1e-3


def test_margins_are_those_given_or_those_of_the_data(features, monkeypatch):
    def chosen(quantiles, margins="quantile", sigma="auto", b=1.0):
        monkeypatch.setattr(objective_module, "distance_quantiles", quantiles)
        return choose_margins(features, margins, sigma, b)

    even = lambda pairs, largest, shares, n_jobs: 10 * np.array(shares)  # noqa: E731
    assert chosen(even, margins=(3.0, 1.0), sigma=0.5) == Margins(3.0, 1.0, 0.5, 1.0)
    expected = Margins(2 + 10 * DIFFERENT_QUANTILE, 2 + 10 * SAME_QUANTILE, SIGMA_SHARE * 5.0, 2.0)
    assert vars(chosen(even, b=2.0)) == pytest.approx(vars(expected))
    mixed = chosen(even, sigma=0.5)
    assert (mixed.alpha1, mixed.sigma) == (pytest.approx(10.0), 0.5)
    equal = chosen(lambda *_: np.full(4, -0.5))  # equal distances still have a spread
    assert (equal.alpha1, equal.alpha2) == (0.5, 0.5)
    assert equal.sigma == pytest.approx(SIGMA_SHARE * 0.01 * features.diagonal().max())
