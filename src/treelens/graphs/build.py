"""``build_collection``: from edge lists to a canonical ``GraphCollection``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection, encode_labels
from treelens.graphs.errors import DegreeLabelsWarning, GraphDataError
from treelens.graphs.recipe import GraphRecipe


def build_collection(
    sizes: Sequence[int] | np.ndarray,
    edges: np.ndarray,
    node_labels: Sequence[Any] | np.ndarray | None,
    edge_labels: Sequence[Any] | np.ndarray | None = None,
    names: Sequence[Any] | None = None,
    graph_data: Mapping[str, Any] | None = None,
    recipe: GraphRecipe | None = None,
    *,
    node_attributes: Any = None,
    attribute_names: Sequence[str] = (),
    edge_attributes: Any = None,
    edge_attribute_names: Sequence[str] = (),
    directed: bool = False,
) -> GraphCollection:
    """Build a collection from one list of edges over all graphs.

    The rules, the same for every source: an edge that is listed several times counts once, also
    in opposite directions unless graphs are directed; a self-loop makes a node its own neighbour.
    An edge listed with two different labels is an error; of attributes of an edge listed several
    times, the means are taken. Without node labels every node gets its degree as label, and a
    warning says so.

    Parameters
    ----------
    sizes : sequence of int, shape (n_graphs,)
        Number of nodes of each graph; 0 is allowed.
    edges : ndarray of int, shape (n_edges, 2)
        End nodes, numbered through all graphs. Floats are taken where they are whole numbers.
    node_labels : sequence, shape (n_nodes,), or None
    edge_labels : sequence, shape (n_edges,), optional
    names, graph_data, recipe, node_attributes, attribute_names, edge_attribute_names : optional
        See :class:`GraphCollection`.
    edge_attributes : array of float, shape (n_edges, n_edge_attributes), optional
    directed : bool
        Whether an edge leads from its first node to its second.

    Examples
    --------
    >>> graphs = build_collection([2, 1], np.array([[0, 1]]), ["a", "b", "a"])
    >>> graphs
    GraphCollection(2 graphs, 3 nodes, 1 edges, 2 node labels)
    """
    sizes = _checked_sizes(sizes)
    node_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n_nodes = int(node_offsets[-1])
    edges = edge_array(edges, "The edges")
    _check_edges(edges, node_offsets)
    edge_codes, edge_alphabet = None, None
    if edge_labels is not None:
        _check_count("edge labels", len(edge_labels), "edges", len(edges))
        edge_codes, edge_alphabet = encode_labels(
            edge_labels, lambda i: f"The label of edge {_edge_place(edges[i], node_offsets)}"
        )
    arcs, directions, order, first = _canonical_arcs(edges, directed)
    if edge_codes is not None and edge_alphabet is not None:
        edge_codes = _codes_of_arcs(edge_codes[order], edge_alphabet, arcs, first, node_offsets)
    if edge_attributes is not None:
        _check_count("rows of edge attributes", len(edge_attributes), "edges", len(edges))
        # Arcs of one edge in the order of the lines, so that both directions have the same mean.
        by_line = order[np.lexsort((order, np.cumsum(first)))]
        edge_attributes = _mean_of_runs(np.asarray(edge_attributes)[by_line], first)
    arcs = arcs[first]
    degrees = np.bincount(arcs[:, 0], minlength=n_nodes)
    degree_labels = node_labels is None
    if node_labels is None:
        node_labels = degrees
        warnings.warn(
            f"These {len(sizes)} graphs have no node labels: each node was labelled with its "
            "degree. Pass node labels to choose others.",
            DegreeLabelsWarning,
            stacklevel=2,
        )
    _check_count("node labels", len(node_labels), "nodes", n_nodes)
    node_codes, node_alphabet = encode_labels(
        node_labels, lambda i: f"The label of {_node_place(i, node_offsets)}"
    )
    graph_of_arc_start = np.repeat(node_offsets[:-1], sizes)[arcs[:, 0]]
    return GraphCollection(
        node_offsets, np.concatenate([[0], np.cumsum(degrees)]), arcs[:, 1] - graph_of_arc_start,
        node_codes, node_alphabet, edge_codes, edge_alphabet, names, graph_data, degree_labels,
        recipe, node_attributes=node_attributes, attribute_names=attribute_names,
        edge_attributes=edge_attributes, edge_attribute_names=edge_attribute_names,
        directions=directions,
    )  # fmt: skip


def numbered_names(name: str, n_columns: int) -> tuple[str, ...]:
    """Return names of the columns of an array: ``"pos 1"``, ``"pos 2"``, ..."""
    return tuple(f"{name} {column}" for column in range(1, n_columns + 1))


def edge_array(edges: Any, place: str) -> np.ndarray:
    """Return pairs of node numbers as an array of int64, shape (n_edges, 2); nothing is rounded."""
    try:
        given = np.asarray(edges)
    except ValueError:  # pairs of different lengths
        given = np.empty(1, dtype=object)
    if not given.size:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iuf":
        raise GraphDataError(
            f"{place}: expected pairs of node numbers, as integers; got an array of shape "
            f"{given.shape} and type {given.dtype}."
        )
    pairs = _as_int64(given)
    if pairs is not given and (changed := np.flatnonzero((pairs != given).any(axis=1))).size:
        u, v = given[changed[0]].tolist()
        raise GraphDataError(
            f"{place}: edge {changed[0]} joins nodes {u} and {v}: nodes are numbered with integers."
        )
    return pairs


def listed_one_way(edges: np.ndarray) -> np.ndarray:
    """Return the positions of edges (n_edges, 2) that are not listed in the other direction."""
    there, back = (pairs[:, 0] << 32 | pairs[:, 1] for pairs in (edges, edges[:, ::-1]))
    if np.array_equal(np.sort(there), np.sort(back)):  # the usual case, and quick
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(~np.isin(back, there))


def _as_int64(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # NaN, and what is too large: these compare as changed
        return numbers.astype(np.int64, copy=False)


def _checked_sizes(sizes: Any) -> np.ndarray:
    given = np.asarray(sizes)
    given = given if given.size else np.empty(0, dtype=np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iuf" or (_as_int64(given) != given).any():
        raise GraphDataError("The sizes must be numbers of nodes, integers, one for each graph.")
    if (given < 0).any():
        raise GraphDataError(f"Graph {np.argmax(given < 0)} has a negative number of nodes.")
    return _as_int64(given)


def _node_place(node: int, node_offsets: np.ndarray) -> str:
    graph = int(np.searchsorted(node_offsets, node, side="right")) - 1
    return f"node {int(node - node_offsets[graph])} of graph {graph}"


def _edge_place(edge: np.ndarray, node_offsets: np.ndarray) -> str:
    graph = int(np.searchsorted(node_offsets, edge[0], side="right")) - 1
    u, v = (edge - node_offsets[graph]).tolist()
    return f"{u} - {v} of graph {graph}"


def _check_count(what: str, count: int, of_what: str, expected: int) -> None:
    if count != expected:
        raise GraphDataError(f"There are {count} {what} for {expected} {of_what}: give one each.")


def _check_edges(edges: np.ndarray, node_offsets: np.ndarray) -> None:
    """Every edge must join two nodes that exist, of the same graph."""
    n_nodes = int(node_offsets[-1])
    outside = np.flatnonzero(((edges < 0) | (edges >= n_nodes)).any(axis=1))
    if len(outside):
        u, v = edges[outside[0]].tolist()
        raise GraphDataError(
            f"Edge {outside[0]} joins nodes {u} and {v}, but the nodes are 0 to {n_nodes - 1}."
        )
    graph = np.searchsorted(node_offsets, edges, side="right") - 1
    across = np.flatnonzero(graph[:, 0] != graph[:, 1])
    if len(across):
        u, v = (_node_place(node, node_offsets) for node in edges[across[0]].tolist())
        raise GraphDataError(f"Edge {across[0]} joins {u} and {v}, which are different graphs.")


def _canonical_arcs(
    edges: np.ndarray, directed: bool
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Return every edge at both ends, sorted by (start, end, direction).

    Returned are the arcs (2 n_edges, 2), the directions of different ones, the edge of each arc,
    and which arcs differ from the one before.
    """
    arcs = np.concatenate([edges, edges[:, ::-1]])
    incoming = np.repeat([False, directed], len(edges))
    order = np.lexsort((*([incoming] if directed else []), arcs[:, 1], arcs[:, 0]))
    arcs, incoming = arcs[order], incoming[order]
    first = np.ones(len(arcs), dtype=bool)
    first[1:] = (arcs[1:] != arcs[:-1]).any(axis=1) | (incoming[1:] != incoming[:-1])
    directions = incoming[first].astype(np.int8) if directed else None
    return arcs, directions, order % max(1, len(edges)), first


def _codes_of_arcs(
    codes: np.ndarray, alphabet: tuple[Any, ...], arcs: np.ndarray, first: np.ndarray, offsets: Any
) -> np.ndarray:
    """Return the codes of the different arcs; raise where one has two."""
    known = codes[first][np.cumsum(first) - 1]  # the code of the first arc with the same ends
    conflict = np.flatnonzero(codes != known)
    if len(conflict):
        arc = conflict[0]
        raise GraphDataError(
            f"Edge {_edge_place(arcs[arc], offsets)} is listed with two labels, "
            f"{alphabet[known[arc]]!r} and {alphabet[codes[arc]]!r}. Merge the two (a tuple is a "
            "fine label) or leave the edge labels out."
        )
    return codes[first]


def _mean_of_runs(table: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the means of runs of rows, without missing values."""
    if not len(table) or first.all():
        return table
    starts, there = np.flatnonzero(first), ~np.isnan(table)
    with np.errstate(invalid="ignore"):  # nothing but missing values: their mean is missing
        return np.add.reduceat(np.where(there, table, 0.0), starts) / np.add.reduceat(
            there, starts, dtype=np.int64
        )
