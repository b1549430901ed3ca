"""Compiled loops of refinement and counting. Plain-Python twins: ``tests/naive/patterns.py``.

Colours are numbered per depth in order of first appearance; -1 is a colour that is not in the
vocabulary. A node's *child keys* are ``neighbour colour * n_edge_labels + edge code``, sorted:
together with the node's own colour they are its pattern one depth further.
"""

import numpy as np
from numba import njit

UNSEEN = -1
_SHORT_RUN = 32  # up to this many neighbours are sorted by insertion, which is faster there


@njit(cache=True, nogil=True)
def _mix(value):
    """Finaliser of the splitmix64 generator: a bijection of 64-bit words with good avalanche."""
    x = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def _signature(own_color, n_children, total):
    """64-bit hash of a pattern: own colour, number of children, sum of the mixed child keys.

    A sum needs no sorting, and the mixing keeps its terms from cancelling.
    """
    return _mix(total ^ _mix(np.int64(own_color) + np.int64(1) + (np.int64(n_children) << 32)))


@njit(cache=True, nogil=True)
def _sort(keys, start, stop):
    """Shell sort of ``keys[start:stop]`` in place; NumPy's sort would take seconds to compile."""
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
def child_keys_of_nodes(
    first_graph, last_graph, node_offsets, neighbor_offsets, neighbors, edge_codes, n_edge_labels,
    colors, keys, signatures,
):  # fmt: skip
    """Fill ``keys`` (n_arcs,) and ``signatures`` (n_nodes,) for the graphs of one share.

    An arc to an unseen colour or along an unseen edge label gets the key -1, which sorts first.
    """
    for graph in range(first_graph, last_graph):
        base = node_offsets[graph]
        for node in range(base, node_offsets[graph + 1]):
            start, stop = neighbor_offsets[node], neighbor_offsets[node + 1]
            is_short = stop - start <= _SHORT_RUN
            total = np.uint64(0)
            for a in range(start, stop):
                key = np.int64(colors[base + neighbors[a]])
                if n_edge_labels > 0 and key >= 0:
                    code = edge_codes[a]
                    key = key * n_edge_labels + code if code >= 0 else np.int64(UNSEEN)
                total += _mix(key)
                b = a
                while is_short and b > start and keys[b - 1] > key:  # sort by insertion
                    keys[b] = keys[b - 1]
                    b -= 1
                keys[b] = key
            if not is_short:
                _sort(keys, start, stop)
            signatures[node] = _signature(colors[node], stop - start, total)


@njit(cache=True, nogil=True)
def signatures_of_patterns(own, child_offsets, child_keys, signatures):
    """Signatures of the patterns of one level, from what defines them."""
    for color in range(len(own)):
        start, stop = child_offsets[color], child_offsets[color + 1]
        total = np.uint64(0)
        for a in range(start, stop):
            total += _mix(child_keys[a])
        signatures[color] = _signature(own[color], stop - start, total)


@njit(cache=True, nogil=True)
def fill_slots(slots, color_signatures):
    """Enter every known colour into an empty table (the colours are known to differ)."""
    mask = np.uint64(len(slots) - 1)
    for color in range(len(color_signatures)):
        slot = color_signatures[color] & mask
        while slots[slot] != UNSEEN:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = color


@njit(cache=True, nogil=True)
def look_up_patterns(
    first_node, last_node, colors, neighbor_offsets, keys, signatures, slots, color_signatures,
    own, child_offsets, child_keys, new_colors,
):  # fmt: skip
    """Look up the colours one depth further; patterns that are not known get UNSEEN.

    Equal signatures only give a candidate: the patterns themselves are compared, and two that
    collide have two slots. One long loop on purpose: passing these arrays to a helper for every
    node costs several times the work itself.
    """
    mask = np.uint64(len(slots) - 1)
    for node in range(first_node, last_node):
        start, stop = neighbor_offsets[node], neighbor_offsets[node + 1]
        # Keys are sorted, so an unseen neighbour shows in the first one.
        if colors[node] == UNSEEN or (stop > start and keys[start] == UNSEEN):
            new_colors[node] = UNSEEN
            continue
        slot = signatures[node] & mask
        color = slots[slot]
        while color != UNSEEN:
            first = child_offsets[color]
            same = (
                color_signatures[color] == signatures[node]
                and own[color] == colors[node]
                and child_offsets[color + 1] - first == stop - start
            )
            a = start
            while same and a < stop:
                same = child_keys[first + a - start] == keys[a]
                a += 1
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
            color = slots[slot]
        new_colors[node] = color


@njit(cache=True, nogil=True)
def number_new_patterns(
    colors, neighbor_offsets, keys, signatures, slots, n_known, founders, new_colors
):
    """Number the patterns of the nodes that are UNSEEN in ``new_colors``, from ``n_known`` on.

    Numbers follow the order of first appearance. The first node of a pattern is its founder, which
    later nodes are compared with; ``slots`` contains positions in ``founders`` (n_nodes,). Returns
    the number of founders.
    """
    mask = np.uint64(len(slots) - 1)
    n_new = 0
    for node in range(len(colors)):
        if new_colors[node] != UNSEEN:
            continue
        start, stop = neighbor_offsets[node], neighbor_offsets[node + 1]
        slot = signatures[node] & mask
        new = slots[slot]
        while new != UNSEEN:
            founder = founders[new]
            first = neighbor_offsets[founder]
            same = (
                signatures[founder] == signatures[node]
                and colors[founder] == colors[node]
                and neighbor_offsets[founder + 1] - first == stop - start
            )
            a = start
            while same and a < stop:
                same = keys[first + a - start] == keys[a]
                a += 1
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
            new = slots[slot]
        if new == UNSEEN:
            new = n_new
            slots[slot], founders[new] = new, node
            n_new += 1
        new_colors[node] = n_known + new
    return n_new


@njit(cache=True, nogil=True)
def inverted_lists(colors, node_offsets, n_colors, pattern_offsets, graphs, counts):
    """List for every colour of one depth the graphs that contain it, ascending, and the counts.

    The nodes' graphs are sorted by colour in counting passes; then runs of the same graph are
    merged. ``pattern_offsets`` (n_colors + 1,), zeros at first, and the first
    entries of ``graphs`` and ``counts`` (n_nodes,) are filled; returns their number.
    """
    for node in range(len(colors)):
        if colors[node] >= 0:
            pattern_offsets[colors[node] + 1] += 1
    for color in range(n_colors):
        pattern_offsets[color + 1] += pattern_offsets[color]
    end = pattern_offsets[:-1].copy()  # one past the last entry written for each colour
    for graph in range(len(node_offsets) - 1):
        for node in range(node_offsets[graph], node_offsets[graph + 1]):
            color = colors[node]
            if color >= 0:
                graphs[end[color]] = graph
                end[color] += 1
    used = start = np.int64(0)
    for color in range(n_colors):
        first, stop = used, pattern_offsets[color + 1]
        pattern_offsets[color] = first
        for a in range(start, stop):
            if used > first and graphs[used - 1] == graphs[a]:
                counts[used - 1] += 1
            else:
                graphs[used], counts[used] = graphs[a], 1
                used += 1
        start = stop
    pattern_offsets[n_colors] = used
    return used
