"""Compiled passes over pairs of graphs. Plain-Python twins: ``tests/naive/learning.py``.

One pass over all pairs ``i <= j`` works row by row: the similarities ``<W, Z(i, j)>`` of a row are
summed, turned into losses and slopes on the spot, and the slopes are gathered back into the
gradient. Nothing of size n² is ever stored. The few patterns that many of the graphs contain cost
most of the work; they are kept as dense columns, which run at vector speed.

Rows are divided among a fixed number of shares, each with its own gradient, so that the sums do not
depend on the number of threads.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

_LANES = 64  # partial sums per dense column: sums in this shape can use vector instructions


class PairArrays(NamedTuple):
    """Pair features laid out for the loops below."""

    row_offsets: np.ndarray  # (n_graphs + 1,) patterns of each graph ...
    row_patterns: np.ndarray  # ... ascending
    row_values: np.ndarray
    list_offsets: np.ndarray  # (n_patterns + 1,) graphs of each pattern ...
    list_graphs: np.ndarray  # ... ascending
    list_values: np.ndarray
    dense_of_pattern: np.ndarray  # (n_patterns,) row of `dense`, or -1
    dense: np.ndarray  # (n_dense, n_graphs) values of the common patterns
    scale: np.ndarray  # (n_graphs,)
    minimum: bool


class PairLoss(NamedTuple):
    """Constants of the pair loss at ``d = b - s``, and the weight of a pair of either kind."""

    b: float
    alpha1: float
    alpha2: float
    sigma: float
    weight_different: float
    weight_same: float


@njit(cache=True, nogil=True)
def _sweep(row, c0, c1, c2, c3, x, w, minimum):
    """Add four weighted dense columns to a row, one after the other for every entry."""
    x0, x1, x2, x3 = x[0], x[1], x[2], x[3]
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    if minimum:
        for j in range(len(row)):
            total = row[j] + w0 * min(c0[j], x0)
            total = total + w1 * min(c1[j], x1)
            total = total + w2 * min(c2[j], x2)
            row[j] = total + w3 * min(c3[j], x3)
    else:
        x0, x1, x2, x3 = w0 * x0, w1 * x1, w2 * x2, w3 * x3
        for j in range(len(row)):
            total = row[j] + c0[j] * x0
            total = total + c1[j] * x1
            total = total + c2[j] * x2
            row[j] = total + c3[j] * x3


@njit(cache=True, nogil=True)
def _gather(row, c0, c1, c2, c3, x, minimum, lanes, sums):
    """``sums[k] = sum_j row[j] * combine(c_k[j], x[k])`` for four dense columns."""
    x0, x1, x2, x3 = x[0], x[1], x[2], x[3]
    l0, l1, l2, l3 = lanes[0], lanes[1], lanes[2], lanes[3]
    lanes[:] = 0.0
    whole = len(row) - len(row) % _LANES
    for start in range(0, whole, _LANES):
        if minimum:
            for k in range(_LANES):
                slope = row[start + k]
                l0[k] += slope * min(c0[start + k], x0)
                l1[k] += slope * min(c1[start + k], x1)
                l2[k] += slope * min(c2[start + k], x2)
                l3[k] += slope * min(c3[start + k], x3)
        else:
            for k in range(_LANES):
                slope = row[start + k]
                l0[k] += slope * c0[start + k]
                l1[k] += slope * c1[start + k]
                l2[k] += slope * c2[start + k]
                l3[k] += slope * c3[start + k]
    for j in range(whole, len(row)):
        slope = row[j]
        l0[j - whole] += slope * (min(c0[j], x0) if minimum else c0[j])
        l1[j - whole] += slope * (min(c1[j], x1) if minimum else c1[j])
        l2[j - whole] += slope * (min(c2[j], x2) if minimum else c2[j])
        l3[j - whole] += slope * (min(c3[j], x3) if minimum else c3[j])
    for k in range(4):
        total = 0.0
        for lane in range(_LANES):
            total += lanes[k, lane]
        sums[k] = total if minimum else total * x[k]


@njit(cache=True, nogil=True)
def _split_row(pairs, i, columns, patterns, x):
    """The dense patterns of graph ``i``, filled up to a multiple of four with idle columns."""
    used = 0
    for a in range(pairs.row_offsets[i], pairs.row_offsets[i + 1]):
        pattern = pairs.row_patterns[a]
        column = pairs.dense_of_pattern[pattern]
        if column >= 0:
            columns[used], patterns[used], x[used] = column, pattern, pairs.row_values[a]
            used += 1
    filled = used
    while filled % 4:
        columns[filled], patterns[filled], x[filled] = 0, -1, 0.0  # combine(c, 0) is an exact zero
        filled += 1
    return filled


@njit(cache=True, nogil=True)
def _sum_row(pairs, weights, i, start, columns, patterns, x, n_dense, head, row):
    """``row[j] = sum_v w_v combine(a_iv, a_jv)`` for ``j >= start``; ``head`` skips the others."""
    row[start:] = 0.0
    w = np.zeros(4)
    dense = pairs.dense
    for a in range(0, n_dense, 4):
        for k in range(4):
            w[k] = weights[patterns[a + k]] if patterns[a + k] >= 0 else 0.0
        _sweep(row[start:], dense[columns[a], start:], dense[columns[a + 1], start:],
               dense[columns[a + 2], start:], dense[columns[a + 3], start:],
               x[a : a + 4], w, pairs.minimum)  # fmt: skip
    for a in range(pairs.row_offsets[i], pairs.row_offsets[i + 1]):
        pattern, value = pairs.row_patterns[a], pairs.row_values[a]
        if pairs.dense_of_pattern[pattern] >= 0:
            continue
        first, last = head[pattern], pairs.list_offsets[pattern + 1]
        while first < last and pairs.list_graphs[first] < start:
            first += 1
        head[pattern] = first
        weight = weights[pattern]
        for e in range(first, last):
            other = pairs.list_values[e]
            both = min(other, value) if pairs.minimum else other * value
            row[pairs.list_graphs[e]] += weight * both


@njit(cache=True, nogil=True)
def _gather_row(pairs, i, start, columns, patterns, x, n_dense, head, row, lanes, gradient):
    """``gradient[v] += sum_{j >= start} row[j] combine(a_iv, a_jv)`` for the patterns of ``i``."""
    sums = np.zeros(4)
    dense = pairs.dense
    for a in range(0, n_dense, 4):
        _gather(row[start:], dense[columns[a], start:], dense[columns[a + 1], start:],
                dense[columns[a + 2], start:], dense[columns[a + 3], start:],
                x[a : a + 4], pairs.minimum, lanes, sums)  # fmt: skip
        for k in range(4):
            if patterns[a + k] >= 0:
                gradient[patterns[a + k]] += sums[k]
    for a in range(pairs.row_offsets[i], pairs.row_offsets[i + 1]):
        pattern, value = pairs.row_patterns[a], pairs.row_values[a]
        if pairs.dense_of_pattern[pattern] >= 0:
            continue
        total = 0.0
        for e in range(head[pattern], pairs.list_offsets[pattern + 1]):
            other = pairs.list_values[e]
            both = min(other, value) if pairs.minimum else other * value
            total += row[pairs.list_graphs[e]] * both
        gradient[pattern] += total


@njit(cache=True, nogil=True)
def _slopes_of_row(row, scale, own_scale, codes, own_code, loss, values):
    """Turn similarities into weighted slopes ``d loss / d <W, Z>``, and add the losses to values.

    The hinge is written without branches (see ``losses.py``), so that the loop vectorises.
    """
    for j in range(len(row)):
        both = own_scale * scale[j]
        distance = loss.b - both * row[j]
        same = codes[j] == own_code
        inside = distance - loss.alpha2 if same else loss.alpha1 - distance
        weight = loss.weight_same if same else loss.weight_different
        cut = min(max(inside, 0.0), loss.sigma)
        values[j] += weight * (cut * (inside - 0.5 * cut) / loss.sigma)
        slope = weight * (cut / loss.sigma)
        row[j] = (-slope if same else slope) * both


@njit(cache=True, nogil=True)
def all_pairs_pass(first, step, pairs, codes, weights, loss, with_gradient, gradient):
    """Loss and gradient over the pairs of rows ``first, first + step, ...``: returns the loss.

    ``loss.weight_*`` are the weights of an unordered pair; a graph with itself counts half.
    ``gradient`` (n_patterns,) is added to.
    """
    n = len(pairs.row_offsets) - 1
    row = np.zeros(n)
    values = np.zeros(n)
    lanes = np.zeros((4, _LANES))
    head = pairs.list_offsets[:-1].copy()
    room = pairs.dense.shape[0] + 4
    columns, patterns, x = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room)
    diagonal = 0.0
    for i in range(first, n, step):
        n_dense = _split_row(pairs, i, columns, patterns, x)
        _sum_row(pairs, weights, i, i, columns, patterns, x, n_dense, head, row)
        before = values[i]
        values[i] = 0.0
        _slopes_of_row(row[i:], pairs.scale[i:], pairs.scale[i], codes[i:], codes[i], loss,
                       values[i:])  # fmt: skip
        diagonal += values[i]
        values[i] = before
        row[i] *= 0.5
        if with_gradient:
            _gather_row(pairs, i, i, columns, patterns, x, n_dense, head, row, lanes, gradient)
    total = 0.0
    for j in range(n):
        total += values[j]
    return total + 0.5 * diagonal


@njit(cache=True, nogil=True)
def similarity_counts(first, step, pairs, weights, largest, counts):
    """Count the similarities of the pairs ``i < j`` of some rows in equal bins of [0, largest]."""
    n = len(pairs.row_offsets) - 1
    row = np.zeros(n)
    head = pairs.list_offsets[:-1].copy()
    room = pairs.dense.shape[0] + 4
    columns, patterns, x = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room)
    per_unit = len(counts) / largest
    for i in range(first, n, step):
        n_dense = _split_row(pairs, i, columns, patterns, x)
        _sum_row(pairs, weights, i, i, columns, patterns, x, n_dense, head, row)
        for j in range(i + 1, n):
            position = np.int64(pairs.scale[i] * pairs.scale[j] * row[j] * per_unit)
            counts[min(position, len(counts) - 1)] += 1


@njit(cache=True, nogil=True)
def shrunk_norm(shift, metric, multiplier):
    """``||p||²`` for ``p = max(-1, metric shift / (metric + multiplier))``, and half its slope.

    The slope is that in the multiplier, with the sign turned.
    """
    square, slope = 0.0, 0.0
    for v in range(len(shift)):
        both = metric[v] + multiplier
        p = metric[v] * shift[v] / both
        if p <= -1.0:
            square += 1.0
        else:
            square += p * p
            slope += p * p / both
    return square, slope
