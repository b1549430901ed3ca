"""The builder behind every reader, and the encoding of labels."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelens.graphs.build import build_collection
from treelens.graphs.errors import DegreeLabelsWarning, GraphDataError


def test_repeated_and_directed_edges_count_once() -> None:
    once = build_collection([3], np.array([[0, 1], [1, 2]]), [0, 0, 0])
    many = build_collection([3], np.array([[1, 0], [0, 1], [0, 1], [2, 1]]), [0, 0, 0])
    assert once[0] == many[0]
    assert many.n_edges == 2


def test_a_self_loop_makes_a_node_its_own_neighbour_once() -> None:
    graphs = build_collection([2], np.array([[0, 0], [0, 0], [0, 1]]), ["a", "b"])
    assert graphs[0].edges == ((0, 0), (0, 1))
    assert (graphs.n_self_loops, graphs.n_edges) == (1, 2)
    assert graphs.neighbors.tolist() == [0, 1, 0]


def test_conflicting_edge_labels_name_the_edge() -> None:
    edges = np.array([[0, 1], [3, 2], [2, 3]])
    with pytest.raises(
        GraphDataError, match=r"Edge 0 - 1 of graph 1 .* two labels, '[xy]' and '[xy]'"
    ):
        build_collection([2, 2], edges, list("abab"), ["x", "x", "y"])


def test_the_same_edge_label_in_both_directions_is_fine() -> None:
    graphs = build_collection([2], np.array([[0, 1], [1, 0]]), "ab", ["x", "x"])
    assert graphs[0].edge_labels == ("x",)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([[0, 3]], r"joins node 0 of graph 0 and node 1 of graph 1"),
        ([[0, 1], [0, 9]], r"Edge 1 joins nodes 0 and 9, but the nodes are 0 to 3"),
        ([[-1, 0]], r"nodes are 0 to 3"),
    ],
)
def test_edges_that_lead_nowhere(edges, words) -> None:
    with pytest.raises(GraphDataError, match=words):
        build_collection([2, 2], np.array(edges), list("abab"))


@pytest.mark.parametrize("gap", [None, float("nan"), np.float64("nan")])
def test_missing_labels_name_graph_and_node(gap) -> None:
    with pytest.raises(
        GraphDataError, match=r"label of node 1 of graph 1 is (None|.*nan.*): every"
    ):
        build_collection([1, 2], np.empty((0, 2)), ["a", "a", gap])


@pytest.mark.parametrize("label", [["a"], {"a": 1}, {1}, np.array([1, 2])])
def test_unhashable_labels_name_graph_and_node(label) -> None:
    with pytest.raises(GraphDataError, match=r"label of node 0 of graph 1 is an unhashable"):
        build_collection([1, 2], np.empty((0, 2)), ["a", label, "a"])


def test_nan_in_an_array_of_labels() -> None:
    with pytest.raises(GraphDataError, match="node 1 of graph 0 is nan"):
        build_collection([2], np.empty((0, 2)), np.array([1.0, np.nan]))


def test_bad_edge_labels_name_the_edge() -> None:
    with pytest.raises(GraphDataError, match="label of edge 0 - 1 of graph 1 is None"):
        build_collection([2, 2], np.array([[0, 1], [2, 3]]), list("abab"), ["x", None])


def test_wrong_counts() -> None:
    with pytest.raises(GraphDataError, match="1 node labels for 2 nodes"):
        build_collection([2], np.empty((0, 2)), ["a"])
    with pytest.raises(GraphDataError, match="1 edge labels for 0 edges"):
        build_collection([2], np.empty((0, 2)), ["a", "b"], ["x"])


def test_degrees_stand_in_for_labels_with_one_warning() -> None:
    edges = np.array([[0, 1], [1, 2], [1, 0]])
    with pytest.warns(DegreeLabelsWarning, match="1 graphs have no node labels") as caught:
        graphs = build_collection([3], edges, None)
    assert len(caught) == 1
    assert graphs[0].node_labels == (1, 2, 1)
    assert graphs.degree_labels
    assert graphs[:1].degree_labels


def test_labelled_graphs_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not build_collection([1], np.empty((0, 2)), ["a"]).degree_labels


def test_graphs_without_nodes_or_edges_keep_their_place() -> None:
    graphs = build_collection([0, 1, 0, 2, 0], np.array([[1, 2]]), ["a", "b", "c"])
    assert graphs.sizes.tolist() == [0, 1, 0, 2, 0]
    assert [graph.edges for graph in graphs] == [(), (), (), ((0, 1),), ()]
    assert graphs[3].node_labels == ("b", "c")


@given(st.data())
def test_any_list_of_edges_gives_the_graph_that_networkx_sees(data) -> None:
    sizes = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    offsets = np.cumsum(sizes) - sizes
    edges, expected = [], []
    for size, first in zip(sizes, offsets.tolist(), strict=True):
        node = st.integers(0, max(size - 1, 0))
        pairs = data.draw(st.lists(st.tuples(node, node), max_size=12)) if size else []
        edges += [(first + u, first + v) for u, v in pairs]
        expected.append({tuple(sorted(edge)) for edge in nx.Graph(pairs).edges})
    graphs = build_collection(sizes, np.array(edges).reshape(-1, 2), [0] * sum(sizes))
    assert [set(graph.edges) for graph in graphs] == expected
