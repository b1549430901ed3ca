"""The mixture kernel on graphs without patterns, by hand."""

import numpy as np
import pytest

from strategies import random_collection
from treelens.kernels.mixture import TanimotoL1
from treelens.patterns.histograms import Features, PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_two_graphs_without_any_pattern_are_the_same_graph(share):
    """The first two are empty; the others have sums of 4 and 6 with themselves, and share 3."""
    kernel, own = TanimotoL1(2.0, 0.25, share), np.array([0.0, 0.0, 4.0, 6.0])
    sums = np.diag(own)
    sums[2, 3] = sums[3, 2] = 3.0

    def value(tanimoto, distance):
        return share * np.exp(-2.0 * (1 - tanimoto)) + (1 - share) * np.exp(-0.25 * distance)

    expected = np.ones((4, 4))
    expected[:2, 2] = expected[2, :2] = value(0.0, 4.0)
    expected[:2, 3] = expected[3, :2] = value(0.0, 6.0)
    expected[2, 3] = expected[3, 2] = value(3.0 / 7.0, 4.0)
    np.testing.assert_allclose(kernel.of_sums(sums.copy(), own, own), expected, rtol=1e-14)
    found = kernel.of_sums(sums[:2].copy(), own[:2], own)  # empty ones against all
    np.testing.assert_allclose(found, expected[:2], rtol=1e-14)


def test_rounding_of_sums_makes_no_distance_negative():
    own = np.array([1.0])
    found = TanimotoL1(2.0, 1e6, 0.0).of_sums(np.array([[1.0 + 1e-9]]), own, own)
    assert found[0, 0] == 1.0


def test_a_search_begins_where_neither_part_is_flat(rng):
    """The unit of distances is the mean of what graphs share with themselves."""
    vocabulary, colors = PatternVocabulary.fit(random_collection(rng, 10), 1)
    counts = PairFeatures.of_counts(PatternHistograms.from_colors(vocabulary, colors))
    kernel = TanimotoL1.usual(Features.of(counts))
    own = counts.rows.to_sparse(counts.n_patterns).sum(axis=1)
    assert kernel.rho == pytest.approx(1.0 / own.mean())
    assert 0.0 < kernel.share < 1.0
