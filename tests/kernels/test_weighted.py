"""Kernels of the table and the mixture kernel against their formulas, and nearest graphs."""

import numpy as np
import pytest

from kernels.test_gram import ATOL, dense_rows, tables_of
from naive.kernels import nearest
from strategies import histograms_of, random_collection
from treelens.kernels.base import Term
from treelens.kernels.gram import pair_sums
from treelens.kernels.mixture import TanimotoL1
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel, l1_distance, nearest_graphs
from treelens.patterns.histograms import Features, PairFeatures

pytestmark = pytest.mark.interpreted
GAMMA = 0.7


def weighted_sums(kernel: str) -> tuple[np.ndarray, np.ndarray]:
    """``<W, Z>`` of all pairs of some random graphs, and the histograms behind it."""
    rng = np.random.default_rng(3)
    histograms = histograms_of(random_collection(rng, 25))
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
    if KERNELS[kernel].has_gamma:
        other = WeightedKernel(kernel, None, 2 * GAMMA, own.max()).of_sums(sums, own, own)
        assert not np.array_equal(other, matrix)
    else:
        assert np.array_equal(WeightedKernel(kernel).of_sums(sums, own, own), matrix)


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


@pytest.fixture(scope="module")
def weighed():
    """Features of graphs, some of them alike (ties), some without a pattern that weighs."""
    rng = np.random.default_rng(3)
    histograms = histograms_of(random_collection(rng, 30), 1)
    weights = rng.choice([0.0, 1.0, 2.0], histograms.n_patterns)
    pairs = PairFeatures.of_counts(histograms)
    twice = np.concatenate([np.arange(30), np.arange(0, 30, 4)])
    return Features.of(pairs, weights).select(twice), weights


@pytest.mark.parametrize("k", [1, 5, 100])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_like_sorting_everything(weighed, k, n_jobs):
    features, weights = weighed
    some = features.select(np.arange(0, 30, 3))
    sums = pair_sums(some.pairs, features.pairs, weights)
    expected = nearest(sums, some.diagonal, features.diagonal, k, [-1] * 10)
    found = nearest_graphs(some, features, k, n_jobs=n_jobs)
    pairs = [list(zip(p.tolist(), s.tolist(), strict=True)) for p, s in zip(*found, strict=True)]
    assert pairs == expected


def test_a_graph_is_not_its_own_neighbour(weighed):
    features, weights = weighed
    n = features.pairs.n_graphs
    sums, own = pair_sums(features.pairs, features.pairs, weights), np.arange(n)
    expected = nearest(sums, features.diagonal, features.diagonal, n, own.tolist())
    found = nearest_graphs(features, features, n, own)
    assert found.positions.tolist() == [[j for j, _ in row] for row in expected]
    assert found.positions.shape == (n, n - 1)
    alone = features.select(np.array([3]))
    found = nearest_graphs(alone, alone, 5, np.array([0]))
    assert found.positions.shape == found.similarity.shape == (1, 0)


# --- the mixture kernel -------------------------------------------------------------------------

TERM = Term(TanimotoL1(gamma=1.7, rho=0.3, share=0.6), amplitude=2.5)


@pytest.fixture(scope="module")
def counted():
    """Counts (n_graphs, n_patterns) and the same as features, with uneven weights."""
    rng = np.random.default_rng(0)
    histograms = histograms_of(random_collection(rng, 25))
    weights = rng.uniform(0.1, 3.0, histograms.n_patterns)
    pairs = PairFeatures.of_counts(histograms)
    return histograms.to_sparse().toarray(), weights, Features.of(pairs, weights)


def by_formula(left, right, weights, term):
    kernel = term.kernel
    shared = float(weights @ np.minimum(left, right))
    total = float(weights @ np.maximum(left, right))
    tanimoto = shared / total if total else 1.0
    distance = float(weights @ np.abs(left - right))
    near = kernel.share * np.exp(-kernel.gamma * (1 - tanimoto))
    return term.amplitude * (near + (1 - kernel.share) * np.exp(-kernel.rho * distance))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_values_are_those_of_the_formula(counted, n_jobs):
    table, weights, features = counted
    some = features.select(np.arange(0, 25, 3))
    found = TERM.matrix(some, features, n_jobs)
    expected = [[by_formula(a, b, weights, TERM) for b in table] for a in table[::3]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
