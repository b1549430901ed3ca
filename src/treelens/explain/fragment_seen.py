"""Graphs with the patterns at their nodes and what these add: what fragments are found in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import NodeColors


@dataclass(frozen=True, eq=False)
class ExplainedGraphs:
    """Graphs, the patterns at their nodes, and what these add.

    Attributes
    ----------
    forest : PatternForest
    graphs : GraphCollection
    colors : NodeColors
        A row per level of the forest.
    phi : ndarray, shape (n_nodes,)
        What the patterns centred at each node add to the prediction of its graph.
    """

    forest: PatternForest
    graphs: GraphCollection
    colors: NodeColors
    phi: np.ndarray

    @cached_property
    def graph_of_node(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.graphs)), self.graphs.sizes)

    @cached_property
    def nodes_by_color(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each level, the nodes ordered by colour, and where each colour begins."""
        sizes = np.diff(self.forest.level_offsets)
        found = []
        for row, size in zip(self.colors.colors, sizes.tolist(), strict=True):
            order = np.argsort(row, kind="stable")
            found.append((order, np.searchsorted(row[order], np.arange(size + 1))))
        return found

    def level_of(self, pattern: int) -> int:
        return int(np.searchsorted(self.forest.level_offsets, pattern, side="right")) - 1

    def depth_of(self, pattern: int) -> int:
        return int(self.forest.level_depths[self.level_of(pattern)])

    def carriers(self, pattern: int) -> np.ndarray:
        """The nodes that carry a pattern, ascending."""
        level = self.level_of(pattern)
        order, starts = self.nodes_by_color[level]
        color = pattern - int(self.forest.level_offsets[level])
        return order[starts[color] : starts[color + 1]]

    @cached_property
    def _steps(self) -> sparse.csr_array:
        """Which nodes one step reaches, the node itself among them: (n_nodes, n_nodes)."""
        graphs, n = self.graphs, self.graphs.n_nodes
        first = np.repeat(graphs.node_offsets[:-1], graphs.sizes)  # neighbours count from here
        ends = graphs.neighbors + np.repeat(first, np.diff(graphs.neighbor_offsets))
        ones = np.ones(len(ends), dtype=np.int8)
        arcs = sparse.csr_array((ones, ends, graphs.neighbor_offsets), shape=(n, n))
        return (arcs + sparse.eye_array(n, dtype=np.int8, format="csr")).tocsr()

    @cached_property
    def all_balls(self) -> tuple[sparse.csr_array, ...]:
        """The balls of every depth around all nodes."""
        everywhere = np.arange(self.graphs.n_nodes)
        return tuple(self.balls(everywhere, depth) for depth in range(self.forest.depth + 1))

    def balls(self, roots: np.ndarray, depth: int) -> sparse.csr_array:
        """Which nodes lie within ``depth`` steps of each root: ones, (n_roots, n_nodes)."""
        n = self.graphs.n_nodes
        reached = sparse.csr_array(
            (np.ones(len(roots), dtype=np.int8), (np.arange(len(roots)), roots)),
            shape=(len(roots), n),
        )
        for _ in range(depth):
            reached = (reached @ self._steps).tocsr()
            reached.data[:] = 1  # how many ways lead there does not matter, and could overflow
        return reached


class GraphMeans(NamedTuple):
    """A number averaged within graphs, then over them."""

    mean: float
    error: float  # standard error over graphs; NaN with fewer than two
    n_graphs: int


def mean_over_graphs(values: np.ndarray, graphs: np.ndarray) -> GraphMeans:
    """The mean over graphs of the means within them, and its standard error.

    Examples
    --------
    >>> mean_over_graphs(np.array([1.0, 3.0, 4.0]), np.array([0, 0, 5]))
    GraphMeans(mean=3.0, error=1.0, n_graphs=2)
    """
    _, place, counts = np.unique(graphs, return_inverse=True, return_counts=True)
    return _summary(np.bincount(place, weights=values, minlength=len(counts)) / counts)


def _summary(per_graph: np.ndarray) -> GraphMeans:
    n = len(per_graph)
    error = float(per_graph.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return GraphMeans(float(per_graph.mean()) if n else float("nan"), error, n)


def other_carriers(seen: ExplainedGraphs, pattern: int) -> np.ndarray:
    """Nodes that carry the parent and lie in no occurrence of the pattern."""
    parent = parent_of(seen, pattern)
    if parent < 0:
        return np.empty(0, dtype=np.int64)
    held = np.unique(seen.balls(seen.carriers(pattern), seen.depth_of(pattern)).indices)
    return np.setdiff1d(seen.carriers(parent), held, assume_unique=True)


def parent_of(seen: ExplainedGraphs, pattern: int) -> int:
    """The pattern's nearest ancestor that other nodes carry as well; -1 where there is none."""
    n_own, parent = len(seen.carriers(pattern)), int(seen.forest.parents[pattern])
    while parent >= 0 and len(seen.carriers(parent)) == n_own:
        parent = int(seen.forest.parents[parent])
    return parent
