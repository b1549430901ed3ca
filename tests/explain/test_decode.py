"""Patterns found again in graphs, as molecules and as trees."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.explain.decode import find_occurrences, unfold_within
from treelens.graphs.synthetic import make_random_graphs
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import PatternVocabulary


@pytest.fixture(scope="module")
def graphs():
    return make_random_graphs(20, n_nodes=(5, 12), n_labels=3, random_state=4)


def _size(tree) -> int:
    return 1 + sum(_size(child) for _, child in tree.children)


# --- occurrences --------------------------------------------------------------------------------


def test_every_occurrence_is_found_with_its_ball(graphs):
    vocabulary, colors = PatternVocabulary.fit(graphs, depth=2)
    patterns = range(0, vocabulary.n_patterns, 7)
    found = find_occurrences(
        PatternForest.of_vocabulary(vocabulary), graphs, patterns, per_pattern=None
    )
    for pattern in patterns:
        depth = vocabulary.depth_of(pattern)
        expected = np.count_nonzero(
            colors.colors[depth] == pattern - vocabulary.level_offsets[depth]
        )
        assert len(found[pattern]) == expected > 0
        for place in found[pattern]:
            _check_ball(graphs[place.graph_index], place)


def _check_ball(graph, place):
    import networkx as nx

    distance = nx.single_source_shortest_path_length(graph.to_networkx(), place.root, place.depth)
    assert set(place.nodes) == set(distance)
    assert [distance[node] for node in place.nodes] == sorted(distance.values())
    walked = {
        (u, v)
        for u, v in graph.edges
        if min(distance.get(u, 99), distance.get(v, 99)) < place.depth
    }
    assert set(place.edges) == walked


def test_the_smallest_graph_comes_first(graphs):
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    every = find_occurrences(
        PatternForest.of_vocabulary(vocabulary), graphs, [0], per_pattern=None
    )[0]
    sizes = [graphs.sizes[place.graph_index] for place in every]
    assert sizes == sorted(sizes)
    assert find_occurrences(PatternForest.of_vocabulary(vocabulary), graphs, [0])[0] == every[:1]


def test_a_pattern_that_is_not_there_has_no_occurrence(graphs):
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=2)
    assert find_occurrences(
        PatternForest.of_vocabulary(vocabulary), graphs[:1], [vocabulary.n_patterns - 1]
    ) == {vocabulary.n_patterns - 1: []}


# --- trees --------------------------------------------------------------------------------------


def test_unfolding_gives_the_whole_tree_where_it_fits(graphs):
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=3)
    for pattern in range(0, vocabulary.n_patterns, 11):
        whole = vocabulary.tree(pattern)
        tree = unfold_within(vocabulary, pattern, max_nodes=10_000)
        assert len(tree) == _size(whole)
        assert not any(node.cut for node in tree)
        assert tree[0].label == whole.label
        first_layer = sorted(node.label for node in tree if node.layer == 1)
        assert first_layer == sorted(child.label for _, child in whole.children)
        assert all(tree[node.parent].layer == node.layer - 1 for node in tree[1:])


def test_unfolding_stops_at_a_whole_layer():
    complete = [(u, v) for v in range(12) for u in range(v)]
    graphs = tl.as_graph_collection([(complete, dict.fromkeys(range(12), "a"))])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=8)  # 11 ** 8 leaves
    tree = unfold_within(vocabulary, vocabulary.n_patterns - 1, max_nodes=60)
    assert len(tree) == 12
    assert [node.cut for node in tree] == [False] + [True] * 11
