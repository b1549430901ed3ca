"""Compiled loops of the patterns room. Plain-Python twins: ``tests/naive/patterns.py``.

Colours are numbered per depth in order of first appearance; -1 is a colour that the vocabulary
has never seen. A node's *child keys* are ``neighbour colour * n_edge_labels + edge code``, sorted:
together with the node's own colour they are its pattern one depth further.
"""

import numpy as np
from numba import njit

UNSEEN = -1
# Degrees up to this are sorted by insertion, which beats a library call on short runs.
_SHORT_RUN = 32


@njit(cache=True, nogil=True)
def _mix(value):
    """Finaliser of the splitmix64 generator: a bijection of 64-bit words with good avalanche."""
    x = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def _sort_run(values, start, stop):
    """Sort ``values[start:stop]`` in place."""
    if stop - start > _SHORT_RUN:
        values[start:stop] = np.sort(values[start:stop])
        return
    for i in range(start + 1, stop):
        value = values[i]
        j = i - 1
        while j >= start and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value


@njit(cache=True, nogil=True)
def _signature(own_color, keys, start, stop):
    """64-bit hash of (own colour, sorted child keys). Equal patterns have equal signatures."""
    total = np.uint64(0)
    for a in range(start, stop):
        total += _mix(keys[a])  # a sum needs no sorting, and the mixing keeps it from cancelling
    return _mix(total ^ _mix(np.int64(own_color) + np.int64(1) + (np.int64(stop - start) << 32)))


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
            for a in range(start, stop):
                color = np.int64(colors[base + neighbors[a]])
                if n_edge_labels > 0 and color >= 0:
                    code = edge_codes[a]
                    color = color * n_edge_labels + code if code >= 0 else np.int64(UNSEEN)
                keys[a] = color
            _sort_run(keys, start, stop)
            signatures[node] = _signature(colors[node], keys, start, stop)


@njit(cache=True, nogil=True, inline="always")
def _same_pattern(color, own, child_offsets, child_keys, own_color, keys, start, stop):
    if own[color] != own_color:
        return False
    first = child_offsets[color]
    if child_offsets[color + 1] - first != stop - start:
        return False
    for a in range(stop - start):
        if child_keys[first + a] != keys[start + a]:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def _find_slot(signature, slots, color_signatures, own, child_offsets, child_keys,
               own_color, keys, start, stop, trust):  # fmt: skip
    """The slot of a pattern in the open-addressed table: its own, or the free one it would take.

    With ``trust`` equal signatures pass for equal patterns, and the caller checks afterwards;
    without, the patterns themselves are compared, and two that collide take two slots.
    """
    mask = np.uint64(len(slots) - 1)
    slot = signature & mask
    while slots[slot] != UNSEEN:
        color = slots[slot]
        if color_signatures[color] == signature and (
            trust
            or _same_pattern(color, own, child_offsets, child_keys, own_color, keys, start, stop)
        ):
            return slot
        slot = (slot + np.uint64(1)) & mask
    return slot


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
def look_up_colors(colors, neighbor_offsets, keys, signatures, slots,
                   color_signatures, own, child_offsets, child_keys, new_colors):  # fmt: skip
    """Colours one depth further from a finished vocabulary; what it does not hold stays unseen."""
    for node in range(len(colors)):
        start, stop = neighbor_offsets[node], neighbor_offsets[node + 1]
        new_colors[node] = UNSEEN
        # Keys are sorted, so an unseen neighbour shows in the first one.
        if colors[node] == UNSEEN or (stop > start and keys[start] == UNSEEN):
            continue
        slot = _find_slot(signatures[node], slots, color_signatures, own, child_offsets,
                          child_keys, colors[node], keys, start, stop, False)  # fmt: skip
        new_colors[node] = slots[slot]


@njit(cache=True, nogil=True)
def learn_colors(colors, neighbor_offsets, keys, signatures, slots, n_known, color_signatures,
                 own, child_offsets, child_keys, new_colors, trust):  # fmt: skip
    """Colours one depth further, giving every new pattern the next number.

    ``own``, ``child_offsets``, ``child_keys`` and ``color_signatures`` hold ``n_known`` patterns
    and have room for all that may come. Returns the number of patterns known afterwards.
    """
    for node in range(len(colors)):
        start, stop = neighbor_offsets[node], neighbor_offsets[node + 1]
        slot = _find_slot(signatures[node], slots, color_signatures, own, child_offsets,
                          child_keys, colors[node], keys, start, stop, trust)  # fmt: skip
        if slots[slot] == UNSEEN:
            slots[slot] = n_known
            own[n_known] = colors[node]
            color_signatures[n_known] = signatures[node]
            first = child_offsets[n_known]
            for a in range(stop - start):
                child_keys[first + a] = keys[start + a]
            child_offsets[n_known + 1] = first + stop - start
            n_known += 1
        new_colors[node] = slots[slot]
    return n_known


@njit(cache=True, nogil=True)
def all_colors_fit(first_graph, last_graph, node_offsets, colors, neighbor_offsets, keys,
                   own, child_offsets, child_keys, new_colors):  # fmt: skip
    """Whether every node's pattern really is the one its new colour stands for."""
    for node in range(node_offsets[first_graph], node_offsets[last_graph]):
        if not _same_pattern(new_colors[node], own, child_offsets, child_keys, colors[node], keys,
                             neighbor_offsets[node], neighbor_offsets[node + 1]):  # fmt: skip
            return False
    return True


@njit(cache=True, nogil=True)
def signatures_of_patterns(own, child_offsets, child_keys, signatures):
    """Signatures of the patterns of one level, from what defines them."""
    for color in range(len(own)):
        signatures[color] = _signature(
            own[color], child_keys, child_offsets[color], child_offsets[color + 1]
        )


@njit(cache=True, nogil=True)
def inverted_lists(colors, node_offsets, n_colors, pattern_offsets, graphs, counts):
    """For every colour of one depth the graphs that hold it, ascending, and how often.

    Two counting passes over the nodes, no sorting. ``pattern_offsets`` (n_colors + 1,) and the
    first entries of ``graphs`` and ``counts`` (n_nodes,) are filled; returns their number.
    """
    last_graph = np.full(n_colors, -1, np.int64)
    for graph in range(len(node_offsets) - 1):
        for node in range(node_offsets[graph], node_offsets[graph + 1]):
            color = colors[node]
            if color >= 0 and last_graph[color] != graph:
                last_graph[color] = graph
                pattern_offsets[color + 1] += 1
    for color in range(n_colors):
        pattern_offsets[color + 1] += pattern_offsets[color]
    end = pattern_offsets[:-1].copy()  # one past the last entry written for each colour
    last_graph[:] = -1
    for graph in range(len(node_offsets) - 1):
        for node in range(node_offsets[graph], node_offsets[graph + 1]):
            color = colors[node]
            if color < 0:
                continue
            if last_graph[color] != graph:
                last_graph[color] = graph
                graphs[end[color]] = graph
                counts[end[color]] = 0
                end[color] += 1
            counts[end[color] - 1] += 1
    return pattern_offsets[n_colors]


@njit(cache=True, nogil=True)
def transpose(offsets, indices, values, n_columns):
    """Swap rows and columns of a compressed sparse matrix; the new indices come out sorted."""
    new_offsets = np.zeros(n_columns + 1, np.int64)
    for a in range(len(indices)):
        new_offsets[indices[a] + 1] += 1
    for column in range(n_columns):
        new_offsets[column + 1] += new_offsets[column]
    new_indices = np.empty(len(indices), np.int32)
    new_values = np.empty(len(indices), values.dtype)
    end = new_offsets[:-1].copy()
    for row in range(len(offsets) - 1):
        for a in range(offsets[row], offsets[row + 1]):
            column = indices[a]
            new_indices[end[column]] = row
            new_values[end[column]] = values[a]
            end[column] += 1
    return new_offsets, new_indices, new_values
