"""GraKeL's graphs, tuples ``(structure, node_labels, edge_labels)`` and adjacency matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from treelens.graphs.build import build_collection
from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.graphs.foreign import PlainGraph, join, warn_ignored
from treelens.graphs.recipe import GraphRecipe


def from_grakel(graphs: Sequence[Any]) -> GraphCollection:
    """The usual form of tuples, ({0: [1, 2], 1: [0], 2: [0]}, {0: "C", ...}), is read at once."""
    graphs = [graph if isinstance(graph, (tuple, list)) else _as_tuple(graph) for graph in graphs]
    recipe = GraphRecipe("grakel")
    weights: list[Any] = []
    if all(map(_is_numbered, graphs)):
        edges = _numbered_edges([graph[0] for graph in graphs], weights)
        if edges is not None:
            labels = list(chain.from_iterable(graph[1].values() for graph in graphs))
            sizes = [len(graph[0]) for graph in graphs]
            built = build_collection(sizes, edges, labels, recipe=recipe)
            return warn_ignored(built, weights=weights)
    plain = [_plain_grakel(graph, index, weights) for index, graph in enumerate(graphs)]
    return warn_ignored(join(plain, recipe), weights=weights)


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


def _plain_grakel(graph: Sequence[Any], index: int, weights: list[Any]) -> PlainGraph:
    structure, node_labels, edge_labels = (*graph, None, None)[:3]
    matrix = hasattr(structure, "shape") or (
        isinstance(structure, list) and bool(structure) and isinstance(structure[0], list)
    )
    read = _matrix_structure if matrix else _grakel_structure
    nodes, edges = read(structure, index, weights)
    if node_labels is not None and not isinstance(node_labels, Mapping):
        listed = node_labels.tolist() if hasattr(node_labels, "tolist") else node_labels
        node_labels = dict(enumerate(listed))
    if matrix and node_labels and (unknown := set(node_labels) - set(nodes)):
        raise GraphDataError(
            f"Graph {index}: node {next(iter(unknown))!r} has a label, but the adjacency matrix "
            f"has {len(nodes)} rows, so the nodes are 0 to {len(nodes) - 1}."
        )
    if node_labels:
        nodes = list(dict.fromkeys([*node_labels, *nodes]))
    number = {node: i for i, node in enumerate(nodes)}
    labels = arc_labels = None
    if node_labels:
        labels = [_label(node_labels, (node,), f"Node {node!r} of graph {index}") for node in nodes]
    if edge_labels:
        arc_labels = [
            _label(edge_labels, (edge, edge[::-1]), f"Edge {edge!r} of graph {index}")
            for edge in edges
        ]
    return PlainGraph(len(nodes), [(number[u], number[v]) for u, v in edges], labels, arc_labels)


def _label(labels: Mapping[Any, Any], keys: tuple[Any, ...], place: str) -> Any:
    for key in keys:
        if key in labels:
            return labels[key]
    raise GraphDataError(f"{place} has no label: give every one a label, or leave the labels out.")


def _grakel_structure(
    structure: Any, index: int, weights: list[Any]
) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Return nodes and edges of a dictionary or of pairs; weights are appended to ``weights``."""
    nodes: list[Any] = []
    if isinstance(structure, Mapping) and not all(map(_is_pair, structure)):
        nodes = list(structure)  # node -> its neighbours: a list, or a dict to weights
        edges = [(u, v) for u, others in structure.items() for v in others]
        for others in structure.values():
            weights += others.values() if isinstance(others, Mapping) else ()
    else:  # pairs, triples with a weight, or a dict from pairs to weights
        bad = next((pair for pair in structure if not _is_pair(pair)), None)
        if bad is not None:
            raise GraphDataError(
                f"Graph {index}: {bad!r} is no edge: expected tuples (node, node) or (node, node, "
                "weight)."
            )
        edges = [(pair[0], pair[1]) for pair in structure]
        weights += (pair[2] for pair in structure if len(pair) == 3)
        weights += structure.values() if isinstance(structure, Mapping) else ()
    try:
        distinct = list(dict.fromkeys([*nodes, *chain.from_iterable(edges)]))
    except TypeError as error:
        raise GraphDataError(f"Graph {index}: nodes must be hashable ({error}).") from error
    try:  # the order of a set of strings differs from run to run
        return sorted(distinct), edges
    except TypeError:
        return distinct, edges


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) in (2, 3)


def _matrix_structure(
    structure: Any, index: int, weights: list[Any]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return nodes and edges of an adjacency matrix; a sparse one is never made dense."""
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
    weights += np.unique(values).tolist()
    return list(range(matrix.shape[0])), list(zip(starts.tolist(), ends.tolist(), strict=True))
