"""Compiled loops of the explain room. Plain-Python twins: ``tests/naive/explain.py``.

One graph against many training graphs: the graph comes as its patterns with their values, the
training graphs as inverted lists by pattern, so the work is the number of shared patterns.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def shared_sums(patterns, values, weights, offsets, graphs, list_values, minimum, n_graphs):
    """``sum over v of w_v combine(x_v, y_iv)`` for every training graph ``i``: (n_graphs,).

    ``weights`` is aligned with ``patterns``.
    """
    sums = np.zeros(n_graphs)
    for a in range(len(patterns)):
        x, weight = values[a], weights[a]
        for b in range(offsets[patterns[a]], offsets[patterns[a] + 1]):
            y = list_values[b]
            sums[graphs[b]] += weight * (min(x, y) if minimum else x * y)
    return sums


@njit(cache=True, nogil=True)
def pattern_sums(patterns, values, factors, offsets, graphs, list_values, minimum):
    """``sum over i of factor_i combine(x_v, y_iv)`` for every pattern of the graph.

    ``factors`` is (n_graphs,); the result is aligned with ``patterns``.
    """
    sums = np.zeros(len(patterns))
    for a in range(len(patterns)):
        x = values[a]
        total = 0.0
        for b in range(offsets[patterns[a]], offsets[patterns[a] + 1]):
            y = list_values[b]
            total += factors[graphs[b]] * (min(x, y) if minimum else x * y)
        sums[a] = total
    return sums


@njit(cache=True, nogil=True)
def majorised(positions, inverse, springs, n_steps):
    """Steps of stress majorisation: ``x <- inverse @ sum_j springs_ij (x_i - x_j) / |x_i - x_j|``.

    ``positions`` is (n, 2), ``springs`` (n, n) with a diagonal of zeros. A naive twin is beside
    the tests of the layout.
    """
    n = len(positions)
    pulled = np.empty((n, 2))
    for _ in range(n_steps):
        for i in range(n):
            x, y = 0.0, 0.0
            for j in range(n):
                if j != i:
                    dx = positions[i, 0] - positions[j, 0]
                    dy = positions[i, 1] - positions[j, 1]
                    pull = springs[i, j] / max(np.sqrt(dx * dx + dy * dy), 1e-9)
                    x += pull * dx
                    y += pull * dy
            pulled[i, 0], pulled[i, 1] = x, y
        for i in range(n):
            x, y = 0.0, 0.0
            for j in range(n):
                x += inverse[i, j] * pulled[j, 0]
                y += inverse[i, j] * pulled[j, 1]
            positions[i, 0], positions[i, 1] = x, y
    return positions


@njit(cache=True, nogil=True)
def steps_from(sources, offsets, neighbors):
    """Steps along edges from some nodes to all: (n_sources, n_nodes), -1 where there is no way."""
    n = len(offsets) - 1
    steps = np.full((len(sources), n), -1.0)
    queue = np.empty(n, dtype=np.int64)
    for row in range(len(sources)):
        queue[0], first, last = sources[row], 0, 1
        steps[row, sources[row]] = 0.0
        while first < last:
            node = queue[first]
            first += 1
            for k in range(offsets[node], offsets[node + 1]):
                other = neighbors[k]
                if steps[row, other] < 0.0:
                    steps[row, other] = steps[row, node] + 1.0
                    queue[last] = other
                    last += 1
    return steps


@njit(cache=True, nogil=True)
def components(offsets, neighbors):
    """The number of each node's connected component, in the order of their first nodes: (n,)."""
    n = len(offsets) - 1
    component = np.full(n, -1, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    found = 0
    for start in range(n):
        if component[start] < 0:
            queue[0], first, last = start, 0, 1
            component[start] = found
            while first < last:
                node = queue[first]
                first += 1
                for k in range(offsets[node], offsets[node + 1]):
                    other = neighbors[k]
                    if component[other] < 0:
                        component[other] = found
                        queue[last] = other
                        last += 1
            found += 1
    return component
