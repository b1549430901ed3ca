"""Continuous attributes of nodes and edges: what collections carry and readers find."""

import pickle
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.test_convert import FakeIgraph, FakeTensor, assert_is_path
from graphs.test_tudataset import write_set
from treelens import GraphCollection, as_graph_collection, read_tudataset
from treelens.errors import GraphDataError
from treelens.graphs.build import build_collection
from treelens.graphs.collection import check_attributes
from treelens.graphs.tudataset import number_table


def random_graphs(rng, n_graphs=6, directed=False) -> GraphCollection:
    """Graphs with two node attributes, some missing, and one edge attribute."""
    sizes = rng.integers(0, 6, n_graphs)
    starts = np.cumsum(sizes) - sizes
    edges = [
        (start + rng.integers(size), start + rng.integers(size))
        for start, size in zip(starts, sizes, strict=True)
        for _ in range(2 * size)
    ]
    n_nodes = int(sizes.sum())
    numbers = rng.normal(size=(n_nodes, 2))
    numbers[rng.random((n_nodes, 2)) < 0.2] = np.nan
    return build_collection(
        sizes,
        np.array(edges).reshape(-1, 2),
        rng.integers(0, 3, n_nodes),
        node_attributes=numbers,
        attribute_names=("x", "y"),
        directed=directed,
        edge_attributes=rng.normal(size=(len(edges), 1)),
        edge_attribute_names=("weight",),
    )


def assert_same(one: GraphCollection, other: GraphCollection) -> None:
    for name in (
        "node_offsets",
        "neighbor_offsets",
        "neighbors",
        "node_attributes",
        "edge_attributes",
    ):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.attribute_names == other.attribute_names
    assert one.edge_attribute_names == other.edge_attribute_names
    assert one.directed == other.directed
    if one.directed:
        np.testing.assert_array_equal(one.directions, other.directions)


@given(seed=st.integers(0, 10**6), directed=st.booleans())
def test_attributes_stay_with_their_nodes_and_edges(seed, directed) -> None:
    rng = np.random.default_rng(seed)
    graphs = random_graphs(rng, directed=directed)
    if not graphs.n_nodes:
        return
    assert_same(pickle.loads(pickle.dumps(graphs)), graphs)
    assert_same(graphs.relabelled(np.zeros(graphs.n_nodes, np.int32), ("a",)), graphs)
    assert_same(as_graph_collection(list(graphs)), graphs)
    picks = rng.integers(0, len(graphs), 4)
    for chosen, indices in ((graphs[picks], picks), (graphs[1:4], range(1, 4))):
        expected = [graphs[int(i)].node_attributes["x"] for i in indices]
        found = [graph.node_attributes["x"] for graph in chosen]
        for left, right in zip(expected, found, strict=True):
            np.testing.assert_array_equal(left, right)
        edges = [(g.edges, g.edge_attributes["weight"]) for g in (graphs[int(i)] for i in indices)]
        assert edges == [(g.edges, g.edge_attributes["weight"]) for g in chosen]


@given(seed=st.integers(0, 10**6), directed=st.booleans())
def test_networkx_gives_back_what_it_got(seed, directed) -> None:
    graphs = random_graphs(np.random.default_rng(seed), directed=directed)
    graphs = graphs[np.flatnonzero(graphs.sizes)]
    if not len(graphs) or np.isnan(graphs.node_attributes).all(axis=0).any():
        return
    theirs = [graph.to_networkx() for graph in graphs]
    assert {graph.is_directed() for graph in theirs} == {directed}
    again = as_graph_collection(theirs, node_attributes=["x", "y"], edge_attributes=["weight"])
    assert_same(again, graphs)
    assert [graph.node_labels for graph in again] == [graph.node_labels for graph in graphs]
    all_of_them = as_graph_collection(theirs, node_attributes="all", edge_attributes="all")
    assert_same(all_of_them, graphs)


def test_attributes_of_an_edge_listed_twice_are_averaged() -> None:
    edges = np.array([[0, 1], [1, 0], [1, 2]])
    values = np.array([[1.0, np.nan], [3.0, 5.0], [7.0, np.nan]])
    given = {"edge_attributes": values, "edge_attribute_names": ("u", "v")}
    graphs = build_collection([3], edges, ["a"] * 3, **given)
    assert graphs[0].edge_attributes["u"] == (2.0, 7.0)
    np.testing.assert_array_equal(graphs[0].edge_attributes["v"], [5.0, np.nan])
    directed = build_collection([3], edges, ["a"] * 3, **given, directed=True)
    assert directed[0].edge_attributes["u"] == (1.0, 3.0, 7.0)


GOOD = {"sizes": [2], "edges": np.array([[0, 1]]), "node_labels": ["a", "b"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"node_attributes": [[1.0], [np.inf]], "attribute_names": ["q"]},
            r"Graph 0: the node attribute 'q' has the value inf",
        ),
        ({"edge_attributes": [[-np.inf]], "edge_attribute_names": ["q"]}, "edge attribute 'q'"),
        ({"node_attributes": [[1.0]], "attribute_names": ["q"]}, r"have the shape \(2, 1\)"),
        ({"node_attributes": [[1.0], [2.0]]}, "give each a name"),
        ({"node_attributes": [[1.0, 2], [2, 2]], "attribute_names": ["q", "q"]}, "of its own"),
        ({"node_attributes": [["x"], ["y"]], "attribute_names": ["q"]}, "numbers"),
        ({"edge_attributes": [[1.0], [2.0]], "edge_attribute_names": ["q"]}, "2 .* for 1 edges"),
    ],
)
def test_attributes_that_do_not_fit(change, words) -> None:
    with pytest.raises(GraphDataError, match=words):
        build_collection(**GOOD, **change)


def test_models_get_the_attributes_they_know_or_an_error() -> None:
    graphs = random_graphs(np.random.default_rng(0))
    assert check_attributes(graphs, ("x", "y"), ("weight",)) is graphs
    swapped = check_attributes(graphs, ("y", "x"))
    assert (swapped.attribute_names, swapped.edge_attribute_names) == (("y", "x"), ())
    assert swapped.edge_attributes is None
    np.testing.assert_array_equal(swapped.node_attributes, graphs.node_attributes[:, ::-1])
    with pytest.raises(GraphDataError, match=r"no node attribute 'charge'.*'x', 'y'"):
        check_attributes(graphs, ("x", "charge"))
    with pytest.raises(GraphDataError, match="no edge attribute 'length'"):
        check_attributes(graphs, ("x",), ("length",))


# --- readers --------------------------------------------------------------------------------


def path_with(nodes, edges=({}, {})) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from((i, {"label": "a", **data}) for i, data in enumerate(nodes))
    graph.add_edges_from(((0, 1, edges[0]), (1, 2, edges[1])))
    return graph


def test_networkx_by_name() -> None:
    nodes = [{"x": 1, "pos": (0.5, 2.0), "word": "no"}, {"x": None, "pos": (1.5, 3.0)}, {"x": 2.5}]
    graphs = as_graph_collection(
        [path_with(nodes, ({"weight": 2.0}, {}))],
        node_attributes=["pos", "x"],
        edge_attributes=["weight"],
    )
    assert graphs.attribute_names == ("pos 1", "pos 2", "x")
    np.testing.assert_array_equal(
        graphs.node_attributes, [[0.5, 2, 1], [1.5, 3, np.nan], [np.nan, np.nan, 2.5]]
    )
    np.testing.assert_array_equal(graphs.edge_attributes[:, 0], [2, 2, np.nan, np.nan])
    everything = as_graph_collection([path_with(nodes)], node_attributes="all")
    assert everything.attribute_names == ("pos 1", "pos 2", "x")  # not the label, not the word
    again = as_graph_collection([path_with([{"x": 3.0, "pos": (1, 1)}] * 3)], recipe=graphs.recipe)
    assert again.attribute_names == graphs.attribute_names
    labels = as_graph_collection([path_with([{"label": 0.5}] * 3)], node_attributes=["label"])
    assert labels.degree_labels
    assert labels[:1].degree_labels
    assert labels.attribute_names == ("label",)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([{"x": 1.0}, {"x": "far"}, {}], r"A node of graph 1 has 'far' as attribute 'x'"),
        ([{"x": 1.0}, {"x": [1.0, 2.0]}, {}], r"of graph 1 .*expected a number"),
        ([{"x": np.inf}, {}, {}], "Graph 1: the node attribute 'x' has the value inf"),
    ],
)
def test_networkx_values_that_are_no_numbers(nodes, words) -> None:
    with pytest.raises(GraphDataError, match=words):
        as_graph_collection([path_with([{"x": 1.0}] * 3), path_with(nodes)], node_attributes=["x"])


def test_a_graph_without_an_attribute_that_others_have_is_named() -> None:
    graphs = [path_with([{"x": 1.0}] * 3), path_with([{}] * 3), nx.Graph()]
    for asked in (["x"], "all"):
        with pytest.warns(UserWarning, match=r"Graph 1 has no node attribute 'x' \(1 of 3"):
            read = as_graph_collection(graphs, node_attributes=asked)
        np.testing.assert_array_equal(np.isnan(read.node_attributes[:, 0]), [0, 0, 0, 1, 1, 1])
    with pytest.warns(UserWarning, match="Graph 1 has no node attribute 'x'"):
        as_graph_collection(graphs, recipe=read.recipe)


def test_one_name_and_names_of_nothing() -> None:
    graphs = [path_with([{"size": 1.0}] * 3)]
    assert as_graph_collection(graphs, node_attributes="size").attribute_names == ("size",)
    with pytest.raises(GraphDataError, match=r"'charge'.*There are: size"):
        as_graph_collection(graphs, node_attributes=["charge"])
    for wrong in ([np.ones((3, 1))], 3):
        with pytest.raises(GraphDataError, match="node_attributes must be a list of names"):
            as_graph_collection(graphs, node_attributes=wrong)


def test_igraph() -> None:
    nodes = {"x": [0.5, None, 1], "label": list("abc"), "name": list("uvw")}
    graph = FakeIgraph(3, [(1, 0), (1, 2)], nodes, {"w": [3, 4], "label": [1, 2]})
    graphs = as_graph_collection([graph], node_attributes="all", edge_attributes=["w"])
    np.testing.assert_array_equal(graphs.node_attributes[:, 0], [0.5, np.nan, 1])
    assert graphs[0].edge_attributes == {"w": (3.0, 4.0)}
    assert_is_path(graphs[0], tuple("abc"))
    assert_is_path(as_graph_collection([graph], node_label="name")[0], tuple("uvw"))
    with pytest.raises(GraphDataError, match="Attributes there: label, name, x"):
        as_graph_collection([graph], node_label="charge")


def test_geometric() -> None:
    index = FakeTensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph = SimpleNamespace(
        edge_index=index,
        num_nodes=3,
        x=FakeTensor([[0.5, 1], [2, 3], [4, 5]]),
        pos=np.arange(9.0).reshape(3, 3),
        edge_attr=FakeTensor([0.5, 0.5, 1, 2]),
        node_labels=[1, 2, 1],
    )
    graphs = as_graph_collection([graph], node_attributes="all", edge_attributes=["edge_attr"])
    assert graphs.attribute_names == ("x 1", "x 2", "pos 1", "pos 2", "pos 3")
    np.testing.assert_array_equal(graphs.node_attributes[:, :2], graph.x.values)
    assert graphs[0].edge_attributes == {"edge_attr": (0.5, 1.5)}  # the mean of both directions
    assert graphs[0].node_labels == (1, 2, 1)
    with pytest.raises(GraphDataError, match=r"x of graph 0 has shape \(3, 2\)"):
        as_graph_collection(
            [SimpleNamespace(**{**vars(graph), "num_nodes": 4, "node_labels": [1] * 4})],
            node_attributes=["x"],
        )
    with pytest.raises(GraphDataError, match=r"node_attributes=\['x'\]"):
        as_graph_collection([SimpleNamespace(edge_index=index, num_nodes=3, x=graph.x)])


def test_tuples_and_matrices() -> None:
    pairs, labels = [("u", "v", 0.5), ("v", "w", 2.0)], {"u": 1, "v": 2, "w": 1}
    values = {"u": [1.0, 2.0], "v": [3.0, 4.0], "w": [5.0, 6.0]}
    weighted = as_graph_collection(
        [(pairs, labels)], node_attributes=[values], edge_attributes=["weight"]
    )
    assert weighted[0].edge_attributes == {"weight": (0.5, 2.0)}
    array = np.array(list(values.values()))
    matrix = np.array([[0, 0.5, 0], [0.5, 0, 2], [0, 2, 0]])
    for graphs in (
        weighted,
        as_graph_collection([(pairs, labels)], node_attributes=[array]),
        as_graph_collection([(matrix, [1, 2, 1])], node_attributes=[array]),
        as_graph_collection([matrix], node_attributes=[array], edge_attributes=["weight"]),
    ):
        np.testing.assert_array_equal(graphs.node_attributes, array)
        assert graphs.attribute_names == ("attribute 1", "attribute 2")
    lengths = as_graph_collection(
        [(pairs, labels)], edge_attributes=[{("v", "u"): 3, ("v", "w"): 4}]
    )
    assert lengths[0].edge_attributes == {"attribute": (3.0, 4.0)}
    in_order = as_graph_collection([(pairs, labels)], edge_attributes=[np.array([[3.0], [4.0]])])
    assert in_order[0].edge_attributes == lengths[0].edge_attributes
    vectors = as_graph_collection([(pairs, values)], node_attributes=["label"])
    np.testing.assert_array_equal(vectors.node_attributes, array)
    assert vectors.degree_labels
    with pytest.raises(GraphDataError, match="2 node attributes for 3 nodes"):
        as_graph_collection([(pairs, labels)], node_attributes=[array[:2]])
    with pytest.raises(GraphDataError, match="values for 2 graphs; there are 1"):
        as_graph_collection([(pairs, labels)], node_attributes=[array, array])


@pytest.mark.filterwarnings("ignore::treelens.errors.DegreeLabelsWarning")
def test_tu_files(tmp_path) -> None:
    parts = {
        "A": "1, 2\n2, 1\n",
        "graph_indicator": "1\n1\n2\n",
        "graph_labels": "1\n2\n",
        "node_labels": None,
        "edge_labels": None,
    }
    values = {"node_attributes": " 0.1, 2\n-3e-2,nan\n 4, 5.\n", "edge_attributes": "1\n2\n"}
    graphs, _ = read_tudataset(write_set(tmp_path, **parts, **values))
    assert graphs.attribute_names == ("attribute 1", "attribute 2")
    np.testing.assert_array_equal(graphs.node_attributes, [[0.1, 2], [-0.03, np.nan], [4, 5]])
    assert graphs[0].edge_attributes == {"attribute 1": (1.5,)}
    for text, words in (
        ("1, 2\n3\n4, 5\n", "line 2: expected 2"),
        ("1\n2\ninf\n", "line 3: .*'inf'"),
        ("1\n\n2\n", "line 2"),
        ("1\n2\n", r"has 2 lines, .* has 3"),
    ):
        with pytest.raises(GraphDataError, match=f"node_attributes.txt,? {words}"):
            read_tudataset(write_set(tmp_path, **parts, node_attributes=text))


@given(st.lists(st.floats(allow_infinity=False), min_size=1), st.sampled_from([",", " ;  ", "\t"]))
def test_numbers_are_read_exactly(values, between) -> None:
    line = between.join(map(repr, values))
    found = number_table(f"{line}\n{line}".encode(), "x", np.float64)
    np.testing.assert_array_equal(found, [values, values])
