"""The random-walk kernel pair by pair: common walks up to some length, or of all lengths.

``K(G, G') = sum_k decay^k 1' W^k 1`` with the adjacency matrix ``W`` of the direct product of the
two graphs; over all lengths it is ``1' (I - decay W)^-1 1``, one linear system per pair. Walks
follow directed edges in their direction, and ``W`` is then not symmetric. Time and
memory do not depend on the number of label sequences, which grows exponentially with the length;
where that number is small, counting them (:mod:`treelens.patterns.paths`) is faster.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from treelens.graphs.collection import GraphCollection
from treelens.kernels import _compiled
from treelens.kernels._compiled import WalkedGraphs
from treelens.kernels.gram import interleaved, mirrored
from treelens.patterns.paths import LabelCodes

_TOLERANCE = 1e-9  # of the residual; the kernel value is accurate to about its square
_POWERS = 100  # of a matrix that is not symmetric
_DENSE_EIGENVALUES = 64  # up to this many nodes a dense solver is faster than Lanczos


def walked_graphs(graphs: GraphCollection, codes: LabelCodes) -> WalkedGraphs:
    """A collection with its label codes, nodes sorted by label within each graph."""
    firsts = np.repeat(graphs.node_offsets[:-1], graphs.sizes)  # (n_nodes,)
    order = np.lexsort((codes.nodes, firsts))
    rank = np.empty_like(order)  # old number of a node -> new one
    rank[order] = np.arange(len(order))
    degrees = np.diff(codes.neighbor_offsets)
    sources = np.repeat(np.arange(len(order)), degrees)
    targets = rank[codes.targets] - firsts[sources]
    by_source = np.argsort(rank[sources], kind="stable")
    return WalkedGraphs(
        graphs.node_offsets,
        np.concatenate([[0], np.cumsum(degrees[order])]),
        targets[by_source],
        codes.nodes[order],
        codes.edges[by_source],
        graphs.directed,
    )


def walk_kernel(
    left: WalkedGraphs,
    right: WalkedGraphs | None,
    max_length: int | None,
    decay: float,
    n_jobs: int = 1,
) -> np.ndarray:
    """Common walks weighted by ``decay ** length``, shape (n_left, n_right).

    ``right=None`` pairs ``left`` with itself. ``max_length=None`` sums over all lengths; the series
    must converge, see :func:`check_convergence`. Each thread needs a few numbers for every pair of
    nodes with equal labels of two graphs.
    """
    target = left if right is None else right
    kernel = np.zeros((len(left.node_offsets) - 1, len(target.node_offsets) - 1))
    settings = (_n_common_edge_labels(left, target), _length(max_length), decay, _TOLERANCE)
    sides = (left, target, right is None)
    interleaved(lambda k, n: _compiled.walk_rows(k, n, *sides, *settings, kernel), n_jobs)
    _check_solved(kernel, decay)
    return kernel if right is not None else mirrored(kernel)


def walk_diagonal(graphs: WalkedGraphs, max_length: int | None, decay: float) -> np.ndarray:
    """Return the kernel of every graph with itself, shape (n_graphs,)."""
    settings = (_n_common_edge_labels(graphs, graphs), _length(max_length), decay, _TOLERANCE)
    each = range(len(graphs.node_offsets) - 1)
    diagonal = np.array([_compiled.walk_sum(graphs, i, graphs, i, *settings) for i in each])
    _check_solved(diagonal, decay)
    return diagonal


def check_convergence(graphs: WalkedGraphs, decay: float) -> None:
    """Raise a ``ValueError`` unless the series converges for all pairs of these graphs."""
    # Walk counts of a pair are at most the geometric mean of those of the two graphs with
    # themselves, so it is enough that the product of every graph with itself has a spectral radius
    # below `1 / decay`. That radius is at most the square of the largest degree.
    degrees = np.diff(graphs.neighbor_offsets)
    if decay * degrees.max(initial=0) ** 2 < 1:
        return
    radii = [spectral_radius(graphs, k) for k in range(len(graphs.node_offsets) - 1)]
    graph, radius = int(np.argmax(radii)), max(radii)
    if decay * radius >= 1:
        raise ValueError(
            f"decay={decay:g} (the lambda of the geometric series) does not converge: the product "
            f"of graph {graph} with itself has spectral radius {radius:.6g}, and decay times that "
            f"must be below 1. Use decay < {1 / radius:.6g}, or a finite max_length."
        )


def spectral_radius(graphs: WalkedGraphs, graph: int) -> float:
    """Spectral radius of the direct product of a graph with itself."""
    matching = _compiled.matching_nodes(graphs, graph, graphs, graph)
    n, n_edge_labels = int(matching[2][-1]), _n_common_edge_labels(graphs, graphs)

    def adjacent(vector: np.ndarray) -> np.ndarray:
        image = np.empty(n)
        sides = (graphs, graph, graphs, graph)
        _compiled.walk_step(*sides, n_edge_labels, matching, vector.ravel(), image)
        return image

    if not n:
        return 0.0
    if graphs.directed:  # the growth of W^k 1: k from 100 to 200 leaves nothing of the start
        vector, log_growth = np.ones(n), 0.0
        for k in range(2 * _POWERS):
            vector = adjacent(vector)
            largest = float(vector.max())
            if largest == 0.0:
                return 0.0  # no walk is that long
            vector /= largest
            log_growth += np.log(largest) if k >= _POWERS else 0.0
        return float(np.exp(log_growth / _POWERS))
    if n <= _DENSE_EIGENVALUES:
        return float(np.linalg.eigvalsh(np.array([adjacent(row) for row in np.eye(n)]))[-1])
    # A positive start is never orthogonal to the non-negative leading eigenvector.
    operator = LinearOperator((n, n), matvec=adjacent, dtype=np.float64)
    return float(eigsh(operator, k=1, which="LA", v0=np.ones(n), return_eigenvectors=False)[0])


def _length(max_length: int | None) -> int:
    return -1 if max_length is None else max_length


def _n_common_edge_labels(left: WalkedGraphs, right: WalkedGraphs) -> int:
    return 1 + int(min(left.edge_codes.max(initial=-1), right.edge_codes.max(initial=-1)))


def _check_solved(values: np.ndarray, decay: float) -> None:
    if np.isnan(values).any():
        raise ValueError(
            f"decay={decay:g} (the lambda of the geometric series) is so near the limit of "
            "convergence that the series cannot be summed to full accuracy. Use a smaller decay."
        )
