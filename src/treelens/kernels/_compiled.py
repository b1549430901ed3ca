"""Compiled loops of the kernels room. Plain-Python twins: ``tests/naive/kernels.py``.

Every kernel here is a sum over patterns that two graphs share. The left side comes as rows by
graph, the right side as inverted lists by pattern, so the work is proportional to the number of
shared patterns, never to the size of the vocabulary. The few patterns that a large part of the
graphs hold cost most of the work: those lists are dense, and dense columns run at vector speed.

A weighted intersection needs no weights here: ``w * min(a, b) == min(w * a, w * b)``, so the
caller scales the values. For every pair the dense patterns are added first, then the others, each
in ascending order; what is not shared adds an exact zero. So an entry does not depend on which
graph stood on the left, on the number of threads or on how the rows were cut into blocks.
"""

import numpy as np
from numba import njit

_GROUP = 4  # dense columns handled in one sweep over a row of the result
_STRIP = 8  # numbers in a cache line


@njit(cache=True, nogil=True)
def _sweep(row, c0, c1, c2, c3, x0, x1, x2, x3, take_minimum):
    """Add four dense columns to a row, one after the other for every entry."""
    if take_minimum:
        for j in range(len(row)):
            total = row[j] + min(c0[j], x0)
            total = total + min(c1[j], x1)
            total = total + min(c2[j], x2)
            row[j] = total + min(c3[j], x3)
    else:
        for j in range(len(row)):
            total = row[j] + c0[j] * x0
            total = total + c1[j] * x1
            total = total + c2[j] * x2
            row[j] = total + c3[j] * x3


@njit(cache=True, nogil=True)
def _add_dense(row, start, row_indices, row_values, dense_of_pattern, dense, take_minimum):
    """Add the dense patterns of one left graph to ``row[start:]``."""
    columns = np.zeros(_GROUP, np.int64)
    x = np.zeros(_GROUP)
    used, last = 0, len(row_indices) - 1
    for a in range(last + 1):
        column = dense_of_pattern[row_indices[a]]
        if column >= 0:
            columns[used], x[used] = column, row_values[a]
            used += 1
        if used == _GROUP or (used and a == last):
            for k in range(used, _GROUP):
                x[k] = 0.0  # an idle column adds min(0, c) or 0 * c: an exact zero
            _sweep(row[start:], dense[columns[0], start:], dense[columns[1], start:],
                   dense[columns[2], start:], dense[columns[3], start:],
                   x[0], x[1], x[2], x[3], take_minimum)  # fmt: skip
            used = 0


@njit(cache=True, nogil=True)
def cross_rows(first, step, left_offsets, left_indices, left_values, dense_of_pattern, dense,
               offsets, graphs, values, take_minimum, left_scale, scale, factor, shift,
               out):  # fmt: skip
    """Rows ``first, first + step, ...`` of ``shift + factor * left_scale * scale * sum``.

    The sums are between left rows and right lists. ``dense`` (n_dense, n_right) holds the common
    patterns, the lists hold the others.
    ``dense_of_pattern`` (n_patterns,) is a row of ``dense`` or -1. ``out`` is (n_left, n_right).
    """
    for i in range(first, len(left_offsets) - 1, step):
        row = out[i]
        row[:] = 0.0
        a0, a1 = left_offsets[i], left_offsets[i + 1]
        _add_dense(row, 0, left_indices[a0:a1], left_values[a0:a1], dense_of_pattern, dense,
                   take_minimum)  # fmt: skip
        for a in range(a0, a1):
            pattern, x = left_indices[a], left_values[a]
            if dense_of_pattern[pattern] >= 0:
                continue
            for b in range(offsets[pattern], offsets[pattern + 1]):
                y = values[b]
                row[graphs[b]] += (y if y < x else x) if take_minimum else x * y
        for j in range(len(row)):  # rounding must not make kernels and distances negative
            row[j] = max(0.0, shift + factor * (row[j] * (left_scale[i] * scale[j])))


@njit(cache=True, nogil=True)
def upper_rows(first, step, row_offsets, row_indices, row_values, dense_of_pattern, dense,
               offsets, graphs, values, take_minimum, scale, factor, shift,
               out):  # fmt: skip
    """The same for one collection with itself, columns ``j >= i`` only.

    Rows are visited in ascending order, so in every list the entries before the row's own are
    passed over once and for all: ``head`` remembers where the rest begins.
    """
    head = offsets[:-1].copy()
    for i in range(first, len(row_offsets) - 1, step):
        row = out[i]
        row[i:] = 0.0
        a0, a1 = row_offsets[i], row_offsets[i + 1]
        _add_dense(row, i, row_indices[a0:a1], row_values[a0:a1], dense_of_pattern, dense,
                   take_minimum)  # fmt: skip
        for a in range(a0, a1):
            pattern, x = row_indices[a], row_values[a]
            if dense_of_pattern[pattern] >= 0:
                continue
            start = head[pattern]
            while graphs[start] < i:
                start += 1
            head[pattern] = start
            for b in range(start, offsets[pattern + 1]):
                y = values[b]
                row[graphs[b]] += (y if y < x else x) if take_minimum else x * y
        for j in range(i, len(row)):
            row[j] = max(0.0, shift + factor * (row[j] * (scale[i] * scale[j])))


@njit(cache=True, nogil=True)
def mirror(first, step, block, out):
    """Copy the upper half into the lower, in strips so narrow that both sides stay in cache."""
    n = len(out)
    for top in range(first * block, n, step * block):
        bottom = min(top + block, n)
        for left in range(0, bottom, _STRIP):
            for i in range(top, bottom):
                for j in range(left, min(left + _STRIP, i)):
                    out[i, j] = out[j, i]


@njit(cache=True, nogil=True)
def nearest_rows(first, step, sums, left_diagonal, right_diagonal, left_out,
                 near, alike):  # fmt: skip
    """Rows ``first, first + step, ...``: the most similar columns, the most similar first.

    Tanimoto similarity ``S / (s + t - S)`` from sums ``S`` (n_left, n_right) and those of each
    graph with itself. ``left_out`` (n_left,) is a column that does not count, or -1. ``near`` and
    ``alike`` (n_left, k) are written; of columns that are as similar the first comes first.
    """
    k = near.shape[1]
    if k == 0:
        return
    for i in range(first, len(sums), step):
        found = 0
        for j in range(sums.shape[1]):
            if j == left_out[i]:
                continue
            union = left_diagonal[i] + right_diagonal[j] - sums[i, j]
            similarity = min(1.0, sums[i, j] / union) if union > 0.0 else 1.0
            if found == k and similarity <= alike[i, k - 1]:
                continue
            place = found if found < k else k - 1
            while place > 0 and alike[i, place - 1] < similarity:
                near[i, place], alike[i, place] = near[i, place - 1], alike[i, place - 1]
                place -= 1
            near[i, place], alike[i, place] = j, similarity
            found = min(found + 1, k)
