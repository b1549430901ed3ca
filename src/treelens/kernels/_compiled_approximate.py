"""Compiled loops of explicit feature maps. Plain-Python twins: ``tests/naive/approximate.py``.

Random numbers come from hashing (seed, pattern, rank), so a draw is the same wherever and whenever
it is needed, and no matrix of patterns by grids exists.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _mix(value):
    """Finaliser of the splitmix64 generator: a bijection of 64-bit words with good avalanche."""
    x = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def _pattern_key(seed, pattern):
    return _mix(np.uint64(seed) ^ _mix(np.uint64(pattern)))


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


# --- random bins ------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _grid_of(rank, n_grids, key):
    """The grid of a rank, 0 to ``n_grids - 1``: a permutation that depends on the key.

    Rounds of an odd multiple and a shift permute the numbers below a power of two; a number
    outside is sent round again until it comes to lie inside.
    """
    bits = 0
    while (1 << bits) < n_grids:
        bits += 1
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    x = np.uint64(rank)
    while True:
        for part in (np.uint64(0), np.uint64(20), np.uint64(40)):
            x = (x * ((key >> part) | np.uint64(1)) + (key >> (part + np.uint64(7)))) & mask
            x ^= x >> shift
        if x < np.uint64(n_grids):
            return np.int64(x)


@njit(cache=True, nogil=True)
def _boundaries(rank, n_grids, key):
    """(first boundary, width, word) of a pattern's intervals on the grid of a rank.

    Masses are those at rate one. A width with a Gamma(2) distribution and an offset uniform within
    it are the same as two exponential draws: the first is the offset, both together the width.
    The first is drawn within the rank's own share of the distribution, so it ascends with the rank.
    The word names the intervals.
    """
    word = _mix(key ^ np.uint64(rank))
    share = (np.float64(np.int64(word >> np.uint64(11))) + 0.5) / 2.0**53
    first = -np.log1p(-(rank + share) / n_grids)
    more = (np.float64(np.int64(_mix(word) >> np.uint64(11))) + 0.5) / 2.0**53
    return first, first - np.log(more), word


@njit(cache=True, nogil=True)
def _interval_name(word, number):
    return _mix(word ^ np.uint64(number + 1))


@njit(cache=True, nogil=True)
def fill_bin_columns(first, last, seed, offsets, patterns, amounts, n_buckets, columns):
    """The column of the graphs ``first`` to ``last - 1`` on every grid, lists by graph.

    ``columns`` is (n_graphs, n_grids); ``amounts`` are those at rate one. A bin's name is the sum,
    modulo 2**64, of the names of the intervals that are reached; where none is, it is 0.
    """
    n_grids = columns.shape[1]
    names = np.empty(n_grids, dtype=np.uint64)
    mask = np.uint64(n_buckets - 1)
    for graph in range(first, last):
        names[:] = np.uint64(0)
        for a in range(offsets[graph], offsets[graph + 1]):
            key = _pattern_key(seed, patterns[a])
            for rank in range(n_grids):
                first_boundary, width, word = _boundaries(rank, n_grids, key)
                if amounts[a] < first_boundary:
                    break
                number = np.int64((amounts[a] - first_boundary) / width)
                names[_grid_of(rank, n_grids, key)] += _interval_name(word, number)
        for grid in range(n_grids):
            columns[graph, grid] = grid * n_buckets + np.int64(names[grid] & mask)


@njit(cache=True, nogil=True)
def bin_crossings(seed, n_grids, patterns, amounts, grids, times, entries, changes):
    """Where a graph whose amounts grow from 0 in proportion changes its bins.

    Fills ``grids``, ``times`` (0 to 1), ``entries`` (which pattern of the row) and ``changes`` (of
    the bin's name) as far as they reach, and returns how many crossings there are.
    """
    n = 0
    for entry in range(len(patterns)):
        key = _pattern_key(seed, patterns[entry])
        for rank in range(n_grids):
            first_boundary, width, word = _boundaries(rank, n_grids, key)
            if amounts[entry] < first_boundary:
                break
            grid, below = _grid_of(rank, n_grids, key), np.uint64(0)
            for number in range(np.int64((amounts[entry] - first_boundary) / width) + 1):
                name = _interval_name(word, number)
                if n < len(grids):
                    grids[n], entries[n], changes[n] = grid, entry, name - below
                    times[n] = min((first_boundary + number * width) / amounts[entry], 1.0)
                below = name
                n += 1
    return n


@njit(cache=True, nogil=True)
def bin_path_terms(grids, times, entries, changes, growth, n_buckets, coefficients, jumps, growths):
    """What crossings and growth add to a decision value along the path of growing amounts.

    Crossings are sorted by grid, then time. The features at ``t`` are ``exp(growth t)`` in one
    bucket per grid; ``coefficients`` is (n_grids * n_buckets,). A crossing's change of the
    decision is added to ``jumps`` (n_entries,) for its pattern, and what the factor's growth
    changes on the way to ``growths`` (1,).
    """
    n, mask = 0, np.uint64(n_buckets - 1)
    for grid in range(len(coefficients) // n_buckets):
        name, factor, old = np.uint64(0), 1.0, coefficients[grid * n_buckets]
        while n < len(grids) and grids[n] == grid:
            name += changes[n]
            reached = np.exp(growth * times[n])
            new = coefficients[grid * n_buckets + np.int64(name & mask)]
            growths[0] += old * (reached - factor)
            jumps[entries[n]] += reached * (new - old)
            factor, old = reached, new
            n += 1
        growths[0] += old * (np.exp(growth) - factor)
