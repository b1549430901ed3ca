"""GraKeL's tuples ``(structure, node_labels, edge_labels)``, in each of their forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from treelens.graphs.adjacency import edges_of_matrix, is_adjacency
from treelens.graphs.build import build_collection
from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.graphs.foreign import PlainGraph, join
from treelens.graphs.recipe import GraphRecipe


def from_grakel(graphs: Sequence[Sequence[Any]]) -> GraphCollection:
    """A collection of graphs that are given as tuples."""
    recipe = GraphRecipe("grakel")
    if all(map(_is_numbered, graphs)):
        edges = _numbered_edges([graph[0] for graph in graphs])
        if edges is not None:
            labels = list(chain.from_iterable(graph[1].values() for graph in graphs))
            sizes = [len(graph[0]) for graph in graphs]
            return build_collection(sizes, edges, labels, recipe=recipe)
    plain = [_from_grakel(graph, index) for index, graph in enumerate(graphs)]
    return join(plain, None, recipe)


# --- the usual form: {0: [1, 2], 1: [0], 2: [0]}, {0: "C", 1: "O", 2: "N"} --------------------


def _is_numbered(graph: Sequence[Any]) -> bool:
    """Whether nodes are 0, 1, ... and labels stand in their order: no need to look for them."""
    structure, node_labels, *more = (*graph, None)
    if type(structure) is not dict or type(node_labels) is not dict or any(more):
        return False
    numbers = list(range(len(structure)))
    return list(structure) == numbers == list(node_labels)


def _numbered_edges(structures: Sequence[Mapping[int, Any]]) -> np.ndarray | None:
    """All neighbours, nodes counted over all graphs; None if some are no nodes of their graph."""
    around = list(chain.from_iterable(structure.values() for structure in structures))
    if not around or not {type(others) for others in around} <= {list, tuple, set, dict}:
        return None
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


# --- any other form ---------------------------------------------------------------------------


def _from_grakel(graph: Sequence[Any], index: int) -> PlainGraph:
    structure, node_labels, edge_labels = (*graph, None, None)[:3]
    nodes, edges = _grakel_structure(structure, index)
    if node_labels:
        nodes = list(dict.fromkeys([*node_labels, *nodes]))
    number = {node: i for i, node in enumerate(nodes)}
    labels = None
    if node_labels:
        labels = _looked_up(node_labels, [(node,) for node in nodes], "Node", index)
    arc_labels = None
    if edge_labels:
        arc_labels = _looked_up(edge_labels, [((u, v), (v, u)) for u, v in edges], "Edge", index)
    return PlainGraph(len(nodes), [(number[u], number[v]) for u, v in edges], labels, arc_labels)


def _looked_up(
    labels: Mapping[Any, Any], keys: Iterable[tuple[Any, ...]], what: str, index: int
) -> list[Any]:
    """The label under the first of each group of keys that is there."""
    found = []
    for group in keys:
        key = next((key for key in group if key in labels), None)
        if key is None and group[0] not in labels:
            raise GraphDataError(
                f"{what} {group[0]!r} of graph {index} has no label in the {what.lower()} labels: "
                "give every one a label, or leave the labels out."
            )
        found.append(labels[key])
    return found


def _grakel_structure(structure: Any, index: int) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Nodes and edges of every form that GraKeL takes."""
    if is_adjacency(structure):
        return edges_of_matrix(structure, index)
    nodes: list[Any] = []
    if isinstance(structure, Mapping) and not all(map(_is_pair, structure)):
        nodes = list(structure)  # node -> its neighbours: a list, or a dict to weights
        edges = [(u, v) for u, others in structure.items() for v in others]
    else:  # pairs, triples with a weight, or a dict from pairs to weights
        bad = next((pair for pair in structure if not _is_pair(pair)), None)
        if bad is not None:
            raise GraphDataError(
                f"Graph {index}: {bad!r} is no edge: expected tuples (node, node) or (node, node, "
                "weight)."
            )
        edges = [(pair[0], pair[1]) for pair in structure]
    try:
        distinct = dict.fromkeys([*nodes, *(end for edge in edges for end in edge)])
    except TypeError as error:
        raise GraphDataError(f"Graph {index}: nodes must be hashable ({error}).") from error
    return _in_order(distinct), edges


def _in_order(nodes: Iterable[Any]) -> list[Any]:
    """Sorted where that is possible: the order of a set of strings differs from run to run."""
    nodes = list(nodes)
    try:
        return sorted(nodes)
    except TypeError:
        return nodes


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) in (2, 3)
