"""``build_collection``: from edge lists and labels to a canonical ``GraphCollection``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.errors import DegreeLabelsWarning, GraphDataError, IgnoredDataWarning
from treelens.graphs.collection import GraphCollection, encode_labels
from treelens.graphs.kinds import GraphRecipe

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def build_collection(
    sizes: Sequence[int] | np.ndarray,
    edges: np.ndarray,
    node_labels: Sequence[Any] | np.ndarray | None,
    edge_labels: Sequence[Any] | np.ndarray | None = None,
    names: Any = None,
    graph_data: Any = None,
    recipe: GraphRecipe | None = None,
    *,
    node_attributes: Sequence[Any] | np.ndarray | None = None,
    attribute_names: Sequence[str] = (),
    edge_attributes: Sequence[Any] | np.ndarray | None = None,
    edge_attribute_names: Sequence[str] = (),
    directed: bool = False,
) -> GraphCollection:
    """Build a collection from one list of edges over all graphs.

    The rules, the same for every source: an edge that is listed several times counts once, also
    in opposite directions unless graphs are directed (of more than these there is a warning); a
    self-loop makes a node its own neighbour.
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
    given = np.asarray(sizes) if len(sizes) else np.empty(0, dtype=np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given < 0).any():
        raise GraphDataError("The sizes must be numbers of nodes, integers, one for each graph.")
    sizes = given.astype(np.int64)
    node_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n_nodes = int(node_offsets[-1])
    edges = edge_array(edges, "The edges")
    graph = np.searchsorted(node_offsets, edges, side="right") - 1
    wrong = ((edges < 0) | (edges >= n_nodes)).any(axis=1) | (graph[:, 0] != graph[:, 1])
    if wrong.any():
        u, v = edges[wrong.argmax()].tolist()
        raise GraphDataError(
            f"Edge {wrong.argmax()} joins nodes {u} and {v}, not two of one graph among {n_nodes}."
        )
    # Every edge at both ends, sorted by (start, end, direction), equal ones merged.
    there, back = (2 * (pairs @ [n_nodes, 1]) for pairs in (edges, edges[:, ::-1]))
    arcs, first, which = np.unique(
        np.concatenate([there, back + directed]), return_index=True, return_inverse=True
    )
    _warn_of_parallel(which[: len(edges)], edges, node_offsets)
    start, end = np.divmod(arcs // 2, max(1, n_nodes))
    edge_codes, edge_alphabet = None, None
    if edge_labels is not None:
        _check_count("edge labels", len(edge_labels), "edges", len(edges))
        codes, edge_alphabet = encode_labels(
            edge_labels, lambda i: f"The label of edge {_place(edges[i], node_offsets)}"
        )
        codes = np.tile(codes, 2)
        edge_codes = codes[first]
        conflict = codes != edge_codes[which]
        if conflict.any():
            arc = conflict.argmax()
            one, other = (edge_alphabet[code] for code in (edge_codes[which[arc]], codes[arc]))
            raise GraphDataError(
                f"Edge {_place(edges[arc % len(edges)], node_offsets)} is listed with two labels, "
                f"{one!r} and {other!r}. Merge the two, or leave edge labels out."
            )
    if edge_attributes is not None:
        _check_count("rows of edge attributes", len(edge_attributes), "edges", len(edges))
        edge_attributes = _means(np.asarray(edge_attributes), which.reshape(2, -1), len(arcs))
    degrees = np.bincount(start, minlength=n_nodes)
    degree_labels = node_labels is None
    if node_labels is None:
        node_labels = degrees
        warnings.warn(
            f"These {len(sizes)} graphs have no node labels: each node was labelled with its "
            "degree. Pass others, or node_label=NAME where they are in another attribute.",
            DegreeLabelsWarning,
            stacklevel=2,
        )
    _check_count("node labels", len(node_labels), "nodes", n_nodes)
    node_codes, node_alphabet = encode_labels(
        node_labels, lambda i: f"The label of node {_place(i, node_offsets)}"
    )
    first_node = np.repeat(node_offsets[:-1], sizes)[start]  # of the graph of each arc
    return GraphCollection(
        node_offsets,
        np.concatenate([[0], np.cumsum(degrees)]),
        end - first_node,
        node_codes,
        node_alphabet,
        edge_codes,
        edge_alphabet,
        names,
        graph_data,
        degree_labels,
        recipe,
        node_attributes=None if node_attributes is None else np.asarray(node_attributes),
        attribute_names=tuple(attribute_names),
        edge_attributes=edge_attributes,
        edge_attribute_names=tuple(edge_attribute_names),
        directions=arcs % 2 if directed else None,
    )


def _warn_of_parallel(arcs: np.ndarray, edges: np.ndarray, node_offsets: np.ndarray) -> None:
    """Warn of edges that are listed again in the same direction; ``arcs`` numbers each of them."""
    _, first = np.unique(arcs, return_index=True)
    if len(first) == len(arcs):
        return
    again = np.ones(len(arcs), dtype=bool)
    again[first] = False
    warnings.warn(
        f"{again.sum()} of {len(edges)} edges repeat another, the first "
        f"{_place(edges[again.argmax()], node_offsets)}: parallel edges count once. Where their "
        "number matters, make it an edge label.",
        IgnoredDataWarning,
        stacklevel=3,
    )


def numbered_names(name: str, n_columns: int) -> tuple[str, ...]:
    """Return names of the columns of an array: ``"pos 1"``, ``"pos 2"``, ..."""
    return tuple(f"{name} {column}" for column in range(1, n_columns + 1))


def edge_array(edges: object, place: str) -> np.ndarray:
    """Return pairs of node numbers as an array of int64, shape (n_edges, 2); nothing is rounded."""
    try:
        given = np.asarray(edges)
    except ValueError:  # pairs of different lengths
        given = np.empty(1, dtype=object)
    if not given.size:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iuf":
        raise GraphDataError(f"{place}: expected pairs of node numbers; got shape {given.shape}.")
    with np.errstate(invalid="ignore"):  # NaN, and what is too large: these compare as changed
        pairs = given.astype(np.int64, copy=False)
    if pairs is not given and (changed := np.flatnonzero((pairs != given).any(axis=1))).size:
        u, v = given[changed[0]].tolist()
        raise GraphDataError(f"{place}: edge {changed[0]} joins nodes {u} and {v}, no integers.")
    return pairs


def listed_one_way(edges: np.ndarray) -> np.ndarray:
    """Return the positions of edges (n_edges, 2) that are not listed in the other direction."""
    there, back = (pairs[:, 0] << 32 | pairs[:, 1] for pairs in (edges, edges[:, ::-1]))
    return np.flatnonzero(~np.isin(back, there))


def count_one_way(edges: np.ndarray) -> tuple[int, int]:
    """Return how many edges (n_edges, 2) are listed in one direction only, of how many: no loops.

    Examples
    --------
    >>> count_one_way(np.array([[0, 1], [1, 0], [1, 2], [2, 2]]))
    (1, 3)
    """
    return len(listed_one_way(edges)), int((edges[:, 0] != edges[:, 1]).sum())


def about_directions(place: str, one_way: int, n_edges: int, directed: bool) -> str:
    """Return that some edges are listed in one direction only, and how the graphs are read."""
    kind, other = ("", "un") if directed else ("un", "")
    return (
        f"{place}: {one_way} of {n_edges} edges are listed in one direction only, and the graphs "
        f"are read as {kind}directed. Pass directed={not directed} if they are {other}directed, or "
        f"directed={directed} to say that this is right."
    )


def _place(ends: ArrayLike, node_offsets: np.ndarray) -> str:
    """Return the name of a node, or of the edge between two, in messages."""
    graph = int(np.searchsorted(node_offsets, np.ravel(ends)[0], side="right")) - 1
    within = np.ravel(ends) - node_offsets[graph]
    return f"{' - '.join(map(str, within.tolist()))} of graph {graph}"


def _check_count(what: str, count: int, of_what: str, expected: int) -> None:
    if count != expected:
        raise GraphDataError(f"There are {count} {what} for {expected} {of_what}: give one each.")


def _means(table: np.ndarray, arcs_of: np.ndarray, n_arcs: int) -> np.ndarray:
    """Return the mean of the rows (n_edges, n_columns) of each arc, without missing values.

    Both directions of an edge add up in the order of the lines, so that they have the same mean.
    """
    by_line = arcs_of.T.ravel()
    means = np.empty((n_arcs, table.shape[1]))
    for k, column in enumerate(np.repeat(table, 2, axis=0).T):
        there = ~np.isnan(column)
        sums = np.bincount(by_line, np.where(there, column, 0.0), n_arcs)
        with np.errstate(invalid="ignore"):  # nothing but missing values: their mean is missing
            means[:, k] = sums / np.bincount(by_line, there, n_arcs)
    return means
