"""Adjacency matrices as edges: dense ones, lists of lists, and sparse ones as they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.graphs.errors import GraphDataError


def is_adjacency(structure: Any) -> bool:
    """Whether this is a matrix: an array, a sparse matrix, or a list of lists of numbers."""
    if hasattr(structure, "shape"):
        return True
    return isinstance(structure, list) and bool(structure) and isinstance(structure[0], list)


def edges_of_matrix(structure: Any, index: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Nodes and edges of graph ``index``, given as a matrix; an edge is where it is not zero.

    Examples
    --------
    >>> edges_of_matrix([[0, 1], [1, 0]], 0)
    ([0, 1], [(0, 1), (1, 0)])
    """
    is_sparse = hasattr(structure, "tocsr")
    try:
        matrix = structure if is_sparse else np.asarray(structure)
    except ValueError:  # rows of different lengths
        matrix = np.empty(0)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphDataError(
            f"Graph {index}: an adjacency matrix must be square; got shape {matrix.shape}. Edges "
            "are given as tuples, not as lists or rows of an array."
        )
    if matrix.dtype.kind not in "iufb":
        raise GraphDataError(
            f"Graph {index}: an adjacency matrix must hold numbers; got type {matrix.dtype}."
        )
    starts, ends, weights = (_stored_entries if is_sparse else _dense_entries)(matrix)
    if np.isnan(weights).any():
        raise GraphDataError(f"Graph {index}: the adjacency matrix holds NaN: write 0 for no edge.")
    return list(range(matrix.shape[0])), list(zip(starts.tolist(), ends.tolist(), strict=True))


def _dense_entries(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    starts, ends = np.nonzero(matrix)
    return starts, ends, matrix[starts, ends]


def _stored_entries(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a sparse matrix stores, row by row; never as a dense matrix."""
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    entries = rows.tocoo()
    return entries.row, entries.col, entries.data
