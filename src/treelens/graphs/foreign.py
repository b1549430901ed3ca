"""Graphs of other libraries: how each kind is recognised, and read as plain graphs.

None of the libraries that the graphs are of is imported.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from treelens.errors import GraphDataError, NotGraphsError
from treelens.graphs.build import about_directions, count_one_way, edge_array
from treelens.graphs.collection import Graph, GraphCollection, encode_labels
from treelens.graphs.geometric import from_geometric
from treelens.graphs.kinds import GraphRecipe, InputKind, common_recipe, registered_kinds
from treelens.graphs.plain import Joined, PlainGraph, join

_VALUE = "attribute"  # the name of values that were given as arrays


# --- treelens, NetworkX, igraph --------------------------------------------------------------


def from_treelens(graphs: Sequence[Graph]) -> GraphCollection:
    """Return a collection with the attributes, fine labels, data and recipe of the graphs."""
    first = graphs[0]
    plain = [
        PlainGraph(
            range(g.n_nodes),
            g.edges,
            {None: g.node_labels, **g.node_attributes},
            {**({} if g.edge_labels is None else {None: g.edge_labels}), **g.edge_attributes},
            g.name,
            g.directed,
        )
        for g in graphs
    ]
    shared = set(first.data).intersection(*(graph.data for graph in graphs))
    data = {key: [graph.data[key] for graph in graphs] for key in sorted(shared)}
    names, edge_names = tuple(first.node_attributes), tuple(first.edge_attributes)
    asked = GraphRecipe(node_attributes=names, edge_attributes=edge_names)
    joined = join(plain, asked, graph_data=data)
    by_degree = [graph.degree_labels for graph in graphs]
    if any(by_degree) and not all(by_degree):
        raise GraphDataError(
            f"The node labels of graph {by_degree.index(True)} are degrees, as it came without "
            f"labels, and graph {by_degree.index(False)} has labels of its own: label all, or none."
        )
    recipe = common_recipe(graph.recipe for graph in graphs)
    joined = replace(joined, recipe=recipe, degree_labels=all(by_degree))
    fine = [graph.fine_labels for graph in graphs if graph.fine_labels is not None]
    if len(fine) < len(graphs):
        return joined
    codes, alphabet = encode_labels([label for labels in fine for label in labels])
    return replace(joined, fine_codes=codes, fine_alphabet=alphabet)


def from_networkx(graphs: Sequence[Any], asked: GraphRecipe) -> Joined:
    def columns(rows: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
        keys = dict.fromkeys(chain.from_iterable(rows))
        return {key: [row.get(key) for row in rows] for key in keys}

    plain = []
    for graph in graphs:
        nodes, edges = dict(graph.nodes(data=True)), list(graph.edges(data=True))
        number = {node: i for i, node in enumerate(nodes)}
        pairs = [(number[u], number[v]) for u, v, _ in edges]
        found = columns(list(nodes.values())), columns([data for *_, data in edges])
        name = graph.graph.get("name") or None
        plain.append(PlainGraph(list(nodes), pairs, *found, name, graph.is_directed()))
    return plain, asked


def from_igraph(graphs: Sequence[Any], asked: GraphRecipe) -> Joined:
    def columns(items: Any) -> dict[Any, Any]:
        return {key: items[key] for key in items.attributes()}

    return [
        PlainGraph(
            range(graph.vcount()),
            graph.get_edgelist(),
            columns(graph.vs),
            columns(graph.es),
            None,
            graph.is_directed(),
        )
        for graph in graphs
    ], asked


# --- GraKeL's graphs and tuples, adjacency matrices -------------------------------------------


def from_grakel(graphs: Sequence[Any], asked: GraphRecipe) -> Joined:
    """Read ``(structure, node_labels, edge_labels)``, matrices, and ``grakel.Graph``."""
    values: list[Any] = []  # of nodes and edges, one for each graph
    named: dict[str, Any] = {}
    for what in ("node_attributes", "edge_attributes"):
        given = getattr(asked, what)
        if isinstance(given, str) or all(isinstance(name, str) for name in given):
            values.append([None] * len(graphs))
            continue
        values.append(given)
        named[what] = (_VALUE,)
        if len(given) != len(graphs):
            raise GraphDataError(
                f"{what} has values for {len(given)} graphs; there are {len(graphs)}."
            )
    asked, plain = replace(asked, **named), []
    doubtful: dict[int, tuple[int, int]] = {}  # graphs that list edges in one direction only
    for index, (graph, *of_graph) in enumerate(zip(graphs, *values, strict=True)):
        if hasattr(graph, "get_vertices"):
            graph = _grakel_tuple(graph)
        parts = [*graph] if isinstance(graph, (tuple, list)) else [graph]
        found = _read_grakel([*parts, None, None][:3], index, *of_graph)
        plain.append(found._replace(directed=bool(asked.directed)))
        one_way, n_edges = count_one_way(edge_array(found.edges, f"Graph {index}"))
        if one_way and (one_way < n_edges or _holds_rows(parts[0])):
            doubtful[index] = one_way, n_edges
    if asked.directed is None and doubtful:
        one_way, n_edges = (sum(column) for column in zip(*doubtful.values(), strict=True))
        several = f" and {len(doubtful) - 1} more" if len(doubtful) > 1 else ""
        place = f"Graph {next(iter(doubtful))}{several}"
        warnings.warn(about_directions(place, one_way, n_edges, directed=False), stacklevel=4)
    return plain, asked


def _grakel_tuple(graph: Any) -> tuple[Any, ...]:
    """Return a ``grakel.Graph``, in either of its formats, as a tuple."""
    structure: dict[Any, dict[Any, Any]] = {node: {} for node in graph.get_vertices(purpose="any")}
    for edge in graph.get_edges(purpose="any"):
        (u, v), weight = edge if isinstance(edge[0], tuple) else (edge, 1)
        structure[u][v] = weight
    kinds = ("vertex", "edge")
    return structure, *(
        graph.get_labels(label_type=kind, purpose="any", return_none=True) for kind in kinds
    )


def _read_grakel(
    graph: Sequence[Any], index: int, node_values: Any, edge_values: Any
) -> PlainGraph:
    structure, node_labels, edge_labels = graph
    matrix = _holds_rows(structure)
    if node_labels is not None and not isinstance(node_labels, Mapping):
        listed = node_labels.tolist() if hasattr(node_labels, "tolist") else node_labels
        node_labels = dict(enumerate(listed))
    read = _matrix_structure if matrix else _grakel_structure
    nodes, starts, ends, weights = read(structure, index)
    if matrix and (unknown := set(node_labels or ()) - set(nodes)):
        raise GraphDataError(
            f"Graph {index}: node {next(iter(unknown))!r} has a label, but the adjacency matrix "
            f"has {len(nodes)} rows, so the nodes are 0 to {len(nodes) - 1}."
        )
    nodes = list(dict.fromkeys([*(node_labels or ()), *nodes]))
    number = {node: i for i, node in enumerate(nodes)}
    pairs = np.array([[number[node] for node in some] for some in (starts, ends)]).T
    plain = edge_labels is None and edge_values is None
    edges = [] if plain else list(zip(starts, ends, strict=True))
    node_columns: dict[Any, Any] = {}
    edge_columns: dict[Any, Any] = {} if weights is None else {"weight": weights}
    for columns, name, values, keys in (
        (node_columns, "label", node_labels, nodes),
        (node_columns, _VALUE, node_values, nodes),
        (edge_columns, "label", edge_labels, edges),
        (edge_columns, _VALUE, edge_values, edges),
    ):
        if values is None or not len(values):
            continue
        if isinstance(values, Mapping):
            back = [key if key in values or keys is nodes else key[::-1] for key in keys]
            lost = next((key for key in back if key not in values), None)
            if name == "label" and lost is not None:
                place = f"Node {lost!r}" if keys is nodes else f"Edge {lost[::-1]!r}"
                raise GraphDataError(f"{place} of graph {index} has no label: label all, or none.")
            values = list(map(values.get, back))
        columns[name] = values
    return PlainGraph(nodes, pairs, node_columns, edge_columns)


def _holds_rows(structure: object) -> bool:
    """Whether this is a matrix, or the list of its rows."""
    listed = isinstance(structure, list) and bool(structure) and isinstance(structure[0], list)
    return listed or hasattr(structure, "shape")


def _grakel_structure(structure: Any, index: int) -> tuple[Any, Any, Any, Any]:
    """Return nodes, starts, ends and weights (or None) of a dictionary or of pairs."""
    nodes: list[Any] = []
    weights: list[Any] | None = None
    if isinstance(structure, Mapping) and not all(map(_is_pair, structure)):
        nodes = list(structure)  # node -> its neighbours: a list, or a dict to weights
        around = list(structure.values())
        alone = [node for node in nodes if not isinstance(structure[node], Iterable)]
        if alone:
            raise GraphDataError(
                f"Graph {index}: node {alone[0]!r} has {structure[alone[0]]!r:.80} for neighbours: "
                "expected a list of nodes, or a dict from nodes to weights."
            )
        starts = [node for node, others in structure.items() for _ in others]
        ends = list(chain.from_iterable(around))
        if any(issubclass(kind, Mapping) for kind in set(map(type, around))):
            listed = [x.values() if isinstance(x, Mapping) else [None] * len(x) for x in around]
            weights = list(chain.from_iterable(listed))
    else:  # pairs, triples with a weight, or a dict from pairs to weights
        bad = [pair for pair in structure if not _is_pair(pair)]
        if bad:
            raise GraphDataError(
                f"Graph {index}: {bad[0]!r:.80} is no edge (node, node[, weight])."
            )
        starts, ends = [pair[0] for pair in structure], [pair[1] for pair in structure]
        weights = [pair[2] if len(pair) == 3 else None for pair in structure]
        if isinstance(structure, Mapping):
            weights = list(structure.values())
    try:
        nodes = list(dict.fromkeys([*(nodes or starts), *ends]))
    except TypeError as error:
        raise GraphDataError(f"Graph {index}: nodes must be hashable ({error}).") from error
    with suppress(TypeError):  # the order of a set of strings differs from run to run
        nodes = sorted(nodes)
    return nodes, starts, ends, weights


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) in (2, 3)


def _matrix_structure(structure: Any, index: int) -> tuple[Any, Any, Any, Any]:
    """Return nodes, starts, ends and weights of an adjacency matrix; sparse ones stay sparse."""
    try:
        matrix = structure if hasattr(structure, "tocsr") else np.asarray(structure)
    except ValueError:  # rows of different lengths
        matrix = np.empty(0)
    is_square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not is_square or matrix.dtype.kind not in "iufb":
        raise GraphDataError(
            f"Graph {index}: an adjacency matrix must be square and have numbers; got shape "
            f"{matrix.shape} and type {matrix.dtype}. Edges are given as tuples."
        )
    from scipy.sparse import csr_array

    rows = csr_array(matrix, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    entries = rows.tocoo()
    if np.isnan(entries.data).any():
        raise GraphDataError(f"Graph {index}: the adjacency matrix has NaN: write 0 for no edge.")
    return range(matrix.shape[0]), *(x.tolist() for x in (entries.row, entries.col, entries.data))


# --- the kinds of graphs --------------------------------------------------------------------

EXPECTED = (
    "a GraphCollection, or a list of NetworkX graphs, RDKit molecules, SMILES strings, PyTorch "
    "Geometric data, igraph graphs, treelens graphs, GraKeL graphs or tuples (edges, node_labels, "
    "edge_labels) or adjacency matrices, or the Path of an SDF"
)


def read_file(path: Path, recipe: GraphRecipe | None) -> GraphCollection:
    """Return the graphs of a file that some kind of graphs can read."""
    for kind in registered_kinds():
        if (graphs := kind.read_file(path, recipe)) is not None:
            return graphs
    raise NotGraphsError(
        f"Expected {EXPECTED}; got the path {path}. Read tables of molecules with "
        "treelens.read_smiles, which also returns the targets."
    )


def _has(*attributes: str) -> Callable[[Any], bool]:
    return lambda item: all(hasattr(item, attribute) for attribute in attributes)


def _is_geometric(item: object) -> bool:
    # A PyTorch Geometric data set also answers to ``edge_index``, through its __getattr__.
    return hasattr(type(item), "edge_index") or "edge_index" in getattr(item, "__dict__", {})


def is_matrix(item: object) -> bool:
    """Whether this is a square matrix of numbers."""
    shape: Any = getattr(item, "shape", ())
    kind = getattr(getattr(item, "dtype", None), "kind", "O")
    return len(shape) == 2 and shape[0] == shape[1] > 0 and kind in "iufb"


def _is_grakel(item: object) -> bool:
    if not isinstance(item, (tuple, list)) or not 1 <= len(item) <= 3:
        return False
    structure, *labels = item
    if labels and is_matrix(structure):
        one_axis = isinstance(labels[0], (list, tuple)) or len(getattr(labels[0], "shape", ())) == 1
        labels = labels[one_axis:]
    if not all(x is None or isinstance(x, Mapping) for x in labels):
        return False
    if isinstance(structure, Mapping) or hasattr(structure, "shape"):
        return isinstance(structure, Mapping) or len(structure.shape) == 2
    if not isinstance(structure, (list, set, frozenset)):
        return False
    first = next(iter(structure), None)
    if isinstance(first, list):
        return all(isinstance(x, (int, float, np.number)) for x in first)
    return first is None or isinstance(first, tuple)


VALUES = ("node_attributes", "edge_attributes", "directed")
NAMES = ("node_label", "edge_label", *VALUES)
_KINDS = (
    InputKind(
        "a treelens Graph", lambda x: isinstance(x, Graph), lambda graphs, _: from_treelens(graphs)
    ),
    InputKind("a NetworkX graph", _has("nodes", "edges", "adj"), from_networkx, "networkx", NAMES),
    InputKind("an igraph graph", _has("vs", "es", "get_edgelist"), from_igraph, "igraph", NAMES),
    InputKind("PyTorch Geometric data", _is_geometric, from_geometric, "geometric", NAMES),
    InputKind("a GraKeL tuple", _is_grakel, from_grakel, "grakel", VALUES),
    InputKind(
        "a GraKeL graph",
        _has("get_vertices", "get_edges", "get_labels"),
        from_grakel,
        "grakel",
        VALUES,
    ),
    InputKind("an adjacency matrix", is_matrix, from_grakel, "grakel", VALUES),
)


def kind_of(item: object) -> InputKind | None:
    special = chain.from_iterable(kind.inputs for kind in registered_kinds())
    return next((kind for kind in chain(special, _KINDS) if kind.recognises(item)), None)


def common_kind(items: list[Any]) -> InputKind:
    """Return the kind of all items; the error names the first that is of another."""
    kind = kind_of(items[0])
    strays = (i for i, item in enumerate(items) if kind is None or not kind.recognises(item))
    stray = next(strays, -1)
    if kind is not None and stray < 0:
        return kind
    expected = EXPECTED if kind is None else f"graphs of one kind, and item 0 is {kind.name}"
    hint = " RDKit gives None for a molecule that it cannot read: leave it out."
    raise NotGraphsError(
        f"Expected {expected}; item {stray} is {described(items[stray])}."
        f"{hint if items[stray] is None else ''}"
    )


def described(value: object) -> str:
    kind = type(value).__name__
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    shown = repr(value)
    return f"{kind} {shown if len(shown) <= 60 else shown[:57] + '...'}"
