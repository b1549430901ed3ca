"""Compiled loops of the marginal likelihood, and of expectation propagation over limits.

Plain-Python twins: ``tests/naive/evidence.py`` and ``tests/naive/censoring.py``.
"""

import math

import numpy as np
from numba import njit

_LANES = 64  # partial sums per dense column: sums in this shape can use vector instructions
_FAR = -6.0  # below, a continued fraction in which nothing cancels
_TERMS = 120
_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


@njit(cache=True, nogil=True)
def _gather(row, c0, c1, c2, c3, x0, x1, x2, x3, lanes):
    """Add ``row[j] * min(c_k[j], x_k)`` to the lanes of four dense columns."""
    l0, l1, l2, l3 = lanes[0], lanes[1], lanes[2], lanes[3]
    lanes[:] = 0.0
    whole = len(row) - len(row) % _LANES
    for start in range(0, whole, _LANES):
        for k in range(_LANES):
            slope = row[start + k]
            l0[k] += slope * min(c0[start + k], x0)
            l1[k] += slope * min(c1[start + k], x1)
            l2[k] += slope * min(c2[start + k], x2)
            l3[k] += slope * min(c3[start + k], x3)
    for j in range(whole, len(row)):
        slope = row[j]
        l0[j - whole] += slope * min(c0[j], x0)
        l1[j - whole] += slope * min(c1[j], x1)
        l2[j - whole] += slope * min(c2[j], x2)
        l3[j - whole] += slope * min(c3[j], x3)


@njit(cache=True, nogil=True)
def gather_minima(first, step, matrix, gradient, row_offsets, row_patterns, row_values,
                  list_offsets, list_graphs, list_values, dense_of_pattern, dense):  # fmt: skip
    """``gradient[v] += sum_{i < j} matrix[i, j] min(a_iv, a_jv)`` over some rows ``i``.

    The rows are ``first, first + step, ...``. ``matrix`` (n_graphs, n_graphs) is read above its
    diagonal only, which must be zero. Patterns by graph and graphs by pattern are those of
    ``PairArrays``; ``dense`` (n_dense, n_graphs) holds the common patterns.
    """
    head = list_offsets[:-1].copy()
    lanes = np.zeros((4, _LANES))
    columns, patterns, x = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4)
    for i in range(first, len(row_offsets) - 1, step):
        used, last = 0, row_offsets[i + 1] - 1
        for a in range(row_offsets[i], last + 1):
            pattern, value = row_patterns[a], row_values[a]
            if dense_of_pattern[pattern] >= 0:
                columns[used], patterns[used], x[used] = dense_of_pattern[pattern], pattern, value
                used += 1
            else:
                start = head[pattern]
                while list_graphs[start] < i:  # graph i itself ends the search
                    start += 1
                head[pattern] = start
                total = 0.0
                for e in range(start, list_offsets[pattern + 1]):
                    total += matrix[i, list_graphs[e]] * min(list_values[e], value)
                gradient[pattern] += total
            if used == 4 or (used and a == last):  # idle columns are not read
                _gather(matrix[i, i:], dense[columns[0], i:], dense[columns[1], i:],
                        dense[columns[2], i:], dense[columns[3], i:],
                        x[0], x[1], x[2], x[3], lanes)  # fmt: skip
                for k in range(used):
                    total = 0.0
                    for lane in range(_LANES):
                        total += lanes[k, lane]
                    gradient[patterns[k]] += total
                used = 0


@njit(cache=True, nogil=True)
def hazard(z):
    """``h = phi(z) / Phi(z)`` and ``z + h``, which is positive."""
    if z < _FAR:
        rest = -z
        for k in range(_TERMS, 1, -1):
            rest = -z + k / rest
        return -z + 1.0 / rest, 1.0 / rest
    ratio = _DENSITY * math.exp(-0.5 * z * z) / (0.5 * math.erfc(-z * _ROOT_HALF))
    return ratio, z + ratio


@njit(cache=True, nogil=True)
def matched_site(limit, sign, noise, mean, variance, least):
    """Mean and precision of the site that gives the moments of the true factor.

    ``mean`` and ``variance`` are the prediction without it. Its precision is at least ``least``
    relative to that of a measurement.
    """
    total = variance + noise
    ratio, beyond = hazard(sign * (mean - limit) / math.sqrt(total))
    slope = min(ratio * beyond, 1.0)
    precision = max(slope / (noise + variance * (1.0 - slope)), least / total)
    return mean + sign * math.sqrt(total) / beyond, precision


@njit(cache=True, nogil=True)
def matched_sites(limits, signs, noise, means, variances, least):
    """All sites from predictions without each of them: means (c,) and precisions (c,)."""
    found, precisions = np.empty(len(limits)), np.empty(len(limits))
    for i in range(len(limits)):
        found[i], precisions[i] = matched_site(
            limits[i], signs[i], noise[i], means[i], variances[i], least
        )
    return found, precisions


@njit(cache=True, nogil=True)
def site_sweep(limits, signs, noise, mean, covariance, sites, precisions, least):
    """Update the sites in turn; return the largest relative change of one.

    ``mean`` (c,) and ``covariance`` (c, c) are the posterior with the sites (c,) before the sweep.
    Both are overwritten, in the upper triangle and for the sites still to come only.
    """
    worst, n = 0.0, len(limits)
    for i in range(n):
        own, old = max(covariance[i, i], 1e-300), precisions[i]
        left = max(1.0 / own - old, 1e-12 / own)  # the precision without this site
        variance = 1.0 / left
        without = (mean[i] / own - old * sites[i]) * variance
        site, new = matched_site(limits[i], signs[i], noise[i], without, variance, least)
        change, shift = new - old, new * site - old * sites[i]
        root = math.sqrt(variance)
        worst = max(worst, abs(change) * variance / (1.0 + new * variance),
                    abs(shift) * root / (1.0 + abs(new * site) * root))  # fmt: skip
        scale = 1.0 / (1.0 + change * own)
        step, down = (shift - change * mean[i]) * scale, change * scale
        for j in range(i + 1, n):
            across = covariance[i, j]
            mean[j] += step * across
            for k in range(j, n):
                covariance[j, k] -= down * across * covariance[i, k]
        sites[i], precisions[i] = site, new
    return worst
