"""From graphs to pair features, given a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.patterns.cells import AttributeCells
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PairFeatures, PatternHistograms, SparseRows
from treelens.patterns.vocabulary import NodeColors, PatternVocabulary


class RefinedGraphs(NamedTuple):
    """Colours, histograms and features of graphs, for predicting, explaining and drawing."""

    colors: NodeColors  # all depths of the vocabulary
    histograms: PatternHistograms  # the depths in use
    features: Features


class Features(NamedTuple):
    """Pair features of graphs, and ``<W, Z(G, G)>`` of each graph."""

    pairs: PairFeatures
    diagonal: np.ndarray  # (n_graphs,), unseen patterns included
    covariates: np.ndarray | None = None  # (n_graphs, n_covariates), standardised


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
        cells = AttributeCells.fit(graphs, depth) if attributes else None
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
        return RefinedGraphs(colors, histograms, Features(pairs, pairs.diagonal(weights) + unseen))

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


def first_depth_of(depth: int, include_depth_zero: bool) -> int:
    """Return the shallowest depth in use; raise an error when no depth is left."""
    if depth == 0 and not include_depth_zero:
        raise ValueError(
            "depth=0 with include_depth_zero=False leaves no pattern to compare. Use depth >= 1, "
            "or include_depth_zero=True to compare node labels alone."
        )
    return 0 if include_depth_zero else 1


def select_features(features: Features, positions: np.ndarray) -> Features:
    """Return the features of some graphs."""
    pairs = features.pairs
    table = pairs.rows.to_sparse(pairs.n_patterns)[positions]
    scale = pairs.scale[positions]
    chosen = PairFeatures.of_rows(table, pairs.level_offsets, pairs.minimum, scale)
    covariates = None if features.covariates is None else features.covariates[positions]
    return Features(chosen, features.diagonal[positions], covariates)


def graph_keys(features: Features) -> Iterator[bytes]:
    """Yield the patterns of each graph, their counts and its covariates: equal for replicates."""
    return _keys(features.pairs.rows, features.covariates, range(features.pairs.n_graphs))


def _keys(
    rows: SparseRows, covariates: np.ndarray | None, chosen: Iterable[int]
) -> Iterator[bytes]:
    for k in chosen:
        a, b = rows.offsets[k : k + 2]
        key = rows.indices[a:b].tobytes() + rows.values[a:b].tobytes()
        yield key if covariates is None else key + covariates[k].tobytes()


def replicate_numbers(rows: SparseRows, covariates: np.ndarray | None = None) -> np.ndarray | None:
    """Return a number per graph that replicates share; None where no graph stands twice."""
    # Rows that are equal have the same sum with any weights, to the last bit.
    weights = np.random.default_rng(0).random(int(rows.indices.max(initial=0)) + 1)
    graph = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    sums = np.bincount(graph, rows.values * weights[rows.indices], len(rows))
    _, same, counts = np.unique(sums, return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(counts[same] > 1).tolist()
    first: dict[bytes, int] = {}
    numbers = np.arange(len(rows))
    for k, key in zip(suspects, _keys(rows, covariates, suspects), strict=True):
        numbers[k] = first.setdefault(key, k)
    return None if len(first) == len(suspects) else numbers
