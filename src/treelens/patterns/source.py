"""What a view that counts patterns is: which patterns there are, how often and where they occur."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from treelens.graphs.collection import GraphCollection
from treelens.patterns.histograms import PatternHistograms, SparseRows
from treelens.patterns.vocabulary import arc_targets, offsets_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Sites(NamedTuple):
    """Which patterns are found at which nodes, once for each time."""

    node_offsets: np.ndarray  # of the graphs
    numbers: np.ndarray  # (n_sites,) patterns, -1 where one is not known
    nodes: np.ndarray  # (n_sites,) nodes that have a part in them, numbered in all graphs


def sites_of_colors(
    colors: np.ndarray, node_offsets: np.ndarray, level_offsets: np.ndarray
) -> Sites:
    """Return the sites of patterns of single nodes; ``colors`` (n_levels, n_nodes), -1: unseen."""
    numbers = np.where(colors < 0, -1, colors + level_offsets[:-1, None])
    nodes = np.broadcast_to(np.arange(numbers.shape[1]), numbers.shape)
    return Sites(node_offsets, numbers.ravel(), nodes.ravel())


class PatternSource(ABC):
    """Patterns of training graphs, level by level; those of one level may share a weight.

    A subclass has ``level_sizes``, the numbers of patterns of its levels, and says how patterns are
    found, counted and written.
    """

    name: str  # of the view
    has_depths = True  # whether a smaller depth leaves patterns out
    one_per_node = False  # whether every node has exactly one pattern of each level

    @property
    @abstractmethod
    def level_sizes(self) -> np.ndarray:
        """The number of patterns of each level, shape (n_levels,)."""

    @abstractmethod
    def extend(self, graphs: GraphCollection, n_jobs: int = 1) -> tuple[PatternSource, Any]:
        """Return a source that has the patterns of these graphs as well, and their occurrences.

        Known patterns keep their number within their level.
        """

    @abstractmethod
    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> Any:
        """Return the occurrences of patterns in new graphs."""

    @abstractmethod
    def count(self, found: Any) -> PatternHistograms:
        """Return how often every graph contains every pattern, from its occurrences."""

    @abstractmethod
    def texts(self, patterns: ArrayLike) -> list[str]:
        """Return the text forms of patterns."""

    @abstractmethod
    def sites(self, found: Any) -> Sites:
        """Return where the patterns of some graphs are, from their occurrences."""

    def shares_of_nodes(self, found: Any, patterns: SparseRows) -> sparse.csr_array:
        """Return how the nodes of each graph share its patterns, shape (n_entries, n_nodes).

        The entries are those of ``patterns``, known patterns by graph; ``found`` are the
        occurrences in the same graphs. The row of an entry sums to one, over nodes of its graph:
        all nodes of all of its occurrences share a pattern equally.
        """
        return shares_of_sites(patterns, self.n_patterns, self.sites(found))

    def unseen_at_nodes(self, found: Any) -> np.ndarray:
        """Return in how many unseen patterns each node has a part, shape (n_nodes,)."""
        sites = self.sites(found)
        return np.bincount(sites.nodes[sites.numbers < 0], minlength=int(sites.node_offsets[-1]))

    def truncated(self, depth: int) -> PatternSource:
        """Return the source without patterns beyond a depth."""
        return self

    @property
    def n_levels(self) -> int:
        return len(self.level_sizes)

    @cached_property
    def level_offsets(self) -> np.ndarray:
        """Where the patterns of each level begin, and where the last ones end."""
        return offsets_of(self.level_sizes)

    @property
    def n_patterns(self) -> int:
        return int(self.level_offsets[-1])

    @property
    def level_depths(self) -> np.ndarray:
        """Depth of each level, shape (n_levels,)."""
        return np.arange(self.n_levels)

    @property
    def level_groups(self) -> np.ndarray:
        """A number per level; levels with the same one have one weight together."""
        return np.arange(self.n_levels)

    @property
    def level_shares(self) -> np.ndarray:
        """What each level has of the weight of its group: an equal part, shape (n_levels,)."""
        sizes = np.bincount(self.level_groups)
        shares: np.ndarray = 1.0 / sizes[self.level_groups]
        return shares

    @property
    def level_names(self) -> tuple[str, ...]:
        """The levels in words."""
        return tuple(f"{self.name}, level {level}" for level in range(self.n_levels))

    @property
    def parents(self) -> np.ndarray:
        """The pattern that each one refines, or -1, shape (n_patterns,)."""
        return np.full(self.n_patterns, -1, dtype=np.int64)

    @property
    def n_deviating(self) -> int:
        """So many patterns, the first, may have weights of their own."""
        return 0

    @property
    def all_trees(self) -> tuple[str, ...]:
        """The trees in it; one, named as the view, where there are no several."""
        return (self.name,)

    @property
    def depth(self) -> int:
        """The largest depth of a pattern."""
        return int(self.level_depths.max(initial=0))

    def tree_names(self, patterns: np.ndarray) -> np.ndarray:
        """Return the name of the view, or of the tree in it, of each pattern."""
        return np.full(len(patterns), self.name, dtype=object)

    def asked(self, pattern: int) -> list[tuple[str, int]]:
        """Return the attributes that a cell asks for, with steps; of other patterns none."""
        return []

    def level_of(self, patterns: np.ndarray | int) -> np.ndarray:
        """Return the level of each pattern."""
        return np.searchsorted(self.level_offsets, patterns, side="right") - 1

    @property
    def pattern_depths(self) -> np.ndarray:
        """Depth of each pattern, shape (n_patterns,)."""
        return np.repeat(self.level_depths, self.level_sizes)

    def unseen_sums(
        self, found: Any, log_weights: np.ndarray, level_weights: np.ndarray
    ) -> np.ndarray:
        """Return the weighted sum of each graph's unseen patterns, shape (n_graphs,).

        ``log_weights`` (n_patterns,) are those without the ``level_weights`` (n_levels,).
        """
        sums: np.ndarray = self.count(found).unseen @ level_weights
        return sums


def balls_of(graphs: GraphCollection, depth: int) -> list[sparse.csr_array]:
    """Return the nodes within 0 to ``depth`` steps of every node: ones, (n_nodes, n_nodes) each."""
    n = graphs.n_nodes
    ends = arc_targets(graphs, graphs.neighbor_offsets, graphs.neighbors)
    ones = np.ones(len(ends), dtype=np.int8)
    arcs = sparse.csr_array((ones, ends, graphs.neighbor_offsets), shape=(n, n))
    itself = sparse.csr_array(sparse.eye(n, dtype=np.int8))
    balls, steps = [itself], (arcs + itself).tocsr()
    for _ in range(depth):
        reached = (balls[-1] @ steps).tocsr()
        reached.data[:] = 1  # the number of ways is not needed, and could overflow
        balls.append(reached)
    return balls


def shares_of_sites(patterns: SparseRows, n_patterns: int, sites: Sites) -> sparse.csr_array:
    """Return how nodes share patterns; those that are not among the entries count for nothing."""
    node_offsets, numbers, nodes = sites
    owner = np.repeat(np.arange(len(patterns)), np.diff(patterns.offsets))
    keys = owner * n_patterns + patterns.indices  # ascending
    graph = np.searchsorted(node_offsets, nodes, side="right") - 1
    wanted = graph * n_patterns + numbers
    found = np.searchsorted(keys, wanted)
    found = np.minimum(found, max(len(keys) - 1, 0))
    known = (numbers >= 0) & (keys[found] == wanted) if len(keys) else np.zeros(len(nodes), bool)
    shape = (len(keys), int(node_offsets[-1]))
    times = np.ones(int(known.sum()))
    table = sparse.csr_array((times, (found[known], nodes[known])), shape=shape)
    table.data /= np.repeat(np.asarray(table.sum(axis=1)).ravel(), np.diff(table.indptr))
    return table
