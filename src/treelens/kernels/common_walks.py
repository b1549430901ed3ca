"""The random-walk kernel up to some length, without a name for every label sequence.

:mod:`treelens.patterns.paths` names the sequences and counts them: the best way where they are
few. Their number grows like a power of the number of labels, and here are two ways around it:

- *products*: pair by pair, the walks of the direct product graph, half of a step in each graph. A
  step costs about ``nodes * edges / labels``, whatever the number of sequences;
- *tensors*: the counts of all sequences, met in the middle, as dense arrays: the sequences through
  a node are those that end there joined to those that begin there. The kernel is then a product of
  matrices. It is the fastest way for few labels and many graphs.

Both give what the sequences give, up to rounding. :func:`cheapest_route` chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from treelens.kernels import _compiled_common_walks
from treelens.kernels._compiled_common_walks import GroupedGraphs
from treelens.kernels._compiled_walks import WalkedGraphs
from treelens.kernels.gram import apply_in_place, mirrored
from treelens.parallel import in_threads, one_blas_thread

_LABEL_SHIFT = 32  # keys of steps hold the label of the node above that of the edge
_TENSOR_NUMBERS = 2**22  # of sequence counts held at once, 32 MB a side
_TILE = 256  # rows of a matrix product: fixed, so that threads change no bit


# --- products -------------------------------------------------------------------------------


def grouped_graphs(graphs: WalkedGraphs) -> GroupedGraphs:
    """Nodes in the order of their labels, arcs in groups of equal steps."""
    n_graphs, firsts = len(graphs.node_offsets) - 1, graphs.node_offsets[:-1]
    owners = _graph_of_node(graphs)
    order = np.lexsort((graphs.node_codes, owners))  # nodes stay in their graphs
    labels = graphs.node_codes[order].astype(np.int64)
    begins = _begins(owners, labels)
    blocks, block_of_node = np.flatnonzero(begins), np.cumsum(begins) - 1
    rank = np.empty(len(order), dtype=np.int64)  # old number of a node -> new one
    rank[order] = np.arange(len(order))
    keys, sources, targets = _arcs_in_groups(graphs, rank)
    arc_owners = owners[sources]
    groups = np.flatnonzero(_begins(arc_owners, keys))
    return GroupedGraphs(
        node_offsets=graphs.node_offsets,
        block_offsets=_offsets(owners[blocks], n_graphs),
        block_labels=labels[blocks],
        block_starts=blocks - firsts[owners[blocks]],
        block_sizes=np.diff(np.append(blocks, len(order))),
        group_offsets=_offsets(arc_owners[groups], n_graphs),
        group_keys=keys[groups],
        group_blocks=block_of_node[targets[groups]],
        group_arcs=np.append(groups, len(keys)),
        sources=sources - firsts[arc_owners],
        targets=targets - firsts[arc_owners],
    )


def _arcs_in_groups(
    graphs: WalkedGraphs, rank: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys, sources and targets of the arcs, by graph and key; nodes by their new numbers."""
    keys, sources = _step_keys(graphs), _step_starts(graphs)
    order = np.lexsort((keys, _graph_of_node(graphs)[sources]))
    return keys[order], rank[sources[order]], rank[step_ends(graphs)[order]]


def product_kernel(
    left: GroupedGraphs, right: GroupedGraphs | None, max_length: int, decay: float, n_jobs: int = 1
) -> np.ndarray:
    """Common walks of up to ``max_length`` steps, pair by pair, shape (n_left, n_right).

    ``right=None`` pairs ``left`` with itself. Each thread holds the walks of one pair: a few
    numbers for every pair of nodes with equal labels.
    """
    target = left if right is None else right
    kernel = np.zeros((len(left.node_offsets) - 1, len(target.node_offsets) - 1))

    def fill(rows: np.ndarray, first: int, last: int) -> None:
        _compiled_common_walks.common_walk_rows(
            first, last, left, target, right is None, max_length, decay, rows
        )

    apply_in_place(fill, kernel, n_jobs)
    return kernel if right is not None else mirrored(kernel)


def product_diagonal(graphs: GroupedGraphs, max_length: int, decay: float) -> np.ndarray:
    """The kernel of every graph with itself, shape (n_graphs,)."""
    n_graphs = len(graphs.node_offsets) - 1
    return np.array([
        _compiled_common_walks.common_walks(graphs, i, graphs, i, max_length, decay)
        for i in range(n_graphs)
    ])  # fmt: skip


# --- tensors --------------------------------------------------------------------------------


class _NodeWalks(NamedTuple):
    """Counts of the sequences that begin at each node, with nodes in the order of their labels."""

    by_length: list[np.ndarray]  # [k] of shape (n_nodes, n_keys ** k)
    label_starts: np.ndarray  # (n_labels + 1,) where the nodes of each label begin
    graph_offsets: np.ndarray  # (n_labels, n_graphs + 1) where those of each graph begin


def tensor_kernel(
    left: WalkedGraphs, right: WalkedGraphs | None, max_length: int, decay: float, n_jobs: int = 1
) -> np.ndarray:
    """Common walks of up to ``max_length`` steps as matrix products, shape (n_left, n_right).

    ``right=None`` pairs ``left`` with itself. Only labels and steps that both sides know matter.
    Sequences are handled in parts, so memory does not grow with their number, only with the
    number of those of half the length.
    """
    target = left if right is None else right
    labels = np.intersect1d(left.node_codes, target.node_codes)
    keys = np.intersect1d(_step_keys(left), _step_keys(target))
    half = (max_length + 1) // 2
    walks = _node_walks(left, labels, keys, half)
    others = walks if right is None else _node_walks(target, labels, keys, half)
    kernel = np.zeros((len(left.node_offsets) - 1, len(target.node_offsets) - 1))
    with one_blas_thread():  # its threads would change last bits
        for length in range(max_length + 1):
            kernel += decay**length * _common_sequences(walks, others, length, n_jobs)
    return kernel if right is not None else mirrored(kernel)


def _common_sequences(
    walks: _NodeWalks, others: _NodeWalks, length: int, n_jobs: int
) -> np.ndarray:
    """Dot products of the counts of all sequences of one length; the upper half for one side."""
    total = np.zeros((walks.graph_offsets.shape[1] - 1, others.graph_offsets.shape[1] - 1))
    upper = walks is others
    for part in _parts(walks, others, length):
        counts = _sequence_counts(walks, part, n_jobs)
        other = counts if upper else _sequence_counts(others, part, n_jobs)
        _add_products(counts, other, total, upper, n_jobs)
    return total


def _node_walks(
    graphs: WalkedGraphs, labels: np.ndarray, keys: np.ndarray, length: int
) -> _NodeWalks:
    n_graphs = len(graphs.node_offsets) - 1
    nodes = np.flatnonzero(np.isin(graphs.node_codes, labels))
    nodes = nodes[np.argsort(graphs.node_codes[nodes], kind="stable")]
    place = np.full(len(graphs.node_codes), -1)  # old node -> row
    place[nodes] = np.arange(len(nodes))
    sources, targets, own_keys = _step_starts(graphs), step_ends(graphs), _step_keys(graphs)
    steps = []
    for key in keys:
        chosen = np.flatnonzero((own_keys == key) & (place[sources] >= 0))
        ends = place[sources[chosen]], place[targets[chosen]]
        shape = (len(nodes), len(nodes))
        steps.append(sparse.csr_array((np.ones(len(chosen)), ends), shape=shape))
    by_length = [np.ones((len(nodes), 1))]
    for _ in range(length):
        longer = [step @ by_length[-1] for step in steps]
        by_length.append(np.hstack(longer) if longer else np.empty((len(nodes), 0)))
    codes, owners = graphs.node_codes[nodes], _graph_of_node(graphs)[nodes]
    starts = np.searchsorted(codes, np.append(labels, np.inf))
    offsets = [np.searchsorted(owners[a:b], np.arange(n_graphs + 1)) for a, b in pairwise(starts)]
    return _NodeWalks(by_length, starts, np.array(offsets).reshape(len(labels), n_graphs + 1))


class _Part(NamedTuple):
    """Sequences with one label in the middle, and some of the ways to go on to one side."""

    label: int
    shorter: int  # steps to that side
    longer: int  # steps to the other side
    first: int  # of the ways to go, as columns
    last: int


def _parts(walks: _NodeWalks, others: _NodeWalks, length: int) -> Iterator[_Part]:
    shorter, longer = length // 2, length - length // 2
    height, width = walks.by_length[shorter].shape[1], walks.by_length[longer].shape[1]
    n_graphs = max(walks.graph_offsets.shape[1], others.graph_offsets.shape[1])
    step = max(1, _TENSOR_NUMBERS // max(1, n_graphs * width))
    for label in range(len(walks.label_starts) - 1):
        for first in range(0, height, step):
            yield _Part(label, shorter, longer, first, min(first + step, height))


def _sequence_counts(walks: _NodeWalks, part: _Part, n_jobs: int) -> np.ndarray:
    """How often each graph holds each sequence of a part, shape (n_graphs, n_sequences)."""
    nodes = slice(walks.label_starts[part.label], walks.label_starts[part.label + 1])
    offsets = walks.graph_offsets[part.label]
    one_side = np.ascontiguousarray(walks.by_length[part.shorter][nodes, part.first : part.last])
    other_side = walks.by_length[part.longer][nodes]
    counts = np.empty((len(offsets) - 1, one_side.shape[1] * other_side.shape[1]))

    def fill(rows: np.ndarray, first: int, last: int) -> None:
        _compiled_common_walks.outer_sums(first, last, offsets, one_side, other_side, rows)

    return apply_in_place(fill, counts, n_jobs)


def _add_products(
    left: np.ndarray, right: np.ndarray, total: np.ndarray, upper: bool, n_jobs: int
) -> None:
    """``total += left @ right.T``, or its upper half, in tiles that do not depend on threads."""

    def add(first: int) -> None:
        begin = first if upper else 0
        total[first : first + _TILE, begin:] += left[first : first + _TILE] @ right[begin:].T

    in_threads(add, range(0, len(left), _TILE), n_jobs)


# --- what both read -------------------------------------------------------------------------


def _graph_of_node(graphs: WalkedGraphs) -> np.ndarray:
    return np.repeat(np.arange(len(graphs.node_offsets) - 1), np.diff(graphs.node_offsets))


def _step_starts(graphs: WalkedGraphs) -> np.ndarray:
    """The node from which each arc leads, numbered throughout the collection, shape (n_arcs,)."""
    degrees = np.diff(graphs.neighbor_offsets)
    return np.repeat(np.arange(len(degrees)), degrees)


def step_ends(graphs: WalkedGraphs) -> np.ndarray:
    """The node to which each arc leads, numbered throughout the collection, shape (n_arcs,)."""
    firsts = np.repeat(graphs.node_offsets[:-1], np.diff(graphs.node_offsets))  # (n_nodes,)
    return np.repeat(firsts, np.diff(graphs.neighbor_offsets)) + graphs.neighbors


def _step_keys(graphs: WalkedGraphs) -> np.ndarray:
    """What a step along each arc meets: the label of the node above, that of the edge below."""
    labels = graphs.node_codes[step_ends(graphs)].astype(np.int64)
    return (labels << _LABEL_SHIFT) + graphs.edge_codes


def _begins(graphs: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Where a new run of equal (graph, key) begins, as a mask."""
    begins = np.ones(len(keys), dtype=bool)
    begins[1:] = (graphs[1:] != graphs[:-1]) | (keys[1:] != keys[:-1])
    return begins


def _offsets(graphs: np.ndarray, n_graphs: int) -> np.ndarray:
    return np.searchsorted(graphs, np.arange(n_graphs + 1))
