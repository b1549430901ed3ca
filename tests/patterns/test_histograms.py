"""Histograms and pair features by definition, and every way of picking from them."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from strategies import collections, random_collection
from treelens.graphs.build import build_collection
from treelens.graphs.collection import GraphCollection
from treelens.kernels.gram import pair_sums
from treelens.patterns.forest import PatternExtractor, PatternForest
from treelens.patterns.histograms import (
    PAIR_KINDS,
    PairFeatures,
    PatternHistograms,
)
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted


def counted(train: GraphCollection, new: GraphCollection | None = None, depth: int = 2):
    vocabulary, colors = PatternVocabulary.fit(train, depth)
    colors = colors if new is None else vocabulary.transform(new)
    return PatternHistograms.from_colors(vocabulary, colors), vocabulary, colors.colors


def table(histograms: PatternHistograms, kind: str = "counts") -> np.ndarray:
    return histograms.to_sparse(kind).toarray()


def same(a: PatternHistograms, b: PatternHistograms) -> bool:
    return (
        np.array_equal(table(a), table(b))
        and np.array_equal(a.level_offsets, b.level_offsets)
        and np.array_equal(a.n_nodes, b.n_nodes)
        and np.array_equal(a.unseen, b.unseen)
        and np.array_equal(a.level_depths, b.level_depths)
    )


@settings(max_examples=60)
@given(train=collections(min_nodes=0), new=collections(min_nodes=0))
def test_counts_and_unseen_by_definition(train: GraphCollection, new: GraphCollection) -> None:
    histograms, vocabulary, colors = counted(train, new)
    for graph in range(len(new)):
        nodes = slice(new.node_offsets[graph], new.node_offsets[graph + 1])
        for depth in range(3):
            expected = Counter(colors[depth, nodes].tolist())
            assert histograms.unseen[graph, depth] == expected.pop(-1, 0)
            first = vocabulary.level_offsets[depth]
            found = table(histograms)[graph, first : vocabulary.level_offsets[depth + 1]]
            assert {c: n for c, n in enumerate(found) if n} == dict(expected)


@settings(max_examples=40)
@given(train=collections(), new=collections())
def test_seen_and_unseen_masses_make_one(train: GraphCollection, new: GraphCollection) -> None:
    histograms, _, _ = counted(train, new)
    seen = table(histograms, "frequencies").sum(axis=1) / histograms.n_depths
    np.testing.assert_allclose(seen + histograms.out_of_vocabulary(), 1.0, atol=1e-14)
    assert (counted(train)[0].out_of_vocabulary() == 0).all()


@pytest.mark.parametrize(("first", "last"), [(0, 2), (1, 2), (0, 0), (1, 1)])
def test_select_depths(first: int, last: int, rng: np.random.Generator) -> None:
    histograms, _, _ = counted(random_collection(rng, 20), random_collection(rng, 9, labels="CS"))
    chosen = histograms.select_depths(first, last)
    keep = (histograms.depths >= first) & (histograms.depths <= last)
    assert (table(chosen) == table(histograms)[:, keep]).all()
    assert (chosen.unseen == histograms.unseen[:, first : last + 1]).all()
    assert (chosen.depths == histograms.depths[keep]).all()
    again = chosen.select_depths(last, last)  # depths keep their names after a first choice
    assert same(again, histograms.select_depths(last, last))


def test_depths_that_were_not_counted(rng: np.random.Generator) -> None:
    histograms, _, _ = counted(random_collection(rng))
    for first, last in ((0, 3), (2, 1), (-1, 1)):
        with pytest.raises(ValueError, match=rf"Depths {first} to {last} are not among .* 0 to 2"):
            histograms.select_depths(first, last)


@settings(max_examples=40)
@given(data=st.data())
def test_select_graphs(data: st.DataObject) -> None:
    graphs = data.draw(collections(min_graphs=2))
    picks = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8))
    histograms, vocabulary, _ = counted(graphs)
    chosen = histograms.select_graphs(np.array(picks))
    colors = vocabulary.transform(graphs[picks])
    assert same(chosen, PatternHistograms.from_colors(vocabulary, colors))
    assert (np.diff(chosen.by_pattern().offsets) == chosen.support).all()


def test_select_patterns_moves_the_rest_to_unseen(rng: np.random.Generator) -> None:
    histograms, _, _ = counted(random_collection(rng, 20), random_collection(rng, 9, labels="CS"))
    keep = rng.random(histograms.n_patterns) < 0.5
    chosen = histograms.select_patterns(keep)
    assert (table(chosen) == table(histograms)[:, keep]).all()
    assert (chosen.depths == histograms.depths[keep]).all()
    for level in range(histograms.n_depths):
        lost = table(histograms)[:, ~keep & (histograms.depths == level)].sum(axis=1)
        assert (chosen.unseen[:, level] == histograms.unseen[:, level] + lost).all()


@pytest.mark.parametrize("kind", ["counts", "frequencies"])
def test_the_forms_agree(kind: str, rng: np.random.Generator) -> None:
    histograms, _, _ = counted(random_collection(rng))
    expected = table(histograms)
    if kind == "frequencies":
        expected = expected / histograms.n_nodes[:, None]
    assert (table(histograms, kind) == expected).all()
    lists = histograms.by_pattern(kind)
    rows = lists.transposed(histograms.n_graphs)
    for sparse_rows, dense in ((lists, expected.T), (rows, expected)):
        for row in range(len(sparse_rows)):
            entries = slice(sparse_rows.offsets[row], sparse_rows.offsets[row + 1])
            assert sparse_rows.indices[entries].tolist() == np.flatnonzero(dense[row]).tolist()
            assert (sparse_rows.values[entries] == dense[row][dense[row] > 0]).all()


def test_levels_of_a_forest_are_counted_apart_though_they_share_depths():
    graphs = random_collection(np.random.default_rng(0), 6)
    forest, colors = PatternForest.fit(graphs, 1, ("structure", "labels"))
    histograms = forest.count(colors)
    everyone = np.repeat(graphs.sizes[:, None], 4, axis=1)
    assert (histograms.nodes_counted() == everyone).all()
    kept = histograms.select_patterns(np.arange(histograms.n_patterns) > 0)  # without "*"
    assert (kept.nodes_counted() + kept.unseen == everyone).all()
    assert (kept.unseen[:, 0] == graphs.sizes).all()
    assert kept.level_depths.tolist() == [0, 1, 0, 1]


# --- pair features ------------------------------------------------------------------------------


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
@settings(max_examples=40)
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
    some = ours.refine(new).features.select(picked)
    alone = ours.refine(new[picked]).features
    np.testing.assert_allclose(some.diagonal, alone.diagonal)
    for part in ("rows", "lists"):
        a, b = getattr(some.pairs, part), getattr(alone.pairs, part)
        for name in ("offsets", "indices", "values"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_levels_count_by_their_shares(kind: str, rng: np.random.Generator) -> None:
    """Two half levels count as much as a whole one: the kernel level by level, and their mean."""
    histograms, _, _ = counted(random_collection(rng, 9))
    shares = np.array([1.0, 0.5, 0.25])
    shared = replace(histograms, level_shares=shares)
    values = table(histograms, "frequencies" if kind == "wasserstein" else "counts")
    expected = np.zeros((9, 9))
    for level, share in enumerate(shares):
        own = values[:, slice(*histograms.level_offsets[level : level + 2])]
        both = own[:, None], own[None]
        pairs = both[0] * both[1] if kind == "subtree" else np.minimum(*both)
        expected += share / 1.75 * pairs.sum(axis=-1)
    found = pair_sums(PairFeatures.from_histograms(shared, kind, unit=False))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert shared.n_full_depths == 1.75


def test_usual_shares_of_unknown_patterns_are_those_of_graphs_left_out() -> None:
    """The oracle: a vocabulary of all other graphs, one graph after the other."""
    graphs = random_collection(np.random.default_rng(8), 30, labels="CCCNO", max_nodes=7)
    unknown = []
    for k in range(30):
        others = np.delete(np.arange(30), k)
        vocabulary, _ = PatternVocabulary.fit(graphs[others], 1)
        colors = vocabulary.transform(graphs[[k]])
        unknown.append(PatternHistograms.from_colors(vocabulary, colors).out_of_vocabulary()[0])
    found = counted(graphs, depth=1)[0].usual_out_of_vocabulary()
    assert found == pytest.approx(np.quantile(unknown, 0.95))
    assert 0.1 < found < 0.5  # or this shows nothing
    for labels, bound in ((range(10_000), 0.5), ("C", 0.1)):
        some = random_collection(np.random.default_rng(8), 30, labels=labels, max_nodes=4)
        assert counted(some, depth=0)[0].usual_out_of_vocabulary() == bound


def test_of_frequencies_unknown_patterns_are_a_distance(rng: np.random.Generator) -> None:
    """They are parts of the graph, so that nothing is scaled up to make up for them."""
    histograms, _, _ = counted(random_collection(rng, 20), random_collection(rng, 9, labels="CS"))
    pairs = PairFeatures.from_histograms(histograms, "wasserstein", unit=True)
    assert histograms.unseen.any()
    np.testing.assert_allclose(pairs.diagonal(), 1.0 - histograms.out_of_vocabulary())
    known = histograms.nodes_counted().any(axis=1)
    for kind in ("optimal-assignment", "subtree"):
        own = PairFeatures.from_histograms(histograms, kind, unit=True).diagonal()
        np.testing.assert_allclose(own[known], 1.0)
