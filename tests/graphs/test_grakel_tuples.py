"""The usual form of GraKeL's tuples is read at once, and says what reading node by node says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treelens as tl
from strategies import random_collection
from treelens.graphs import grakel_tuples
from treelens.graphs.errors import GraphDataError
from treelens.graphs.foreign import join
from treelens.graphs.grakel_tuples import _plain_grakel, from_grakel
from treelens.graphs.recipe import GraphRecipe


def as_tuples(collection, kind=list):
    found = []
    for graph in collection:
        around = {node: [] for node in range(graph.n_nodes)}
        for u, v in graph.edges:
            around[u].append(v)
            around[v].append(u)
        around = {node: kind(others) for node, others in around.items()}
        found.append((around, dict(enumerate(graph.node_labels))))
    return found


def node_by_node(tuples):
    plain = [_plain_grakel(graph, index, []) for index, graph in enumerate(tuples)]
    return join(plain, GraphRecipe("grakel"))


def assert_same(one, other):
    for name in ("node_offsets", "neighbor_offsets", "neighbors", "node_codes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.node_alphabet == other.node_alphabet
    assert one.recipe == other.recipe


@given(seed=st.integers(0, 10**6), kind=st.sampled_from([list, tuple, set, dict.fromkeys]))
def test_the_same_as_node_by_node(seed, kind):
    collection = random_collection(np.random.default_rng(seed), 6)
    tuples = as_tuples(collection, kind)
    assert_same(from_grakel(tuples), node_by_node(tuples))
    assert_same(from_grakel([(*graph, None) for graph in tuples]), node_by_node(tuples))


def test_the_usual_form_takes_the_short_way(monkeypatch):
    tuples = as_tuples(random_collection(np.random.default_rng(0), 5))
    monkeypatch.setattr(grakel_tuples, "_plain_grakel", None)
    assert len(from_grakel(tuples)) == 5


@pytest.mark.parametrize(
    "odd",
    [
        ({0: [1], 1: [0]}, {1: "b", 0: "a"}),  # labels in another order
        ({1: [0], 0: [1]}, {0: "a", 1: "b"}),
        ({"a": ["b"], "b": ["a"]}, {"a": "a", "b": "b"}),
        ({(0, 1): 1.0}, {0: "a", 1: "b"}),
        ([(0, 1)], {0: "a", 1: "b"}),
        ({0: [1.0], 1: [0.0]}, {0: "a", 1: "b"}),
    ],
)
def test_one_graph_of_another_form_and_all_are_read_node_by_node(odd):
    tuples = [*as_tuples(random_collection(np.random.default_rng(1), 3)), odd]
    assert_same(from_grakel(tuples), node_by_node(tuples))
    last = from_grakel(tuples)[3]
    assert sorted(last.node_labels) == ["a", "b"]
    assert [tuple(edge) for edge in last.edges] == [(0, 1)]


def test_a_neighbour_that_is_no_node_is_named():
    with pytest.raises(GraphDataError, match="Node 7 of graph 1 has no label"):
        tl.as_graph_collection([({0: []}, {0: "a"}), ({0: [7]}, {0: "a"})])


@pytest.mark.parametrize("strange", [[(1, 1)], [1, (0, 1)]])
def test_neighbours_that_are_pairs_are_no_nodes(strange):
    with pytest.raises(GraphDataError, match="of graph 0 has no label"):
        tl.as_graph_collection([({0: strange, 1: [0]}, {0: "a", 1: "b"})])
