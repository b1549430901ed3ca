"""Graphs of other libraries, each turned into the plain form."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array, dia_array

from graphs.test_convert import (
    EDGE_LABELS,
    NODE_LABELS,
    PATH_INDEX,
    FakeTensor,
    assert_is_path,
    data,
)
from treelens import GraphClassifier, as_graph_collection
from treelens.errors import (
    DegreeLabelsWarning,
    GraphDataError,
    IgnoredDataWarning,
    NotGraphsError,
)

PATH_MATRIX = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_networkx_other_attributes() -> None:
    graph = nx.Graph()
    graph.add_nodes_from([(0, {"element": "C", "label": "x"}), (1, {"element": "O", "label": "x"})])
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
    graphs = as_graph_collection([directed, multi], directed=False)
    assert not graphs.directed
    assert graphs[0].edges == ((0, 1), (1, 2))
    assert graphs[1].edges == ((0, 1), (1, 2), (2, 2))
    with pytest.warns(UserWarning, match="Graph 0 is directed, graph 1 is not"):
        graphs = as_graph_collection([directed, multi])
    assert graphs.directed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = nx.Graph(multi)
        assert as_graph_collection([single], recipe=graphs.recipe).directed
        as_graph_collection([directed, single], directed=True)
    assert graphs[0].edges == ((0, 1), (1, 0), (1, 2))
    assert graphs[1].edges == ((0, 1), (1, 0), (1, 2), (2, 1), (2, 2))  # both ways


@pytest.mark.parametrize(
    ("graph", "repeated"),
    [
        (nx.MultiGraph([(0, 1), (0, 1), (1, 2), (0, 1)]), "2 of 4 edges .* 0 - 1 of graph 1"),
        (nx.MultiDiGraph([(0, 1), (1, 0), (2, 2), (2, 2)]), "1 of 4 edges .* 2 - 2 of graph 1"),
        (nx.Graph([(0, 1), (1, 2), (2, 2)]), None),
        (nx.DiGraph([(0, 1), (1, 0), (1, 2)]), None),
    ],
)
def test_parallel_edges_are_counted(graph, repeated) -> None:
    lonely = nx.empty_graph(1, create_using=type(graph))
    for each in (graph, lonely):
        nx.set_node_attributes(each, "a", "label")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        as_graph_collection([lonely, graph])
    assert len(told) == (repeated is not None)
    if repeated:
        assert re.search(repeated, str(told[0].message))
        assert told[0].category is IgnoredDataWarning


@pytest.mark.filterwarnings("ignore::treelens.errors.IgnoredDataWarning")
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


def test_grakel_nodes_that_only_the_labels_name_are_kept() -> None:
    graphs = as_graph_collection([([(5, 7)], {5: "a", 7: "b", 9: "c"}), (set(), {1: "a"})])
    assert graphs[0].node_labels == ("a", "b", "c")
    assert graphs[0].edges == ((0, 1),)
    assert graphs[1].node_labels == ("a",)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (([(0, 1), (1, 2)], {0: "a", 1: "b"}), r"Node 2 of graph 1 has no label"),
        (([(0, 1)], {0: "a", 1: "b"}, {(1, 2): 0}), r"Edge \(0, 1\) of graph 1 has no label"),
        (([(0, 1), 5], {0: "a", 1: "b"}), r"Graph 1: 5 is no edge"),
        ((np.zeros((2, 3)), {0: "a", 1: "b"}), r"Graph 1: .* must be square .*got shape \(2, 3\)"),
        (([(0, [1])], {0: "a"}), r"Graph 1: nodes must be hashable"),
        (([(0, 1)], {0: "a", 1: ["b"]}), r"node 1 of graph 1 is .*of type list"),
        *(
            (({0: strange, 1: [0]}, {0: "a", 1: "b"}), "of graph 1 has no label")
            for strange in ([7], [(1, 1)], [1, (0, 1)])
        ),
        (({1: None}, None), "Graph 1: node 1 has None for neighbours"),
        (({1: [2], 2: 5}, {1: "a", 2: "b"}), "Graph 1: node 2 has 5 for neighbours"),
        (([None], {1: "a"}), "Graph 1: None is no edge"),
        ((PATH_MATRIX, ["a", "b"]), "Node 2 of graph 1 has no label"),
        ((PATH_MATRIX, list("abcd")), "Graph 1: node 3 has a label"),
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


def test_geometric_labels_by_one_rule_and_by_name() -> None:
    # alone, the first graph would look one-hot
    one_hot, counts = FakeTensor([[1, 0]] * 3), FakeTensor([[1, 1]] * 3)
    graphs = as_graph_collection([data(x=one_hot), data(x=counts)])
    assert graphs[0].node_labels == ((1, 0),) * 3
    graph = data(
        x=FakeTensor([[0.5]] * 3), node_labels=FakeTensor([1, 2, 1]), z=FakeTensor([6, 7, 6])
    )
    assert_is_path(as_graph_collection([graph])[0], (1, 2, 1), None)
    assert_is_path(as_graph_collection([graph], node_label="z")[0], (6, 7, 6), None)
    with pytest.raises(GraphDataError, match="node_label='q'"):
        as_graph_collection([graph], node_label="q")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"x": [[float("nan")], [1.0], [2.0]]}, "x has values that are not whole numbers"),
        ({"x": [[1], [2]]}, r"x of graph 0 has shape \(2, 1\)"),
        ({"x": [1, 2, 3], "edge_attr": [0.1] * 4}, "edge_attr has values that are not whole"),
        ({"x": [1, 2, 3], "edge_attr": [1, 2, 2, 2]}, "of graph 0 .*two labels"),
    ],
)
def test_geometric_mistakes(parts, words) -> None:
    tensors = {name: FakeTensor(values) for name, values in parts.items()}
    with pytest.raises(GraphDataError, match=words):
        as_graph_collection([data(**tensors)])
    with pytest.raises(GraphDataError, match="Graph 0, edge_index transposed: expected pairs"):
        as_graph_collection([SimpleNamespace(edge_index=np.zeros((4, 3)), num_nodes=3)])


def test_sparse_adjacency_matrices_stay_sparse() -> None:
    n_nodes = 100_000  # 80 GB as a dense matrix
    path = dia_array((np.ones((1, n_nodes)), [1]), shape=(n_nodes, n_nodes))
    for matrix in (path, path.tocsr(), path.tocsc()):
        graphs = as_graph_collection([(matrix, dict.fromkeys(range(n_nodes), "a"))])
        assert (graphs.n_nodes, graphs.n_edges) == (n_nodes, n_nodes - 1)


@pytest.mark.filterwarnings("ignore::treelens.errors.IgnoredDataWarning")
def test_sparse_and_dense_adjacency_agree() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        dense = rng.integers(-1, 2, (6, 6)) * (rng.random((6, 6)) < 0.4)
        stored = coo_array(dense)
        twice = coo_array(  # zeros stored, and entries that cancel each other
            (
                np.concatenate([stored.data, [0, 1, -1]]),
                (np.append(stored.row, [0, 5, 5]), np.append(stored.col, [0, 0, 0])),
            ),
            shape=(6, 6),
        )
        labels = dict.fromkeys(range(6), "a")
        expected = as_graph_collection([(dense, labels)])[0]
        assert as_graph_collection([(stored.tocsr(), labels)])[0] == expected
        assert as_graph_collection([(twice, labels)])[0] == expected
    holed = csr_array(np.array([[0, np.nan], [0, 0]]))
    with pytest.raises(GraphDataError, match=r"Graph 0: .*NaN"):
        as_graph_collection([(holed, {0: "a", 1: "b"})])
    words = np.array([["", "x"], ["x", ""]])
    with pytest.raises(GraphDataError, match=r"Graph 0: .*have numbers; .*<U1"):
        as_graph_collection([(words, {0: "a", 1: "b"})])


# --- what is not used -----------------------------------------------------------------------


def path_with(node=None, edge=None, kind=nx.Graph) -> nx.Graph:
    graph = kind([(0, 1), (1, 2)])
    nx.set_node_attributes(graph, "a", "label")
    nx.set_node_attributes(graph, dict(enumerate(node or [])))
    nx.set_edge_attributes(graph, edge or {})
    return graph


PAIRS = [(0, 1), (1, 2)]
AAA = dict.fromkeys(range(3), "a")
WEIGHTS = "edge data .'(edge_)?weight'"
IGNORED = {
    "weights": (path_with(edge={(0, 1): {"weight": 2}}), WEIGHTS),
    "weights geometric": (
        data(node_labels=[1, 1, 1], edge_weight=[1, 2.0, 1, 1]),
        WEIGHTS,
    ),
    "weights triples": (([(0, 1, 0.5), (1, 2, 1.0)], AAA), WEIGHTS),
    "weights of neighbours": (({0: {1: 3}, 1: {}, 2: {1: 1}}, AAA), WEIGHTS),
    "weights matrix": ((np.array([[0, 2], [2, 0]]), ["a", "b"]), WEIGHTS),
    "other edge data": (path_with(edge={e: {"sign": e[0]} for e in PAIRS}), "edge data .'sign'"),
    "types of edges": (
        path_with(edge={e: {"type": f"t{e[0]}", "distance": 1.5} for e in PAIRS}),
        r"edge data \('distance', 'type'\).*edge_attributes=\['distance'\], edge_label='type'",
    ),
    "text of nodes": (
        path_with([{"name": n} for n in "abc"]),
        "node data .'name'.*node_label='name'",
    ),
    "numbers geometric": (
        data(node_labels=[1, 1, 1], z=np.arange(3), edge_type=np.array([0, 0, 1, 1])),
        r"edge data \('edge_type'\); node data \('z'\)",
    ),
    "labels that others replace": (data(node_labels=[1, 1, 1], x=np.eye(3)), "node data .'x'"),
    "attribute of one": (path_with([{}, {"charge": 1.0}]), "'charge'"),
    "array": (path_with([{"x": np.array([0.5])}] * 3), "'x'"),
    "position geometric": (data(node_labels=[1, 1, 1], pos=np.zeros((3, 3))), "'pos'"),
    "float labels": (path_with([{"label": 0.25}, {"label": 1.5}, {"label": 0.25}]), "0.25"),
    "float edge labels": (path_with(edge={e: {"label": 0.5} for e in PAIRS}), "edge labels.*0.5"),
}


@pytest.mark.filterwarnings("ignore::treelens.errors.DegreeLabelsWarning")
@pytest.mark.parametrize(("graph", "words"), IGNORED.values(), ids=IGNORED)
def test_what_is_ignored_is_named_in_one_warning(graph, words) -> None:
    with pytest.warns(IgnoredDataWarning, match=words) as caught:
        as_graph_collection([graph, graph])
    assert len([w for w in caught if w.category is IgnoredDataWarning]) == 1
    assert caught[-1].filename == __file__


USED = {
    "labels": path_with(),
    "unit weights": path_with(edge={(0, 1): {"weight": 1.0}, (1, 2): {"weight": 1}}),
    "whole labels": path_with([{"label": 1.0}, {"label": 2.0}, {"label": 1.0}]),
    "no weights": ({0: dict.fromkeys([1]), 1: {}}, {0: "a", 1: "b"}),
    "geometric": data(node_labels=[1, 1, 1], edge_weight=None, pos=None),
    "of graphs": data(x=np.eye(3), y=np.array([1, 2, 3]), scale=0.5, of_all=np.ones(7)),
    "the same everywhere": path_with([{"kind": "atom"}] * 3),
}


@pytest.mark.parametrize("graph", USED.values(), ids=USED)
def test_no_warning_where_all_data_is_used(graph) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_graph_collection([graph])
        weighted = path_with(edge={(0, 1): {"weight": 2}, (1, 2): {"weight": 3}})
        assert as_graph_collection([weighted], edge_label="weight")[0].edge_labels == (2, 3)


# --- adjacency matrices and GraKeL's own graphs -----------------------------------------------


@pytest.mark.parametrize("kind", [csr_array, coo_array, csc_matrix, np.array])
@pytest.mark.parametrize("as_labels", [list, np.array, lambda x: dict(enumerate(x))])
def test_matrices_with_and_without_labels(kind, as_labels) -> None:
    matrix, labels = kind(PATH_MATRIX), as_labels(["C", "N", "C"])
    for item in ((matrix, labels), [matrix, labels]):
        assert_is_path(as_graph_collection([item, item])[1], edge_labels=None)
    for structure in (matrix, PATH_MATRIX.tolist()):
        named = (structure, {0: "C", 1: "N", 2: "C"}, {(0, 1): 1, (1, 2): 2})
        assert_is_path(as_graph_collection([named])[0])
    for graphs in ([matrix], [matrix] * 3, iter([matrix])):
        with pytest.warns(DegreeLabelsWarning):
            assert_is_path(as_graph_collection(graphs)[0], (1, 2, 1), None)
    with pytest.raises(NotGraphsError, match=r"an adjacency matrix by itself .*\(3, 3\)"):
        as_graph_collection(matrix)


@pytest.mark.filterwarnings("ignore:changing format")
def test_grakel_graphs() -> None:
    grakel = pytest.importorskip("grakel", reason="needs GraKeL")
    labels, edges = {0: "C", 1: "N", 2: "C"}, {(0, 1): 1, (1, 0): 1, (1, 2): 2, (2, 1): 2}
    around = {0: [1], 1: [0, 2], 2: [1]}
    graphs = [grakel.Graph(around, labels, edges), grakel.Graph(PATH_MATRIX, labels, edges)]
    for graph in as_graph_collection(graphs):
        assert_is_path(graph)
    named = grakel.Graph([("u", "v"), ("v", "w")], NODE_LABELS, EDGE_LABELS)
    assert_is_path(as_graph_collection([named])[0])
    with pytest.raises(NotGraphsError, match="a GraKeL graph by itself"):
        as_graph_collection(named)


# --- edges that are listed in one direction only ------------------------------------------------

LOPSIDED = np.array([[0, 1, 1], [1, 0, 0], [0, 1, 1]])  # 0 - 2 and 1 - 2 one way, and a loop


@pytest.mark.parametrize(
    ("graph", "words", "directed"),
    [
        ((LOPSIDED, [1, 2, 3]), "Graph 1: 2 of 4 edges", False),
        ((np.triu(PATH_MATRIX), [1, 2, 3]), "Graph 1: 2 of 2 edges", False),
        (([(0, 1), (1, 0), (1, 2), (2, 2)], {0: 1, 1: 2, 2: 3}), "Graph 1: 1 of 3 edges", False),
        (
            SimpleNamespace(edge_index=np.argwhere(LOPSIDED).T, num_nodes=3, x=np.ones(3)),
            r"edge_index \(first of graph 1\): 2 of 8 edges",
            True,
        ),
    ],
)
def test_directions_that_are_not_unanimous_are_counted(graph, words, directed) -> None:
    if isinstance(graph, SimpleNamespace):
        even = data(x=np.ones(3))
    else:
        even = (PATH_MATRIX, [1, 2, 3]) if hasattr(graph[0], "shape") else ([(0, 1)], {0: 1, 1: 2})
    with pytest.warns(UserWarning, match=f"{words} .* directed={not directed} if") as told:
        graphs = as_graph_collection([even, graph])
    assert (graphs.directed, len(told)) == (directed, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for settled in (True, False):
            assert as_graph_collection([even, graph], directed=settled).directed == settled
        assert as_graph_collection([even], recipe=graphs.recipe).directed == directed


# --- batches, loaders and data sets of PyTorch Geometric ----------------------------------------


class FakeBatch(SimpleNamespace):
    """Graphs that were put together to one, as far as they are used."""

    def __init__(self, graphs):
        n = 3 * len(graphs)
        super().__init__(edge_index=np.zeros((2, 0)), num_nodes=n, batch=np.arange(n) // 3)
        self.graphs = graphs

    def to_data_list(self):
        if self.graphs is None:
            raise RuntimeError("not created by from_data_list")
        return self.graphs


class FakeDataset:
    """Items by number, and a method ``load`` that has nothing to do with blocks."""

    def __init__(self, graphs):
        self.graphs = graphs

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, k):
        return self.graphs[k]

    def __getattr__(self, name):
        if name == "edge_index":
            return self.graphs[0].edge_index
        raise AttributeError(name)

    def load(self, path):
        raise AssertionError


class FakeSubset:
    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, k):
        return self.dataset[self.indices[k]]


class SequentialSampler: ...


class RandomSampler: ...


class FakeLoader:
    batch_sampler = None

    def __init__(self, dataset, sampler=SequentialSampler, drop_last=False):
        self.dataset, self.sampler, self.drop_last = dataset, sampler(), drop_last

    def __iter__(self):
        return iter([FakeBatch(list(self.dataset))])


def three_graphs() -> list[SimpleNamespace]:
    return [data(x=np.eye(3)[order]) for order in ([0, 1, 2], [1, 1, 2], [2, 2, 2])]


@pytest.mark.parametrize(
    "given",
    [
        FakeBatch,
        lambda graphs: [FakeBatch(graphs[:2]), FakeBatch(graphs[2:])],
        lambda graphs: iter([FakeBatch(graphs[:-1]), graphs[-1]]),
        FakeDataset,
        lambda graphs: FakeSubset(FakeDataset(graphs[::-1]), range(len(graphs))[::-1]),
        lambda graphs: FakeLoader(FakeDataset(graphs)),
        lambda graphs: FakeLoader(FakeSubset(graphs, range(len(graphs)))),
    ],
    ids=["batch", "batches", "mixed", "data set", "subset", "loader", "loader of a subset"],
)
def test_batches_are_taken_apart_and_data_sets_read(given) -> None:
    graphs = three_graphs()
    expected = as_graph_collection(graphs)
    assert list(as_graph_collection(given(graphs))) == list(expected)
    model = GraphClassifier(depth=1).fit(given(graphs * 4), [0, 1, 1] * 4)
    assert model.predict(given(graphs)).shape == (3,)
    one = as_graph_collection(FakeBatch(graphs[:1]))
    assert len(one) == 1


def test_what_changes_the_order_of_graphs_is_refused() -> None:
    dataset = FakeDataset(three_graphs())
    for loader in (FakeLoader(dataset, RandomSampler), FakeLoader(dataset, drop_last=True)):
        with pytest.raises(GraphDataError, match=r"shuffles graphs .*loader\.dataset"):
            as_graph_collection(loader)
        with pytest.raises(GraphDataError, match="shuffles"):
            GraphClassifier().fit(loader, [0, 1, 1])
    lost = FakeBatch(three_graphs())
    lost.graphs = None
    with pytest.raises(GraphDataError, match=r"Item 1 is a batch .*\(not created by"):
        as_graph_collection([dataset[0], lost])
    by_hand = data(x=np.eye(3), batch=np.array([0, 0, 1]))
    with pytest.raises(GraphDataError, match="Item 0 is a batch of several graphs"):
        as_graph_collection([by_hand])


def test_the_classes_of_the_library_itself() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch Geometric")
    geometric = pytest.importorskip("torch_geometric", reason="needs PyTorch Geometric")
    graphs = [
        geometric.data.Data(x=torch.as_tensor(g.x), edge_index=torch.tensor(PATH_INDEX.values))
        for g in three_graphs()
    ]

    class Dataset(geometric.data.InMemoryDataset):
        def __init__(self):
            super().__init__(None)
            self.data, self.slices = self.collate(graphs)

    dataset = Dataset()
    loader, batch = geometric.loader.DataLoader, geometric.data.Batch.from_data_list(graphs)
    expected = list(as_graph_collection(graphs))
    subset = torch.utils.data.Subset(dataset, range(3))
    for given in (batch, [batch], dataset, subset, loader(dataset, 2), loader(subset, 2)):
        assert list(as_graph_collection(given)) == expected
    with pytest.raises(GraphDataError, match="shuffles"):
        as_graph_collection(loader(dataset, 2, shuffle=True))
    with pytest.raises(GraphDataError, match="batch of several"):
        as_graph_collection(geometric.data.Batch(batch=torch.tensor([0, 1]), **graphs[0].to_dict()))
