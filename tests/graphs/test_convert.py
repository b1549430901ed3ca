"""The one door: graphs of every kind, and everything that is not a list of graphs."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from treelens import Graph, GraphCollection, as_graph_collection
from treelens.graphs.convert import as_single_graph
from treelens.graphs.errors import DegreeLabelsWarning, GraphDataError


def labelled_path() -> nx.Graph:
    graph = nx.Graph()
    graph.add_node("u", label="C")
    graph.add_node("v", label="N")
    graph.add_node("w", label="C")
    graph.add_edge("u", "v", label=1)
    graph.add_edge("v", "w", label=2)
    return graph


def assert_is_path(graph, labels=("C", "N", "C"), edge_labels=(1, 2)) -> None:
    assert graph.node_labels == labels
    assert graph.edges == ((0, 1), (1, 2))
    assert graph.edge_labels == edge_labels


def test_a_collection_passes_through_untouched(mutag) -> None:
    graphs, _ = mutag
    assert as_graph_collection(graphs) is graphs
    with pytest.raises(GraphDataError, match=r"node_label='x'.*Leave node_label out"):
        as_graph_collection(graphs, node_label="x")


def test_treelens_graphs_make_the_same_collection(mutag) -> None:
    graphs, _ = mutag
    assert list(as_graph_collection(list(graphs[:20]))) == list(graphs[:20])


def test_any_iterable_will_do() -> None:
    graphs = [labelled_path(), labelled_path()]
    as_objects = np.empty(2, dtype=object)
    as_objects[:] = graphs
    for given_graphs in (graphs, tuple(graphs), iter(graphs), as_objects, pd.Series(graphs)):
        collection = as_graph_collection(given_graphs)
        assert len(collection) == 2
        assert_is_path(collection[1])


# --- NetworkX -------------------------------------------------------------------------------


def test_networkx() -> None:
    assert_is_path(as_graph_collection([labelled_path()])[0])


def test_networkx_round_trip(mutag) -> None:
    graphs, _ = mutag
    again = as_graph_collection([graph.to_networkx() for graph in graphs[:30]])
    for old, new in zip(graphs[:30], again, strict=True):
        assert (new.node_labels, new.edges, new.edge_labels) == (
            old.node_labels,
            old.edges,
            old.edge_labels,
        )


def test_networkx_other_attributes() -> None:
    graph = nx.Graph()
    graph.add_node(0, element="C", label="ignored")
    graph.add_node(1, element="O", label="ignored")
    graph.add_edge(0, 1, order=2)
    converted = as_graph_collection([graph], node_label="element", edge_label="order")[0]
    assert (converted.node_labels, converted.edge_labels) == (("C", "O"), (2,))
    with pytest.raises(GraphDataError, match=r"No node .*'charge'.*there: element, label"):
        as_graph_collection([graph], node_label="charge")
    with pytest.raises(GraphDataError, match=r"No edge of any graph has 'kind'"):
        as_graph_collection([graph], edge_label="kind")


def test_networkx_directed_and_multigraphs_follow_the_rule() -> None:
    directed = nx.DiGraph([(0, 1), (1, 0), (1, 2)])
    multi = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2)])
    for graph in (directed, multi):
        nx.set_node_attributes(graph, "a", "label")
    graphs = as_graph_collection([directed, multi])
    assert graphs[0].edges == ((0, 1), (1, 2))
    assert graphs[1].edges == ((0, 1), (1, 2), (2, 2))


def test_networkx_two_labels_for_one_edge() -> None:
    graph = nx.DiGraph()
    graph.add_edge(0, 1, label="to")
    graph.add_edge(1, 0, label="fro")
    with pytest.raises(GraphDataError, match=r"Edge 0 - 1 of graph 0 is listed with two labels"):
        as_graph_collection([graph])


def test_unlabelled_graphs_get_degrees_and_say_so_once() -> None:
    with pytest.warns(DegreeLabelsWarning) as caught:
        graphs = as_graph_collection([nx.path_graph(3), nx.star_graph(3)])
    assert len(caught) == 1
    assert [graph.node_labels for graph in graphs] == [(1, 2, 1), (3, 1, 1, 1)]


def test_labels_missing_for_some_nodes_or_edges() -> None:
    graph = labelled_path()
    del graph.nodes["w"]["label"]
    with pytest.raises(GraphDataError, match=r"Node 'w' of graph 1 has no 'label'"):
        as_graph_collection([labelled_path(), graph])
    graph = labelled_path()
    del graph.edges["v", "w"]["label"]
    with pytest.raises(GraphDataError, match=r"Edge 'v' - 'w' of graph 0 has no 'label'"):
        as_graph_collection([graph])


def test_labels_missing_for_some_graphs() -> None:
    with pytest.raises(GraphDataError, match=r"Graph 0 has node labels, graph 2 has none \(1 of 3"):
        as_graph_collection([labelled_path(), labelled_path(), nx.path_graph(2)])
    bare_edges = labelled_path()
    for _, _, data in bare_edges.edges(data=True):
        data.clear()
    with pytest.raises(GraphDataError, match="Graph 0 has edge labels, graph 1 has none"):
        as_graph_collection([labelled_path(), bare_edges])


def test_graphs_with_nothing_to_label_are_no_mixture() -> None:
    dot = nx.Graph()
    dot.add_node(0, label="C")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graphs = as_graph_collection([nx.Graph(), labelled_path(), dot])
    assert graphs.sizes.tolist() == [0, 3, 1]
    assert_is_path(graphs[1])
    assert as_graph_collection([nx.Graph()]).n_nodes == 0


@pytest.mark.parametrize("label", [float("nan"), ["C"]])
def test_labels_that_cannot_serve(label) -> None:
    graph = labelled_path()
    graph.nodes["v"]["label"] = label
    with pytest.raises(GraphDataError, match="node 1 of graph 0 is"):
        as_graph_collection([graph])


def test_names_are_kept() -> None:
    named = labelled_path()
    named.graph["name"] = "first"
    assert as_graph_collection([named, labelled_path()]).names.tolist() == ["first", None]


# --- GraKeL ---------------------------------------------------------------------------------

NODE_LABELS = {"u": "C", "v": "N", "w": "C"}
EDGE_LABELS = {("u", "v"): 1, ("v", "u"): 1, ("v", "w"): 2, ("w", "v"): 2}


@pytest.mark.parametrize(
    "edges",
    [
        {("u", "v"), ("v", "u"), ("v", "w"), ("w", "v")},
        [("u", "v"), ("v", "w")],
        [("u", "v", 1.0), ("v", "w", 0.5)],
        {("u", "v"): 1.0, ("v", "w"): 2.0},
        {"u": ["v"], "v": ["u", "w"], "w": []},
        {"u": {"v": 1}, "v": {"w": 1}},
    ],
    ids=["set", "list", "triples", "pair dict", "dict of lists", "dict of dicts"],
)
def test_grakel_edges_in_every_form(edges) -> None:
    assert_is_path(as_graph_collection([(edges, NODE_LABELS, EDGE_LABELS)])[0])
    assert_is_path(as_graph_collection([[edges, NODE_LABELS, EDGE_LABELS]])[0])
    assert_is_path(as_graph_collection([(edges, NODE_LABELS)])[0], edge_labels=None)


@pytest.mark.parametrize("wrap", [np.array, scipy.sparse.csr_matrix, scipy.sparse.coo_array, list])
def test_grakel_adjacency_matrices(wrap) -> None:
    matrix = wrap([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    node_labels = {0: "C", 1: "N", 2: "C"}
    edge_labels = {(0, 1): 1, (1, 2): 2}
    assert_is_path(as_graph_collection([(matrix, node_labels, edge_labels)])[0])


def test_grakel_nodes_that_only_the_labels_name_are_kept() -> None:
    graphs = as_graph_collection([([(5, 7)], {5: "a", 7: "b", 9: "c"}), (set(), {1: "a"})])
    assert graphs[0].node_labels == ("a", "b", "c")
    assert graphs[0].edges == ((0, 1),)
    assert graphs[1].node_labels == ("a",)


@pytest.mark.filterwarnings("ignore::treelens.graphs.errors.DegreeLabelsWarning")
def test_grakel_without_labels() -> None:
    graphs = as_graph_collection([({("b", "a"), ("b", "c")},), ([(2, 1)], {}), ([(0, 1)], None)])
    assert [graph.node_labels for graph in graphs] == [(1, 2, 1), (1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (([(0, 1), (1, 2)], {0: "a", 1: "b"}), r"Node 2 of graph 1 has no label"),
        (([(0, 1)], {0: "a", 1: "b"}, {(1, 2): 0}), r"Edge \(0, 1\) of graph 1 has no label"),
        (([(0, 1), 5], {0: "a", 1: "b"}), r"Graph 1: 5 is no edge"),
        ((np.zeros((2, 3)), {0: "a", 1: "b"}), r"Graph 1: .* must be square; got shape \(2, 3\)"),
        (([[0, 1], [1]], {0: "a", 1: "b"}), r"Graph 1: .* must be square"),
        (([(0, [1])], {0: "a"}), r"Graph 1: nodes must be hashable"),
        (([(0, 1)], {0: "a", 1: ["b"]}), r"node 1 of graph 1 is an unhashable list"),
        (([(0, 1)], {0: "a", 1: None}), r"node 1 of graph 1 is None"),
    ],
)
def test_grakel_mistakes_name_the_graph(graph, words) -> None:
    with pytest.raises(GraphDataError, match=words):
        as_graph_collection([([(0, 1)], {0: "a", 1: "b"}), graph])


def test_graphs_that_grakel_has_read(mutag, monkeypatch) -> None:
    grakel = pytest.importorskip("grakel", reason="needs GraKeL's reader")
    from grakel.datasets.base import read_data

    monkeypatch.chdir(Path(grakel.__file__).parent / "tests" / "data")
    theirs = as_graph_collection(read_data("MUTAG", with_classes=True).data)
    ours, _ = mutag
    assert [sorted(g.node_labels) for g in theirs] == [sorted(g.node_labels) for g in ours]
    assert [sorted(g.edge_labels) for g in theirs] == [sorted(g.edge_labels) for g in ours]
    assert [len(g.edges) for g in theirs] == [len(g.edges) for g in ours]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_grakel_and_networkx_agree(pairs) -> None:
    graph = nx.Graph(pairs)
    nx.set_node_attributes(graph, {node: f"n{node}" for node in graph}, "label")
    labels = {node: f"n{node}" for node in graph}
    left = as_graph_collection([graph])[0]
    right = as_graph_collection([(pairs, labels)])[0]
    named = [
        {frozenset((g.node_labels[u], g.node_labels[v])) for u, v in g.edges} for g in (left, right)
    ]
    assert named[0] == named[1]


# --- PyTorch Geometric and igraph, by what they look like -----------------------------------


class FakeTensor:
    """What a tensor on a device with a gradient asks of its reader."""

    def __init__(self, values, steps=()) -> None:
        self.values, self.steps = np.array(values), steps

    def detach(self):
        return FakeTensor(self.values, (*self.steps, "detach"))

    def cpu(self):
        return FakeTensor(self.values, (*self.steps, "cpu"))

    def numpy(self):
        assert self.steps == ("detach", "cpu")
        return self.values


PATH_INDEX = FakeTensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def data(**parts) -> SimpleNamespace:
    return SimpleNamespace(edge_index=PATH_INDEX, num_nodes=3, **parts)


@pytest.mark.parametrize(
    ("x", "labels"),
    [
        ([[1, 0], [0, 1], [1, 0]], (0, 1, 0)),
        ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], (0, 1, 0)),
        ([[6], [7], [6]], (6, 7, 6)),
        ([6.0, 7.0, 6.0], (6, 7, 6)),
        ([[6, 1], [7, 0], [6, 1]], ((6, 1), (7, 0), (6, 1))),
    ],
    ids=["one-hot", "one-hot floats", "one column", "flat", "two columns"],
)
def test_geometric_features_become_labels(x, labels) -> None:
    graphs = as_graph_collection([data(x=FakeTensor(x), edge_attr=FakeTensor([1, 1, 2, 2]))])
    assert_is_path(graphs[0], labels)


def test_geometric_one_rule_for_all_graphs() -> None:
    # alone, the first graph would look one-hot
    one_hot, counts = FakeTensor([[1, 0]] * 3), FakeTensor([[1, 1]] * 3)
    graphs = as_graph_collection([data(x=one_hot), data(x=counts)])
    assert graphs[0].node_labels == ((1, 0),) * 3


def test_geometric_named_attributes_come_first() -> None:
    graph = data(
        x=FakeTensor([[0.5]] * 3), node_labels=FakeTensor([1, 2, 1]), z=FakeTensor([6, 7, 6])
    )
    assert_is_path(as_graph_collection([graph])[0], (1, 2, 1), None)
    assert_is_path(as_graph_collection([graph], node_label="z")[0], (6, 7, 6), None)
    with pytest.raises(GraphDataError, match="node_label='q'"):
        as_graph_collection([graph], node_label="q")


def test_geometric_without_features_gets_degrees() -> None:
    with pytest.warns(DegreeLabelsWarning):
        graphs = as_graph_collection([SimpleNamespace(edge_index=PATH_INDEX, x=None)])
    assert graphs[0].node_labels == (1, 2, 1)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"x": [[0.5], [1.0], [2.0]]}, "x holds values that are not whole numbers"),
        ({"x": [[float("nan")], [1.0], [2.0]]}, "x holds values that are not whole numbers"),
        ({"x": [[1], [2]]}, r"x of graph 0 has shape \(2, 1\)"),
        ({"x": [1, 2, 3], "edge_attr": [0.1] * 4}, "edge_attr holds values that are not whole"),
        ({"x": [1, 2, 3], "edge_attr": [1, 2, 2, 2]}, "Edge 0 - 1 of graph 0 .*two labels"),
    ],
)
def test_geometric_mistakes(parts, words) -> None:
    tensors = {name: FakeTensor(values) for name, values in parts.items()}
    with pytest.raises(GraphDataError, match=words):
        as_graph_collection([data(**tensors)])


def test_geometric_bad_edge_index() -> None:
    with pytest.raises(GraphDataError, match=r"Graph 0: edge_index must have shape \(2, n_edges\)"):
        as_graph_collection([SimpleNamespace(edge_index=np.zeros((4, 3)), num_nodes=3)])
    with pytest.raises(GraphDataError, match="nodes are 0 to 1"):
        as_graph_collection(
            [SimpleNamespace(edge_index=np.array([[0], [5]]), num_nodes=2, x=np.array([1, 1]))]
        )


class FakeSequence(dict):
    """``graph.vs`` and ``graph.es`` of igraph, as far as they are used."""

    def attributes(self):
        return list(self)


class FakeIgraph:
    def __init__(self, n_nodes, edges, vs=(), es=()) -> None:
        self.n_nodes, self.pairs = n_nodes, edges
        self.vs, self.es = FakeSequence(vs), FakeSequence(es)

    def vcount(self):
        return self.n_nodes

    def get_edgelist(self):
        return self.pairs


def test_igraph() -> None:
    labels = {"label": ["C", "N", "C"], "name": ["x", "y", "z"]}
    graph = FakeIgraph(3, [(1, 0), (1, 2)], labels, {"label": [1, 2]})
    assert_is_path(as_graph_collection([graph])[0])
    assert_is_path(as_graph_collection([graph], node_label="name")[0], ("x", "y", "z"))
    gap = FakeIgraph(2, [(0, 1)], {"label": ["C", None]})
    with pytest.raises(GraphDataError, match="Node 1 of graph 0 has no 'label'"):
        as_graph_collection([gap])
    with pytest.raises(GraphDataError, match="Attributes there: label, name"):
        as_graph_collection([graph], node_label="charge")


def test_the_real_igraph() -> None:
    igraph = pytest.importorskip("igraph", reason="needs python-igraph")
    graph = igraph.Graph([(0, 1), (1, 2)])
    graph.vs["label"] = ["C", "N", "C"]
    graph.es["label"] = [1, 2]
    assert_is_path(as_graph_collection([graph])[0])


# --- edges that are not of their graph ------------------------------------------------------


def graph_kinds(edges, n_nodes: int) -> dict:
    """The same nodes and edges as every kind of graph that numbers its nodes."""
    index = np.array(edges).T.reshape(2, -1)
    return {
        "treelens": Graph(("a",) * n_nodes, tuple(edges)),
        "geometric": SimpleNamespace(edge_index=index, num_nodes=n_nodes, x=np.ones(n_nodes)),
        "igraph": FakeIgraph(n_nodes, list(edges), {"label": [1] * n_nodes}),
    }


KINDS = ["treelens", "geometric", "igraph"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stray", [(2, 3), (1, 2), (-1, 0), (2, 2)])
def test_an_edge_never_lands_in_a_neighbouring_graph(kind, stray) -> None:
    good, bad = graph_kinds([(0, 1)], 2)[kind], graph_kinds([(0, 1), stray], 2)[kind]
    with pytest.raises(
        GraphDataError,
        match=rf"Graph 1: edge 1 joins nodes {stray[0]} and {stray[1]}, but the graph has 2 nodes",
    ):
        as_graph_collection([good, bad, good, good])


def test_an_edge_in_a_graph_without_nodes() -> None:
    graphs = [Graph((), ((0, 0),)), Graph(("a",), ())]
    with pytest.raises(GraphDataError, match=r"Graph 0: edge 0 .*has 0 nodes: it has no node"):
        as_graph_collection(graphs)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_floats_are_node_numbers_and_others_are_not(kind) -> None:
    graphs = as_graph_collection([graph_kinds([(0.0, 1.0), (1.0, 2.0)], 3)[kind]])
    assert graphs[0].edges == ((0, 1), (1, 2))
    for bad in (0.5, 1.9, float("nan"), float("inf"), 1e300):
        with pytest.raises(GraphDataError, match=r"Graph 1\b.*edge 1 joins nodes 0.0 and"):
            as_graph_collection(
                [graph_kinds([(0, 1)], 3)[kind], graph_kinds([(0, 1), (0, bad)], 3)[kind]]
            )


@pytest.mark.parametrize(
    "edges",
    [((0, 1, 2), (1, 2, 0)), ((0, 1), (1,)), (("0", "1"),), ((0, None),), (0, 1), ((0, 2**70),)],
)
def test_edges_that_are_no_pairs_of_numbers(edges) -> None:
    with pytest.raises(GraphDataError, match=r"Graph 0: expected pairs of node numbers"):
        as_graph_collection([Graph(("a", "b", "c"), edges)])


def test_labels_never_land_in_a_neighbouring_graph() -> None:
    """One label too many here and one too few there add up to the right number."""
    left = Graph(("a", "b"), ((0, 1),), edge_labels=(1, 2))
    right = Graph(("a", "b", "c"), ((0, 1), (1, 2)), edge_labels=(3,))
    with pytest.raises(GraphDataError, match="Graph 0 has 2 edge labels for 1 edges"):
        as_graph_collection([left, right])


def test_a_number_of_nodes_that_is_none() -> None:
    for wrong in (2.5, -1):
        graph = SimpleNamespace(edge_index=np.empty((2, 0)), num_nodes=wrong)
        with pytest.raises(GraphDataError, match="Graph 0: num_nodes is"):
            as_graph_collection([graph])


def test_sparse_adjacency_matrices_stay_sparse() -> None:
    n_nodes = 100_000  # 80 GB as a dense matrix
    path = scipy.sparse.dia_array((np.ones((1, n_nodes)), [1]), shape=(n_nodes, n_nodes))
    for matrix in (path, path.tocsr(), path.tocsc()):
        graphs = as_graph_collection([(matrix, dict.fromkeys(range(n_nodes), "a"))])
        assert (graphs.n_nodes, graphs.n_edges) == (n_nodes, n_nodes - 1)


def test_sparse_and_dense_adjacency_agree() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        dense = rng.integers(-1, 2, (6, 6)) * (rng.random((6, 6)) < 0.4)
        stored = scipy.sparse.coo_array(dense)
        twice = scipy.sparse.coo_array(  # zeros stored, and entries that cancel each other
            (np.concatenate([stored.data, [0, 1, -1]]),
             (np.append(stored.row, [0, 5, 5]), np.append(stored.col, [0, 0, 0]))), shape=(6, 6)
        )  # fmt: skip
        labels = dict.fromkeys(range(6), "a")
        expected = as_graph_collection([(dense, labels)])[0]
        assert as_graph_collection([(stored.tocsr(), labels)])[0] == expected
        assert as_graph_collection([(twice, labels)])[0] == expected
    holed = scipy.sparse.csr_array(np.array([[0, np.nan], [0, 0]]))
    with pytest.raises(GraphDataError, match=r"Graph 0: .*NaN"):
        as_graph_collection([(holed, {0: "a", 1: "b"})])
    words = np.array([["", "x"], ["x", ""]])
    with pytest.raises(GraphDataError, match=r"Graph 0: .*must hold numbers"):
        as_graph_collection([(words, {0: "a", 1: "b"})])


# --- what is not a list of graphs -----------------------------------------------------------


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (np.zeros((5, 3)), r"got ndarray of shape \(5, 3\)"),
        (np.zeros(5), r"got ndarray of shape \(5,\)"),
        (np.zeros((0, 3)), r"got ndarray of shape \(0, 3\)"),
        (np.array(3, dtype=object), r"got ndarray of shape \(\)"),
        (np.zeros((5, 3)).astype(object), r"got ndarray of shape \(5, 3\)"),
        (scipy.sparse.eye(3).tocsr(), r"of shape \(3, 3\)"),
        (pd.DataFrame({"a": [1, 2]}), r"got DataFrame of shape \(2, 1\)"),
        ([[1.0, 2.0], [3.0, 4.0]], r"item 0 is list \[1.0, 2.0\]"),
        ([1, 2, 3], r"item 0 is int 1"),
        ([None], r"item 0 is NoneType None"),
        (None, r"got NoneType None"),
        (7, r"got int 7"),
        ({"a": 1}, r"got dict"),
        (b"CCO", r"got bytes"),
        ("CCO", r"a SMILES string by itself .*Wrap it in a list"),
        (nx.path_graph(3), r"a NetworkX graph by itself .*Wrap it in a list"),
        (([(0, 1)], {0: "a", 1: "b"}), r"a GraKeL tuple by itself .*Wrap it in a list"),
        (
            [nx.path_graph(2), "CCO"],
            r"of one kind; item 0 is a NetworkX graph, item 1 is str 'CCO'",
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:20],
)
def test_what_is_not_a_list_of_graphs(thing, words) -> None:
    with pytest.raises(GraphDataError, match=words) as caught:
        as_graph_collection(thing)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("nothing", [[], (), np.array([], dtype=object), iter([])])
def test_zero_graphs(nothing) -> None:
    with pytest.raises(GraphDataError, match="at least one graph"):
        as_graph_collection(nothing)


def test_one_graph_at_a_time(mutag) -> None:
    graphs, _ = mutag
    assert len(as_single_graph(graphs[3])) == 1
    assert as_single_graph(graphs[3])[0] == graphs[3]
    assert as_single_graph(graphs[3:4])[0] == graphs[3]
    assert_is_path(as_single_graph(labelled_path())[0])
    assert_is_path(as_single_graph([labelled_path()])[0])
    assert_is_path(as_single_graph(([("u", "v"), ("v", "w")], NODE_LABELS, EDGE_LABELS))[0])
    with pytest.raises(GraphDataError, match="one graph; got 188"):
        as_single_graph(graphs)
    with pytest.raises(GraphDataError, match="got int 3"):
        as_single_graph(3)


def test_molecules_and_smiles_through_the_door() -> None:
    chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit")
    from_smiles = as_graph_collection(["CCO", "c1ccccc1"])
    from_mols = as_graph_collection([chem.MolFromSmiles(x) for x in ("CCO", "c1ccccc1")])
    assert isinstance(from_smiles, GraphCollection)
    for left, right in zip(from_smiles, from_mols, strict=True):
        assert (left.node_labels, left.edges) == (right.node_labels, right.edges)
    assert as_graph_collection(np.array(["CCO", "O"])).n_nodes == 4
    with pytest.raises(GraphDataError, match=r"graph 1 'C1CC'"):
        as_graph_collection(["CCO", "C1CC"])
    with pytest.raises(GraphDataError, match="item 1 is NoneType"):
        as_graph_collection([chem.MolFromSmiles("C"), None])
