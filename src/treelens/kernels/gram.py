"""Sums of pair features over all pairs of graphs, from which every kernel is made."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from treelens.kernels import _compiled
from treelens.parallel import in_threads
from treelens.patterns.pairs import PairFeatures, dense_columns

_MIRROR_TILE = 64


def pair_sums(
    left: PairFeatures,
    right: PairFeatures | None = None,
    weights: np.ndarray | None = None,
    *,
    factor: float = 1.0,
    shift: float = 0.0,
    n_jobs: int = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """``shift + factor * <W, Z(i, j)>`` for all pairs, shape (n_left, n_right).

    ``right`` is over the same patterns; None pairs ``left`` with itself and computes one half only.
    ``weights`` are not negative; None means all ones. ``out`` may be a memory map. The result does
    not depend on the number of threads.
    """
    target = left if right is None else right
    if target.n_patterns != left.n_patterns or target.minimum != left.minimum:
        raise ValueError("Both sides must have the same patterns and the same kind of feature.")
    shape = (left.n_graphs, target.n_graphs)
    if out is None:
        out = np.empty(shape)
    elif out.shape != shape or out.dtype != np.float64 or not out.flags.c_contiguous:
        raise ValueError(
            f"out must be a C-contiguous float64 array of shape {shape}, got {out.dtype} "
            f"of shape {out.shape}."
        )
    left_values, right_values = _weighted_values(left, target, weights)
    dense_of_pattern, dense = dense_columns(target.lists, right_values, target.n_graphs)
    shared = (
        left.rows.offsets, left.rows.indices, left_values, dense_of_pattern, dense,
        target.lists.offsets, target.lists.indices, right_values, left.minimum,
    )  # fmt: skip
    if right is not None:
        interleaved(
            lambda k, step: _compiled.cross_rows(
                k, step, *shared, left.scale, target.scale, factor, shift, out
            ),
            n_jobs,
        )
        return out
    interleaved(
        lambda k, step: _compiled.upper_rows(k, step, *shared, left.scale, factor, shift, out),
        n_jobs,
    )
    return mirrored(out, n_jobs)


def mirrored(matrix: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Copy the upper half of a square matrix into the lower, in place."""
    interleaved(lambda k, step: _compiled.mirror(k, step, _MIRROR_TILE, matrix), n_jobs)
    return matrix


def apply_in_place(
    function: Callable[[np.ndarray, int, int], Any], matrix: np.ndarray, n_jobs: int
) -> np.ndarray:
    """Let ``function(rows, first, last)`` rewrite blocks of rows, in threads."""
    n_blocks = 1 if n_jobs <= 1 else 8 * n_jobs
    edges = np.unique(np.linspace(0, len(matrix), n_blocks + 1).astype(int)).tolist()
    in_threads(lambda ab: function(matrix[slice(*ab)], *ab), pairwise(edges), n_jobs)
    return matrix


def _weighted_values(
    left: PairFeatures, right: PairFeatures, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Values with the weights inside, the same way on both sides, so that sums are symmetric."""
    if weights is None:
        return left.rows.values, right.lists.values
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (left.n_patterns,):
        raise ValueError(
            f"There are {left.n_patterns} patterns; weights has shape {weights.shape}."
        )
    if not left.minimum:
        weights = np.sqrt(weights)  # a product takes one root from each side
    left_values = left.rows.values * weights[left.rows.indices]
    return left_values, right.lists.values * np.repeat(weights, np.diff(right.lists.offsets))


def interleaved(work: Callable[[int, int], Any], n_jobs: int) -> None:
    """Run ``work(k, n_jobs)`` for every thread ``k``: rows k, k + n_jobs, ... are its share."""
    n_jobs = max(n_jobs, 1)
    in_threads(lambda k: work(k, n_jobs), range(n_jobs), n_jobs)
