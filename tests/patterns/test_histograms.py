"""Histograms: counts by definition, and every way of picking from them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import collections, random_collection
from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
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


@settings(deadline=None, max_examples=60)
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


@settings(deadline=None, max_examples=40)
@given(train=collections(), new=collections())
def test_seen_and_unseen_masses_make_one(train: GraphCollection, new: GraphCollection) -> None:
    histograms, _, _ = counted(train, new)
    seen = table(histograms, "frequencies").sum(axis=1) / histograms.n_depths
    np.testing.assert_allclose(seen + histograms.out_of_vocabulary(), 1.0, atol=1e-14)
    assert (counted(train)[0].out_of_vocabulary() == 0).all()


def test_support_and_depths(rng: np.random.Generator) -> None:
    histograms, vocabulary, _ = counted(random_collection(rng))
    assert (histograms.support == (table(histograms) > 0).sum(axis=0)).all()
    assert histograms.depths.tolist() == [
        vocabulary.depth_of(pattern) for pattern in range(vocabulary.n_patterns)
    ]


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


@settings(deadline=None, max_examples=40)
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
