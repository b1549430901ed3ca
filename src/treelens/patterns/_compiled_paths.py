"""Compiled search for shortest paths. Plain-Python twin: ``tests/naive/paths.py``."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def pair_keys(base, n, neighbor_offsets, neighbors, labels, n_labels, directed, keys):
    """Write a key for every two connected nodes of one graph; return their number.

    The key is ``(distance * n_labels + smaller label) * n_labels + larger label``; in directed
    graphs pairs are ordered, and the label of the start stands first. ``keys`` has room for all.
    """
    distance = np.full(n, -1, np.int32)
    queue = np.empty(n, np.int32)
    used = 0
    for source in range(n):
        distance[source], queue[0] = 0, source
        head, n_reached = 0, 1
        while head < n_reached:  # breadth first
            node = queue[head]
            head += 1
            for a in range(neighbor_offsets[base + node], neighbor_offsets[base + node + 1]):
                other = neighbors[a]
                if distance[other] < 0:
                    distance[other] = distance[node] + 1
                    queue[n_reached] = other
                    n_reached += 1
        own = np.int64(labels[base + source])
        for k in range(n_reached):
            node = queue[k]
            if node > source or (directed and node != source):
                other = np.int64(labels[base + node])
                low, high = (own, other) if directed else (min(own, other), max(own, other))
                keys[used] = (np.int64(distance[node]) * n_labels + low) * n_labels + high
                used += 1
            distance[node] = -1
    return used
