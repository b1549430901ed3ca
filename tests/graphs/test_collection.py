"""GraphCollection: picking graphs, immutability, pickling, use by scikit-learn."""

import copy
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split

import treelens as tl
from treelens import Graph, GraphCollection
from treelens.errors import GraphDataError
from treelens.graphs.build import build_collection
from treelens.graphs.collection import encode_labels


def example() -> GraphCollection:
    """A labelled path, nothing, a lone node, a triangle."""
    return build_collection(
        [3, 0, 1, 3],
        np.array([[0, 1], [1, 2], [4, 5], [5, 6], [4, 6]]),
        ["a", "b", "a", "c", "a", "b", "c"],
        ["x", "y", "x", "x", "y"],
        names=["path", "nothing", "dot", "triangle"],
        graph_data={"pair": [(1, 2), (3, 4), (5, 6), (7, 8)]},
    )


def test_items_are_plain_graphs() -> None:
    graphs = example()
    assert graphs[0] == Graph(
        ("a", "b", "a"), ((0, 1), (1, 2)), ("x", "y"), "path", {"pair": (1, 2)}
    )
    assert graphs[1] == Graph((), (), (), "nothing", {"pair": (3, 4)})
    assert graphs[2].node_labels == ("c",)
    assert graphs[-1].edges == ((0, 1), (0, 2), (1, 2))
    assert len(graphs) == 4
    assert (graphs.n_nodes, graphs.n_edges, graphs.shape) == (7, 5, (4,))


KEYS = [
    slice(1, 3),
    slice(None, None, -1),
    slice(3, 1),
    slice(0, 4, 2),
    [3, 0, 0],
    np.array([-1, 1]),
    np.array([True, False, False, True]),
    [True, False, True, False],
    [],
    range(2),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_picking_agrees_with_a_list_of_graphs(key) -> None:
    graphs = example()
    picked = graphs[key]
    assert isinstance(picked, GraphCollection)
    positions = np.arange(4)[key if isinstance(key, slice) else list(key)]
    expected = [graphs[i] for i in positions.tolist()]
    assert list(picked) == expected
    # what was picked is a full citizen: picking again works the same
    assert list(picked[np.arange(len(picked))]) == list(picked)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (4, "there are 4 graphs"),
        (-5, "there are 4 graphs"),
        ([0, 9], "index 9 is out of bounds"),
        ([-9, 0], "index -9 is out of bounds"),
        ([True, False], "boolean"),
        ([0.5], "integer"),
        ("path", "one axis"),
        (np.zeros((2, 2), int), "one axis"),
        ((0, 1), "one axis"),
    ],
)
def test_bad_keys_are_errors(key, words) -> None:
    with pytest.raises(IndexError, match=words):
        example()[key]


def test_nothing_can_be_changed() -> None:
    graphs = example()
    with pytest.raises(AttributeError, match="cannot assign"):
        graphs.node_codes = np.zeros(7)
    for array in (graphs.node_codes, graphs.neighbors, graphs.edge_codes, graphs.names):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError):
        graphs.graph_data["pair"] = []
    with pytest.raises(ValueError, match="read-only"):
        graphs.graph_data["pair"][0] = 0
    codes = np.zeros(2, dtype=np.int32)
    graphs = GraphCollection([0, 2], [0, 1, 2], [1, 0], codes, ("a", "b"))
    codes[0] = 1
    assert graphs[0].node_labels == ("a", "a")


@pytest.mark.parametrize(
    "copier", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_and_pickles_are_the_same(copier) -> None:
    graphs = example()
    again = copier(graphs)
    assert list(again) == list(graphs)
    assert again.degree_labels == graphs.degree_labels
    with pytest.raises(AttributeError):
        again.names = None


GOOD = {
    "node_offsets": [0, 2, 5],
    "neighbor_offsets": [0, 1, 2, 3, 5, 6],
    "neighbors": [1, 0, 1, 0, 2, 1],
    "node_codes": [0, 1, 0, 0, 1],
    "node_alphabet": ("a", "b"),
    "edge_codes": [0, 0, 1, 1, 0, 0],
    "edge_alphabet": ("x", "y"),
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *(
            ({"neighbors": bad}, "neighbors of graph 1 must be nodes of that graph")
            for bad in (
                [1, 0, 1, 0, 3, 1],
                [1, 0, 1, 0, 2, -1],
                [1, 0, 1, 2, 0, 1],
                [1, 0, 1, 2, 2, 1],
            )
        ),
        ({"neighbors": [1, 0, 1, 0, 2, 2**31]}, "neighbors must fit into int32"),
        ({"neighbors": [1.0, 0, 1, 0, 2, 1]}, "neighbors must be integers .*; got float64"),
        ({"neighbors": [[1, 0], [1, 0], [2, 1]]}, r"1 axes; got int64, shape \(3, 2\)"),
        ({"node_offsets": [0, 6, 5]}, "node_offsets must ascend"),
        ({"node_offsets": []}, "node_offsets must ascend from 0"),
        ({"neighbor_offsets": [0, 2**63 - 1, -(2**63), 3, 5, 6]}, "neighbor_offsets must ascend"),
        ({"node_codes": [0, 1, 0, 2, 1]}, "node_codes must be at least 0 and below 2"),
        ({"node_codes": [True, True, True, True, True]}, "node_codes must be integers .* got bool"),
        ({"node_codes": [0]}, r"node_codes must have the shape \(5,\), not \(1,\)"),
        ({"fine_codes": [0, 0, 0, 0, 1], "fine_alphabet": ("x",)}, "fine_codes must be .* below 1"),
        ({"edge_codes": [0, 0, 1, 1, 0, 2]}, "edge_codes must be .* below 2"),
        ({"edge_codes": None}, "together"),
        ({"directions": [0, 0, 1, 1, 0, 2]}, "directions must be"),
        ({"names": ["x"]}, r"names must have the shape \(2,\)"),
    ],
)
def test_arrays_that_no_loop_could_follow_are_an_error(change, words) -> None:
    assert len(GraphCollection(**GOOD)) == 2
    with pytest.raises(GraphDataError, match=words):
        GraphCollection(**{**GOOD, **change})


def test_neighbours_may_fall_where_another_node_begins() -> None:
    """From node to node, over a node without any, and from graph to graph."""
    graphs = GraphCollection([0, 3, 4], [0, 2, 2, 3, 4], [0, 2, 0, 0], [0, 0, 0, 0], ("a",))
    assert [graph.edges for graph in graphs] == [((0, 0), (0, 2)), ((0, 0),)]


def test_splitters_and_searches_pass_collections_on(mutag, monkeypatch) -> None:
    """None of them takes a collection apart graph by graph."""
    monkeypatch.setattr(GraphCollection, "_graph", lambda *_: pytest.fail("one graph was made"))
    graphs, y = mutag
    assert len(cross_val_score(DummyClassifier(), graphs, y, cv=KFold(5))) == 5
    search = GridSearchCV(DummyClassifier(), {"strategy": ["prior", "stratified"]}, cv=3)
    assert search.fit(graphs, y).best_score_ > 0.5
    train, test, y_train, y_test = train_test_split(graphs, y, test_size=0.25, random_state=0)
    assert isinstance(train, GraphCollection)
    assert (len(train), len(test)) == (len(y_train), len(y_test)) == (141, 47)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["b", "a", "b"], ("a", "b")),
        ([3, 1, 2, 3], (1, 2, 3)),
        ([(1, 2), (0, 5)], ((0, 5), (1, 2))),
        ([True, False], (False, True)),
        ([1, "a", (2,)], (1, "a", (2,))),
        ([], ()),
        ([2.5, 1.0], (1.0, 2.5)),
        (np.array([5, -1, 5]), (-1, 5)),
        (np.array(["x", "a"]), ("a", "x")),
    ],
    ids=str,
)
def test_codes_lead_back_to_the_labels(labels, expected) -> None:
    codes, alphabet = encode_labels(labels)
    assert [alphabet[code] for code in codes] == list(labels)
    assert alphabet == expected
    assert not any(isinstance(label, np.generic) for label in alphabet)  # plain Python values


# --- the builder behind every reader --------------------------------------------------------------

EDGES, LABELS, NAN = [[0, 1], [2, 3]], list("abab"), float("nan")
BAD = [
    (([[0, 3]], LABELS), "Edge 0 joins nodes 0 and 3, not two of one graph"),
    (([[0, 1], [0, 9]], LABELS), "Edge 1 joins nodes 0 and 9"),
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


def test_labels_and_attributes_are_renamed():
    graphs = tl.as_graph_collection(
        [([(0, 1), (1, 2)], {0: 0, 1: 1, 2: 5}, {(0, 1): 7, (1, 2): 8})],
        node_attributes=[np.arange(6.0).reshape(3, 2)],
    )
    named = graphs.renamed(
        node_labels={0: "helix", 1: "sheet", 2: "turn"},
        edge_labels={7: "-"},
        node_attributes=["x", "y"],
    )
    assert named[0].node_labels == ("helix", "sheet", 5)
    assert named[0].edge_labels == ("-", 8)
    assert named.attribute_names == ("x", "y")
    np.testing.assert_array_equal(named.node_codes, graphs.node_codes)
    with pytest.raises(GraphDataError, match="'helix' stands twice"):
        graphs.renamed(node_labels={0: "helix", 1: "helix"})
    with pytest.raises(GraphDataError, match="No node label has a new name"):
        graphs.renamed(node_labels={"0": "helix"})
    with pytest.raises(GraphDataError, match="attributes"):
        graphs.renamed(node_attributes=["x"])


def test_graphs_with_other_labels_than_in_training_are_warned_of():
    codes = tl.as_graph_collection([([(0, 1)], {0: k % 2, 1: 1}) for k in range(6)])
    named = codes.renamed(node_labels={0: "helix", 1: "sheet"})
    model = tl.GraphRegressor(depth=1).fit(named, np.arange(6) % 2)
    with pytest.warns(UserWarning, match="'helix', 'sheet'"):
        model.predict(codes)
