"""Compiled loop of the support vector machine. Plain-Python twin: ``tests/naive/svm.py``."""

import numpy as np
from numba import njit

# Relative to the mean of the diagonal: the same problem in other units takes the same steps.
_LEAST_CURVATURE = 1e-12


@njit(cache=True, nogil=True)
def _most_violating(f, beta, high):
    """The coefficient that may grow and whose growth lowers the objective most; -1 if none."""
    best, i = np.inf, -1
    for t in range(len(f)):
        if f[t] < best and beta[t] < high[t]:
            best, i = f[t], t
    return i


@njit(cache=True, nogil=True)
def _best_partner(kernel_row, i, diagonal, least, f, beta, low):
    """The coefficient to shrink while ``i`` grows: largest second-order gain, and the violation."""
    best = f[i]
    gain, j, worst = 0.0, -1, best
    for t in range(len(f)):
        violation = f[t] - best
        if violation > 0.0 and beta[t] > low[t]:
            worst = max(worst, f[t])
            curvature = max(diagonal[i] + diagonal[t] - 2.0 * kernel_row[t], least)
            if violation * violation > gain * curvature:
                gain, j = violation * violation / curvature, t
    return j, worst - best


@njit(cache=True, nogil=True)
def solve_svm(kernel, low, high, tolerance, most_steps, beta, f):
    """Sequential minimal optimisation of a C-SVC, in place, from a feasible start.

    Solves ``min 0.5 beta' K beta - y' beta`` with ``low <= beta <= high`` and ``sum beta = 0``,
    where ``beta = y * alpha`` and ``f = K beta - y`` is its gradient. Working pairs are picked by
    second-order information (Fan, Chen and Lin 2005), as LIBSVM does. Returns the number of steps.
    """
    diagonal = np.empty(len(f))
    for t in range(len(f)):
        diagonal[t] = kernel[t, t]
    mean = diagonal.mean()
    least = _LEAST_CURVATURE * (mean if mean > 0.0 else 1.0)
    for step in range(most_steps):
        i = _most_violating(f, beta, high)
        if i < 0:
            return step
        j, violation = _best_partner(kernel[i], i, diagonal, least, f, beta, low)
        if j < 0 or violation < tolerance:
            return step
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * kernel[i, j], least)
        room_up, room_down = high[i] - beta[i], beta[j] - low[j]
        move = min((f[j] - f[i]) / curvature, room_up, room_down)
        # Bounds are reached exactly: rounding must not leave a coefficient just inside.
        beta[i] = high[i] if move == room_up else beta[i] + move
        beta[j] = low[j] if move == room_down else beta[j] - move
        row_i, row_j = kernel[i], kernel[j]
        for t in range(len(f)):
            f[t] += move * (row_i[t] - row_j[t])
    return most_steps
