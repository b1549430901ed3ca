"""Numbers that say what a graph is made of, whatever the order of graphs and of their nodes."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection

_ROUNDS = 4
_ODD = np.uint64(0x9E3779B97F4A7C15)


def structure_hashes(graphs: GraphCollection, attributes: bool = True) -> np.ndarray:
    """A number for each graph, shape (n_graphs,): equal for equal graphs, else most often not.

    ``attributes``: whether graphs that differ in continuous attributes alone are different.
    """
    of_nodes = _of_attributes(graphs.node_attributes if attributes else None)
    of_edges = _of_attributes(graphs.edge_attributes if attributes else None)
    degrees = np.diff(graphs.neighbor_offsets)
    first_node = np.repeat(graphs.node_offsets[:-1], graphs.sizes)  # (n_nodes,)
    ends = graphs.neighbors + np.repeat(first_node, degrees)  # (n_arcs,) among all nodes
    if graphs.fine_codes is None:
        colors = hashed(graphs.node_alphabet)[graphs.node_codes]
    else:
        colors = hashed(graphs.fine_alphabet or ())[graphs.fine_codes]
    colors = mixed(colors + of_nodes)
    bonds = np.full(len(ends), _ODD) + of_edges
    if graphs.edge_codes is not None:
        bonds = mixed(bonds + hashed(graphs.edge_alphabet or ())[graphs.edge_codes])
    if graphs.directions is not None:
        bonds = mixed(bonds + graphs.directions.astype(np.uint64))
    for _ in range(_ROUNDS):
        around = run_sums(mixed(colors[ends] + bonds), graphs.neighbor_offsets)
        colors = mixed(colors * _ODD + around)
    return run_sums(colors, graphs.node_offsets)


def draw_keys(
    graphs: GraphCollection, targets: np.ndarray, seed: int, attributes: bool = True
) -> np.ndarray:
    """A random number for each graph, shape (n_graphs,), that its content and target decide.

    Graphs that are sorted by it are in random order, the same one in whatever order they come.
    """
    codes = np.unique(targets, return_inverse=True)[1].astype(np.uint64)
    seeded = mixed(codes + mixed(np.array([seed], np.uint64)))
    return mixed(structure_hashes(graphs, attributes) + seeded)


def hashed(labels: Iterable[Any]) -> np.ndarray:
    """Return a number for each label, by its text: shape (n_labels,)."""
    digests = [blake2b(str(label).encode(), digest_size=8).digest() for label in labels]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def mixed(values: np.ndarray) -> np.ndarray:
    """Return whole numbers scattered over all of 64 bits."""
    values = (values + _ODD) * np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(29)
    values = values * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(32))


def run_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return sums of runs, modulo 2**64."""
    total = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=total[1:])
    return total[offsets[1:]] - total[offsets[:-1]]


def _of_attributes(table: np.ndarray | None) -> np.ndarray:
    """Return a number for each row of continuous attributes; 0 where there are none."""
    if table is None:
        return np.zeros(1, np.uint64)
    found = np.zeros(len(table), np.uint64)
    for column in np.ascontiguousarray(table.T, dtype=np.float64):
        found = mixed(found * _ODD + column.view(np.uint64))
    return found
