"""Compiled loops over direct product graphs. Plain-Python twins: ``tests/naive/paths.py``.

The direct product of two labelled graphs has a node for every pair of nodes with equal labels and
an edge where both graphs have one (with equal labels). Its walks are the common walks of the two.
"""

from typing import NamedTuple

import numpy as np
from numba import njit


class WalkedGraphs(NamedTuple):
    """What the loops read of a collection; codes of both sides must mean the same labels."""

    node_offsets: np.ndarray  # (n_graphs + 1,)
    neighbor_offsets: np.ndarray  # (n_nodes + 1,)
    neighbors: np.ndarray  # (n_arcs,) numbered within the graph
    node_codes: np.ndarray  # (n_nodes,)
    edge_codes: np.ndarray  # (n_arcs,)


@njit(cache=True, nogil=True)
def _matching_pairs(left, i, right, j):
    """Number (or -1) of every node pair in the product, and the two nodes of every number."""
    base_u, base_v = left.node_offsets[i], right.node_offsets[j]
    n_u, n_v = left.node_offsets[i + 1] - base_u, right.node_offsets[j + 1] - base_v
    number = np.full((n_u, n_v), -1, np.int32)
    pairs = np.empty((n_u * n_v, 2), np.int64)
    n_pairs = 0
    for u in range(n_u):
        for v in range(n_v):
            if left.node_codes[base_u + u] == right.node_codes[base_v + v]:
                number[u, v] = n_pairs
                pairs[n_pairs, 0], pairs[n_pairs, 1] = base_u + u, base_v + v
                n_pairs += 1
    return number, pairs[:n_pairs]


@njit(cache=True, nogil=True)
def _fill_neighbors(left, right, number, pairs, offsets, targets):
    """Write the neighbours of every product node as far as ``targets`` has room; count them all."""
    m = 0
    for p in range(len(pairs)):
        u, v = pairs[p, 0], pairs[p, 1]
        for a in range(left.neighbor_offsets[u], left.neighbor_offsets[u + 1]):
            for b in range(right.neighbor_offsets[v], right.neighbor_offsets[v + 1]):
                q = number[left.neighbors[a], right.neighbors[b]]
                if q >= 0 and left.edge_codes[a] == right.edge_codes[b]:
                    if m < len(targets):
                        targets[m] = q
                    m += 1
        offsets[p + 1] = m
    return m


@njit(cache=True, nogil=True)
def product_graph(left, i, right, j):
    """Direct product of left graph ``i`` and right graph ``j`` as (offsets, neighbours)."""
    number, pairs = _matching_pairs(left, i, right, j)
    offsets = np.zeros(len(pairs) + 1, np.int64)
    targets = np.empty(8 * len(pairs), np.int32)  # enough for most sparse graphs
    n_arcs = _fill_neighbors(left, right, number, pairs, offsets, targets)
    if n_arcs > len(targets):
        targets = np.empty(n_arcs, np.int32)
        _fill_neighbors(left, right, number, pairs, offsets, targets)
    return offsets, targets[:n_arcs]


@njit(cache=True, nogil=True)
def _damped(offsets, targets, decay, x, out):
    """``out = x - decay * W x`` for the adjacency matrix ``W`` of a product graph."""
    for p in range(len(x)):
        total = 0.0
        for a in range(offsets[p], offsets[p + 1]):
            total += x[targets[a]]
        out[p] = x[p] - decay * total


@njit(cache=True, nogil=True)
def sum_of_solution(offsets, targets, decay, tolerance):
    """``1' x`` for ``(I - decay W) x = 1``, by conjugate gradients; nan if they do not converge.

    The right-hand side is also what the solution is summed with, so the error of the result is
    of the order of the squared residual.
    """
    n = len(offsets) - 1
    x, residual, direction, image = np.zeros(n), np.ones(n), np.ones(n), np.empty(n)
    square = float(n)
    for _ in range(10 * n + 100):
        if square <= tolerance * tolerance * n:
            return x.sum()
        _damped(offsets, targets, decay, direction, image)
        curvature = np.sum(direction * image)
        if curvature <= 0.0:  # not positive definite: the series diverges
            return np.nan
        step = square / curvature
        x += step * direction
        residual -= step * image
        new_square = np.sum(residual * residual)
        direction = residual + (new_square / square) * direction
        square = new_square
    return np.nan


@njit(cache=True, nogil=True)
def geometric_rows(first, last, left, right, upper, decay, tolerance, out):
    """Rows ``first`` to ``last`` of the kernel into ``out`` (last - first, n_right).

    With ``upper`` the two sides are one collection and only columns ``j >= i`` are filled.
    """
    for i in range(first, last):
        for j in range(i if upper else 0, len(right.node_offsets) - 1):
            offsets, targets = product_graph(left, i, right, j)
            out[i - first, j] = sum_of_solution(offsets, targets, decay, tolerance)


@njit(cache=True, nogil=True)
def geometric_diagonal(graphs, decay, tolerance, out):
    """Kernel value of every graph with itself, into ``out`` (n_graphs,)."""
    for i in range(len(out)):
        offsets, targets = product_graph(graphs, i, graphs, i)
        out[i] = sum_of_solution(offsets, targets, decay, tolerance)
