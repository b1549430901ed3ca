"""The pair feature, written out and summed by its definition."""

import numpy as np
import pytest
from hypothesis import given, settings

from strategies import collections, random_collection
from treelens.graphs.collection import GraphCollection
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PAIR_KINDS, PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted


def histograms_of(graphs: GraphCollection, first_depth: int = 1) -> PatternHistograms:
    vocabulary, colors = PatternVocabulary.fit(graphs, 3)
    return PatternHistograms.from_colors(vocabulary, colors).select_depths(first_depth, 3)


def written_out(pairs: PairFeatures, i: int, j: int) -> np.ndarray:
    """``Z(i, j)`` as the class's own formula has it, shape (n_patterns,)."""
    a = np.zeros((pairs.n_graphs, pairs.n_patterns))
    for graph in range(pairs.n_graphs):
        entries = slice(pairs.rows.offsets[graph], pairs.rows.offsets[graph + 1])
        a[graph, pairs.rows.indices[entries]] = pairs.rows.values[entries]
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
    from treelens.graphs.build import build_collection

    graphs = build_collection([0, 2], np.array([[0, 1]]), ["C", "C"])
    for kind in PAIR_KINDS:
        pairs = PairFeatures.from_histograms(histograms_of(graphs), kind)
        assert np.isfinite(pairs.scale).all()
        np.testing.assert_allclose(pairs.diagonal(), [0, 1])


def test_an_unknown_kind(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=r"kind must be one of .* got 'euclidean'"):
        PairFeatures.from_histograms(histograms_of(random_collection(rng)), "euclidean")
