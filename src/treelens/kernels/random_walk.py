"""The random-walk kernel in full: the geometric series over all lengths of common walks.

``K(G, G') = sum_k decay^k 1' W^k 1 = 1' (I - decay W)^-1 1`` with the adjacency matrix ``W`` of
the direct product of the two graphs: one linear system per pair. The series cut off at some length
has an explicit feature map (see :mod:`treelens.patterns.paths`) and needs none of this.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from treelens.graphs.collection import GraphCollection
from treelens.kernels import _compiled_walks
from treelens.kernels._compiled_walks import WalkedGraphs
from treelens.kernels.gram import apply_in_place
from treelens.patterns.paths import LabelCodes

_TOLERANCE = 1e-9  # of the residual; the kernel value is accurate to about its square
_DENSE_EIGENVALUES = 64  # up to this many nodes a dense solver beats Lanczos


def walked_graphs(graphs: GraphCollection, codes: LabelCodes) -> WalkedGraphs:
    """A collection with its label codes, in the form the compiled loops read."""
    return WalkedGraphs(
        graphs.node_offsets, graphs.neighbor_offsets, graphs.neighbors,
        np.ascontiguousarray(codes.nodes), np.ascontiguousarray(codes.edges),
    )  # fmt: skip


def geometric_kernel(
    left: WalkedGraphs, right: WalkedGraphs | None, decay: float, n_jobs: int = 1
) -> np.ndarray:
    """Common walks of all lengths, weighted by ``decay ** length``, shape (n_left, n_right).

    ``right=None`` pairs ``left`` with itself. The series must converge, see
    :func:`check_convergence`.
    """
    target = left if right is None else right
    kernel = np.zeros((len(left.node_offsets) - 1, len(target.node_offsets) - 1))

    def fill(rows: np.ndarray, first: int, last: int) -> None:
        _compiled_walks.geometric_rows(
            first, last, left, target, right is None, decay, _TOLERANCE, rows
        )

    apply_in_place(fill, kernel, n_jobs)
    _check_solved(kernel, decay)
    return kernel if right is not None else np.triu(kernel) + np.triu(kernel, 1).T


def geometric_diagonal(graphs: WalkedGraphs, decay: float) -> np.ndarray:
    """The kernel of every graph with itself, shape (n_graphs,)."""
    diagonal = np.empty(len(graphs.node_offsets) - 1)
    _compiled_walks.geometric_diagonal(graphs, decay, _TOLERANCE, diagonal)
    _check_solved(diagonal, decay)
    return diagonal


def check_convergence(graphs: WalkedGraphs, decay: float) -> None:
    """Raise a ``ValueError`` unless the series converges for all pairs of these graphs.

    Walk counts of a pair are at most the geometric mean of those of the two graphs with
    themselves, so it is enough that the product of every graph with itself has a spectral radius
    below ``1 / decay``.
    """
    bounds = _radius_bounds(graphs)
    if decay * bounds.max(initial=0.0) < 1:
        return
    graph, radius = _largest_radius(graphs, bounds)
    if decay * radius < 1:
        return
    raise ValueError(
        f"decay={decay:g} (the lambda of the geometric series) does not converge: the product of "
        f"graph {graph} with itself has spectral radius {radius:.6g}, and decay times that must "
        f"be below 1. Use decay < {1 / radius:.6g}, or a finite max_length."
    )


def spectral_radius(graphs: WalkedGraphs, graph: int) -> float:
    """Spectral radius of the direct product of a graph with itself."""
    offsets, targets = _compiled_walks.product_graph(graphs, graph, graphs, graph)
    n = len(offsets) - 1
    if not len(targets):
        return 0.0
    adjacency = sparse.csr_array((np.ones(len(targets)), targets, offsets), shape=(n, n))
    if n <= _DENSE_EIGENVALUES:
        return float(np.linalg.eigvalsh(adjacency.toarray())[-1])
    # Positive start: it is never orthogonal to the non-negative leading eigenvector.
    largest = eigsh(adjacency, k=1, which="LA", v0=np.ones(n), return_eigenvectors=False)
    return float(largest[0])


def _radius_bounds(graphs: WalkedGraphs) -> np.ndarray:
    """Upper bounds of the spectral radii of all self-products, shape (n_graphs,).

    No product node has more neighbours than the square of the largest degree.
    """
    degrees = np.diff(graphs.neighbor_offsets)
    bounds = np.zeros(len(graphs.node_offsets) - 1)
    filled = np.flatnonzero(np.diff(graphs.node_offsets))
    if len(filled):
        bounds[filled] = np.maximum.reduceat(degrees, graphs.node_offsets[filled]) ** 2.0
    return bounds


def _largest_radius(graphs: WalkedGraphs, bounds: np.ndarray) -> tuple[int, float]:
    """The graph whose self-product has the largest spectral radius, and that radius."""
    best, largest = 0, 0.0
    for graph in np.argsort(-bounds, kind="stable").tolist():
        if bounds[graph] <= largest:
            break
        radius = spectral_radius(graphs, graph)
        if radius > largest:
            best, largest = graph, radius
    return best, largest


def _check_solved(values: np.ndarray, decay: float) -> None:
    if np.isnan(values).any():
        raise ValueError(
            f"decay={decay:g} (the lambda of the geometric series) is so near the limit of "
            "convergence that the series cannot be summed to full accuracy. Use a smaller decay."
        )
