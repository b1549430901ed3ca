"""Compiled loops of refinement, cells and shortest paths.

Plain-Python twins: ``patterns.py``, ``cells.py`` and ``paths.py`` in ``tests/naive``.
"""

import numpy as np
from numba import njit

UNSEEN = -1  # the colour of a pattern that is not in the vocabulary


@njit(cache=True, nogil=True)
def sort_runs(first, last, offsets, keys):
    """Sort ``keys[offsets[k]:offsets[k + 1]]`` in place for runs ``first`` to ``last``."""
    # Shell's sort: NumPy's would take seconds to compile, and most runs are of few keys.
    for k in range(first, last):
        start, stop = offsets[k], offsets[k + 1]
        gap = stop - start
        while gap > 1:
            gap = max(1, 5 * gap // 11)
            for a in range(start + gap, stop):
                key, b = keys[a], a
                while b >= start + gap and keys[b - gap] > key:
                    keys[b] = keys[b - gap]
                    b -= gap
                keys[b] = key


@njit(cache=True, nogil=True)
def _mixed(x):
    """Finaliser of the splitmix64 generator: a bijection of 64-bit words with good avalanche."""
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def hash_patterns(first, last, own, offsets, keys, hashes):
    """Fill ``hashes`` from own colour, number of keys and sum of mixed keys, 64 bits each."""
    # A sum needs no sorting, and the mixing keeps its terms from cancelling.
    for item in range(first, last):
        start, stop = offsets[item], offsets[item + 1]
        total = np.uint64(0)
        for a in range(start, stop):
            total += _mixed(np.uint64(keys[a]))
        head = np.int64(own[item]) + 1 + ((stop - start) << 32)
        hashes[item] = _mixed(total ^ _mixed(np.uint64(head)))


@njit(cache=True, nogil=True)
def number_patterns(
    first, last, add, n_known, own, offsets, keys, signatures, slots, founders, colors
):
    """Number patterns ``first`` to ``last`` in order of first appearance, in ``colors``.

    The first of equal patterns is their founder; ``slots`` is an open-addressed table of positions
    in ``founders``, of which there are ``n_known`` so far. Equal signatures only give a candidate:
    the patterns themselves (own colour and sorted keys) are compared. A pattern without a founder
    gets a number with ``add``, else UNSEEN, like any with an unseen part. Returns the number of
    founders. One long loop on purpose: passing these arrays to a helper for every pattern costs
    several times the work itself.
    """
    mask = np.uint64(len(slots) - 1)
    for item in range(first, last):
        start, stop = offsets[item], offsets[item + 1]
        # Keys are sorted, so an unseen one is the first.
        if own[item] == UNSEEN or (stop > start and keys[start] == UNSEEN):
            colors[item] = UNSEEN
            continue
        slot = signatures[item] & mask
        color = slots[slot]
        while color != UNSEEN:
            founder = founders[color]
            shift = offsets[founder] - start
            same = (
                signatures[founder] == signatures[item]
                and own[founder] == own[item]
                and offsets[founder + 1] - shift == stop
            )
            a = start
            while same and a < stop:
                same = keys[a + shift] == keys[a]
                a += 1
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
            color = slots[slot]
        if color == UNSEEN and add:
            color = n_known
            slots[slot], founders[color] = color, item
            n_known += 1
        colors[item] = color
    return n_known


@njit(cache=True, nogil=True)
def cells_of_nodes(first, last, values, offsets, attribute, threshold, missing, first_child, cells):
    """Fill ``cells`` (n_resolutions, n_nodes) with the way of each node down one tree."""
    # `values` (n_nodes, n_columns); `offsets` (n_resolutions,) of the splits to each level.
    for node in range(first, last):
        cell = 0
        for level in range(len(offsets)):
            split = offsets[level] + cell
            column = attribute[split]
            cell = first_child[split]
            if column >= 0:
                value = values[node, column]
                if missing[split]:
                    cell += np.isnan(value)
                else:
                    cell += value > threshold[split]
            cells[level, node] = cell


@njit(cache=True, nogil=True)
def pair_keys(base, n, neighbor_offsets, neighbors, labels, n_labels, directed, keys):
    """Write a key for every two connected nodes of one graph; return their number."""
    # The key is `(distance * n_labels + smaller label) * n_labels + larger label`; in directed
    # graphs pairs are ordered, and the label of the start stands first. `keys` has room for all.
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


@njit(cache=True, nogil=True)
def find_pairs(
    first, last, offsets, targets, labels, n_labels, directed, farthest, keys, distances, nodes
):
    """Find every two nodes from ``first`` to ``last`` that are 1 to ``farthest`` edges apart.

    Written are a key of their labels, ``smaller * n_labels + larger``, their distance, and the two
    nodes; with empty arrays the pairs are only counted. In directed graphs pairs are ordered, by
    the paths that follow the edges. Returns the number of pairs.
    """
    # `targets` (n_arcs,) are numbered in the whole collection, as nodes are.
    distance = np.full(last - first, -1, np.int32)
    queue = np.empty(last - first, np.int64)
    used, write = 0, len(keys) > 0
    for source in range(first, last):
        distance[source - first], queue[0] = 0, source
        head, n_reached = 0, 1
        while head < n_reached:  # breadth first
            node = queue[head]
            head += 1
            if distance[node - first] == farthest:
                break
            for a in range(offsets[node], offsets[node + 1]):
                other = targets[a]
                if distance[other - first] < 0:
                    distance[other - first] = distance[node - first] + 1
                    queue[n_reached] = other
                    n_reached += 1
        for k in range(n_reached):
            node = queue[k]
            if node > source or (directed and node != source):
                if write:
                    own, other = np.int64(labels[source]), np.int64(labels[node])
                    if not directed and own > other:
                        own, other = other, own
                    keys[used] = own * n_labels + other
                    distances[used] = distance[node - first]
                    nodes[used, 0], nodes[used, 1] = source, node
                used += 1
            distance[node - first] = -1
    return used


@njit(cache=True, nogil=True)
def find_fours(first, last, offsets, targets, labels, n_labels, directed, keys, nodes):
    """Find every path of four different nodes that begins from ``first`` to ``last``.

    Written are a key of their labels, read in the direction in which it is smaller, and the nodes;
    with empty arrays the paths are only counted. In directed graphs a path follows the edges, else
    it is found from the end with the smaller number. Returns the number of paths.
    """
    used, write = 0, len(keys) > 0
    for a in range(first, last):
        for i in range(offsets[a], offsets[a + 1]):
            b = targets[i]
            if b == a:
                continue
            for j in range(offsets[b], offsets[b + 1]):
                c = targets[j]
                if c in (a, b):
                    continue
                for k in range(offsets[c], offsets[c + 1]):
                    d = targets[k]
                    if d in (a, b, c) or (d < a and not directed):
                        continue
                    if write:
                        forth, back = np.int64(labels[a]), np.int64(labels[d])
                        forth = (forth * n_labels + labels[b]) * n_labels + labels[c]
                        back = (back * n_labels + labels[c]) * n_labels + labels[b]
                        forth = forth * n_labels + labels[d]
                        back = back * n_labels + labels[a]
                        keys[used] = forth if directed else min(forth, back)
                        nodes[used, 0], nodes[used, 1] = a, b
                        nodes[used, 2], nodes[used, 3] = c, d
                    used += 1
    return used
