"""Graphs of every kind, and everything that is not a list of graphs."""

import warnings
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from treelens import Graph, WLSubtree, as_graph_collection
from treelens.errors import GraphDataError, NotGraphsError
from treelens.graphs.convert import as_single_graph
from treelens.targets import positive_code


def labelled_path() -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from([("u", {"label": "C"}), ("v", {"label": "N"}), ("w", {"label": "C"})])
    graph.add_edges_from([("u", "v", {"label": 1}), ("v", "w", {"label": 2})])
    return graph


def assert_is_path(graph, labels=("C", "N", "C"), edge_labels=(1, 2)) -> None:
    assert graph.node_labels == labels
    assert graph.edges == ((0, 1), (1, 2))
    assert graph.edge_labels == edge_labels


def test_a_collection_passes_through_untouched(mutag) -> None:
    graphs, _ = mutag
    assert as_graph_collection(graphs) is graphs
    assert list(as_graph_collection(list(graphs[:20]))) == list(graphs[:20])
    with pytest.raises(GraphDataError, match=r"node_label='x'.*Leave node_label out"):
        as_graph_collection(graphs, node_label="x")


def test_any_iterable_will_do() -> None:
    graphs = [labelled_path(), labelled_path()]
    graphs[0].graph["name"] = "first"
    as_objects = np.empty(2, dtype=object)
    as_objects[:] = graphs
    for given_graphs in (graphs, tuple(graphs), iter(graphs), as_objects, pd.Series(graphs)):
        collection = as_graph_collection(given_graphs)
        assert len(collection) == 2
        assert_is_path(collection[1])
        assert collection.names.tolist() == ["first", None]


def test_labels_missing_for_some_nodes_edges_or_graphs() -> None:
    graph = labelled_path()
    del graph.nodes["w"]["label"]
    with pytest.raises(GraphDataError, match=r"Node 'w' of graph 1 has no 'label'"):
        as_graph_collection([labelled_path(), graph])
    graph = labelled_path()
    del graph.edges["v", "w"]["label"]
    with pytest.raises(GraphDataError, match=r"Edge 'v' - 'w' of graph 0 has no 'label'"):
        as_graph_collection([graph])
    with pytest.raises(GraphDataError, match=r"Node 0 of graph 2 has no .*\(2 of 8"):
        as_graph_collection([labelled_path(), labelled_path(), nx.path_graph(2)])
    bare_edges = labelled_path()
    for _, _, data in bare_edges.edges(data=True):
        data.clear()
    with pytest.raises(GraphDataError, match="Edge 'u' - 'v' of graph 1 has no"):
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


NODE_LABELS = {"u": "C", "v": "N", "w": "C"}
EDGE_LABELS = {("u", "v"): 1, ("v", "u"): 1, ("v", "w"): 2, ("w", "v"): 2}

# PyTorch Geometric and igraph, by what they look like.


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


class FakeSequence(dict):
    """``graph.vs`` and ``graph.es`` of igraph, as far as they are used."""

    def attributes(self):
        return list(self)


class FakeIgraph:
    def __init__(self, n_nodes, edges, vs=(), es=(), directed=False) -> None:
        self.n_nodes, self.pairs, self.directed = n_nodes, edges, directed
        self.vs, self.es = FakeSequence(vs), FakeSequence(es)

    def vcount(self):
        return self.n_nodes

    def is_directed(self):
        return self.directed

    def get_edgelist(self):
        return self.pairs


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
    with pytest.raises(GraphDataError, match=rf"Graph 1: .* nodes {stray[0]} and {stray[1]}, but"):
        as_graph_collection([good, bad, good, good])


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


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (np.zeros((5, 3)), r"got ndarray of shape \(5, 3\)"),
        (np.array(3, dtype=object), r"got ndarray of shape \(\)"),
        (pd.DataFrame({"a": [1, 2]}), r"got DataFrame of shape \(2, 1\)"),
        ([[1.0, 2.0], [3.0, 4.0]], r"item 0 is list \[1.0, 2.0\]"),
        (None, r"got NoneType None"),
        (b"CCO", r"got bytes"),
        (np.ma.array(["CCO", "CCC"], mask=[0, 1]), r"got MaskedArray"),
        ("CCO", r"a SMILES string by itself .*Wrap it in a list"),
        ("new.csv", r"Files are read by treelens.read_smiles"),
        (nx.path_graph(3), r"a NetworkX graph by itself .*Wrap it in a list"),
        (([(0, 1)], {0: "a", 1: "b"}), r"a GraKeL tuple by itself .*Wrap it in a list"),
        (pd.DataFrame({"smiles": ["CCO"]}), r"\(1, 1\): pass df\['smiles'\]"),
        (pd.DataFrame({"id": ["a"], "Ligand SMILES": ["CCO"]}), r"pass df\['Ligand SMILES'\]"),
        (pd.DataFrame({"y": [1.0], "drug": ["CCO"]}), r"pass df\['drug'\]"),
        (np.array([["CCO"], ["CCN"]]), r"pass one column, such as X\[:, 0\]"),
        ([nx.path_graph(2), "CCO"], r"item 0 is a NetworkX graph; item 1 is str 'CCO'"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:20],
)
def test_what_is_not_a_list_of_graphs(thing, words) -> None:
    with pytest.raises(NotGraphsError, match=words) as caught:
        as_graph_collection(thing)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("directed", np.array([True, False])),
        ("directed", "yes"),
        ("recipe", {"atom_label": "element"}),
        ("recipe", np.array([1])),
    ],
)
def test_parameters_that_are_something_else_are_named(parameter, value) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{parameter} must be .*got"):
        as_graph_collection([labelled_path()], **{parameter: value})


class Grumpy:
    """A label that can be compared with its own kind at most."""

    def __init__(self, word: str, with_others: bool = False) -> None:
        self.word, self.with_others = word, with_others

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        if self.with_others and isinstance(other, Grumpy):
            return self.word == other.word
        raise LookupError("no")


def test_labels_that_cannot_be_compared_are_said_to_be_so() -> None:
    def graphs(*labels):
        return [([(0, 1)], dict(enumerate(labels)))]

    with pytest.raises(GraphDataError, match="types Grumpy, str cannot be compared"):
        as_graph_collection(graphs("a", Grumpy("b")))
    with pytest.raises(GraphDataError, match="types Grumpy, int cannot be compared"):
        as_graph_collection(graphs(1, Grumpy("b", with_others=True)))  # of equal hashes
    known = as_graph_collection(graphs(Grumpy("a", True), Grumpy("b", True)))
    assert len(known.node_alphabet) == 2
    kernel = WLSubtree(1).fit(known)
    with pytest.raises(GraphDataError, match="cannot be compared"):
        kernel.transform(as_graph_collection(graphs(1, 2)))


def test_zero_graphs_and_one_at_a_time(mutag) -> None:
    for nothing in ([], (), np.array([], dtype=object), iter([])):
        with pytest.raises(GraphDataError, match="at least one graph"):
            as_graph_collection(nothing)
    graphs, _ = mutag
    for one in (graphs[3], graphs[3:4]):
        assert list(as_single_graph(one)) == [graphs[3]]
    as_tuple = ([("u", "v"), ("v", "w")], NODE_LABELS, EDGE_LABELS)
    for one in (labelled_path(), [labelled_path()], as_tuple):
        assert_is_path(as_single_graph(one)[0])
    with pytest.raises(GraphDataError, match="one graph; got 188"):
        as_single_graph(graphs)
    with pytest.raises(GraphDataError, match="got int 3"):
        as_single_graph(3)


def test_molecules_for_a_model_of_other_graphs_are_an_error() -> None:
    chem = pytest.importorskip("rdkit.Chem")
    known = as_graph_collection([labelled_path()]).recipe
    for molecules in (["CCO"], [chem.MolFromSmiles("CCO")]):
        with pytest.raises(GraphDataError, match="fitted to NetworkX graphs"):
            as_graph_collection(molecules, recipe=known)


@pytest.mark.parametrize(
    ("classes", "code"),
    [
        ([0, 1], 1),
        ([-1, 1], 1),
        (["no", "yes"], 1),
        (["negative", "positive"], 1),
        (["nontoxic", "toxic"], 1),
        (["high", "low"], 1),
        (["fluor", "influor el"], 1),
        (["active", "inactive"], 0),
        (["Binder", "non-binder"], 0),
        (["hit", "no hit"], 0),
        (["toxic", "untoxic"], 0),
        (["+", "-"], 0),
        (["?", "in"], 1),
    ],
)
def test_the_class_that_effects_and_suggestions_are_about(classes, code):
    assert positive_code(np.array(classes)) == code
