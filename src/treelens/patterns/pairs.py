"""The pair feature: the sparse vector that kernels sum and learning weighs.

All three Weisfeiler-Lehman kernels are linear in one weight per pattern, ``K = <W, Z>``, and differ
only in the sparse vector ``Z(G, G')`` of a pair of graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treelens.patterns.histograms import PatternHistograms, SparseRows
from treelens.patterns.vocabulary import offsets_of

PAIR_KINDS = ("wasserstein", "optimal-assignment", "subtree")


@dataclass(frozen=True)
class PairFeatures:
    """``Z(i, j)_v = scale_i * scale_j * combine(a_iv, a_jv)`` for all pairs, never written out."""

    lists: SparseRows  # by pattern: the graphs that contain it, and a; (n_patterns, n_graphs)
    rows: SparseRows  # the same by graph, (n_graphs, n_patterns)
    level_offsets: np.ndarray  # patterns of depth k are level_offsets[k]:level_offsets[k + 1]
    minimum: bool  # whether combine is the minimum (else the product)
    scale: np.ndarray  # (n_graphs,)

    @classmethod
    def from_histograms(
        cls, histograms: PatternHistograms, kind: str = "wasserstein", unit: bool = True
    ) -> PairFeatures:
        """Return the pair features of one kernel, each divided by the number of depths.

        The kinds are: minimum of relative frequencies, minimum of counts, product of counts. With
        ``unit`` graphs are scaled so that ``<1, Z(G, G)> == 1`` and distances ``1 - <1, Z>`` of all
        kinds are in [0, 1] for learning; without it ``<1, Z>`` is the plain kernel.
        """
        if kind not in PAIR_KINDS:
            raise ValueError(f"kind must be one of {PAIR_KINDS}, got {kind!r}.")
        minimum = kind != "subtree"
        # The product carries the factor 1 / n_depths as two square roots.
        factor = histograms.entry_shares if minimum else np.sqrt(histograms.entry_shares)
        lists = histograms.by_pattern("frequencies" if kind == "wasserstein" else "counts", factor)
        plain = cls._of_lists(lists, histograms, minimum)
        if not unit or kind == "wasserstein":
            return plain
        norm = np.sqrt(np.maximum(plain.diagonal(), np.finfo(float).tiny))
        return replace(plain, scale=1.0 / norm)

    @classmethod
    def of_counts(cls, histograms: PatternHistograms) -> PairFeatures:
        """Return minima of counts: ``<W, Z> = sum_v w_v min(count_iv, count_jv)``."""
        return cls._of_lists(histograms.by_pattern("counts"), histograms, True)

    @classmethod
    def _of_lists(
        cls, lists: SparseRows, histograms: PatternHistograms, minimum: bool
    ) -> PairFeatures:
        n_graphs, levels = histograms.n_graphs, histograms.level_offsets
        return cls(lists, lists.transposed(n_graphs), levels, minimum, np.ones(n_graphs))

    @classmethod
    def of_rows(
        cls, table: Any, level_offsets: np.ndarray, minimum: bool, scale: np.ndarray | None = None
    ) -> PairFeatures:
        """Return the features of a table by graph, a compressed matrix of scipy's."""
        rows, n_patterns = SparseRows.of(table), table.shape[1]
        scale = np.ones(len(rows)) if scale is None else scale
        return cls(rows.transposed(n_patterns), rows, level_offsets, minimum, scale)

    @property
    def n_graphs(self) -> int:
        return len(self.rows)

    @property
    def n_patterns(self) -> int:
        return len(self.lists)

    def select_patterns(self, keep: np.ndarray) -> PairFeatures:
        """Return the features of the patterns of a boolean mask."""
        sizes = np.diff(self.lists.offsets)
        kept, level_offsets = np.repeat(keep, sizes), offsets_of(keep)[self.level_offsets]
        offsets = offsets_of(sizes[keep])
        lists = SparseRows(offsets, self.lists.indices[kept], self.lists.values[kept])
        rows = lists.transposed(self.n_graphs)
        return PairFeatures(lists, rows, level_offsets, self.minimum, self.scale)

    def diagonal(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Return ``<W, Z(G, G)>`` of every graph, shape (n_graphs,)."""
        values = self.rows.values if self.minimum else self.rows.values**2
        if weights is not None:
            values = values * weights[self.rows.indices]
        graph = np.repeat(np.arange(self.n_graphs), np.diff(self.rows.offsets))
        return np.bincount(graph, weights=values, minlength=self.n_graphs) * self.scale**2
