"""GraKeL's graphs, tuples ``(structure, node_labels, edge_labels)`` and adjacency matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from treelens.graphs.build import build_collection
from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.graphs.foreign import Asked, Attributed, from_attributed, warn_ignored
from treelens.graphs.recipe import GraphRecipe

_VALUES = "attribute"  # the name of values that were given as arrays


def from_grakel(graphs: Sequence[Any], asked: Asked = Asked()) -> GraphCollection:  # noqa: B008
    """The usual form of tuples, ({0: [1, 2], 1: [0], 2: [0]}, {0: "C", ...}), is read at once."""
    graphs = [graph if isinstance(graph, (tuple, list)) else _as_tuple(graph) for graph in graphs]
    weights: list[Any] = []
    if asked._replace(required=True) == Asked() and all(map(_is_numbered, graphs)):
        edges = _numbered_edges([graph[0] for graph in graphs], weights)
        if edges is not None:
            labels = list(chain.from_iterable(graph[1].values() for graph in graphs))
            sizes = [len(graph[0]) for graph in graphs]
            built = build_collection(sizes, edges, labels, recipe=GraphRecipe("grakel"))
            return warn_ignored(built, weights=weights)
    values = [
        None if isinstance(given, str) or all(isinstance(name, str) for name in given) else given
        for given in (asked.node_attributes, asked.edge_attributes)
    ]
    for name, given in zip(("node", "edge"), values, strict=True):
        if given is not None and len(given) != len(graphs):
            raise GraphDataError(
                f"{name}_attributes has values for {len(given)} graphs; there are {len(graphs)}. "
                "Give an array or a dict for each."
            )

    named = asked._replace(
        node_attributes=asked.node_attributes if values[0] is None else (_VALUES,),
        edge_attributes=asked.edge_attributes if values[1] is None else (_VALUES,),
    )

    def read(graph: Sequence[Any], index: int) -> Attributed:
        of_graph = (None if given is None else given[index] for given in values)
        return _read_grakel(graph, index, bool(asked.directed), *of_graph)

    return from_attributed(graphs, named, "grakel", read, stacklevel=5)


def _as_tuple(graph: Any) -> tuple[Any, ...]:
    """Return an adjacency matrix or a ``grakel.Graph``, in either of its formats, as a tuple."""
    if not hasattr(graph, "get_vertices"):
        return (graph,)
    structure: dict[Any, dict[Any, Any]] = {node: {} for node in graph.get_vertices(purpose="any")}
    for edge in graph.get_edges(purpose="any"):
        (u, v), weight = edge if isinstance(edge[0], tuple) else (edge, 1)
        structure[u][v] = weight
    nodes, edges = (
        graph.get_labels(label_type=kind, purpose="any", return_none=True)
        for kind in ("vertex", "edge")
    )
    return structure, nodes, edges


def _is_numbered(graph: Sequence[Any]) -> bool:
    """Whether nodes are 0, 1, ... with labels in the same order."""
    structure, node_labels, *more = (*graph, None)
    if type(structure) is not dict or type(node_labels) is not dict or any(more):
        return False
    numbers = list(range(len(structure)))
    return list(structure) == numbers == list(node_labels)


def _numbered_edges(
    structures: Sequence[Mapping[int, Any]], weights: list[Any]
) -> np.ndarray | None:
    """Return edges between nodes numbered over all graphs; None if a neighbour is no such node."""
    around = list(chain.from_iterable(structure.values() for structure in structures))
    kinds = {type(others) for others in around}
    if not around or not kinds <= {list, tuple, set, dict}:
        return None
    if dict in kinds:
        weights += chain.from_iterable(x.values() for x in around if type(x) is dict)
    degrees = np.fromiter(map(len, around), dtype=np.int64, count=len(around))
    try:
        ends = np.array(list(chain.from_iterable(around)) or np.empty(0, dtype=np.int64))
    except ValueError:  # pairs among them
        return None
    if ends.dtype != np.int64 or ends.ndim != 1:
        return None
    sizes = np.array([len(structure) for structure in structures])
    starts = np.repeat(np.arange(len(around)), degrees)
    graph = np.repeat(np.repeat(np.arange(len(sizes)), sizes), degrees)
    if ((ends < 0) | (ends >= sizes[graph])).any():
        return None
    return np.column_stack([starts, ends + (np.cumsum(sizes) - sizes)[graph]])


def _read_grakel(
    graph: Sequence[Any], index: int, directed: bool, node_values: Any, edge_values: Any
) -> Attributed:
    """Return the nodes and edges of one graph with their labels, weights and values."""
    structure, node_labels, edge_labels = (*graph, None, None)[:3]
    matrix = hasattr(structure, "shape") or (
        isinstance(structure, list) and bool(structure) and isinstance(structure[0], list)
    )
    read = _matrix_structure if matrix else _grakel_structure
    nodes, edges, weights = read(structure, index)
    if node_labels is not None and not isinstance(node_labels, Mapping):
        listed = node_labels.tolist() if hasattr(node_labels, "tolist") else node_labels
        node_labels = dict(enumerate(listed))
    if matrix and node_labels and (unknown := set(node_labels) - set(nodes)):
        raise GraphDataError(
            f"Graph {index}: node {next(iter(unknown))!r} has a label, but the adjacency matrix "
            f"has {len(nodes)} rows, so the nodes are 0 to {len(nodes) - 1}."
        )
    nodes = list(dict.fromkeys([*(node_labels or ()), *nodes]))
    number = {node: i for i, node in enumerate(nodes)}
    node_data = _rows(index, [(node,) for node in nodes], label=node_labels, attribute=node_values)
    both = [(edge, edge[::-1]) for edge in edges]
    edge_data = _rows(index, both, weight=weights, label=edge_labels, attribute=edge_values)
    pairs = [(number[u], number[v]) for u, v in edges]
    return Attributed(nodes, node_data, pairs, edge_data, directed=directed)


def _rows(index: int, keys: Sequence[tuple[Any, ...]], **columns: Any) -> list[dict[str, Any]]:
    """Return a dict for each node or edge; columns are listed, or found by one of its keys."""
    rows: list[dict[str, Any]] = [{} for _ in keys]
    for name, values in columns.items():
        if values is None or not len(values):
            continue
        if not isinstance(values, Mapping):
            if len(values) != len(keys):
                raise GraphDataError(
                    f"Graph {index} has {len(values)} rows of attributes; expected {len(keys)}."
                )
            for row, value in zip(rows, values, strict=True):
                row[name] = value
            continue
        for row, key in zip(rows, keys, strict=True):
            found = key[0] if key[0] in values else key[-1]
            if found in values:
                row[name] = values[found]
            elif name == "label":
                place = f"Edge {key[0]!r}" if len(key) > 1 else f"Node {key[0]!r}"
                raise GraphDataError(
                    f"{place} of graph {index} has no label: give every one a label, or leave the "
                    "labels out."
                )
    return rows


def _grakel_structure(
    structure: Any, index: int
) -> tuple[list[Any], list[tuple[Any, Any]], list[Any] | None]:
    """Return nodes, edges and weights (or None) of a dictionary or of pairs."""
    nodes: list[Any] = []
    if isinstance(structure, Mapping) and not all(map(_is_pair, structure)):
        nodes = list(structure)  # node -> its neighbours: a list, or a dict to weights
        edges = [(u, v) for u, others in structure.items() for v in others]
        around, weights = list(structure.values()), None
        if any(isinstance(others, Mapping) for others in around):
            listed = [x.values() if isinstance(x, Mapping) else [None] * len(x) for x in around]
            weights = list(chain.from_iterable(listed))
    else:  # pairs, triples with a weight, or a dict from pairs to weights
        bad = next((pair for pair in structure if not _is_pair(pair)), None)
        if bad is not None:
            raise GraphDataError(
                f"Graph {index}: {bad!r} is no edge: expected tuples (node, node) or (node, node, "
                "weight)."
            )
        edges = [(pair[0], pair[1]) for pair in structure]
        weights = [pair[2] if len(pair) == 3 else None for pair in structure]
        if isinstance(structure, Mapping):
            weights = list(structure.values())
    try:
        distinct = list(dict.fromkeys([*nodes, *chain.from_iterable(edges)]))
    except TypeError as error:
        raise GraphDataError(f"Graph {index}: nodes must be hashable ({error}).") from error
    try:  # the order of a set of strings differs from run to run
        return sorted(distinct), edges, weights
    except TypeError:
        return distinct, edges, weights


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) in (2, 3)


def _matrix_structure(
    structure: Any, index: int
) -> tuple[list[int], list[tuple[int, int]], list[Any]]:
    """Return nodes, edges and weights of an adjacency matrix; a sparse one is never made dense."""
    is_sparse = hasattr(structure, "tocsr")
    try:
        matrix: Any = structure if is_sparse else np.asarray(structure)
    except ValueError:  # rows of different lengths
        matrix = np.empty(0)
    is_square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not is_square or matrix.dtype.kind not in "iufb":
        raise GraphDataError(
            f"Graph {index}: an adjacency matrix must be square and have numbers; got shape "
            f"{matrix.shape} and type {matrix.dtype}. Edges are given as tuples, not as lists or "
            "rows of an array."
        )
    if is_sparse:
        rows = matrix.tocsr(copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        entries = rows.tocoo()
        starts, ends, values = entries.row, entries.col, entries.data
    else:
        starts, ends = np.nonzero(matrix)
        values = matrix[starts, ends]
    if np.isnan(values).any():
        raise GraphDataError(f"Graph {index}: the adjacency matrix has NaN: write 0 for no edge.")
    edges = list(zip(starts.tolist(), ends.tolist(), strict=True))
    return list(range(matrix.shape[0])), edges, values.tolist()
