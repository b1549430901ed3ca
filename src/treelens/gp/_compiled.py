"""Compiled loop of the marginal likelihood. Plain-Python twin: ``tests/naive/evidence.py``."""

import numpy as np
from numba import njit

_LANES = 64  # partial sums per dense column: sums in this shape can use vector instructions


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
