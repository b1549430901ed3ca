"""Sums of minima of all pairs of graphs, kept apart by group of levels.

Where the patterns of a level have one common weight, the sum of a pair is linear in the weights of
the levels: one matrix per group, made once, replaces a pass over all lists of patterns in every
evaluation of the marginal likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelens.kernels.gram import pair_sums
from treelens.kernels.mixture import row_blocks
from treelens.parallel import in_threads
from treelens.patterns.pairs import PairFeatures

_MOST_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class LevelSums:
    """One matrix of sums per group, its upper triangle in blocks of rows."""

    groups: np.ndarray  # (n_kept,) those that have patterns
    rows: list[slice]
    blocks: list[np.ndarray]  # (n_kept, n_rows * (n_graphs - first row))
    diagonals: np.ndarray  # (n_kept, n_graphs)

    @staticmethod
    def fits(n_groups: int, n_graphs: int) -> bool:
        """Whether that many matrices are small enough to keep."""
        return 4 * n_groups * n_graphs**2 <= _MOST_BYTES

    @classmethod
    def of(cls, features: PairFeatures, group_of: np.ndarray, n_jobs: int = 1) -> LevelSums:
        """Sum the patterns of each group; ``group_of`` (n_patterns,) is -1 where it has none."""
        n, groups = features.n_graphs, np.unique(group_of[group_of >= 0])
        rows = row_blocks(n, n)
        blocks = [
            np.empty((len(groups), (part.stop - part.start) * (n - part.start))) for part in rows
        ]
        diagonals, sums = np.empty((len(groups), n)), np.empty((n, n))
        for k, group in enumerate(groups):
            some = features.select_patterns(group_of == group)
            pair_sums(some, n_jobs=n_jobs, out=sums)
            diagonals[k] = np.diagonal(sums)
            for part, block in zip(rows, blocks, strict=True):
                block[k] = sums[part, part.start :].ravel()
        return cls(groups, rows, blocks, diagonals)

    def add_to(self, sums: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> None:
        """Add the weighted matrices to the upper triangle of ``sums`` (n_graphs, n_graphs).

        ``weights`` (n_groups,) are those of all groups.
        """
        weights = weights[self.groups]

        def add(k: int) -> None:
            here = sums[self.rows[k], self.rows[k].start :]
            here += (weights @ self.blocks[k]).reshape(here.shape)

        in_threads(add, range(len(self.rows)), n_jobs)

    def slopes(self, matrix: np.ndarray, own_slopes: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return the slope in the weight of each group with patterns, shape (n_kept,).

        ``matrix`` (n_graphs, n_graphs) has the slopes in the sums of pairs above its diagonal, and
        zeros in the rest of the blocks; ``own_slopes`` (n_graphs,) those in graphs' own sums.
        """

        def slope(k: int) -> np.ndarray:
            return self.blocks[k] @ matrix[self.rows[k], self.rows[k].start :].ravel()

        found = in_threads(slope, range(len(self.rows)), n_jobs)
        return np.sum(found, axis=0) + self.diagonals @ own_slopes
