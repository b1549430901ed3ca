"""Which way to the random-walk kernel of bounded length is the cheapest for some graphs.

Sequences, products or tensors (see :mod:`treelens.kernels.common_walks`): all give the same
numbers up to rounding. What each will take is estimated from counts of what it does and from how
long each of that takes on an ordinary core, in nanoseconds; the clock is never read, so the choice
depends on the graphs alone. The sequences of all graphs cannot be counted without doing the work:
those of a few graphs are, and no longer than it takes to see that another way is cheaper.
"""

from __future__ import annotations

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.kernels._compiled_walks import WalkedGraphs
from treelens.kernels.common_walks import step_ends
from treelens.patterns.paths import WalkVocabulary, steps_of_walks

SEQUENCES, PRODUCTS, TENSORS = "sequences", "products", "tensors"

_MOST_SAMPLED = 8  # graphs whose sequences are counted
_MOST_NODE_WALKS = 2**24  # numbers in the largest array of walks from nodes, 128 MB
_BENEFIT = 0.7  # a way around the sequences must take less than this share of their time

_NS_PER_STEP, _NS_PER_SEQUENCE, _NS_PER_MATCH = 20.0, 250.0, 1.0
_NS_PER_PAIR, _NS_PER_GROUP, _NS_PER_ARC = 1500.0, 150.0, 4.0
_NS_PER_ROW_NUMBER, _NS_PER_TURNED_NUMBER = 0.4, 2.0
_NS_PER_PRODUCT, _NS_PER_COUNTED, _NS_PER_PART = 0.06, 0.6, 2e5
_NS_PER_ARC_READ, _NS_TO_BEGIN = 120.0, 5e6  # of tensors


def cheapest_route(
    graphs: GraphCollection, walked: WalkedGraphs, max_length: int, edge_labels: bool = False
) -> str:
    """``"sequences"``, ``"products"`` or ``"tensors"``: for the kernel of graphs with themselves.

    ``walked`` holds the same graphs, with the edge labels left out unless ``edge_labels``.

    Examples
    --------
    >>> import treelens as tl
    >>> from treelens.kernels.random_walk import walked_graphs
    >>> from treelens.patterns.paths import read_labels
    >>> from treelens.patterns.vocabulary import PatternVocabulary
    >>> ring = [(i, (i + 1) % 6) for i in range(6)], dict.fromkeys(range(6), "C")
    >>> graphs = tl.as_graph_collection([ring] * 5)
    >>> _, codes = read_labels(graphs, PatternVocabulary.empty(0))
    >>> cheapest_route(graphs, walked_graphs(graphs, codes), 4)
    'sequences'
    """
    costs = {
        PRODUCTS: product_cost(walked, max_length),
        TENSORS: tensor_cost(walked, max_length),
    }
    best = min(costs, key=lambda route: costs[route])
    limit = costs[best] / _BENEFIT
    return SEQUENCES if sequence_cost(graphs, max_length, edge_labels, limit) <= limit else best


def sequence_cost(
    graphs: GraphCollection, max_length: int, edge_labels: bool, limit: float
) -> float:
    """Nanoseconds to name and count all sequences and to multiply counts; inf if over ``limit``."""
    n_sampled = min(len(graphs), max(2, min(_MOST_SAMPLED, len(graphs) // 16)))
    sampled = graphs[np.linspace(0, len(graphs) - 1, n_sampled).astype(int)]
    scale = len(graphs) / n_sampled
    most_steps = int(min(limit / scale / _NS_PER_STEP, 2.0**62))
    n_steps = steps_of_walks(sampled, max_length, edge_labels, most_steps)
    if n_steps > most_steps:
        return np.inf
    _, counts = WalkVocabulary.fit(sampled, max_length, edge_labels=edge_labels)
    holders = np.bincount(counts.patterns).astype(float)  # graphs that hold each sequence
    naming = _NS_PER_STEP * n_steps + _NS_PER_SEQUENCE * len(counts.counts)
    return naming * scale + _NS_PER_MATCH * np.sum(holders**2) * scale**2 / 2


def product_cost(graphs: WalkedGraphs, max_length: int) -> float:
    """Nanoseconds to walk through the direct products of all pairs."""
    n_graphs, n_nodes = len(graphs.node_offsets) - 1, len(graphs.node_codes)
    nodes = np.bincount(graphs.node_codes).astype(float)  # of each label
    arcs = np.bincount(graphs.node_codes, np.diff(graphs.neighbor_offsets))  # from each label
    n_edge_labels = np.count_nonzero(np.bincount(graphs.edge_codes)) if arcs.sum() else 0
    one_step = (
        _NS_PER_GROUP * n_graphs * _n_blocks(graphs) * n_edge_labels
        + _NS_PER_ARC * 2 * n_graphs * arcs.sum()
        + _NS_PER_ROW_NUMBER * 2 * np.sum(nodes * arcs)
        + _NS_PER_TURNED_NUMBER * n_nodes**2 * n_edge_labels
    )
    return (_NS_PER_PAIR * n_graphs**2 + (max_length + 1) // 2 * one_step) / 2


def tensor_cost(graphs: WalkedGraphs, max_length: int) -> float:
    """Nanoseconds to count and multiply all sequences there could be; inf if memory forbids it."""
    n_graphs, n_nodes = len(graphs.node_offsets) - 1, len(graphs.node_codes)
    n_labels, n_keys = np.count_nonzero(np.bincount(graphs.node_codes)), _n_step_kinds(graphs)
    if n_nodes * n_keys ** ((max_length + 1) // 2) > _MOST_NODE_WALKS:
        return np.inf
    lengths = np.arange(max_length + 1)
    n_sequences = np.sum(n_keys**lengths)  # with one label in the middle
    return (
        _NS_PER_PRODUCT * n_labels * n_sequences * n_graphs**2 / 2
        + _NS_PER_COUNTED * n_sequences * n_nodes
        + _NS_PER_PART * n_labels * len(lengths)
        + _NS_PER_ARC_READ * len(graphs.neighbors)
        + _NS_TO_BEGIN
    )


def _n_step_kinds(graphs: WalkedGraphs) -> float:
    """How many pairs of a node label and an edge label the steps of all graphs lead to."""
    labels = graphs.node_codes[step_ends(graphs)].astype(np.int64)
    n_edge_labels = int(graphs.edge_codes.max(initial=0)) + 1
    return float(np.count_nonzero(np.bincount(labels * n_edge_labels + graphs.edge_codes)))


def _n_blocks(graphs: WalkedGraphs) -> float:
    """How many labels the graphs have, each graph counted by itself."""
    owners = np.repeat(np.arange(len(graphs.node_offsets) - 1), np.diff(graphs.node_offsets))
    n_labels = int(graphs.node_codes.max(initial=0)) + 1
    return float(len(np.unique(owners * n_labels + graphs.node_codes)))
