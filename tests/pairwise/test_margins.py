"""Margins out of the distances of pairs, and the pairs that are near."""

from __future__ import annotations

import numpy as np
import pytest

from naive import learning as naive
from treelens.pairwise.margins import (
    DIFFERENT_QUANTILE,
    SAME_QUANTILE,
    SIGMA_SHARE,
    DistanceQuantiles,
    choose_margins,
    listed_weights,
    local_pairs,
)
from treelens.pairwise.objective import Margins, pair_arrays

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_local_pairs_are_the_nearest(features, labels, n_jobs):
    first, second = local_pairs(pair_arrays(features), labels.astype(np.int32), 3, n_jobs)
    z = naive.all_pair_features(features)
    for graph in range(len(labels)):
        found = second[first == graph]
        for same in (True, False):
            of_kind = found[(labels[found] == labels[graph]) == same]
            expected = naive.nearest(z, labels, graph, 3, same)
            ours = np.sort(z[graph, of_kind].sum(axis=-1))
            np.testing.assert_allclose(ours, np.sort(z[graph, expected].sum(axis=-1)), rtol=1e-12)
            assert graph not in of_kind


def test_quantiles_are_those_of_the_distances(features):
    z = naive.all_pair_features(features)
    above = np.triu_indices(features.n_graphs, 1)
    distances = 1.0 - z.sum(axis=-1)[above]
    quantiles = DistanceQuantiles.of_all_pairs(features, pair_arrays(features), 1.0, 2)
    for share in (0.1, 0.25, 0.5, 0.9):
        near = np.quantile(distances, [max(share - 0.02, 0), share + 0.02])
        assert near[0] - 1e-3 <= quantiles(share) <= near[1] + 1e-3
    exact = DistanceQuantiles.of_listed_pairs(features, pair_arrays(features), 1.0, *above)
    for share in (0.1, 0.25, 0.5, 0.9):
        assert exact(share) == pytest.approx(np.quantile(distances, share), rel=1e-12)


EVEN = DistanceQuantiles(np.array([0.0, 1.0]), np.array([0.0, 10.0]), largest=20.0)


def test_margins_are_those_given_or_those_of_the_data():
    assert choose_margins((3.0, 1.0), 0.5, 1.0, None) == Margins(3.0, 1.0, 0.5, 1.0)
    expected = Margins(10 * DIFFERENT_QUANTILE, 10 * SAME_QUANTILE, SIGMA_SHARE * 5.0, 2.0)
    assert choose_margins("quantile", "auto", 2.0, EVEN) == pytest.approx(expected)
    mixed = choose_margins("quantile", 0.5, 1.0, EVEN)
    assert (mixed.alpha1, mixed.sigma) == (pytest.approx(9.0), 0.5)


def test_equal_distances_still_have_a_spread():
    equal = DistanceQuantiles(np.array([0.0, 1.0]), np.array([3.0, 3.0]), largest=20.0)
    assert equal.spread == pytest.approx(0.2)
    assert EVEN.spread == pytest.approx(5.0)


@pytest.mark.parametrize("same", [[True, False, False, False], [True, True], [False]])
def test_listed_pairs_weigh_one_together_and_each_kind_half(same):
    same = np.array(same)
    np.testing.assert_allclose(listed_weights(same, balance=False), 1 / len(same))
    weights = listed_weights(same, balance=True)
    assert weights.sum() == pytest.approx(1.0)
    if 0 < same.sum() < len(same):
        assert weights[same].sum() == pytest.approx(0.5)
