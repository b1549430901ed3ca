"""The three Weisfeiler-Lehman kernels and the Wasserstein distance, as pure functions.

They differ only in the pair feature (see :mod:`treelens.patterns.pairs`):

=====================  =======================================================================
kind                   ``<W, Z(G, G')>``
=====================  =======================================================================
"subtree"              ``(1/H) sum_v w_v count_G(v) count_G'(v)``
"optimal-assignment"   ``(1/H) sum_v w_v min(count_G(v), count_G'(v))``
"wasserstein"          ``(1/H) sum_v w_v min(frequency_G(v), frequency_G'(v))``
=====================  =======================================================================

With all weights one, the second is the value of the best assignment of nodes to nodes (Kriege et
al. 2016) and one minus the third is the Wasserstein distance between the node embeddings
(Togninalli et al. 2019): closed forms, exact, with no transport problem to solve.
"""

from __future__ import annotations

import numpy as np

from treelens.kernels.gram import apply_in_place, pair_sums
from treelens.patterns.pairs import PairFeatures


def linear_kernel(
    left: PairFeatures,
    right: PairFeatures | None = None,
    weights: np.ndarray | None = None,
    *,
    n_jobs: int = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """``<W, Z(i, j)>``, shape (n_left, n_right)."""
    return pair_sums(left, right, weights, n_jobs=n_jobs, out=out)


def paper_distance(
    left: PairFeatures,
    right: PairFeatures | None = None,
    weights: np.ndarray | None = None,
    *,
    offset: float = 1.0,
    n_jobs: int = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """``b - <W, Z(i, j)>``; with uniform weights and ``b = 1`` the Wasserstein distance.

    Parameters
    ----------
    offset : float
        The constant ``b``. The largest ``<W, Z(G, G)>`` of the right-hand graphs suffices to
        keep every distance from going negative.
    """
    return pair_sums(left, right, weights, factor=-1.0, shift=offset, n_jobs=n_jobs, out=out)


def metric_distance(
    left: PairFeatures,
    right: PairFeatures | None = None,
    weights: np.ndarray | None = None,
    *,
    left_diagonal: np.ndarray,
    right_diagonal: np.ndarray,
    n_jobs: int = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """``0.5 (<W, Z(i, i)> + <W, Z(j, j)>) - <W, Z(i, j)>``: a true metric, zero on the diagonal.

    Equals ``0.5 (1/H) sum_v w_v |frequency_i(v) - frequency_j(v)|``.

    Parameters
    ----------
    left_diagonal, right_diagonal : ndarray
        ``<W, Z(G, G)>`` of every graph, patterns unknown to the vocabulary included.
    """
    distance = pair_sums(left, right, weights, n_jobs=n_jobs, out=out)

    def finish(rows: np.ndarray, first: int, last: int) -> None:
        for row, own in zip(rows, left_diagonal[first:last], strict=True):
            np.subtract(0.5 * (own + right_diagonal), row, out=row)
            np.maximum(row, 0.0, out=row)

    return apply_in_place(finish, distance, n_jobs)


def exponential(distance: np.ndarray, gamma: float, n_jobs: int = 1) -> np.ndarray:
    """``exp(-gamma * distance)``, in place."""

    def finish(rows: np.ndarray, first: int, last: int) -> None:
        np.multiply(rows, -gamma, out=rows)
        np.exp(rows, out=rows)

    return apply_in_place(finish, distance, n_jobs)
