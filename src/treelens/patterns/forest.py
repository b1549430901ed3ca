"""Patterns under several labellings: structure only, node labels, fine labels, edge labels.

Each labelling is refined on its own and gives a *tree* of patterns. The coarse label of a node is
the parent of its fine one, which joins the trees to one forest. Cells of continuous attributes
(:mod:`treelens.patterns.cells`), if any, follow as levels of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treelens.array_checks import check_array
from treelens.errors import GraphDataError
from treelens.graphs.collection import GraphCollection, check_attributes
from treelens.patterns.cells import ATTRIBUTES, AttributeCells
from treelens.patterns.histograms import (
    Features,
    GraphViews,
    PairFeatures,
    PatternHistograms,
)
from treelens.patterns.source import PatternSource, Sites, sites_of_colors
from treelens.patterns.vocabulary import NodeColors, PatternVocabulary

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Labels that a tree uses: (which node labels, whether edge labels).
TREES = {
    "structure": ("none", False),
    "labels": ("labels", False),
    "labels+edges": ("labels", True),
    "fine": ("fine", False),
    "fine+edges": ("fine", True),
    "labels+coarse edge cells": ("labels", True),
    "labels+edge cells": ("labels", True),
}
# Edge labels that are cells of the attributes of edges: at which resolution.
EDGE_CELLS = {"labels+coarse edge cells": 0, "labels+edge cells": 1}


@dataclass(frozen=True, eq=False)
class PatternForest(PatternSource):
    """The patterns of several trees: tree by tree, in each from depth 0 on.

    A tree that differs from an earlier one by edge labels only begins at depth 1: at depth 0 the
    two are the same. A vocabulary is a forest of one tree; see :meth:`of_vocabulary`. Roots are,
    for each colour of a tree at the first depth in use, the colours of the same nodes at the level
    before (see ``level_before``).
    """

    trees: tuple[str, ...]  # keys of TREES
    vocabularies: tuple[PatternVocabulary, ...]  # one per tree, of the same depth
    roots: tuple[np.ndarray, ...]
    cells: AttributeCells | None = None
    edge_cells: AttributeCells | None = None

    name = "patterns"
    one_per_node = True

    @cached_property
    def level_sizes(self) -> np.ndarray:
        of_trees = [np.diff(vocabulary.level_offsets) for vocabulary in self.vocabularies]
        sizes = [of_trees[tree][depth] for tree, depth in self._label_levels]
        sizes += [] if self.cells is None else self.cells.level_sizes.tolist()
        return np.array(sizes, dtype=np.int64)

    def validate(self) -> None:
        """Raise ``ValueError`` unless trees, vocabularies and roots belong together."""
        same = len(self.trees) == len(set(self.trees)) == len(self.vocabularies) == len(self.roots)
        if not self.trees or not same:
            raise ValueError("trees must be different ones, each with a vocabulary and roots")
        sizes = self.level_sizes
        for tree, vocabulary, roots in zip(self.trees, self.vocabularies, self.roots, strict=True):
            if vocabulary.depth != self.depth or vocabulary.uses_edge_labels != TREES[tree][1]:
                raise ValueError(f"the vocabulary of the tree {tree!r} is not of its kind")
            level = self._first_level(self.trees.index(tree))
            before = int(self.level_before[level])
            low, below = (-1, 0) if before < 0 else (0, int(sizes[before]))
            check_array(roots, f"roots of {tree!r}", np.int64, (int(sizes[level]),), low, below)

    # --- fit and transform ------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        graphs: GraphCollection,
        depth: int,
        trees: tuple[str, ...],
        n_jobs: int = 1,
        *,
        attributes: bool = False,
    ) -> tuple[PatternForest, NodeColors]:
        """Refine a collection for every tree; return the forest and the colours of the nodes."""
        # With `attributes` those of nodes and edges, if there are any, are divided into cells:
        # patterns of their own, and edge labels of two trees more.
        cells = _fitted_cells(graphs, depth) if attributes else None
        edge_cells = None
        if cells is not None and graphs.edge_attributes is not None and len(graphs.neighbors):
            edge_cells = AttributeCells.of_edges(graphs)
            trees = (*trees, *EDGE_CELLS)
        if depth == 0:  # edge labels matter from depth 1 on
            trees = tuple(t for t in trees if not TREES[t][1] or t.partition("+")[0] not in trees)
        vocabularies = tuple(PatternVocabulary.empty(depth, TREES[tree][1]) for tree in trees)
        roots = (np.empty(0, np.int64),) * len(trees)
        return cls(trees, vocabularies, roots, cells, edge_cells).extend(graphs, n_jobs)

    @classmethod
    def of_vocabulary(
        cls, vocabulary: PatternVocabulary, cells: AttributeCells | None = None
    ) -> PatternForest:
        """Return the forest of one tree with the patterns of a vocabulary, from depth 0 on."""
        tree = "labels+edges" if vocabulary.uses_edge_labels else "labels"
        no_parents = np.full(len(vocabulary.node_alphabet), -1, dtype=np.int64)
        return cls((tree,), (vocabulary,), (no_parents,), cells)

    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> NodeColors:
        """Return the colours of new graphs, a row per level; -1 for unseen patterns."""
        colors = [
            vocabulary.transform(labelled_for(graphs, tree, self.edge_cells), n_jobs).colors
            for tree, vocabulary in zip(self.trees, self.vocabularies, strict=True)
        ]
        return self._stacked(colors, graphs, n_jobs)

    def extend(self, graphs: GraphCollection, n_jobs: int = 1) -> tuple[PatternForest, NodeColors]:
        """Return the forest with the patterns of these graphs added, and their colours."""
        # As in `PatternVocabulary.extend`, known colours do not change within a level.
        fitted = [
            vocabulary.extend(labelled_for(graphs, tree, self.edge_cells), n_jobs)
            for tree, vocabulary in zip(self.trees, self.vocabularies, strict=True)
        ]
        wider = replace(self, vocabularies=tuple(vocabulary for vocabulary, _ in fitted))
        colors = wider._stacked([colors.colors for _, colors in fitted], graphs, n_jobs)
        roots = []
        for tree, known in enumerate(self.roots):  # from the nodes that have both colours
            level = wider._first_level(tree)
            found = np.full(np.diff(wider.level_offsets)[level], -1, dtype=np.int64)
            if wider.level_before[level] >= 0:
                found[colors.colors[level]] = colors.colors[wider.level_before[level]]
            found[: len(known)] = known
            roots.append(found)
        return replace(wider, roots=tuple(roots)), colors

    def truncated(self, depth: int) -> PatternForest:
        """Return the forest that a fit up to this depth would find."""
        begun = [k for k in range(len(self.trees)) if self._first_depth(k) <= depth]
        trees, roots = tuple(self.trees[k] for k in begun), tuple(self.roots[k] for k in begun)
        vocabularies = tuple(self.vocabularies[k].truncated(depth) for k in begun)
        cells = None if self.cells is None else self.cells.truncated(depth)
        return PatternForest(trees, vocabularies, roots, cells, self.edge_cells)

    def _stacked(
        self, colors: list[np.ndarray], graphs: GraphCollection, n_jobs: int
    ) -> NodeColors:
        rows = np.array([colors[tree][depth] for tree, depth in self._label_levels])
        if self.cells is not None:
            rows = np.concatenate([rows, self.cells.transform(graphs, n_jobs)])
        return NodeColors(rows, graphs.node_offsets)

    # --- levels -----------------------------------------------------------------------------

    @property
    def depth(self) -> int:
        return self.vocabularies[0].depth

    def _first_depth(self, tree: int) -> int:
        labels, edges = TREES[self.trees[tree]]
        earlier = [TREES[name] for name in self.trees[:tree]]
        return 1 if edges and (labels, False) in earlier and self.depth else 0

    def _first_level(self, tree: int) -> int:
        return self._label_levels.index((tree, self._first_depth(tree)))

    @cached_property
    def _label_levels(self) -> tuple[tuple[int, int], ...]:
        return tuple(
            (tree, depth)
            for tree in range(len(self.trees))
            for depth in range(self._first_depth(tree), self.depth + 1)
        )

    @cached_property
    def levels(self) -> tuple[tuple[int, int], ...]:
        """Tree and depth of every level; cells come last, as one tree more."""
        steps = [] if self.cells is None else self.cells.level_steps.tolist()
        return (*self._label_levels, *((len(self.trees), step) for step in steps))

    @cached_property
    def level_groups(self) -> np.ndarray:
        """A number per level, shape (n_levels,); trees of cells share it and have one weight."""
        groups = np.arange(len(self._label_levels))
        if self.cells is None:
            return groups
        return np.concatenate([groups, len(groups) + self.cells.level_groups])

    @property
    def n_deviating(self) -> int:
        """So many patterns, the first, may have weights of their own: all but the cells."""
        return int(self.level_offsets[len(self._label_levels)])

    @cached_property
    def level_depths(self) -> np.ndarray:
        return np.array([depth for _, depth in self.levels])

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        """``"labels, depth 2"`` and so on; trees of cells share names."""
        names = [f"{self.trees[tree]}, depth {depth}" for tree, depth in self._label_levels]
        if self.cells is not None:
            names += self.cells.level_names
        return tuple(names)

    @cached_property
    def level_before(self) -> np.ndarray:
        """The level that each one refines, -1 for the first, shape (n_levels,)."""
        # One depth less in the same tree; where a tree begins, the same depth of the twin without
        # edge labels, or of the next coarser tree.
        before = [
            level - 1 if depth > self._first_depth(tree) else self.coarser_level(tree, depth)
            for level, (tree, depth) in enumerate(self._label_levels)
        ]
        if self.cells is not None:
            here = np.arange(self.cells.n_levels)
            first = here % self.cells.n_resolutions == 0
            before += np.where(first, -1, len(before) + here - 1).tolist()
        return np.array(before, dtype=np.int64)

    def coarser_level(self, tree: int, depth: int) -> int:
        """Return the level of the same depth with coarser labels, or -1."""
        if tree == len(self.trees):  # cells
            return -1
        kinds, order = [TREES[name] for name in self.trees[:tree]], ("none", "labels", "fine")
        labels = TREES[self.trees[tree]][0]
        twin = [k for k, kind in enumerate(kinds) if kind == (labels, False)]
        finer = order[order.index(labels) :]
        for k in [*twin, *(k for k in range(tree)[::-1] if kinds[k][0] not in finer)]:
            if (k, depth) in self.levels:
                return self.levels.index((k, depth))
        return -1

    @cached_property
    def parents(self) -> np.ndarray:
        """The pattern that each one refines, or -1, shape (n_patterns,)."""
        parents = np.full(self.n_patterns, -1, dtype=np.int64)
        for level, (tree, depth) in enumerate(self.levels):
            before = int(self.level_before[level])
            if before < 0:
                continue
            if tree == len(self.trees):
                assert self.cells is not None
                own = self.cells.parents[level - len(self._label_levels)]
            elif depth > self._first_depth(tree):
                own = self.vocabularies[tree].levels[depth - 1].own
            else:
                own = self.roots[tree]
            here = slice(self.level_offsets[level], self.level_offsets[level + 1])
            parents[here] = np.where(own >= 0, self.level_offsets[before] + own, -1)
        return parents

    # --- counting ---------------------------------------------------------------------------

    def count(self, colors: NodeColors) -> PatternHistograms:
        """Return how often every graph contains every pattern."""
        sizes = self.level_sizes
        return PatternHistograms.from_levels(colors, sizes, self.level_depths, self.level_shares)

    def unseen_sums(
        self, colors: NodeColors, log_weights: np.ndarray, level_weights: np.ndarray
    ) -> np.ndarray:
        """Return the weighted sum of each graph's unseen patterns, shape (n_graphs,)."""
        # Such a pattern has the weight of its deepest known ancestor, at its own level.
        # `log_weights` (n_patterns,) are those without the `level_weights` (n_levels,).
        table = colors.colors[: len(self._label_levels)]  # cells are never unseen
        n_graphs = len(colors.node_offsets) - 1
        sums = np.zeros(n_graphs)
        if not (table < 0).any():
            return sums
        inherited = np.zeros(table.shape)  # log weight of the pattern or of its known ancestor
        graph = np.repeat(np.arange(n_graphs), np.diff(colors.node_offsets))
        for level, before in enumerate(self.level_before[: len(table)].tolist()):
            known = table[level] >= 0
            own = log_weights[self.level_offsets[level] + table[level][known]]
            inherited[level] = 0.0 if before < 0 else inherited[before]
            inherited[level, known] = own
            terms = level_weights[level] * np.exp(inherited[level, ~known])
            sums += np.bincount(graph[~known], weights=terms, minlength=n_graphs)
        return sums

    def sites(self, found: NodeColors) -> Sites:
        """All nodes that carry a pattern."""
        return sites_of_colors(found.colors, found.node_offsets, self.level_offsets)

    def unseen_at_nodes(self, found: NodeColors) -> np.ndarray:
        return (found.colors < 0).sum(axis=0)

    @property
    def all_trees(self) -> tuple[str, ...]:
        return self.trees

    # --- reading patterns -------------------------------------------------------------------

    def place(self, pattern: int) -> tuple[int, int]:
        """Return the tree of a pattern, and its id in the vocabulary of that tree."""
        # Cells have the tree after the last, and are numbered from 0 on.
        if not 0 <= pattern < self.n_patterns:
            raise IndexError(
                f"Pattern {pattern} does not exist: the forest has {self.n_patterns} patterns."
            )
        level = int(self.level_of(pattern))
        tree, depth = self.levels[level]
        if tree == len(self.trees):
            return tree, pattern - int(self.level_offsets[len(self._label_levels)])
        color = pattern - int(self.level_offsets[level])
        return tree, int(self.vocabularies[tree].level_offsets[depth]) + color

    def tree_names(self, patterns: np.ndarray) -> np.ndarray:
        """Return the name of the tree of each pattern."""
        level = self.level_of(patterns)
        names = (*self.trees, ATTRIBUTES)
        return np.array([names[tree] for tree, _ in self.levels], dtype=object)[level]

    def asked(self, pattern: int) -> list[tuple[str, int]]:
        if self.cells is None or pattern < self.n_deviating:
            return []
        level = int(self.level_of(pattern))
        cell = pattern - int(self.level_offsets[level])
        return self.cells.asked(level - len(self._label_levels), cell)

    def texts(self, patterns: ArrayLike) -> list[str]:
        """Return the text forms of patterns."""
        patterns = np.asarray(patterns, dtype=np.int64)
        if len(patterns):  # raises where one does not exist
            self.place(int(patterns.min()))
            self.place(int(patterns.max()))
        levels = self.level_of(patterns)
        texts = []
        for level, color in zip(levels, patterns - self.level_offsets[levels], strict=True):
            tree, depth = self.levels[level]
            if tree < len(self.trees):
                texts.append(self.vocabularies[tree].text(depth, int(color)))
            elif self.cells is not None:
                texts.append(self.cells.text(level - len(self._label_levels), int(color)))
        return texts


def _fitted_cells(graphs: GraphCollection, depth: int) -> AttributeCells | None:
    """Return cells of the attributes of nodes and edges, if there are any."""
    given = graphs.node_attributes is not None or graphs.edge_attributes is not None
    return AttributeCells.fit(graphs, depth) if given and graphs.n_nodes else None


def labelled_for(
    graphs: GraphCollection, tree: str, edge_cells: AttributeCells | None = None
) -> GraphCollection:
    """Return the graphs with the labels that a tree uses."""
    if tree in EDGE_CELLS:
        if edge_cells is None:
            raise GraphDataError(f"The tree {tree!r} needs attributes of edges: omit this tree.")
        level = EDGE_CELLS[tree]
        alphabet = [edge_cells.text(level, k) for k in range(int(edge_cells.level_sizes[level]))]
        graphs = check_attributes(graphs, graphs.attribute_names, edge_cells.names)
        assert graphs.edge_attributes is not None
        codes = edge_cells.cells_of(graphs.edge_attributes)[level]
        return replace(graphs, edge_codes=codes, edge_alphabet=tuple(alphabet))
    labels = TREES[tree][0]
    if labels == "labels":
        return graphs
    if labels == "none":
        return graphs.relabelled(np.zeros(graphs.n_nodes, dtype=np.int32), ("*",))
    if graphs.fine_codes is None or graphs.fine_alphabet is None:
        raise GraphDataError(
            f"The tree {tree!r} needs fine node labels, and these graphs have none. Pass SMILES, "
            "RDKit molecules or the result of read_smiles; to fit other graphs, omit this tree."
        )
    return graphs.relabelled(graphs.fine_codes, graphs.fine_alphabet)


def usual_trees(graphs: GraphCollection) -> tuple[str, ...]:
    """Return the default trees of a collection."""
    # Molecules have trees of elements and of fine labels, and one with edge labels if their bonds
    # were read with stereochemistry; other graphs one of node labels and, if any, with edge labels.
    if graphs.fine_codes is not None:
        sides = graphs.recipe is not None and graphs.recipe.edges_tell_more
        return ("labels", "fine", "fine+edges") if sides else ("labels", "fine")
    return ("labels", "labels+edges") if graphs.edge_codes is not None else ("labels",)


# --- one tree, as a kernel counts it -------------------------------------------------------------


class RefinedGraphs(NamedTuple):
    """Colours, histograms and features of graphs, for predicting, explaining and drawing."""

    colors: NodeColors  # all depths of the vocabulary
    histograms: PatternHistograms  # the depths in use
    features: Features

    def select(self, positions: np.ndarray) -> RefinedGraphs:
        """Return some of the graphs."""
        return RefinedGraphs(
            self.colors.select_graphs(positions),
            self.histograms.select_graphs(positions),
            self.features.select(positions),
        )


class SeenGraphs(NamedTuple):
    """Graphs as the views of a model show them: patterns first, then numbers if there are any."""

    views: tuple[Any, ...]  # RefinedGraphs, then arrays (n_graphs, n_numbers)

    @property
    def patterns(self) -> RefinedGraphs:
        return self.views[0]

    @property
    def features(self) -> GraphViews:
        """What kernels compare."""
        return GraphViews(
            seen.features if isinstance(seen, RefinedGraphs) else seen for seen in self.views
        )

    def select(self, positions: np.ndarray) -> SeenGraphs:
        """Return some of the graphs."""
        return SeenGraphs(
            tuple(
                seen.select(positions) if isinstance(seen, RefinedGraphs) else seen[positions]
                for seen in self.views
            )
        )


@dataclass(frozen=True)
class PatternExtractor:
    """A forest of one tree (and cells of attributes) as a kernel counts it."""

    forest: PatternForest
    first_depth: int  # of labels
    kind: str  # of pair feature

    @classmethod
    def fit(
        cls,
        graphs: GraphCollection,
        depth: int,
        first_depth: int,
        kind: str,
        *,
        edge_labels: bool = False,
        attributes: bool = False,
        n_jobs: int = 1,
    ) -> tuple[PatternExtractor, NodeColors]:
        """Refine a collection; return the extractor and the colours of all levels."""
        cells = _fitted_cells(graphs, depth) if attributes else None
        empty = PatternForest.of_vocabulary(PatternVocabulary.empty(depth, edge_labels), cells)
        forest, colors = empty.extend(graphs, n_jobs)
        return cls(forest, first_depth, kind), colors

    def count(self, colors: NodeColors) -> PatternHistograms:
        """Return histograms of the levels in use, from the colours of all levels."""
        counts = self.forest.count(colors)
        return counts.select_levels(np.arange(counts.n_depths) >= self.first_depth)

    def pairs(self, histograms: PatternHistograms) -> PairFeatures:
        """Return pair features without scaling: ``<1, Z>`` is the kernel itself."""
        return PairFeatures.from_histograms(histograms, self.kind, unit=False)

    def refine(
        self, graphs: GraphCollection, weights: np.ndarray | None = None, n_jobs: int = 1
    ) -> RefinedGraphs:
        """Refine new graphs, count their patterns and compute their features."""
        colors = self.forest.transform(graphs, n_jobs)
        histograms = self.count(colors)
        pairs = self.pairs(histograms)
        unseen = self._unseen_sums(graphs, histograms)
        return RefinedGraphs(colors, histograms, Features.of(pairs, weights, unseen))

    def _unseen_sums(self, graphs: GraphCollection, histograms: PatternHistograms) -> np.ndarray:
        """Return the part of ``<W, Z(G, G)>`` from unseen patterns, at weight one."""
        # They match no training graph, but count in a graph's similarity with itself.
        unseen = histograms.unseen.sum(axis=1)
        if not unseen.any():
            return np.zeros(histograms.n_graphs)
        if self.kind == "wasserstein":
            return unseen / (histograms.n_nodes * histograms.n_full_depths).clip(1)
        if self.kind == "optimal-assignment":
            return unseen / histograms.n_full_depths
        # Squares of counts need the unseen patterns distinguished: fit a vocabulary to the graphs
        # that contain any.
        rows = np.flatnonzero(unseen)
        edge_labels = self.forest.vocabularies[0].uses_edge_labels
        fitted, colors = PatternExtractor.fit(
            graphs[rows], self.forest.depth, self.first_depth, self.kind, edge_labels=edge_labels
        )
        own = fitted.count(colors)
        n_labels = int(histograms.level_offsets[own.n_depths])
        known = histograms.select_patterns(np.arange(histograms.n_patterns) < n_labels)
        squares = np.zeros(histograms.n_graphs)
        squares[rows] = _sum_of_squares(own) - _sum_of_squares(known)[rows]
        return squares / histograms.n_full_depths


def _sum_of_squares(histograms: PatternHistograms) -> np.ndarray:
    """Return the sum of squared counts of every graph (integers, so exact)."""
    squares = histograms.counts.astype(np.float64) ** 2
    return np.bincount(histograms.graphs, weights=squares, minlength=histograms.n_graphs)


def takes_edge_labels(asked: bool | str, graphs: GraphCollection) -> bool:
    """Return whether patterns include edge labels; ``"auto"``: where the graphs have them."""
    return graphs.edge_codes is not None if asked == "auto" else bool(asked)


def first_depth_of(depth: int, include_depth_zero: bool) -> int:
    """Return the shallowest depth in use; raise an error when no depth is left."""
    if depth == 0 and not include_depth_zero:
        raise ValueError(
            "depth=0 with include_depth_zero=False leaves no pattern to compare. Use depth >= 1, "
            "or include_depth_zero=True to compare node labels alone."
        )
    return 0 if include_depth_zero else 1
