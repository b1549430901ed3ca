"""Compiled loops of the mixture kernel. Plain-Python twins: ``tests/naive/evidence.py``.

With ``S`` the weighted sum of minima of two graphs and ``s``, ``t`` their sums with themselves,

    T = S / (s + t - S)        D = s + t - 2 S
    k = amplitude (share exp(-gamma (1 - T)) + (1 - share) exp(-rho D))

Two graphs without any pattern are the same graph: T = 1 and D = 0.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def mixture_rows(first, step, triangular, sums, left_diagonal, right_diagonal,
                 gamma, rho, amplitude, share, out):  # fmt: skip
    """Rows ``first, first + step, ...`` of the kernel from sums; ``out`` may be ``sums``.

    ``triangular`` leaves the entries below the diagonal alone.
    """
    for i in range(first, len(sums), step):
        own = left_diagonal[i]
        for j in range(i if triangular else 0, sums.shape[1]):
            both = own + right_diagonal[j]
            shared = sums[i, j]
            union = both - shared
            tanimoto = shared / union if union > 0.0 else 1.0
            distance = max(both - 2.0 * shared, 0.0)
            out[i, j] = amplitude * (
                share * np.exp(-gamma * (1.0 - tanimoto)) + (1.0 - share) * np.exp(-rho * distance)
            )


@njit(cache=True, nogil=True)
def mixture_slope_rows(first, step, sums, diagonal, gamma, rho, amplitude, share,
                       inverse, alpha, slopes, own_slopes, totals):  # fmt: skip
    """What the evidence gains per unit of everything the kernel is made of, for some rows.

    For every pair ``i < j`` the slope of the objective in ``k_ij`` (both places of the matrix
    counted) is ``inverse_ij - mean over columns of alpha_i alpha_j``. Written are, for these rows,
    ``slopes`` (n, n), the slope in ``S_ij``; added to are ``own_slopes`` (n,), those in ``s_i``,
    and ``totals`` (4,), those in log gamma, log rho, log amplitude and the share.
    """
    n, n_columns = alpha.shape
    gamma_total, rho_total, amplitude_total, share_total = 0.0, 0.0, 0.0, 0.0
    for i in range(first, n, step):
        own, own_slope = diagonal[i], 0.0
        slopes[i, i] = 0.0
        for j in range(i + 1, n):
            explained = 0.0
            for p in range(n_columns):
                explained += alpha[i, p] * alpha[j, p]
            pull = inverse[i, j] - explained / n_columns
            both = own + diagonal[j]
            shared = sums[i, j]
            union = both - shared
            tanimoto, per_shared, per_own = 1.0, 0.0, 0.0
            if union > 0.0:
                tanimoto = shared / union
                per_shared = both / (union * union)
                per_own = -shared / (union * union)
            distance = max(both - 2.0 * shared, 0.0)
            near = np.exp(-gamma * (1.0 - tanimoto))
            far = np.exp(-rho * distance)
            by_tanimoto = pull * amplitude * share * gamma * near
            by_distance = pull * amplitude * (1.0 - share) * rho * far
            slopes[i, j] = by_tanimoto * per_shared + 2.0 * by_distance
            in_own = by_tanimoto * per_own - by_distance
            own_slope += in_own
            own_slopes[j] += in_own
            gamma_total -= by_tanimoto * (1.0 - tanimoto)
            rho_total -= by_distance * distance
            amplitude_total += pull * amplitude * (share * near + (1.0 - share) * far)
            share_total += pull * amplitude * (near - far)
        own_slopes[i] += own_slope
    totals[0] += gamma_total
    totals[1] += rho_total
    totals[2] += amplitude_total
    totals[3] += share_total


@njit(cache=True, nogil=True)
def mixture_cross_slopes(first, step, sums, left_diagonal, right_diagonal, gamma, rho, amplitude,
                         share, slopes, left_slopes, right_slopes, totals):  # fmt: skip
    """The same between two sides, for rows ``first, first + step, ...``.

    ``slopes`` (n_left, n_right) comes with the slope of the objective in every kernel value and
    leaves with that in every sum; written are ``left_slopes`` (n_left,), those in the left graphs'
    own sums; added to are ``right_slopes`` (n_right,) and ``totals`` (4,), as above.
    """
    gamma_total, rho_total, amplitude_total, share_total = 0.0, 0.0, 0.0, 0.0
    for i in range(first, len(sums), step):
        own, own_slope = left_diagonal[i], 0.0
        for j in range(sums.shape[1]):
            pull = slopes[i, j]
            both = own + right_diagonal[j]
            shared = sums[i, j]
            union = both - shared
            tanimoto, per_shared, per_own = 1.0, 0.0, 0.0
            if union > 0.0:
                tanimoto = shared / union
                per_shared = both / (union * union)
                per_own = -shared / (union * union)
            distance = max(both - 2.0 * shared, 0.0)
            near = np.exp(-gamma * (1.0 - tanimoto))
            far = np.exp(-rho * distance)
            by_tanimoto = pull * amplitude * share * gamma * near
            by_distance = pull * amplitude * (1.0 - share) * rho * far
            slopes[i, j] = by_tanimoto * per_shared + 2.0 * by_distance
            in_own = by_tanimoto * per_own - by_distance
            own_slope += in_own
            right_slopes[j] += in_own
            gamma_total -= by_tanimoto * (1.0 - tanimoto)
            rho_total -= by_distance * distance
            amplitude_total += pull * amplitude * (share * near + (1.0 - share) * far)
            share_total += pull * amplitude * (near - far)
        left_slopes[i] = own_slope
    totals[0] += gamma_total
    totals[1] += rho_total
    totals[2] += amplitude_total
    totals[3] += share_total


@njit(cache=True, nogil=True)
def add_gaussian_rows(first, step, squares, amplitude, length, out):
    """Add ``amplitude exp(-squares / (2 length^2))`` to some rows, from the diagonal on."""
    for i in range(first, len(squares), step):
        for j in range(i, len(squares)):
            out[i, j] += amplitude * np.exp(-0.5 * squares[i, j] / (length * length))


@njit(cache=True, nogil=True)
def gaussian_slope_rows(first, step, squares, amplitude, length, inverse, alpha, totals):
    """Slopes of the objective in log amplitude and log length, over pairs ``i < j`` of some rows.

    As :func:`mixture_slope_rows`; added to ``totals`` (2,).
    """
    n, n_columns = alpha.shape
    for i in range(first, n, step):
        for j in range(i + 1, n):
            explained = 0.0
            for p in range(n_columns):
                explained += alpha[i, p] * alpha[j, p]
            pull = inverse[i, j] - explained / n_columns
            nearness = squares[i, j] / (length * length)
            value = amplitude * np.exp(-0.5 * nearness)
            totals[0] += pull * value
            totals[1] += pull * value * nearness
