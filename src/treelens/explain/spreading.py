"""From patterns to the nodes and edges that carry them.

A pattern of depth ``h`` at a node is a rooted tree of ``h + 1`` layers: the node, its neighbours,
their neighbours (the node itself among them), and so on. What the pattern contributes belongs to
that whole tree, not to its root alone, so it is handed down the tree:

- *nodes*: every layer gets the same share, and within a layer each child gets the same part of
  what its parent had. This is the way of a random walk from the root: the share of a node is the
  mean, over 0 to ``h`` steps, of the probability that the walk is there;
- *edges*: likewise, every layer of the tree's edges gets the same share, divided as the walk
  crosses them.

An isolated node has no layers below it and keeps everything. Nothing is lost on the way: the
numbers of the nodes add up to the contributions of all patterns, those of the edges to the
contributions of all patterns that have an edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Arcs(NamedTuple):
    """The neighbours of one graph's nodes in compressed form."""

    offsets: np.ndarray  # (n_nodes + 1,)
    neighbors: np.ndarray  # (n_arcs,)

    @property
    def degrees(self) -> np.ndarray:
        return np.diff(self.offsets)


def spread_over_nodes(shares: np.ndarray, depths: np.ndarray, arcs: Arcs) -> np.ndarray:
    """One number per node from what each node's pattern of each depth contributes.

    Parameters
    ----------
    shares : ndarray, shape (n_depths, n_nodes)
        Row ``k``: contribution of the pattern of depth ``depths[k]`` rooted at each node.
    depths : ndarray of int, shape (n_depths,)
    arcs : Arcs

    Returns
    -------
    ndarray, shape (n_nodes,)
        With the same total as ``shares``.

    Examples
    --------
    >>> path = Arcs(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]))  # 0 - 1 - 2
    >>> spread_over_nodes(np.array([[0.0, 1.0, 0.0]]), np.array([1]), arcs=path)
    array([0.25, 0.5 , 0.25])
    """
    return _walk(_by_layer(shares / (depths[:, None] + 1), depths), arcs)


def spread_over_edges(shares: np.ndarray, depths: np.ndarray, arcs: Arcs) -> np.ndarray:
    """The same for edges, each once, in the order of ``Graph.edges``: shape (n_edges,)."""
    with_edges = depths > 0
    shares, depths = shares[with_edges], depths[with_edges]
    # A pattern of depth h has h layers of edges; they start from the nodes of layers 0 to h - 1.
    starts = _walk(_by_layer(shares / depths[:, None], depths - 1), arcs)
    degrees = arcs.degrees
    crossing = np.repeat(starts / np.maximum(degrees, 1), degrees)  # (n_arcs,)
    owner = np.repeat(np.arange(len(degrees)), degrees)
    forward = owner <= arcs.neighbors
    # The arc back from v to u stands where the pair (neighbour, owner) would stand.
    back_order = np.lexsort((owner, arcs.neighbors))
    both = crossing + np.where(owner == arcs.neighbors, 0.0, crossing[back_order])
    return both[forward]


def _by_layer(shares: np.ndarray, last_layers: np.ndarray) -> np.ndarray:
    """What starts a walk that is to be counted after 0, 1, ... steps: (n_layers, n_nodes).

    ``shares[k]`` is counted once in each of the layers 0 to ``last_layers[k]``.
    """
    n_layers = int(last_layers.max(initial=-1)) + 1
    counted = np.arange(n_layers)[:, None] <= last_layers[None, :]  # (n_layers, n_depths)
    return counted.astype(float) @ shares


def _walk(starts: np.ndarray, arcs: Arcs) -> np.ndarray:
    """Where everything is after its steps: row ``l`` of ``starts`` takes ``l`` random steps."""
    degrees = arcs.degrees
    place = np.zeros(len(degrees))
    for start in starts[::-1]:
        place = start + _step(place, degrees, arcs)
    return place


def _step(amount: np.ndarray, degrees: np.ndarray, arcs: Arcs) -> np.ndarray:
    """Hand every node's amount to its neighbours in equal parts; isolated nodes keep theirs."""
    parts = np.repeat(amount / np.maximum(degrees, 1), degrees)
    moved = np.bincount(arcs.neighbors, weights=parts, minlength=len(amount))
    return moved + np.where(degrees == 0, amount, 0.0)
