"""Cells of continuous attributes as a view of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.patterns.cells import ATTRIBUTES, AttributeCells
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.source import PatternSource, Sites, sites_of_colors
from treelens.patterns.vocabulary import NodeColors

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class CellPatterns(PatternSource):
    """How often nodes fall into each cell of the attributes of nodes and edges."""

    cells: AttributeCells

    name = ATTRIBUTES
    one_per_node = True

    def validate(self) -> None:
        """The cells are checked by themselves."""

    @property
    def level_sizes(self) -> np.ndarray:
        return self.cells.level_sizes

    @property
    def level_depths(self) -> np.ndarray:
        return self.cells.level_steps

    @property
    def level_groups(self) -> np.ndarray:
        return self.cells.level_groups

    @property
    def level_names(self) -> tuple[str, ...]:
        return self.cells.level_names

    @cached_property
    def parents(self) -> np.ndarray:
        shifts = np.concatenate([[0], self.level_offsets[:-2]])
        own = [
            np.where(above >= 0, shift + above, -1)
            for above, shift in zip(self.cells.parents, shifts, strict=True)
        ]
        return np.concatenate(own)

    def extend(self, graphs: GraphCollection, n_jobs: int = 1) -> tuple[CellPatterns, NodeColors]:
        return self, self.transform(graphs, n_jobs)

    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> NodeColors:
        return NodeColors(self.cells.transform(graphs, n_jobs), graphs.node_offsets)

    def count(self, found: NodeColors) -> PatternHistograms:
        sizes = self.level_sizes
        return PatternHistograms.from_levels(found, sizes, self.level_depths, self.level_shares)

    def texts(self, patterns: ArrayLike) -> list[str]:
        levels = self.level_of(np.asarray(patterns, dtype=np.int64))
        numbers = np.asarray(patterns, dtype=np.int64) - self.level_offsets[levels]
        pairs = zip(levels.tolist(), numbers.tolist(), strict=True)
        return [self.cells.text(level, cell) for level, cell in pairs]

    def asked(self, pattern: int) -> list[tuple[str, int]]:
        level = int(self.level_of(pattern))
        return self.cells.asked(level, pattern - int(self.level_offsets[level]))

    def sites(self, found: NodeColors) -> Sites:
        return sites_of_colors(found.colors, found.node_offsets, self.level_offsets)

    def truncated(self, depth: int) -> CellPatterns:
        return CellPatterns(self.cells.truncated(depth))
