"""Sums of pair features over all pairs of graphs, and the mixture kernel that is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from treelens.kernels import _compiled
from treelens.parallel import in_threads
from treelens.patterns.histograms import PairFeatures

# Gradients are summed in this many shares, in order, whatever the number of threads: so they are
# the same, bit for bit, for every n_jobs.
N_SHARES = 8
# Patterns in more than this share of the graphs are kept as dense columns; at most so many.
_DENSE_SHARE = 0.125
_MOST_DENSE = 1024
_TILE = 128  # two of them fit into a cache
_BLOCK = 32_768  # numbers of the mixture kernel that are worked on at a time
_FASTEST_DECAY = 1e6  # beyond, rounding of the sums would decide; learned ones are far smaller


class PairLists(NamedTuple):
    """Pair features laid out for the compiled loops."""

    row_offsets: np.ndarray  # (n_left + 1,) patterns of each left graph ...
    row_patterns: np.ndarray  # ... ascending
    row_values: np.ndarray
    list_offsets: np.ndarray  # (n_patterns + 1,) right graphs of each pattern ...
    list_graphs: np.ndarray  # ... ascending
    list_values: np.ndarray
    dense_of_pattern: np.ndarray  # (n_patterns,) row of `dense`, or -1
    dense: np.ndarray  # (n_dense, n_right) values of the most common patterns
    minimum: bool

    @classmethod
    def of(
        cls, left: PairFeatures, right: PairFeatures, weights: np.ndarray | None = None
    ) -> PairLists:
        """Lay two sides out, with weights (n_patterns,) in their values."""
        rows, lists, minimum = left.rows, right.lists, bool(left.minimum)
        row_values, list_values = rows.values, lists.values
        if weights is not None:
            factors = weights if minimum else np.sqrt(weights)  # a product takes one from each side
            row_values = row_values * factors[rows.indices]
            list_values = list_values * np.repeat(factors, np.diff(lists.offsets))
        support = np.diff(lists.offsets)
        common = np.flatnonzero(support > _DENSE_SHARE * right.n_graphs)
        if len(common) > _MOST_DENSE:
            heaviest = np.argsort(-support[common], kind="stable")[:_MOST_DENSE]
            common = np.sort(common[heaviest])
        dense_of_pattern = np.full(len(lists), -1, dtype=np.int32)
        dense_of_pattern[common] = np.arange(len(common), dtype=np.int32)
        dense = np.zeros((max(1, len(common)), right.n_graphs))
        for row, pattern in enumerate(common):
            entries = slice(lists.offsets[pattern], lists.offsets[pattern + 1])
            dense[row, lists.indices[entries]] = list_values[entries]
        return cls(
            rows.offsets,
            rows.indices,
            row_values,
            lists.offsets,
            lists.indices,
            list_values,
            dense_of_pattern,
            dense,
            minimum,
        )

    def heads(self) -> np.ndarray:
        """Return where in each list the compiled loops begin."""
        return self.list_offsets[:-1].copy()


def pair_sums(
    left: PairFeatures,
    right: PairFeatures | None = None,
    weights: np.ndarray | None = None,
    *,
    n_jobs: int = 1,
    out: np.ndarray | None = None,
    upper: bool = False,
    offset: float = np.nan,
) -> np.ndarray:
    """Return ``<W, Z(i, j)>`` for all pairs, shape (n_left, n_right).

    ``right=None`` pairs ``left`` with itself and computes one half only; with ``upper`` the other
    is not filled. ``weights`` are not negative. The number of threads changes no bit. With an
    ``offset`` the result is the distances ``max(0, offset - <W, Z(i, j)>)``.
    """
    target = left if right is None else right
    if target.n_patterns != left.n_patterns or target.minimum != left.minimum:
        raise ValueError("Both sides must have the same patterns and the same kind of feature.")
    if weights is not None and weights.shape != (left.n_patterns,):
        raise ValueError(
            f"There are {left.n_patterns} patterns; weights has shape {weights.shape}."
        )
    shape = (left.n_graphs, target.n_graphs)
    sums = np.empty(shape) if out is None else out
    if sums.shape != shape or sums.dtype != np.float64 or not sums.flags.c_contiguous:
        raise ValueError(f"out must be a C-contiguous float64 array of shape {shape}.")
    lists = PairLists.of(left, target, weights)
    interleaved(
        lambda k, step: _compiled.sum_rows(
            k,
            left.n_graphs,
            step,
            0,
            right is None,
            *lists,
            left.scale,
            target.scale,
            lists.heads(),
            sums,
            offset,
        ),
        n_jobs,
    )
    return sums if upper or right is not None else mirrored(sums, n_jobs)


def gather_pairs(matrix: np.ndarray, lists: PairLists, n_jobs: int = 1) -> np.ndarray:
    """Return ``sum_{i <= j} matrix[i, j] combine(a_iv, a_jv)`` of every pattern ``v``."""
    # `matrix` (n_graphs, n_graphs); the lists are those of one collection with itself.
    gradients = np.zeros((N_SHARES, len(lists.dense_of_pattern)))

    def gather(k: int) -> None:
        _compiled.gather_rows(
            k,
            len(matrix),
            N_SHARES,
            0,
            matrix,
            *lists,
            lists.heads(),
            np.empty((2, _compiled.LANES)),
            gradients[k],
        )

    in_threads(gather, range(N_SHARES), n_jobs)
    return gradients.sum(axis=0)


def mirrored(matrix: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Copy the upper half of a square matrix into the lower, in place."""
    tiles = [slice(start, start + _TILE) for start in range(0, len(matrix), _TILE)]

    def fill(k: int) -> None:
        rows = tiles[k]
        matrix[rows, rows] = np.triu(matrix[rows, rows]) + np.triu(matrix[rows, rows], 1).T
        for columns in tiles[:k]:
            matrix[rows, columns] = matrix[columns, rows].T

    in_threads(fill, range(len(tiles)), n_jobs)
    return matrix


def normalize_kernel(
    kernel: np.ndarray, left_diagonal: np.ndarray, right_diagonal: np.ndarray, how: str | None
) -> np.ndarray:
    """Normalise in place and return a kernel matrix (n_left, n_right).

    ``"cosine"``: ``k(x, y) / sqrt(k(x, x) k(y, y))``. ``"tanimoto"`` (also called min-max on
    intersections of counts): ``k(x, y) / (k(x, x) + k(y, y) - k(x, y))``. Two graphs that share
    nothing, empty ones included, get 0. None: no normalisation.
    """
    if how is None:
        return kernel
    if how not in ("cosine", "tanimoto"):
        raise ValueError(f"normalize must be None, 'cosine' or 'tanimoto', got {how!r}.")
    for row, own in zip(kernel, left_diagonal, strict=True):  # row by row: no second matrix
        # Both are symmetric in the two graphs to the last bit, and so is the result.
        norm = np.sqrt(own * right_diagonal) if how == "cosine" else own + right_diagonal - row
        np.divide(row, norm, out=row, where=norm > 0)
    return kernel


def interleaved(work: Callable[[int, int], Any], n_jobs: int) -> None:
    """Run ``work(k, n_jobs)`` for every thread ``k``: rows k, k + n_jobs, ... are its share."""
    n_jobs = max(n_jobs, 1)
    in_threads(lambda k: work(k, n_jobs), range(n_jobs), n_jobs)


def tanimoto_matrix(left: csr_array, right: csr_array | None = None, n_jobs: int = 1) -> np.ndarray:
    """Tanimoto (min-max) similarities of counts, or of bits, shape (n_left, n_right)."""
    rows, columns = (
        PairFeatures.of_rows(table.astype(float), np.array([0, table.shape[1]]), True)
        for table in (left, left if right is None else right)
    )
    sums = pair_sums(rows, columns, n_jobs=n_jobs)
    return normalize_kernel(sums, rows.diagonal(), columns.diagonal(), "tanimoto")
