"""Compiled loops over pairs of graphs. Plain-Python twins: ``tests/naive/kernels.py``.

Every kernel here is a sum over patterns that two graphs share. The left side comes as rows by
graph, the right side as inverted lists by pattern, so the work is proportional to the number of
shared patterns, never to the size of the vocabulary. The few patterns that many of the graphs
contain cost most of the work: they are dense columns, which run at vector speed.

Two values ``x`` and ``y`` combine to ``min(scale * y, cap)``: with ``scale = 1`` and ``cap = x``
their minimum, with ``scale = x`` and no cap their product. A sum needs no weights, since
``w * min(x, y) == min(w * x, w * y)``: the caller scales the values. For every pair the dense
patterns are added first, then the others, each in ascending order. So an entry does not depend on
which graph stood on the left or on the number of threads.

Loops begin at 0 of a slice, since numba checks other indices for being negative. Few and flat
functions compile faster than many that call each other.
"""

import numpy as np
from numba import njit

LANES = 64  # partial sums per dense column: sums in this shape can use vector instructions


@njit(cache=True, nogil=True)
def sum_rows(first, last, step, base, upper, row_offsets, row_patterns, row_values, list_offsets,
             list_graphs, list_values, dense_of_pattern, dense, minimum, row_scale, scale, head,
             out):  # fmt: skip
    """Fill ``out[i - base]`` with ``row_scale_i * scale_j * sum_v combine(a_iv, a_jv)``.

    For the left graphs ``i = first, first + step, ...`` before ``last``, and all right graphs ``j``
    or, with ``upper``, those from ``i`` on. ``dense_of_pattern`` (n_patterns,) is a row of
    ``dense`` (n_dense, n_right) or -1. ``head`` (n_patterns,) is where in each list the graphs from
    ``i`` on begin: at first a copy of the offsets, it moves on with ascending ``i``.
    """
    for i in range(first, last, step):
        row = out[i - base]
        low = i if upper else 0
        tail, tail_scale = row[low:], scale[low:]
        for j in range(len(tail)):
            tail[j] = 0.0
        used, stop = 0, row_offsets[i + 1]
        d0 = d1 = d2 = d3 = 0
        s0 = s1 = s2 = s3 = 0.0
        x0 = x1 = x2 = x3 = 0.0
        for a in range(row_offsets[i], stop):
            column = dense_of_pattern[row_patterns[a]]
            if column >= 0:
                d0, d1, d2, d3 = d1, d2, d3, column
                s0, s1, s2, s3 = s1, s2, s3, 1.0 if minimum else row_values[a]
                x0, x1, x2, x3 = x1, x2, x3, row_values[a] if minimum else np.inf
                used += 1
            if used == 4 or (used and a == stop - 1):
                s0 = s0 if used > 3 else 0.0  # idle columns add an exact zero
                s1 = s1 if used > 2 else 0.0
                s2 = s2 if used > 1 else 0.0
                used = 0
                c0, c1, c2, c3 = dense[d0, low:], dense[d1, low:], dense[d2, low:], dense[d3, low:]
                for j in range(len(tail)):
                    total = tail[j] + min(s0 * c0[j], x0)
                    total = total + min(s1 * c1[j], x1)
                    total = total + min(s2 * c2[j], x2)
                    tail[j] = total + min(s3 * c3[j], x3)
        for a in range(row_offsets[i], stop):
            pattern = row_patterns[a]
            if dense_of_pattern[pattern] >= 0:
                continue
            start, end = head[pattern], list_offsets[pattern + 1]
            while start < end and list_graphs[start] < low:
                start += 1
            head[pattern] = start
            s = 1.0 if minimum else row_values[a]
            x = row_values[a] if minimum else np.inf
            for b in range(start, end):
                row[list_graphs[b]] += min(s * list_values[b], x)
        own = row_scale[i]
        for j in range(len(tail)):
            tail[j] *= own * tail_scale[j]


@njit(cache=True, nogil=True)
def gather_rows(first, last, step, base, matrix, row_offsets, row_patterns, row_values,
                list_offsets, list_graphs, list_values, dense_of_pattern, dense, minimum, head,
                lanes, gradient):  # fmt: skip
    """Add ``sum_{j >= i} matrix[i - base, j] combine(a_iv, a_jv)`` to ``gradient[v]``."""
    # For graphs `i = first, first + step, ...` before `last` of one collection with itself; see
    # `sum_rows`. `lanes` (2, LANES) is room to work in.
    l0, l1 = lanes[0], lanes[1]
    for i in range(first, last, step):
        row = matrix[i - base]
        tail = row[i:]
        whole = len(tail) - len(tail) % LANES
        used, stop = 0, row_offsets[i + 1]
        p0 = p1 = 0
        s0 = s1 = x0 = x1 = 0.0
        for a in range(row_offsets[i], stop):
            pattern = row_patterns[a]
            s = 1.0 if minimum else row_values[a]
            x = row_values[a] if minimum else np.inf
            if dense_of_pattern[pattern] >= 0:
                p0, p1, s0, s1, x0, x1 = p1, pattern, s1, s, x1, x
                used += 1
            else:
                start = head[pattern]
                while list_graphs[start] < i:  # graph i itself ends the search
                    start += 1
                head[pattern] = start
                total = 0.0
                for e in range(start, list_offsets[pattern + 1]):
                    total += row[list_graphs[e]] * min(s * list_values[e], x)
                gradient[pattern] += total
            if used == 2 or (used and a == stop - 1):
                p0, s0 = (p0, s0) if used > 1 else (p1, 0.0)
                used = 0
                c0, c1 = dense[dense_of_pattern[p0], i:], dense[dense_of_pattern[p1], i:]
                for k in range(LANES):
                    l0[k] = l1[k] = 0.0
                for begin in range(0, whole, LANES):
                    for k in range(LANES):
                        slope = tail[begin + k]
                        l0[k] += slope * min(s0 * c0[begin + k], x0)
                        l1[k] += slope * min(s1 * c1[begin + k], x1)
                for k in range(len(tail) - whole):
                    slope = tail[whole + k]
                    l0[k] += slope * min(s0 * c0[whole + k], x0)
                    l1[k] += slope * min(s1 * c1[whole + k], x1)
                t0 = t1 = 0.0
                for k in range(LANES):
                    t0 += l0[k]
                    t1 += l1[k]
                gradient[p0] += t0
                gradient[p1] += t1
