"""Compiled loops over pairs of graphs: sums over shared patterns, and common walks.

Plain-Python twins: ``kernels.py`` and ``paths.py`` in ``tests/naive``.

A kernel of patterns is a sum over the patterns that two graphs share. The left side comes as rows
by graph, the right side as inverted lists by pattern, so the work is proportional to the number of
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

from typing import NamedTuple

import numpy as np
from numba import njit

LANES = 64  # partial sums per dense column: sums in this shape can use vector instructions
_MOST_LENGTHS = 100_000  # of walks that are summed one length after the other


@njit(cache=True, nogil=True)
def sum_rows(
    first,
    last,
    step,
    base,
    upper,
    row_offsets,
    row_patterns,
    row_values,
    list_offsets,
    list_graphs,
    list_values,
    dense_of_pattern,
    dense,
    minimum,
    row_scale,
    scale,
    head,
    out,
    offset,
):
    """Fill ``out[i - base]`` with ``row_scale_i * scale_j * sum_v combine(a_iv, a_jv)``.

    With a finite ``offset``, with the distance ``max(0, offset - sum)`` in the place of the sum.

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
        if np.isnan(offset):
            for j in range(len(tail)):
                tail[j] *= own * tail_scale[j]
        else:
            for j in range(len(tail)):
                tail[j] = max(0.0, offset - tail[j] * (own * tail_scale[j]))


@njit(cache=True, nogil=True)
def gather_rows(
    first,
    last,
    step,
    base,
    matrix,
    row_offsets,
    row_patterns,
    row_values,
    list_offsets,
    list_graphs,
    list_values,
    dense_of_pattern,
    dense,
    minimum,
    head,
    lanes,
    gradient,
):
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


# --- common walks -----------------------------------------------------------------------------
# The direct product of two labelled graphs has a node for every pair of nodes with equal labels and
# an edge where both graphs have one (with equal labels). Its walks are the common walks of the two.
# The product graph is never built: its adjacency matrix `W` is applied one graph after the other.
# Nodes are sorted by label, so a left node matches one block of right nodes, and a vector over the
# product has the entries of these blocks, left node by left node.


class WalkedGraphs(NamedTuple):
    """Arrays of a collection; codes of both sides must mean the same labels."""

    node_offsets: np.ndarray  # (n_graphs + 1,)
    neighbor_offsets: np.ndarray  # (n_nodes + 1,)
    neighbors: np.ndarray  # (n_arcs,) numbered within the graph
    node_codes: np.ndarray  # (n_nodes,) ascending within a graph
    edge_codes: np.ndarray  # (n_arcs,)
    directed: bool  # whether arcs are those of directed edges, so that W is not symmetric


@njit(cache=True, nogil=True)
def matching_nodes(left, i, right, j):
    """For each left node the block of right nodes with its label, and where its entries start."""
    # Returns (first, last, starts): `starts` has one entry more, the size of the product.
    left_codes = left.node_codes[left.node_offsets[i] : left.node_offsets[i + 1]]
    right_codes = right.node_codes[right.node_offsets[j] : right.node_offsets[j + 1]]
    n = len(left_codes)
    first, last, starts = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    begin = end = 0
    for u in range(n):
        if u == 0 or left_codes[u] != left_codes[u - 1]:
            begin = end
            while begin < len(right_codes) and right_codes[begin] < left_codes[u]:
                begin += 1
            end = begin
            while end < len(right_codes) and right_codes[end] == left_codes[u]:
                end += 1
        first[u], last[u], starts[u + 1] = begin, end, starts[u] + end - begin
    return first, last, starts


@njit(cache=True, nogil=True)
def walk_step(left, i, right, j, n_edge_labels, matching, x, out):
    """``out = W x``: ``x`` summed over the neighbours of each left node, then of right nodes."""
    # Edge codes from `n_edge_labels` on are unknown to one of the sides.
    first, last, starts = matching
    u0, v0 = left.node_offsets[i], right.node_offsets[j]
    row = np.empty(right.node_offsets[j + 1] - v0)
    out[:] = 0.0
    for u in range(len(first)):
        if first[u] == last[u]:
            continue
        for edge in range(n_edge_labels):
            row[:] = 0.0
            for a in range(left.neighbor_offsets[u0 + u], left.neighbor_offsets[u0 + u + 1]):
                if left.edge_codes[a] == edge:
                    t = left.neighbors[a]
                    for v in range(first[t], last[t]):
                        row[v] += x[starts[t] + v - first[t]]
            for v in range(first[u], last[u]):
                for b in range(right.neighbor_offsets[v0 + v], right.neighbor_offsets[v0 + v + 1]):
                    if right.edge_codes[b] == edge:
                        out[starts[u] + v - first[u]] += row[right.neighbors[b]]


@njit(cache=True, nogil=True)
def geometric_sum(left, i, right, j, n_edge_labels, decay, tolerance):
    """``1' x`` for ``(I - decay W) x = 1``, by conjugate gradients; nan if they do not converge."""
    # The right-hand side is also what the solution is summed with, so the error of the result is
    # of the order of the squared residual.
    matching = matching_nodes(left, i, right, j)
    n = matching[2][-1]
    x, residual, direction, image = np.zeros(n), np.ones(n), np.ones(n), np.empty(n)
    square = float(n)
    for _ in range(10 * n + 100):
        if square <= tolerance * tolerance * n:
            return x.sum()
        walk_step(left, i, right, j, n_edge_labels, matching, direction, image)
        image = direction - decay * image
        curvature = np.sum(direction * image)
        if curvature <= 0.0:  # not positive definite: the series diverges
            return np.nan
        step = square / curvature
        x += step * direction
        residual -= step * image
        new_square = np.sum(residual * residual)
        direction = residual + (new_square / square) * direction
        square = new_square
    return np.nan


@njit(cache=True, nogil=True)
def series_sum(left, i, right, j, n_edge_labels, max_length, decay, tolerance):
    """Sum of ``decay ** k`` over the common walks of ``k <= max_length`` steps, length by length.

    All lengths (``max_length`` below 0): the terms ``r`` that come last are the residual of
    ``(I - decay W) x = 1``, and ``(I - decay W)^-1`` is not negative. So the error ``(I - decay
    W)^-1 r`` is at most the largest entry of ``r`` times ``x``; nan if it does not converge.
    """
    # A symmetric `W` has `1' W^(a + b) 1 = (W^a 1)' (W^b 1)`: half the length is far enough.
    matching = matching_nodes(left, i, right, j)
    shorter = np.ones(matching[2][-1])
    longer, image = shorter, np.empty_like(shorter)
    total = shorter.sum()
    for k in range(1, (_MOST_LENGTHS if max_length < 0 else max_length) + 1):
        if not left.directed:
            shorter = longer
        if left.directed or k % 2 == 1:
            walk_step(left, i, right, j, n_edge_labels, matching, longer, image)
            longer = decay * image
        total += np.sum(shorter * longer)
        largest = longer.max() if len(longer) else 0.0
        if largest == 0.0 or (max_length < 0 and largest <= tolerance):
            return total
        if not largest < np.inf:
            return np.nan
    return np.nan if max_length < 0 else total


@njit(cache=True, nogil=True)
def walk_sum(left, i, right, j, n_edge_labels, max_length, decay, tolerance):
    """One kernel value; ``max_length`` below 0 sums over all lengths."""
    if max_length < 0 and not left.directed:
        return geometric_sum(left, i, right, j, n_edge_labels, decay, tolerance)
    return series_sum(left, i, right, j, n_edge_labels, max_length, decay, tolerance**2)


@njit(cache=True, nogil=True)
def walk_rows(first, step, left, right, upper, n_edge_labels, max_length, decay, tolerance, out):
    """Fill rows ``first, first + step, ...`` of the kernel ``out``; with ``upper`` one half."""
    for i in range(first, len(out), step):
        for j in range(i if upper else 0, out.shape[1]):
            out[i, j] = walk_sum(left, i, right, j, n_edge_labels, max_length, decay, tolerance)


@njit(cache=True, nogil=True)
def squared_distances(left, columns, out):
    """Fill ``out`` with squared distances between rows (a, d) and the rows of ``columns.T``."""
    for i in range(len(left)):
        row = out[i]
        for j in range(len(row)):
            row[j] = 0.0
        for k in range(len(columns)):
            x, others = left[i, k], columns[k]
            for j in range(len(row)):
                row[j] += (x - others[j]) ** 2
