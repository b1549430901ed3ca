"""Shortest paths and walks: counts by definition, names, and recognising them in new graphs."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import paths as naive
from strategies import collections, random_collection
from treelens import as_graph_collection
from treelens.errors import GraphDataError
from treelens.graphs.build import build_collection
from treelens.patterns import paths
from treelens.patterns.paths import PathCounts, ShortestPathVocabulary, WalkVocabulary
from treelens.patterns.vocabulary import PatternVocabulary


def by_name(counts: PathCounts, names: np.ndarray, graph: int) -> Counter:
    entries = counts.graphs == graph
    pairs = zip(counts.patterns[entries].tolist(), counts.counts[entries].tolist(), strict=True)
    return Counter({names[p]: n for p, n in pairs if p >= 0})


def triple_name(triple: tuple, directed: bool) -> str:
    return f"{triple[2]}:{triple[0]}{'->' if directed else ','}{triple[1]}"


def sequence_name(sequence: tuple, directed: bool) -> str:
    text, end = str(sequence[0]), "->" if directed else "-"
    for edge, node in zip(sequence[1::2], sequence[2::2], strict=True):
        text += (end if edge is None else f"-[{edge}]{end}") + str(node)
    return f"{len(sequence) // 2}:{text}"


@pytest.mark.parametrize("directed", [False, True])
def test_triples_of_a_large_sparse_graph_match_scipy(rng, directed):
    from scipy import sparse
    from scipy.sparse.csgraph import shortest_path

    n = 400
    edges = rng.integers(0, n, (500, 2))
    labels = rng.integers(0, 300, n)  # many labels: nearly every pair is a triple of its own
    graphs = build_collection([n], edges, labels, directed=directed)
    _, counts = ShortestPathVocabulary.fit(graphs)
    matrix = sparse.coo_array((np.ones(500), edges.T.astype(np.int32)), shape=(n, n))
    d = shortest_path(matrix, directed=directed, unweighted=True)
    joined = np.isfinite(d) & ~np.eye(n, dtype=bool)
    i, j = np.nonzero(joined if directed else np.triu(joined))
    pairs = np.stack([labels[i], labels[j]], axis=1)
    pairs = pairs if directed else np.sort(pairs, axis=1)
    expected = Counter(zip(*pairs.T.tolist(), d[i, j].tolist(), strict=True))
    assert sorted(counts.counts.tolist()) == sorted(map(float, expected.values()))


@pytest.mark.parametrize("n", [1, 6])
def test_many_walks_are_noticed(n):
    """Of a complete graph with one label every length has one sequence, which ends in all nodes."""
    edges = np.array([[i, j] for i in range(n) for j in range(i)]).reshape(-1, 2)
    graphs = build_collection([n], edges, ["C"] * n)
    _, codes = paths.read_labels(graphs, PatternVocabulary.empty(0))
    n_steps = 4 * n * (n - 1)
    assert paths.has_few_walks(graphs, codes, 4, n_steps)
    assert not paths.has_few_walks(graphs, codes, 4, n_steps - 1)


@pytest.mark.interpreted
@given(collections(min_graphs=2, directed=None), st.integers(1, 5))
def test_every_triple_is_counted_under_its_name(graphs, cut):
    train = graphs[: min(cut, len(graphs) - 1)]
    vocabulary, train_counts = ShortestPathVocabulary.fit(train)
    names = vocabulary.feature_names()
    assert len(set(names)) == len(names)
    counts = vocabulary.transform(graphs)
    for index, graph in enumerate(graphs):
        found = naive.triples(graph, ordered=False)
        every = {triple_name(t, graph.directed): n for t, n in found.items()}
        assert by_name(counts, names, index) == Counter(
            {name: n for name, n in every.items() if name in names}
        )
        assert counts.diagonal()[index] == sum(n**2 for n in every.values())
    assert np.array_equal(counts.diagonal()[: len(train)], train_counts.diagonal())


@pytest.mark.interpreted
@given(
    collections(min_graphs=2, max_nodes=5, edge_labels=True, directed=None),
    st.booleans(),
    st.integers(0, 3),
)
def test_every_walk_is_counted_under_its_name(graphs, edge_labels, max_length):
    train = graphs[1:]
    vocabulary, _ = WalkVocabulary.fit(train, max_length, 0.5, edge_labels)
    names = vocabulary.feature_names()
    assert len(set(names)) == len(names)
    counts = vocabulary.transform(graphs, 0.5)
    for index, graph in enumerate(graphs):
        found = naive.sequences(graph, max_length, edge_labels)
        every = Counter({sequence_name(s, graph.directed): n for s, n in found.items()})
        assert by_name(counts, names, index) == Counter(
            {name: n for name, n in every.items() if name in names}
        )
        expected = sum(0.5 ** (len(s) // 2) * n**2 for s, n in found.items())
        assert counts.diagonal()[index] == pytest.approx(expected, rel=1e-14)


def test_triples_are_numbered_in_order_of_first_appearance():
    chain = [(0, 1), (1, 2)]
    graphs = as_graph_collection(
        [(chain, {0: "O", 1: "O", 2: "O"}), (chain, {0: "C", 1: "O", 2: "C"})]
    )
    names = ShortestPathVocabulary.fit(graphs)[0].feature_names()
    assert names.tolist() == ["1:O,O", "2:O,O", "1:C,O", "2:C,C"]


def test_walks_of_one_length_are_neighbours():
    vocabulary, counts = WalkVocabulary.fit(random_collection(np.random.default_rng(1)), 3)
    lengths = [int(name.split(":")[0]) for name in vocabulary.feature_names()]
    assert lengths == sorted(lengths)
    assert np.diff(counts.level_offsets).tolist() == [lengths.count(k) for k in range(4)]
    pairs = counts.pair_features()
    assert np.array_equal(pairs.level_offsets, vocabulary.level_offsets)
    for rows in (pairs.rows, pairs.lists):
        for a, b in pairwise(rows.offsets.tolist()):
            assert (np.diff(rows.indices[a:b]) > 0).all()


def test_labels_are_recognised_whatever_their_codes():
    train = as_graph_collection([([(0, 1)], {0: "C", 1: "O"})])
    # Another alphabet: "A" and "B" come first, so "C" and "O" have other codes here.
    new = as_graph_collection([([(0, 1), (2, 3)], {0: "O", 1: "C", 2: "A", 3: "B"})])
    triples = ShortestPathVocabulary.fit(train)[0].transform(new)
    assert sorted(triples.patterns.tolist()) == [-1, 0]
    walks = WalkVocabulary.fit(train, 1)[0].transform(new)
    assert sorted(walks.patterns.tolist()) == [-1] * 4 + [0, 1, 2, 3]


def test_edge_labels_must_be_there_when_they_are_asked_for():
    labelled = as_graph_collection([([(0, 1)], {0: "C", 1: "O"}, {(0, 1): "="})])
    plain = as_graph_collection([([(0, 1)], {0: "C", 1: "O"})])
    vocabulary, _ = WalkVocabulary.fit(labelled, 1, edge_labels=True)
    assert vocabulary.feature_names().tolist() == ["0:C", "0:O", "1:C-[=]-O", "1:O-[=]-C"]
    with pytest.raises(GraphDataError, match="no edge labels"):
        vocabulary.transform(plain)
    with pytest.raises(GraphDataError, match="no edge labels"):
        WalkVocabulary.fit(plain, 1, edge_labels=True)


@pytest.mark.interpreted
def test_graphs_without_nodes_or_edges_hold_no_triples():
    graphs = build_collection([0, 1, 2], np.empty((0, 2), int), ["C", "C", "O"])
    vocabulary, counts = ShortestPathVocabulary.fit(graphs)
    assert len(vocabulary.feature_names()) == 0
    assert counts.diagonal().tolist() == [0.0, 0.0, 0.0]
    _, walks = WalkVocabulary.fit(graphs, 3)
    assert walks.diagonal().tolist() == [0.0, 1.0, 2.0]
