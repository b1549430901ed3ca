"""The hinges, and margins from the training distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import learning as naive
from treelens.pairwise import objective as losses
from treelens.pairwise.objective import (
    DIFFERENT_QUANTILE,
    SAME_QUANTILE,
    SIGMA_SHARE,
    Margins,
    choose_margins,
)

ALPHA1, ALPHA2, SIGMA = 3.0, 2.0, 1.5
MARGINS = Margins(ALPHA1, ALPHA2, SIGMA)
DISTANCES = st.floats(-10, 10)


def different(d):
    return losses.smooth_hinge_different(d, ALPHA1, SIGMA)


def same(d):
    return losses.smooth_hinge_same(d, ALPHA2, SIGMA)


@given(DISTANCES)
def test_pieces_are_those_of_the_definition(d):
    for is_same, value in ((True, same), (False, different)):
        expected, slope = naive.hinge(d, is_same, MARGINS)
        assert value(d) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        h = 1e-6
        assert (value(d + h) - value(d - h)) / (2 * h) == pytest.approx(slope, abs=1e-5)


@pytest.mark.interpreted
def test_quantiles_are_those_of_the_distances(features):
    similarities = naive.all_pair_features(features).sum(axis=-1)
    distances = -similarities[np.triu_indices(features.n_graphs, 1)]
    shares = [0.1, 0.25, 0.5, 0.9]
    largest = float(np.diag(similarities).max())
    for n_jobs in (1, 2):
        found = losses.distance_quantiles(features, largest, shares, n_jobs)
        for share, quantile in zip(shares, found, strict=True):
            near = np.quantile(distances, [max(share - 0.02, 0), share + 0.02])
            assert near[0] - 1e-3 <= quantile <= near[1] + 1e-3


def test_margins_are_those_given_or_those_of_the_data(features, monkeypatch):
    assert choose_margins((3.0, 1.0), 0.5, 1.0, features) == Margins(3.0, 1.0, 0.5, 1.0)
    even = lambda pairs, largest, shares, n_jobs: 10 * np.array(shares)  # noqa: E731
    monkeypatch.setattr(losses, "distance_quantiles", even)
    expected = Margins(2 + 10 * DIFFERENT_QUANTILE, 2 + 10 * SAME_QUANTILE, SIGMA_SHARE * 5.0, 2.0)
    found = choose_margins("quantile", "auto", 2.0, features)
    assert vars(found) == pytest.approx(vars(expected))
    mixed = choose_margins("quantile", 0.5, 1.0, features)
    assert (mixed.alpha1, mixed.sigma) == (pytest.approx(10.0), 0.5)


def test_equal_distances_still_have_a_spread(features, monkeypatch):
    monkeypatch.setattr(losses, "distance_quantiles", lambda *_: np.full(4, -0.5))
    largest = features.diagonal().max()
    found = choose_margins("quantile", "auto", 1.0, features)
    assert (found.alpha1, found.alpha2) == (0.5, 0.5)
    assert found.sigma == pytest.approx(SIGMA_SHARE * 0.01 * largest)
