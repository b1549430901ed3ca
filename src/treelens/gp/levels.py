"""Sums over pairs of graphs: by lists where patterns deviate, else by one matrix per group.

All patterns of a group (a level, or the levels of cells that share a weight) have one weight unless
they deviate from it. The sum of their minima over each pair of graphs is then computed once, for
all weights, and for all parts of the graphs that candidates are fitted to and compared on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from treelens.kernels.gram import PairLists, gather_pairs, pair_sums, row_blocks
from treelens.parallel import in_threads
from treelens.patterns.histograms import PairFeatures

if TYPE_CHECKING:
    from treelens.gp.evidence import EvidenceProblem, PatternHierarchy
    from treelens.patterns.histograms import PatternHistograms

_MOST_BYTES = 1 << 30  # of the upper triangles of one matrix per group


def fit_in_memory(n_groups: int, n_graphs: int) -> bool:
    """Whether there is room for one matrix per group."""
    return 4 * n_groups * n_graphs**2 <= _MOST_BYTES


@dataclass(frozen=True, eq=False)
class LevelSums:
    """One matrix of sums per group, its upper triangle in blocks of rows."""

    groups: np.ndarray  # (n_kept,) ascending, but -1 where a group is not in use
    rows: list[slice]
    blocks: list[np.ndarray]  # (n_kept, n_rows * (n_graphs - first row))
    diagonals: np.ndarray  # (n_kept, n_graphs)

    @classmethod
    def of(cls, features: PairFeatures, group_of: np.ndarray, n_jobs: int = 1) -> LevelSums:
        """Sum the patterns of each group; ``group_of`` (n_patterns,) is -1 where it has none."""
        n, groups = features.n_graphs, np.unique(group_of[group_of >= 0])
        found, sums = cls._empty(groups, n), np.zeros((n, n))
        for k, group in enumerate(groups):
            some = features.select_patterns(group_of == group)
            pair_sums(some, n_jobs=n_jobs, out=sums, upper=True)
            found.diagonals[k] = np.diagonal(sums)
            for part, block in zip(found.rows, found.blocks, strict=True):
                block[k] = sums[part, part.start :].ravel()
        return found

    @classmethod
    def _empty(cls, groups: np.ndarray, n: int) -> LevelSums:
        rows, k = row_blocks(n, n), len(groups)
        blocks = [np.zeros((k, (part.stop - part.start) * (n - part.start))) for part in rows]
        return cls(groups, rows, blocks, np.empty((k, n)))

    @property
    def n_graphs(self) -> int:
        return self.diagonals.shape[1]

    def select(self, places: np.ndarray) -> LevelSums:
        """Return the sums of some graphs, which ascend."""
        found = self._empty(self.groups, len(places))
        found.diagonals[:] = self.diagonals[:, places]
        n_rows = self.rows[0].stop  # of all blocks but the last
        for part, block in zip(found.rows, found.blocks, strict=True):
            table = block.reshape(len(block), part.stop - part.start, -1)
            for k, row in enumerate(range(part.start, part.stop)):
                old, inside = divmod(int(places[row]), n_rows)
                start = self.rows[old].start
                columns = places[row:] - start + inside * (self.n_graphs - start)
                table[:, k, k:] = self.blocks[old].take(columns, axis=1)
        return found

    def since(self, group: int) -> LevelSums | None:
        """Return the sums of a group and of all later ones; None where there are none."""
        later = self.groups >= group
        if not later.any():
            return None
        first = int(later.argmax())
        blocks = [block[first:] for block in self.blocks]
        return LevelSums(self.groups[first:], self.rows, blocks, self.diagonals[first:])

    def add_to(self, sums: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> None:
        """Add the weighted matrices to the upper triangle of ``sums`` (n_graphs, n_graphs).

        ``weights`` (n_groups,) are those of all groups.
        """
        weights = np.where(self.groups < 0, 0.0, weights[self.groups])

        def add(k: int) -> None:
            here = sums[self.rows[k], self.rows[k].start :]
            here += (weights @ self.blocks[k]).reshape(here.shape)

        in_threads(add, range(len(self.rows)), n_jobs)

    def slopes(self, matrix: np.ndarray, own_slopes: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return the slope in the weight of each group that is kept, shape (n_kept,).

        ``matrix`` (n_graphs, n_graphs) has the slopes in the sums of pairs above its diagonal, and
        zeros in the rest of the blocks; ``own_slopes`` (n_graphs,) those in graphs' own sums.
        """

        def slope(k: int) -> np.ndarray:
            return self.blocks[k] @ matrix[self.rows[k], self.rows[k].start :].ravel()

        found = in_threads(slope, range(len(self.rows)), n_jobs)
        return np.sum(found, axis=0) + self.diagonals @ own_slopes


@dataclass(frozen=True, eq=False)
class SharedSums:
    """Sums by groups of the graphs that candidates are fitted to and compared on."""

    positions: np.ndarray  # (n,) of these graphs among all, ascending
    levels: LevelSums
    _parts: dict[bytes, LevelSums] = field(default_factory=dict)

    @classmethod
    def of(
        cls, histograms: PatternHistograms, hierarchy: PatternHierarchy, positions: np.ndarray,
        n_jobs: int = 1,
    ) -> SharedSums | None:  # fmt: skip
        """Sum the patterns of each group over some graphs; None where memory is too small."""
        if not fit_in_memory(hierarchy.n_groups, len(positions)):
            return None
        features = PairFeatures.of_counts(histograms.select_graphs(positions))
        return cls(positions, LevelSums.of(features, hierarchy.group_of, n_jobs))

    def among(self, positions: np.ndarray) -> LevelSums | None:
        """Return the sums of some graphs, which ascend; None where not all of them are known."""
        if np.array_equal(positions, self.positions):
            return self.levels
        key = positions.tobytes()
        if key not in self._parts:
            places = np.searchsorted(self.positions, positions)
            if (self.positions.take(places, mode="clip") != positions).any():
                return None
            self._parts[key] = self.levels.select(places)
        return self._parts[key]

    def restricted(self, kept: np.ndarray) -> SharedSums:
        """Return those of the groups of a boolean mask, numbered anew."""
        numbers = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)  # the last of no group
        groups = numbers[self.levels.groups]
        return SharedSums(self.positions, replace(self.levels, groups=groups))


@dataclass(frozen=True, eq=False)
class SplitSums:
    """The first patterns, summed by their lists, and the others, summed by groups."""

    features: PairFeatures | None  # of the first; None where there are none
    levels: LevelSums | None
    n_groups: int
    n_jobs: int

    @classmethod
    def of(cls, problem: EvidenceProblem, deviating: bool, several: bool) -> SplitSums:
        """Lay out the patterns of a problem: with ``deviating``, those that may have lists.

        Without ``several`` weights to sum with, one matrix per group is not worth while.
        """
        hierarchy, features = problem.hierarchy, problem.features
        levels, n_groups = problem.levels, hierarchy.n_groups
        n_listed = hierarchy.n_free if deviating else 0
        if levels is None and not (several and fit_in_memory(n_groups, problem.n_graphs)):
            n_listed = hierarchy.n_patterns
        if n_listed == hierarchy.n_patterns:
            levels = None
        elif levels is None:
            listed = np.arange(hierarchy.n_patterns) < n_listed
            group_of = np.where(listed, -1, hierarchy.group_of)
            levels = LevelSums.of(features, group_of, problem.n_jobs)
            features = features.select_patterns(listed)
        elif n_listed:
            levels = levels.since(int(hierarchy.group_of[n_listed]))
        return cls(features if n_listed else None, levels, n_groups, problem.n_jobs)

    @cached_property
    def _lists(self) -> PairLists:
        """The first patterns laid out for slopes, the same for all weights."""
        assert self.features is not None
        return PairLists.of(self.features, self.features)

    def sum_into(self, sums: np.ndarray, weights: np.ndarray, group_weights: np.ndarray) -> None:
        """Fill the upper triangle of ``sums`` (n_graphs, n_graphs), which begin as zeros."""
        if self.features is None:
            sums.fill(0.0)
        else:
            own = weights[: self.features.n_patterns]
            pair_sums(self.features, weights=own, n_jobs=self.n_jobs, out=sums, upper=True)
        if self.levels is not None:
            self.levels.add_to(sums, group_weights, self.n_jobs)

    def slopes(self, matrix: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes in the weights of the listed patterns, and of the groups through the others.

        ``matrix`` (n_graphs, n_graphs) are the slopes in the sums of pairs, above the diagonal;
        ``own`` (n_graphs,) those in the sums of graphs with themselves.
        """
        by_weight, by_group = np.empty(0), np.zeros(self.n_groups)
        if self.features is not None:
            by_weight = gather_pairs(matrix, self._lists, self.n_jobs)
            by_weight += own_gradient(self.features, own)
        if self.levels is not None:
            kept = self.levels.groups >= 0
            found = self.levels.slopes(matrix, own, self.n_jobs)
            by_group[self.levels.groups[kept]] = found[kept]
        return by_weight, by_group


def own_gradient(features: PairFeatures, own_slopes: np.ndarray) -> np.ndarray:
    """The part of the slope in every weight that comes through graphs' sums with themselves."""
    rows = features.rows
    graph = np.repeat(np.arange(features.n_graphs), np.diff(rows.offsets))
    weights = rows.values * own_slopes[graph]
    return np.bincount(rows.indices, weights, features.n_patterns)
