"""Compiled loops of explicit feature maps. Plain-Python twins: ``tests/naive/approximate.py``.

Random numbers come from hashing (seed, pattern, frequency), so a draw is the same wherever and
whenever it is needed, and no matrix of patterns by frequencies exists.
"""

import numpy as np
from numba import njit

_HALF_RANGE = 2.0**31
_LOW_HALF = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def _mix(value):
    """Finaliser of the splitmix64 generator: a bijection of 64-bit words with good avalanche."""
    x = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def _cauchy(key, frequency):
    """A standard Cauchy draw: the slope of a uniform point in the unit disc.

    Cheaper than the tangent of a uniform angle, though four points in fifteen fall outside.
    """
    word = _mix(key ^ _mix(np.uint64(frequency)))
    while True:
        x = np.float64(np.int64(word & _LOW_HALF)) + 0.5 - _HALF_RANGE
        y = np.float64(np.int64(word >> np.uint64(32))) + 0.5 - _HALF_RANGE
        if x * x + y * y <= _HALF_RANGE * _HALF_RANGE:
            return x / y
        word = _mix(word)


@njit(cache=True, nogil=True)
def _pattern_key(seed, pattern):
    return _mix(np.uint64(seed) ^ _mix(np.uint64(pattern)))


@njit(cache=True, nogil=True)
def cauchy_draws(seed, pattern, first, last, draws):
    """The draws of one pattern for the frequencies ``first`` to ``last - 1``."""
    key = _pattern_key(seed, pattern)
    for j in range(first, last):
        draws[j - first] = _cauchy(key, j)


@njit(cache=True, nogil=True)
def add_cauchy_sums(first, last, first_pattern, last_pattern, seed, offsets, graphs, values, sums):
    """Add ``value * draw(pattern, frequency)`` to ``sums[graph, frequency]``, lists by pattern.

    ``sums`` is (n_graphs, n_frequencies); the frequencies ``first`` to ``last - 1`` are filled.
    Every pattern's draws are made once for all graphs that hold it. For every graph patterns are
    added in ascending order, so a sum does not depend on which other graphs are in the block.
    """
    draws = np.empty(last - first)
    for pattern in range(first_pattern, last_pattern):
        start, stop = offsets[pattern], offsets[pattern + 1]
        if start == stop:
            continue
        key = _pattern_key(seed, pattern)
        for j in range(first, last):
            draws[j - first] = _cauchy(key, j)
        for a in range(start, stop):
            row, x = sums[graphs[a]], values[a]
            for j in range(first, last):
                row[j] += x * draws[j - first]


@njit(cache=True, nogil=True)
def cauchy_projections(patterns, seed, factors, result):
    """``result[p] = sum over j of factors[j] * draw(patterns[p], j)``."""
    for p in range(len(patterns)):
        key = _pattern_key(seed, patterns[p])
        total = 0.0
        for j in range(len(factors)):
            total += factors[j] * _cauchy(key, j)
        result[p] = total


@njit(cache=True, nogil=True)
def count_unary(indices, values, threshold_offsets, thresholds, counts):
    """How many unary features each entry of a sparse matrix turns into, shape (n_entries,)."""
    for a in range(len(indices)):
        start, stop = threshold_offsets[indices[a]], threshold_offsets[indices[a] + 1]
        reached = start
        while reached < stop and thresholds[reached] <= values[a]:
            reached += 1
        below = thresholds[reached - 1] if reached > start else 0.0
        counts[a] = reached - start + (1 if reached < stop and values[a] > below else 0)


@njit(cache=True, nogil=True)
def fill_unary(indices, values, threshold_offsets, thresholds, starts, columns, entries):
    """Write the unary features of each entry from ``starts`` (n_entries,) on.

    A threshold ``t`` with the gap ``g`` to the one below gives ``sqrt(g)`` to values that reach
    it. A value between two thresholds gives ``(value - below) / sqrt(g)`` for the upper one, so
    that its product with a value *on* a threshold is the minimum of the two all the same.
    """
    for a in range(len(indices)):
        k, stop = threshold_offsets[indices[a]], threshold_offsets[indices[a] + 1]
        place, below = starts[a], 0.0
        while k < stop and below < values[a]:
            gap = thresholds[k] - below
            columns[place] = k
            entries[place] = min(gap, values[a] - below) / np.sqrt(gap)
            below = thresholds[k]
            place += 1
            k += 1
