"""The kernel of the Gaussian process by its formula, pair by pair."""

import numpy as np
import pytest

from strategies import random_collection
from treelens.kernels.mixture import MixtureKernel, MixtureScales
from treelens.patterns.features import Features, select_features
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

SCALES = MixtureScales(gamma=1.7, rho=0.3, amplitude=2.5, share=0.6)


@pytest.fixture(scope="module")
def counted():
    """Counts (n_graphs, n_patterns) and the same as features, with uneven weights."""
    rng = np.random.default_rng(0)
    graphs = random_collection(rng, 25)
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))
    table = np.zeros((histograms.n_graphs, histograms.n_patterns))
    pattern = np.repeat(np.arange(histograms.n_patterns), np.diff(histograms.offsets))
    table[histograms.graphs, pattern] = histograms.counts
    weights = rng.uniform(0.1, 3.0, histograms.n_patterns)
    pairs = PairFeatures.of_counts(histograms)
    return table, weights, Features(pairs, pairs.diagonal(weights))


def by_formula(left, right, weights, scales):
    shared = float(weights @ np.minimum(left, right))
    total = float(weights @ np.maximum(left, right))
    tanimoto = shared / total if total else 1.0
    distance = float(weights @ np.abs(left - right))
    near = scales.share * np.exp(-scales.gamma * (1 - tanimoto))
    return scales.amplitude * (near + (1 - scales.share) * np.exp(-scales.rho * distance))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_values_are_those_of_the_formula(counted, n_jobs):
    table, weights, features = counted
    some = select_features(features, np.arange(0, 25, 3))
    found = MixtureKernel(weights, SCALES).matrix(some, features, n_jobs)
    expected = [[by_formula(a, b, weights, SCALES) for b in table] for a in table[::3]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_it_is_a_kernel(counted, share):
    _, weights, features = counted
    scales = MixtureScales(3.0, 1.0, 1.5, share)
    matrix = MixtureKernel(weights, scales).matrix(features, features)
    np.testing.assert_allclose(np.diagonal(matrix), 1.5)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > -1e-9
