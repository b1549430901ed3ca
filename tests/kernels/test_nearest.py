"""The nearest graphs are those that sorting all similarities finds."""

import numpy as np
import pytest

from naive.kernels import nearest
from strategies import random_collection
from treelens.kernels.gram import pair_sums
from treelens.kernels.weighted import nearest_graphs
from treelens.patterns.features import Features, select_features
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def weighed():
    """Features of graphs, some of them alike (ties), some without a pattern that weighs."""
    rng = np.random.default_rng(3)
    graphs = random_collection(rng, 30)
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 1))
    weights = rng.choice([0.0, 1.0, 2.0], histograms.n_patterns)
    pairs = PairFeatures.of_counts(histograms)
    twice = np.concatenate([np.arange(30), np.arange(0, 30, 4)])
    return select_features(Features(pairs, pairs.diagonal(weights)), twice), weights


@pytest.mark.parametrize("k", [1, 5, 100])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_like_sorting_everything(weighed, k, n_jobs):
    features, weights = weighed
    some = select_features(features, np.arange(0, 30, 3))
    sums = pair_sums(some.pairs, features.pairs, weights)
    expected = nearest(sums, some.diagonal, features.diagonal, k, [-1] * 10)
    found = nearest_graphs(some, features, weights, k, n_jobs=n_jobs)
    pairs = [list(zip(p.tolist(), s.tolist(), strict=True)) for p, s in zip(*found, strict=True)]
    assert pairs == expected


def test_a_graph_is_not_its_own_neighbour(weighed):
    features, weights = weighed
    n = features.pairs.n_graphs
    sums = pair_sums(features.pairs, features.pairs, weights)
    own = np.arange(n)
    expected = nearest(sums, features.diagonal, features.diagonal, n, own.tolist())
    found = nearest_graphs(features, features, weights, n, own)
    assert found.positions.tolist() == [[j for j, _ in row] for row in expected]
    assert found.positions.shape == (n, n - 1)


def test_one_graph_alone_has_no_neighbour(weighed):
    features, weights = weighed
    alone = select_features(features, np.array([3]))
    found = nearest_graphs(alone, alone, weights, 5, np.array([0]))
    assert found.positions.shape == found.similarity.shape == (1, 0)
