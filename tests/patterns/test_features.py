"""Features of graphs given a vocabulary: what training never saw counts for a graph's own norm."""

import numpy as np
import pytest

from strategies import random_collection
from treelens.patterns.features import PatternExtractor, first_depth_of, select_features

KINDS = ["subtree", "optimal-assignment", "wasserstein"]


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(3)
    return random_collection(rng, 12), random_collection(rng, 15)


def extractor(graphs, kind, first_depth=0):
    return PatternExtractor.fit(graphs, 2, first_depth, kind)[0]


@pytest.mark.parametrize("first_depth", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_the_diagonal_is_that_of_a_vocabulary_that_knows_all(graphs, kind, first_depth):
    """The oracle is a vocabulary fitted to the new graphs themselves."""
    train, new = graphs
    found = extractor(train, kind, first_depth).refine(new)
    assert found.histograms.unseen.any(), "or this shows nothing"
    whole = extractor(new, kind, first_depth).refine(new)
    np.testing.assert_allclose(found.features.diagonal, whole.features.diagonal, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_features_of_some_graphs_are_those_of_these_graphs_alone(graphs, kind):
    train, new = graphs
    ours, picked = extractor(train, kind), np.array([9, 2, 2, 11])
    some = select_features(ours.features(new), picked)
    alone = ours.features(new[picked])
    np.testing.assert_allclose(some.diagonal, alone.diagonal)
    for part in ("rows", "lists"):
        a, b = getattr(some.pairs, part), getattr(alone.pairs, part)
        for name in ("offsets", "indices", "values"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_a_depth_must_be_left():
    assert (first_depth_of(0, True), first_depth_of(1, False)) == (0, 1)
    with pytest.raises(ValueError, match="leaves no pattern to compare"):
        first_depth_of(0, False)
