"""The forms of a weighted kernel against their formulas, and what makes them usable: PSD."""

import numpy as np
import pytest

from strategies import random_collection
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import kernel_matrix
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

GAMMA = 0.7


def weighted_sums(kernel: str) -> tuple[np.ndarray, np.ndarray]:
    """``<W, Z>`` of all pairs of some random graphs, and the histograms behind it."""
    rng = np.random.default_rng(3)
    vocabulary, colors = PatternVocabulary.fit(random_collection(rng, 25), 2)
    histograms = PatternHistograms.from_colors(vocabulary, colors)
    pairs = PairFeatures.from_histograms(histograms, KERNELS[kernel].pair_feature)
    weights = 2 * rng.random(pairs.n_patterns)
    return pair_sums(pairs, None, weights), pairs.diagonal(weights)


def test_kernels_without_scale_need_none() -> None:
    for kernel, about in KERNELS.items():
        if not about.has_gamma:
            sums, own = weighted_sums(kernel)
            assert np.isfinite(kernel_matrix(kernel, sums, own, own, 1.0)).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_scale_matters_exactly_where_a_kernel_has_one(kernel: str) -> None:
    sums, own = weighted_sums(kernel)
    one, other = (kernel_matrix(kernel, sums, own, own, own.max(), g) for g in (GAMMA, 2 * GAMMA))
    assert np.array_equal(one, other) == (not KERNELS[kernel].has_gamma)
