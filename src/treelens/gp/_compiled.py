"""Compiled loops of expectation propagation over limits.

Plain-Python twins: ``tests/naive/censoring.py``.
"""

import math

import numpy as np
from numba import njit

_FAR = -6.0  # below, a continued fraction in which nothing cancels
_TERMS = 120
_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


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
    """Mean and precision of the site with the moments of the true factor, given all others."""
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

    The posterior, ``mean`` and ``covariance``, is overwritten for the sites still to come only.
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
        worst = max(
            worst,
            abs(change) * variance / (1.0 + new * variance),
            abs(shift) * root / (1.0 + abs(new * site) * root),
        )
        scale = 1.0 / (1.0 + change * own)
        step, down = (shift - change * mean[i]) * scale, change * scale
        for j in range(i + 1, n):
            across = covariance[i, j]
            mean[j] += step * across
            for k in range(j, n):
                covariance[j, k] -= down * across * covariance[i, k]
        sites[i], precisions[i] = site, new
    return worst
