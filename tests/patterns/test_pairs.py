"""The pair feature, written out and summed by its definition; what training never saw."""

import numpy as np
import pytest
from hypothesis import given, settings

import strategies
from strategies import collections, random_collection
from treelens.graphs.build import build_collection
from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import PatternExtractor, first_depth_of
from treelens.patterns.histograms import (
    PAIR_KINDS,
    PairFeatures,
    PatternHistograms,
    select_features,
)

pytestmark = pytest.mark.interpreted


def histograms_of(graphs: GraphCollection) -> PatternHistograms:
    return strategies.histograms_of(graphs, 3).select_depths(1, 3)


def written_out(pairs: PairFeatures, i: int, j: int) -> np.ndarray:
    """``Z(i, j)`` as the class's own formula has it, shape (n_patterns,)."""
    a = pairs.rows.to_sparse(pairs.n_patterns).toarray()
    combined = np.minimum(a[i], a[j]) if pairs.minimum else a[i] * a[j]
    return pairs.scale[i] * pairs.scale[j] * combined


def by_definition(histograms: PatternHistograms, kind: str, i: int, j: int) -> np.ndarray:
    counts = histograms.to_sparse().toarray()
    if kind == "wasserstein":
        counts = counts / histograms.n_nodes[:, None]
    combined = counts[i] * counts[j] if kind == "subtree" else np.minimum(counts[i], counts[j])
    return combined / histograms.n_depths


@pytest.mark.parametrize("kind", PAIR_KINDS)
@settings(deadline=None, max_examples=40)
@given(graphs=collections(min_graphs=2))
def test_the_plain_feature_is_the_kernel_term_by_term(kind: str, graphs: GraphCollection) -> None:
    histograms = histograms_of(graphs)
    pairs = PairFeatures.from_histograms(histograms, kind, unit=False)
    for i, j in [(0, 0), (0, 1), (1, 0)]:
        expected = by_definition(histograms, kind, i, j)
        np.testing.assert_allclose(written_out(pairs, i, j), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_unit_features_sum_to_one_with_themselves(kind: str, rng: np.random.Generator) -> None:
    histograms = histograms_of(random_collection(rng))
    pairs = PairFeatures.from_histograms(histograms, kind)
    np.testing.assert_allclose(pairs.diagonal(), 1.0, rtol=1e-13)
    plain = PairFeatures.from_histograms(histograms, kind, unit=False)
    norms = np.sqrt(plain.diagonal())
    expected = written_out(plain, 0, 1) / (norms[0] * norms[1])
    np.testing.assert_allclose(written_out(pairs, 0, 1), expected, rtol=1e-13)


@pytest.mark.parametrize("kind", PAIR_KINDS)
@pytest.mark.parametrize("unit", [True, False])
def test_self_sums_with_weights(kind: str, unit: bool, rng: np.random.Generator) -> None:
    histograms = histograms_of(random_collection(rng, 10))
    pairs = PairFeatures.from_histograms(histograms, kind, unit)
    weights = rng.random(pairs.n_patterns)
    expected = [written_out(pairs, i, i) @ weights for i in range(pairs.n_graphs)]
    np.testing.assert_allclose(pairs.diagonal(weights), expected, rtol=1e-12)


def test_empty_graphs_have_no_features() -> None:
    graphs = build_collection([0, 2], np.array([[0, 1]]), ["C", "C"])
    for kind in PAIR_KINDS:
        pairs = PairFeatures.from_histograms(histograms_of(graphs), kind)
        assert np.isfinite(pairs.scale).all()
        np.testing.assert_allclose(pairs.diagonal(), [0, 1])


# --- features of graphs given a vocabulary ------------------------------------------------------


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(3)
    return random_collection(rng, 12), random_collection(rng, 15)


def extractor(graphs, kind, first_depth=0):
    return PatternExtractor.fit(graphs, 2, first_depth, kind)[0]


@pytest.mark.parametrize("first_depth", [0, 1])
@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_the_diagonal_is_that_of_a_vocabulary_that_knows_all(graphs, kind, first_depth):
    """The oracle is a vocabulary fitted to the new graphs themselves."""
    train, new = graphs
    found = extractor(train, kind, first_depth).refine(new)
    assert found.histograms.unseen.any(), "or this shows nothing"
    whole = extractor(new, kind, first_depth).refine(new)
    np.testing.assert_allclose(found.features.diagonal, whole.features.diagonal, rtol=1e-12)


@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_features_of_some_graphs_are_those_of_these_graphs_alone(graphs, kind):
    train, new = graphs
    ours, picked = extractor(train, kind), np.array([9, 2, 2, 11])
    some = select_features(ours.refine(new).features, picked)
    alone = ours.refine(new[picked]).features
    np.testing.assert_allclose(some.diagonal, alone.diagonal)
    for part in ("rows", "lists"):
        a, b = getattr(some.pairs, part), getattr(alone.pairs, part)
        for name in ("offsets", "indices", "values"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_a_depth_must_be_left():
    assert (first_depth_of(0, True), first_depth_of(1, False)) == (0, 1)
    with pytest.raises(ValueError, match="leaves no pattern to compare"):
        first_depth_of(0, False)
