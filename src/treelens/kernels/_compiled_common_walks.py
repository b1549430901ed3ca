"""Compiled loops for common walks of bounded length. Plain-Python twins: ``tests/naive/paths.py``.

``x_k[u, v]`` counts the label sequences of ``k`` steps from a node ``u`` of one graph and a node
``v`` of the other, walk against walk: ``x_0`` is 1 where the labels are equal, and ``x_{k+1}``
adds up ``x_k`` over all pairs of equal steps. Steps lead both ways, so a sum over walks of
``i + j`` steps is the dot product of ``x_i`` and ``x_j``, and half the length is far enough.
"""

from typing import NamedTuple

import numpy as np
from numba import njit


class GroupedGraphs(NamedTuple):
    """Graphs with nodes in the order of their labels, and arcs grouped by the step they make.

    A block is the nodes of one label, a group the arcs with one label at their end and one on
    themselves. Blocks and groups ascend within a graph, by label and by key, and are numbered
    throughout; nodes are numbered within their graph, in the new order.
    """

    node_offsets: np.ndarray  # (n_graphs + 1,)
    block_offsets: np.ndarray  # (n_graphs + 1,)
    block_labels: np.ndarray  # (n_blocks,)
    block_starts: np.ndarray  # (n_blocks,) first node
    block_sizes: np.ndarray  # (n_blocks,)
    group_offsets: np.ndarray  # (n_graphs + 1,)
    group_keys: np.ndarray  # (n_groups,)
    group_blocks: np.ndarray  # (n_groups,) block in which the arcs end
    group_arcs: np.ndarray  # (n_groups + 1,) where the arcs of a group begin
    sources: np.ndarray  # (n_arcs,)
    targets: np.ndarray  # (n_arcs,)


@njit(cache=True, nogil=True)
def _places(wanted, among):
    """Where each of the wanted keys stands among others, both ascending; -1 where it does not."""
    places = np.full(len(wanted), -1, np.int64)
    b = 0
    for a in range(len(wanted)):
        while b < len(among) and among[b] < wanted[a]:
            b += 1
        if b < len(among) and among[b] == wanted[a]:
            places[a] = b
    return places


@njit(cache=True, nogil=True)
def _common_blocks(left, i, right, j):
    """How the entries of ``x`` lie: block after block of ``left``, each of them row by row.

    Returns where each block begins, and its number of columns (0 where ``right`` lacks the label).
    """
    labels = left.block_labels[left.block_offsets[i] : left.block_offsets[i + 1]]
    first = right.block_offsets[j]
    partners = _places(labels, right.block_labels[first : right.block_offsets[j + 1]])
    widths, starts = np.zeros(len(labels), np.int64), np.zeros(len(labels) + 1, np.int64)
    for block in range(len(labels)):
        if partners[block] >= 0:
            widths[block] = right.block_sizes[first + partners[block]]
        height = left.block_sizes[left.block_offsets[i] + block]
        starts[block + 1] = starts[block] + height * widths[block]
    return starts, widths


@njit(cache=True, nogil=True)
def _turned_rows(left, i, right, j, starts):
    """For each node on the right: where its row of turned blocks begins, and what it spans.

    The columns of the row are the nodes of ``left`` with its label: the first, and how many.
    """
    labels = left.block_labels[left.block_offsets[i] : left.block_offsets[i + 1]]
    first, last = right.block_offsets[j], right.block_offsets[j + 1]
    partners = _places(right.block_labels[first:last], labels)
    rows = np.zeros((3, right.node_offsets[j + 1] - right.node_offsets[j]), np.int64)
    for block in range(last - first):
        if partners[block] >= 0:
            own = left.block_offsets[i] + partners[block]
            for k in range(right.block_sizes[first + block]):
                node = right.block_starts[first + block] + k
                rows[0, node] = starts[partners[block]] + k * left.block_sizes[own]
                rows[1, node] = left.block_starts[own]
                rows[2, node] = left.block_sizes[own]
    return rows


@njit(cache=True, nogil=True)
def _left_half(sources, targets, first, x, width, out):
    """``out[u]`` adds up the rows of a block of ``x`` in which the steps of a group end."""
    for a in range(len(sources)):
        source, begin = sources[a], (targets[a] - first) * width
        for v in range(width):
            out[source, v] += x[begin + v]


@njit(cache=True, nogil=True)
def _right_half(sources, targets, first, halfway, rows, out):
    """The other half: what ``halfway[v]`` holds, added to ``out`` where the steps begin.

    ``halfway`` and the blocks of ``out`` are turned: their rows are the nodes on the right.
    """
    for a in range(len(sources)):
        source, target = sources[a], targets[a] - first
        begin, start = rows[0, source], rows[1, source]
        for k in range(rows[2, source]):
            out[begin + k] += halfway[target, start + k]


@njit(cache=True, nogil=True)
def _turned(x, starts, widths):
    """Every block of ``x`` transposed; ``widths`` are the numbers of columns there will be."""
    turned = np.empty_like(x)
    for k in range(len(widths)):
        if starts[k + 1] > starts[k]:
            height = (starts[k + 1] - starts[k]) // widths[k]
            for r in range(height):
                for c in range(widths[k]):
                    turned[starts[k] + r * widths[k] + c] = x[starts[k] + c * height + r]
    return turned


@njit(cache=True, nogil=True)
def _group(graphs, group):
    """Sources and targets of the arcs of a group, and the first node of the block they end in."""
    arcs = slice(graphs.group_arcs[group], graphs.group_arcs[group + 1])
    first = graphs.block_starts[graphs.group_blocks[group]]
    return graphs.sources[arcs], graphs.targets[arcs], first


@njit(cache=True, nogil=True)
def _one_step(left, i, right, j, starts, widths, rows, x):
    """From ``x_k`` to ``x_{k+1}``: one half of the step in each graph, group by group."""
    n_left = left.node_offsets[i + 1] - left.node_offsets[i]
    first, first_right = left.group_offsets[i], right.group_offsets[j]
    partners = _places(left.group_keys[first : left.group_offsets[i + 1]],
                       right.group_keys[first_right : right.group_offsets[j + 1]])  # fmt: skip
    out = np.zeros(len(x))
    for g in range(len(partners)):
        if partners[g] >= 0:
            block = left.group_blocks[first + g] - left.block_offsets[i]
            halfway = np.zeros((n_left, widths[block]))
            sources, targets, base = _group(left, first + g)
            _left_half(sources, targets, base, x[starts[block] :], widths[block], halfway)
            sources, targets, base = _group(right, first_right + partners[g])
            _right_half(sources, targets, base, halfway.T.copy(), rows, out)
    return _turned(out, starts, widths)


@njit(cache=True, nogil=True)
def common_walks(left, i, right, j, max_length, decay):
    """Sum of ``decay ** k`` over the common walks of ``k <= max_length`` steps of two graphs."""
    starts, widths = _common_blocks(left, i, right, j)
    rows = _turned_rows(left, i, right, j, starts)
    shorter = np.ones(starts[-1])
    longer = shorter
    total, weight = float(starts[-1]), 1.0
    for k in range(1, max_length + 1):
        weight *= decay
        shorter = longer
        if k % 2 == 1:
            longer = _one_step(left, i, right, j, starts, widths, rows, shorter)
        total += weight * np.sum(shorter * longer)
    return total


@njit(cache=True, nogil=True)
def common_walk_rows(first, last, left, right, upper, max_length, decay, out):
    """Rows ``first`` to ``last`` of the kernel into ``out`` (last - first, n_right).

    With ``upper`` the two sides are one collection and only columns ``j >= i`` are filled.
    """
    for i in range(first, last):
        for j in range(i if upper else 0, len(right.node_offsets) - 1):
            out[i - first, j] = common_walks(left, i, right, j, max_length, decay)


@njit(cache=True, nogil=True)
def outer_sums(first, last, offsets, a, b, out):
    """``out[g - first]`` adds up the outer products of rows of ``a`` and ``b`` over a group ``g``.

    Rows ``offsets[g]`` to ``offsets[g + 1]`` belong to the group; ``out`` has one row a group,
    with a column for every pair of columns of ``a`` and ``b``.
    """
    width = b.shape[1]
    out[:] = 0.0
    for g in range(first, last):
        row = out[g - first]
        for u in range(offsets[g], offsets[g + 1]):
            for s in range(a.shape[1]):
                value, begin = a[u, s], s * width
                if value != 0.0:
                    for t in range(width):
                        row[begin + t] += value * b[u, t]
