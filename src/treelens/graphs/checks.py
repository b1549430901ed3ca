"""What must hold of the arrays of a collection, for compiled loops follow them unchecked."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.graphs.errors import GraphDataError


def whole_numbers(values: Any, name: str, dtype: Any) -> np.ndarray:
    """One-dimensional integers that ``dtype`` can hold, else an error; nothing is rounded."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise GraphDataError(f"{name} must have one axis; got the shape {array.shape}.")
    if not array.size:
        return array.astype(dtype)
    if array.dtype.kind not in "iu":
        raise GraphDataError(f"{name} must hold integers; got {array.dtype}.")
    limits = np.iinfo(dtype)
    if not np.can_cast(array.dtype, dtype) and (
        array.min() < limits.min or array.max() > limits.max
    ):
        raise GraphDataError(
            f"{name} holds {_outlier(array, limits.min, limits.max)}, which is no {limits.dtype}."
        )
    return array


def _outlier(array: np.ndarray, low: int, high: int) -> int:
    return int(array.max()) if array.max() > high else int(array.min())


def check_offsets(offsets: np.ndarray, name: str, what: str) -> None:
    """Offsets begin with 0 and never fall; ``what`` names the thing whose run one entry starts."""
    if not len(offsets) or offsets[0] != 0:
        begin = f"begins with {offsets[0]}" if len(offsets) else "is empty"
        raise GraphDataError(f"{name} {begin}: it must begin with 0 and end with the length.")
    falls = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(falls):
        place = int(falls[0])
        raise GraphDataError(
            f"{name} falls from {offsets[place]} to {offsets[place + 1]} at {what} {place}: it "
            "must ascend."
        )


def check_neighbors(
    node_offsets: np.ndarray, neighbor_offsets: np.ndarray, neighbors: np.ndarray
) -> None:
    """Every neighbour is a node of the same graph, and those of a node ascend."""
    sizes = np.diff(node_offsets)
    n_arcs = np.diff(neighbor_offsets[node_offsets])  # of every graph
    outside = np.flatnonzero((neighbors < 0) | (neighbors >= np.repeat(sizes, n_arcs)))
    if len(outside):
        arc = int(outside[0])
        node, graph = _place(arc, node_offsets, neighbor_offsets)
        raise GraphDataError(
            f"Node {node} of graph {graph} has the neighbour {neighbors[arc]}, but the nodes of "
            f"that graph are 0 to {sizes[graph] - 1}: neighbours are numbered within their graph."
        )
    falls = neighbors[1:] <= neighbors[:-1]
    firsts = neighbor_offsets[1:-1]  # where the list of another node begins
    falls[firsts[(firsts > 0) & (firsts < len(neighbors))] - 1] = False
    if falls.any():
        arc = int(falls.argmax())
        node, graph = _place(arc, node_offsets, neighbor_offsets)
        raise GraphDataError(
            f"Node {node} of graph {graph} has the neighbours {neighbors[arc]} and then "
            f"{neighbors[arc + 1]}: they must ascend, each once."
        )


def _place(arc: int, node_offsets: np.ndarray, neighbor_offsets: np.ndarray) -> tuple[int, int]:
    row = int(np.searchsorted(neighbor_offsets, arc, side="right")) - 1
    graph = int(np.searchsorted(node_offsets, row, side="right")) - 1
    return row - int(node_offsets[graph]), graph


def check_node_codes(codes: np.ndarray, n_labels: int, node_offsets: np.ndarray) -> None:
    """Every node's code names a label."""
    node = _first_outside(codes, n_labels)
    if node is not None:
        graph = int(np.searchsorted(node_offsets, node, side="right")) - 1
        raise GraphDataError(
            f"Node {node - int(node_offsets[graph])} of graph {graph} has the label code "
            f"{codes[node]}; node_alphabet has {n_labels} labels, 0 to {n_labels - 1}."
        )


def check_edge_codes(
    codes: np.ndarray, n_labels: int, node_offsets: np.ndarray, neighbor_offsets: np.ndarray
) -> None:
    """Every arc's code names a label."""
    arc = _first_outside(codes, n_labels)
    if arc is not None:
        node, graph = _place(arc, node_offsets, neighbor_offsets)
        raise GraphDataError(
            f"An edge of node {node} of graph {graph} has the label code {codes[arc]}; "
            f"edge_alphabet has {n_labels} labels, 0 to {n_labels - 1}."
        )


def _first_outside(codes: np.ndarray, n_labels: int) -> int | None:
    if not len(codes) or (codes.min() >= 0 and codes.max() < n_labels):
        return None
    return int(np.flatnonzero((codes < 0) | (codes >= n_labels))[0])
