"""The forms of a weighted kernel against their formulas."""

import numpy as np
import pytest

from kernels.test_gram import ATOL, dense_rows, tables_of
from strategies import random_collection
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel, l1_distance
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


FORMULAS = {
    "wwl": lambda s, d, b: np.exp(-GAMMA * (b - s)),
    "laplacian": lambda s, d, b: np.exp(-GAMMA * (0.5 * (d[:, None] + d[None]) - s)),
    "tanimoto": lambda s, d, b: s / (d[:, None] + d[None] - s),
    "tanimoto-rbf": lambda s, d, b: np.exp(-GAMMA * (1 - s / (d[:, None] + d[None] - s))),
    "wl-oa": lambda s, d, b: s,
    "wl-subtree": lambda s, d, b: s,
    "wwl-linear": lambda s, d, b: s,
    "wl-subtree-cosine": lambda s, d, b: s / np.sqrt(np.outer(d, d)),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_formula_and_positive_semidefinite(kernel: str) -> None:
    sums, own = weighted_sums(kernel)
    before = sums.copy()
    matrix = WeightedKernel(kernel, None, GAMMA, own.max()).of_sums(sums, own, own)
    assert (sums == before).all()  # the sums serve the next candidate too
    np.testing.assert_allclose(matrix, FORMULAS[kernel](sums, own, own.max()), rtol=1e-12)
    assert (matrix == matrix.T).all()
    assert np.linalg.eigvalsh(matrix).min() > -1e-10


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_scale_matters_exactly_where_a_kernel_has_one(kernel: str) -> None:
    sums, own = weighted_sums(kernel)
    one, other = (
        WeightedKernel(kernel, None, gamma, own.max()).of_sums(sums, own, own)
        for gamma in (GAMMA, 2 * GAMMA)
    )
    assert np.array_equal(one, other) == (not KERNELS[kernel].has_gamma)
    if not KERNELS[kernel].has_gamma:
        assert np.array_equal(WeightedKernel(kernel).of_sums(sums, own, own), one)


def test_the_metric_is_half_the_weighted_l1_distance(rng: np.random.Generator) -> None:
    train, new = tables_of("wasserstein")
    weights = rng.random(train.n_patterns)
    own, others = train.diagonal(weights), new.diagonal(weights)
    a, b = dense_rows(new)[:, None, :], dense_rows(train)[None, :, :]
    found = l1_distance(pair_sums(new, train, weights), others, own)
    np.testing.assert_allclose(found, 0.5 * np.abs(a - b) @ weights, atol=ATOL)
    within = l1_distance(pair_sums(train, None, weights), own, own)
    assert (within == within.T).all()
    np.testing.assert_allclose(np.diag(within), 0.0, atol=ATOL)
