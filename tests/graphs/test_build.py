"""The builder behind every reader, and the encoding of labels."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelens.graphs.build import build_collection
from treelens.graphs.errors import DegreeLabelsWarning, GraphDataError

EDGES, LABELS, NAN = [[0, 1], [2, 3]], list("abab"), float("nan")
BAD = [
    (([[0, 3]], LABELS), r"Edge 0 joins nodes 0 and 3: expected two nodes of one graph"),
    (([[0, 1], [0, 9]], LABELS), r"Edge 1 joins nodes 0 and 9: .*of the nodes 0 to 3"),
    (([[0, 1], [3, 2], [2, 3]], LABELS, list("xxy")), "of graph 1 .* two labels, '[xy]'"),
    ((EDGES, ["a", "a", "a", None]), r"label of node 1 of graph 1 is None, of type"),
    ((EDGES, np.array([1.0, NAN, 1, 1])), r"node 1 of graph 0 is nan"),
    *(
        ((EDGES, ["a", "a", bad, "a"]), r"label of node 0 of graph 1 is .* must be hashable")
        for bad in (["a"], {"a": 1}, {1}, np.array([1, 2]))
    ),
    ((EDGES, LABELS, ["x", None]), "label of edge 0 - 1 of graph 1 is None"),
    ((EDGES, ["a"]), "1 node labels for 4 nodes"),
    ((EDGES, LABELS, ["x"]), "1 edge labels for 2 edges"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_edges_and_labels_that_do_not_fit(arguments, words) -> None:
    edges, *labels = arguments
    with pytest.raises(GraphDataError, match=words):
        build_collection([2, 2], np.array(edges), *labels)


def test_degrees_stand_in_for_labels_with_one_warning() -> None:
    edges = np.array([[0, 1], [1, 2], [1, 0]])
    with pytest.warns(DegreeLabelsWarning, match="1 graphs have no node labels") as caught:
        graphs = build_collection([3], edges, None)
    assert len(caught) == 1
    assert graphs[0].node_labels == (1, 2, 1)
    assert graphs.degree_labels
    assert graphs[:1].degree_labels


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
    assert graphs.n_edges == sum(map(len, expected))
