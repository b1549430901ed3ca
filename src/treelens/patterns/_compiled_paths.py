"""Compiled loops for shortest paths and walks. Plain-Python twins: ``tests/naive/paths.py``.

Paths and walks go by integer keys. A small open-addressed table numbers keys in order of first
appearance: ``slots`` contains numbers, ``known`` the key of each number.
"""

import numpy as np
from numba import njit

_FREE = -1
_NO_LIMIT = np.iinfo(np.int64).max
_FIRST_SLOTS = 64  # a power of two; tables stay at most half full


@njit(cache=True, nogil=True)
def _find_slot(key, slots, known):
    """Return the slot of a key, or the free one that it would take."""
    mask = np.uint64(len(slots) - 1)
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while slots[slot] != _FREE and known[slots[slot]] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True, nogil=True)
def _table_of(known, n_known, room):
    """Return slots with the known keys and room for ``room`` keys in all."""
    size = _FIRST_SLOTS
    while size < 2 * room:
        size *= 2
    slots = np.full(size, _FREE, np.int32)
    for number in range(n_known):
        slots[_find_slot(known[number], slots, known)] = number
    return slots


@njit(cache=True, nogil=True)
def _with_room(array, room):
    """Return the array, or a copy at least twice as long if ``room`` entries do not fit."""
    if room <= len(array):
        return array
    longer = np.zeros(max(room, 2 * len(array)), array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True, nogil=True)
def learn_keys(keys):
    """Number keys in order of first appearance; return the numbers and the distinct keys."""
    numbers = np.empty(len(keys), np.int32)
    known = np.empty(_FIRST_SLOTS // 2, np.int64)
    slots = _table_of(known, 0, len(known))
    n_known = 0
    for i in range(len(keys)):
        slot = _find_slot(keys[i], slots, known)
        if slots[slot] == _FREE:
            if n_known == len(known):
                known = _with_room(known, n_known + 1)
                slots = _table_of(known, n_known, len(known))
                slot = _find_slot(keys[i], slots, known)
            slots[slot] = n_known
            known[n_known] = keys[i]
            n_known += 1
        numbers[i] = slots[slot]
    return numbers, known[:n_known].copy()


@njit(cache=True, nogil=True)
def look_up_keys(keys, known):
    """Return the position of each key among the distinct known ones, or -1."""
    slots = _table_of(known, len(known), len(known))
    numbers = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        numbers[i] = slots[_find_slot(keys[i], slots, known)]
    return numbers


@njit(cache=True, nogil=True)
def _distances(source, base, neighbor_offsets, neighbors, distance, queue):
    """Search one graph breadth-first; return the number of nodes reached, listed in ``queue``.

    ``distance`` must be -1 everywhere; it is filled for the nodes that were reached.
    """
    distance[source] = 0
    queue[0] = source
    n_reached = 1
    head = 0
    while head < n_reached:
        node = queue[head]
        head += 1
        for a in range(neighbor_offsets[base + node], neighbor_offsets[base + node + 1]):
            other = neighbors[a]
            if distance[other] < 0:
                distance[other] = distance[node] + 1
                queue[n_reached] = other
                n_reached += 1
    return n_reached


@njit(cache=True, nogil=True)
def _triples_of_graph(base, n, neighbor_offsets, neighbors, labels, n_labels, directed):
    """Return the distinct triple keys of one graph, unordered, and how many pairs have each."""
    known = np.empty(max(n, 8), np.int64)
    counts = np.zeros(max(n, 8))
    slots = _table_of(known, 0, len(known))
    distance = np.full(n, -1, np.int32)
    queue = np.empty(n, np.int32)
    n_known = 0
    for source in range(n):
        if n_known + n > len(known):  # one source adds at most n keys
            known = _with_room(known, n_known + n)
            counts = _with_room(counts, n_known + n)
            slots = _table_of(known, n_known, len(known))
        own = np.int64(labels[base + source])
        n_reached = _distances(source, base, neighbor_offsets, neighbors, distance, queue)
        for i in range(n_reached):
            node = queue[i]
            if node > source or (directed and node != source):
                other = np.int64(labels[base + node])
                low, high = (own, other) if directed else (min(own, other), max(own, other))
                key = (np.int64(distance[node]) * n_labels + low) * n_labels + high
                slot = _find_slot(key, slots, known)
                if slots[slot] == _FREE:
                    slots[slot] = n_known
                    known[n_known] = key
                    n_known += 1
                counts[slots[slot]] += 1.0
            distance[node] = -1
    return known[:n_known], counts[:n_known]


@njit(cache=True, nogil=True)
def triples_of_graphs(
    first_graph, last_graph, node_offsets, neighbor_offsets, neighbors, labels, n_labels, directed
):
    """Count (label, label, distance) over the connected node pairs of the graphs of one share.

    The key of a triple is ``(distance * n_labels + smaller code) * n_labels + larger code``; in
    directed graphs the code of the start stands first, and pairs are ordered.
    Returns offsets by graph (n_share + 1,), the keys, ascending within a graph, and the number of
    unordered node pairs with each.
    """
    offsets = np.zeros(last_graph - first_graph + 1, np.int64)
    keys = np.empty(1024, np.int64)
    counts = np.empty(1024)
    for graph in range(first_graph, last_graph):
        base = node_offsets[graph]
        graph_keys, graph_counts = _triples_of_graph(
            base, node_offsets[graph + 1] - base, neighbor_offsets, neighbors, labels, n_labels,
            directed,
        )  # fmt: skip
        start = offsets[graph - first_graph]
        stop = start + len(graph_keys)
        keys = _with_room(keys, stop)
        counts = _with_room(counts, stop)
        order = np.argsort(graph_keys)
        keys[start:stop] = graph_keys[order]
        counts[start:stop] = graph_counts[order]
        offsets[graph - first_graph + 1] = stop
    return offsets, keys[: offsets[-1]], counts[: offsets[-1]]


@njit(cache=True, nogil=True)
def _merge_ends(codes, amounts, n_nodes, step_keys, ends, counts):
    """Sort (step key, end node) codes, add up the amounts of equal ones; return their number."""
    order = np.argsort(codes)
    used = 0
    last = np.int64(-1)
    for i in order:
        if codes[i] != last:
            last = codes[i]
            step_keys[used] = last // n_nodes
            ends[used] = last % n_nodes
            counts[used] = 0.0
            used += 1
        counts[used - 1] += amounts[i]
    return used


@njit(cache=True, nogil=True)
def _one_step_further(ends, end_counts, base, n_nodes, neighbor_offsets, neighbors, arc_keys,
                      codes, amounts, step_keys, new_ends, new_counts):  # fmt: skip
    """Extend the walks that end in ``ends`` by one arc, grouped by the key of that step."""
    m = 0
    for i in range(len(ends)):
        node = base + ends[i]
        for a in range(neighbor_offsets[node], neighbor_offsets[node + 1]):
            codes[m] = arc_keys[a] * n_nodes + neighbors[a]
            amounts[m] = end_counts[i]
            m += 1
    return _merge_ends(codes[:m], amounts[:m], n_nodes, step_keys, new_ends, new_counts)


@njit(cache=True, nogil=True)
def _walks_of_graph(
    base, n, neighbor_offsets, neighbors, node_keys, arc_keys, max_length, most_steps
):
    """Return the entries of one graph (see :func:`walks_of_graphs`) and the number of steps."""
    lengths, parents = np.empty(64, np.int16), np.empty(64, np.int32)
    keys, totals = np.empty(64, np.int64), np.empty(64)
    # Per length: the ends of the walks at hand, grouped by the key of their last step.
    width = max(n, neighbor_offsets[base + n] - neighbor_offsets[base])
    step_keys = np.empty((max_length + 1, width), np.int64)
    ends, counts = np.empty((max_length + 1, width), np.int32), np.empty((max_length + 1, width))
    cursor, size = np.zeros(max_length + 1, np.int64), np.zeros(max_length + 1, np.int64)
    entry_at = np.empty(max_length + 1, np.int32)
    codes, amounts = node_keys[base : base + n] * n + np.arange(n), np.ones(n)
    size[0] = _merge_ends(codes, amounts, n, step_keys[0], ends[0], counts[0])
    codes, amounts = np.empty(width, np.int64), np.empty(width)
    entry = 0
    n_steps = 0
    k = 0
    while k >= 0 and n_steps <= most_steps:
        start = cursor[k]
        if start == size[k]:  # every extension of the sequence above is done
            k -= 1
            continue
        lengths, parents = _with_room(lengths, entry + 1), _with_room(parents, entry + 1)
        keys, totals = _with_room(keys, entry + 1), _with_room(totals, entry + 1)
        lengths[entry], keys[entry], totals[entry] = k, step_keys[k, start], 0.0
        parents[entry] = entry_at[k - 1] if k > 0 else -1
        while cursor[k] < size[k] and step_keys[k, cursor[k]] == keys[entry]:
            totals[entry] += counts[k, cursor[k]]
            cursor[k] += 1
        entry_at[k] = entry
        entry += 1
        if k < max_length:
            group = slice(start, cursor[k])
            for end in ends[k, group]:
                n_steps += neighbor_offsets[base + end + 1] - neighbor_offsets[base + end]
            k += 1
            size[k] = _one_step_further(
                ends[k - 1, group], counts[k - 1, group], base, n, neighbor_offsets, neighbors,
                arc_keys, codes, amounts, step_keys[k], ends[k], counts[k],
            )  # fmt: skip
            cursor[k] = 0
    return lengths[:entry], parents[:entry], keys[:entry], totals[:entry], n_steps


@njit(cache=True, nogil=True)
def walks_of_graphs(first_graph, last_graph, node_offsets, neighbor_offsets, neighbors, node_keys,
                    arc_keys, max_length):  # fmt: skip
    """Count the walks of up to ``max_length`` steps by the labels along them.

    The label sequences of a graph form a tree: the node labels are its first level, and the
    children of a sequence are its one-step extensions. The tree is walked depth first; at every
    sequence only the nodes in which its walks end are kept, with the number of walks in each. So
    each distinct sequence is visited once, and memory is one list of nodes per length.

    Returns offsets by graph (n_share + 1,) and, for every distinct sequence of
    the graph in lexicographic order: its length in steps, the entry (within the graph) of the
    sequence without its last step or -1, the key of the last step, and the number of walks.
    """
    offsets = np.zeros(last_graph - first_graph + 1, np.int64)
    lengths, parents = np.empty(1024, np.int16), np.empty(1024, np.int32)
    keys, totals = np.empty(1024, np.int64), np.empty(1024)
    for graph in range(first_graph, last_graph):
        base = node_offsets[graph]
        found = _walks_of_graph(base, node_offsets[graph + 1] - base, neighbor_offsets, neighbors,
                                node_keys, arc_keys, max_length, _NO_LIMIT)  # fmt: skip
        start = offsets[graph - first_graph]
        stop = start + len(found[0])
        lengths, parents = _with_room(lengths, stop), _with_room(parents, stop)
        keys, totals = _with_room(keys, stop), _with_room(totals, stop)
        lengths[start:stop], parents[start:stop] = found[0], found[1]
        keys[start:stop], totals[start:stop] = found[2], found[3]
        offsets[graph - first_graph + 1] = stop
    n = offsets[-1]
    return offsets, lengths[:n], parents[:n], keys[:n], totals[:n]


@njit(cache=True, nogil=True)
def steps_of_walks(node_offsets, neighbor_offsets, neighbors, node_keys, arc_keys, max_length,
                   most_steps):  # fmt: skip
    """Return the steps of :func:`walks_of_graphs` along arcs; stop after ``most_steps``."""
    n_steps = 0
    for graph in range(len(node_offsets) - 1):
        base = node_offsets[graph]
        n_steps += _walks_of_graph(base, node_offsets[graph + 1] - base, neighbor_offsets,
                                   neighbors, node_keys, arc_keys, max_length,
                                   most_steps - n_steps)[4]  # fmt: skip
        if n_steps > most_steps:
            break
    return n_steps
