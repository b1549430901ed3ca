"""Weights of patterns by levels and branches, and sums over pairs of graphs with such weights.

All patterns of a group (a level, or the levels of cells that share a weight) have one weight unless
they deviate from it. The sum of their minima over each pair of graphs is then computed once, for
all weights, and for all parts of the graphs that candidates are fitted to and compared on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy

from treelens.kernels.gram import PairLists, gather_pairs, pair_sums
from treelens.kernels.mixture import row_blocks
from treelens.parallel import in_threads
from treelens.patterns.histograms import PairFeatures
from treelens.patterns.source import PatternSource

_MOST_BYTES = 1 << 30  # of the upper triangles of one matrix per group


@dataclass(frozen=True, eq=False)
class PatternHierarchy:
    """Which patterns share a level, and which pattern each one refines."""

    level_offsets: np.ndarray  # (n_levels + 1,): patterns of one level are neighbours
    parents: np.ndarray  # (n_patterns,) the pattern of an earlier level that each refines, or -1
    groups: np.ndarray  # (n_levels,): those of one group share a weight
    shares: np.ndarray  # (n_levels,) the part of that weight that each level has
    # So many patterns, the first ones, may deviate from the weight of their level. Cells of
    # attributes do not: it would cost much, and was not better.
    n_free: int

    @classmethod
    def of(cls, source: PatternSource) -> PatternHierarchy:
        return cls(
            source.level_offsets,
            source.parents,
            source.level_groups,
            source.level_shares,
            source.n_deviating,
        )

    @property
    def n_groups(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def n_patterns(self) -> int:
        return len(self.parents)

    def level_weights(self, logits: np.ndarray) -> np.ndarray:
        """``n_groups * softmax(b)`` shared by the levels of each group, shape (n_levels,)."""
        return self.n_groups * scipy.special.softmax(logits)[self.groups] * self.shares

    def group_weights(self, logits: np.ndarray) -> np.ndarray:
        """The weight of a pattern of each group that does not deviate, shape (n_groups,)."""
        return self.n_groups * scipy.special.softmax(logits) * self.group_shares

    @cached_property
    def group_shares(self) -> np.ndarray:
        """The share of each group's levels, zero where it has no patterns, shape (n_groups,)."""
        found, filled = np.zeros(self.n_groups), np.diff(self.level_offsets) > 0
        found[self.groups[filled]] = self.shares[filled]
        return found

    @cached_property
    def group_of(self) -> np.ndarray:
        """Group of each pattern, shape (n_patterns,)."""
        return self.groups[self.level_of]

    @cached_property
    def level_of(self) -> np.ndarray:
        """Level of each pattern, shape (n_patterns,)."""
        return np.repeat(np.arange(len(self.groups)), np.diff(self.level_offsets))

    def restricted(self, kept: np.ndarray) -> PatternHierarchy:
        """The patterns of a boolean mask, which holds the ancestors of all that it holds."""
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        parents = self.parents[kept]
        return PatternHierarchy(
            before[self.level_offsets],
            np.where(parents >= 0, before[parents], -1),
            self.groups,
            self.shares,
            int(before[self.n_free]),
        )

    def _levels(self) -> list[slice]:
        """Of the patterns that may deviate."""
        return [slice(a, b) for a, b in pairwise(self.level_offsets) if a < self.n_free]

    def sum_down(self, deviations: np.ndarray) -> np.ndarray:
        """Each pattern's deviation plus those of all its ancestors, shape (n_patterns,)."""
        totals = deviations.copy()
        for level in self._levels():
            parents = self.parents[level]
            totals[level] += np.where(parents >= 0, totals[parents], 0.0)
        return totals

    def sum_up(self, slopes: np.ndarray) -> np.ndarray:
        """Each pattern's slope plus those of its whole branch: the transpose of the above."""
        totals = slopes.copy()
        for level in reversed(self._levels()):
            known = self.parents[level] >= 0
            totals += np.bincount(self.parents[level][known], totals[level][known], len(totals))
        return totals


@dataclass(frozen=True, eq=False)
class LevelSums:
    """The sums of minima over the patterns of each group, for all pairs of graphs."""

    groups: np.ndarray  # (n_kept,) ascending
    # (n_kept, n_graphs (n_graphs + 1) / 2), rows of upper triangles: whole numbers, which float32
    # holds as they are.
    table: np.ndarray
    positions: np.ndarray  # (n_graphs,) of these graphs among all, ascending
    _parts: dict[bytes, LevelSums] = field(default_factory=dict)  # sums of some of them

    @classmethod
    def of(
        cls,
        features: PairFeatures,
        group_of: np.ndarray,
        n_jobs: int = 1,
        positions: np.ndarray | None = None,
    ) -> LevelSums:
        """Sum the patterns of each group; ``group_of`` (n_patterns,) is -1 where it has none."""
        n, groups = features.n_graphs, np.unique(group_of[group_of >= 0])
        positions = np.arange(n) if positions is None else positions
        found = cls(groups, np.empty((len(groups), n * (n + 1) // 2), np.float32), positions)
        sums = np.zeros((n, n))
        for row, group in zip(found.table, groups, strict=True):
            some = features.select_patterns(group_of == group)
            pair_sums(some, n_jobs=n_jobs, out=sums, upper=True)
            np.concatenate([sums[i, i:] for i in range(n)], out=row)
        return found

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the row of each graph begins in the table, and where the last ends: (n + 1,)."""
        return np.concatenate([[0], np.cumsum(np.arange(len(self.positions), 0, -1))])

    @cached_property
    def diagonals(self) -> np.ndarray:
        """Sums of each graph with itself, shape (n_kept, n_graphs)."""
        return self.table[:, self.starts[:-1]].astype(float)

    def among(self, positions: np.ndarray) -> LevelSums | None:
        """Return the sums of some graphs, which ascend; None where not all of them are known."""
        if np.array_equal(positions, self.positions):
            return self
        key = positions.tobytes()
        if key not in self._parts:
            if not np.isin(positions, self.positions).all():
                return None
            some = np.searchsorted(self.positions, positions)
            rows, columns = np.triu_indices(len(some))
            places = self.starts[some[rows]] + some[columns] - some[rows]
            table = self.table.take(places, axis=1)
            self._parts[key] = LevelSums(self.groups, table, positions)
        return self._parts[key]

    def of_groups(self, kept: np.ndarray) -> LevelSums:
        """Return the sums of some groups, which ascend, numbered in their order."""
        rows = np.isin(self.groups, kept)
        numbers = np.searchsorted(kept, self.groups[rows])
        return LevelSums(numbers, self.table[rows], self.positions)

    def add_to(self, sums: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> None:
        """Add to the upper triangle of ``sums``; ``weights`` (n_groups,) are of all groups."""
        weights, n = weights[self.groups].astype(sums.dtype), len(sums)

        def add(rows: slice) -> None:
            starts = self.starts[rows.start : rows.stop + 1].tolist()
            found = weights @ self.table[:, starts[0] : starts[-1]]
            for i, (start, stop) in enumerate(pairwise(starts), rows.start):
                sums[i, i:] += found[start - starts[0] : stop - starts[0]]

        in_threads(add, row_blocks(n, n), n_jobs)

    def slopes(self, matrix: np.ndarray, own_slopes: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Slopes in the weights of the groups that are kept; see :meth:`SplitSums.slopes`."""
        n = len(matrix)

        def slope(rows: slice) -> np.ndarray:
            some = np.concatenate([matrix[i, i:] for i in range(rows.start, rows.stop)])
            return self.table[:, self.starts[rows.start] : self.starts[rows.stop]] @ some

        found = in_threads(slope, row_blocks(n, n), n_jobs)
        return np.sum(found, axis=0, dtype=float) + self.diagonals @ own_slopes


def fit_in_memory(n_groups: int, n_graphs: int) -> bool:
    """Whether there is room for one matrix per group."""
    return 2 * n_groups * n_graphs**2 <= _MOST_BYTES


@dataclass(frozen=True, eq=False)
class SplitSums:
    """The first patterns, summed by their lists, and the others, summed by groups."""

    features: PairFeatures | None  # of the first; None where there are none
    levels: LevelSums | None
    hierarchy: PatternHierarchy
    n_jobs: int
    _room: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        features: PairFeatures,
        hierarchy: PatternHierarchy,
        levels: LevelSums | None,
        deviating: bool,
        several: bool,
        n_jobs: int = 1,
    ) -> SplitSums:
        """Lay patterns out: with ``deviating``, those that may deviate have lists.

        Without ``several`` weights to sum with, one matrix per group is not worth while.
        """
        n_listed = hierarchy.n_free if deviating else 0
        room = several and fit_in_memory(hierarchy.n_groups, features.n_graphs)
        if levels is None and not room:
            n_listed = hierarchy.n_patterns
        if n_listed == hierarchy.n_patterns:
            levels = None
        elif levels is None:
            listed = np.arange(hierarchy.n_patterns) < n_listed
            group_of = np.where(listed, -1, hierarchy.group_of)
            levels = LevelSums.of(features, group_of, n_jobs)
            features = features.select_patterns(listed)
        elif n_listed:
            rest = slice(np.searchsorted(levels.groups, hierarchy.group_of[n_listed]), None)
            levels = LevelSums(levels.groups[rest], levels.table[rest], levels.positions)
        return cls(features if n_listed else None, levels, hierarchy, n_jobs)

    def _doubles(self, n: int) -> np.ndarray:
        """Room for numbers that the compiled loops work on, where others are rounded more."""
        if "doubles" not in self._room:
            self._room["doubles"] = np.zeros((n, n))
        return self._room["doubles"]

    @cached_property
    def _lists(self) -> PairLists:
        """The first patterns laid out for slopes, the same for all weights."""
        assert self.features is not None
        return PairLists.of(self.features, self.features)

    def sum_into(self, sums: np.ndarray, weights: np.ndarray, logits: np.ndarray) -> None:
        """Fill the upper triangle of ``sums`` (n_graphs, n_graphs), which begin as zeros."""
        if self.features is None:
            sums.fill(0.0)
        else:
            own, n = weights[: self.features.n_patterns], self.features.n_graphs
            found = sums if sums.dtype == np.float64 else self._doubles(n)
            pair_sums(self.features, weights=own, n_jobs=self.n_jobs, out=found, upper=True)
            if found is not sums:
                sums[...] = found
        if self.levels is not None:
            self.levels.add_to(sums, self.hierarchy.group_weights(logits), self.n_jobs)

    def slopes(
        self, matrix: np.ndarray, own: np.ndarray, weights: np.ndarray, logits: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Slopes in the log weights of the listed patterns, and of the groups through the others.

        ``matrix`` (n_graphs, n_graphs) has the slopes in the sums of pairs above its diagonal,
        where it is zero; ``own`` (n_graphs,) are those in the sums of graphs with themselves.
        """
        by_weight, by_group = np.empty(0), np.zeros(self.hierarchy.n_groups)
        if self.features is not None:
            found = matrix
            if matrix.dtype != np.float64:  # what the loops are compiled for
                found = self._doubles(len(matrix))
                found[...] = matrix
            by_weight = gather_pairs(found, self._lists, self.n_jobs)
            by_weight += own_gradient(self.features, own)
        if self.levels is not None:
            by_group[self.levels.groups] = self.levels.slopes(matrix, own, self.n_jobs)
        by_group *= self.hierarchy.group_weights(logits)
        return weights[: len(by_weight)] * by_weight, by_group


def own_gradient(features: PairFeatures, own_slopes: np.ndarray) -> np.ndarray:
    """The part of the slope in every weight that comes through graphs' sums with themselves."""
    rows = features.rows
    graph = np.repeat(np.arange(features.n_graphs), np.diff(rows.offsets))
    weights = rows.values * own_slopes[graph]
    return np.bincount(rows.indices, weights, features.n_patterns)
