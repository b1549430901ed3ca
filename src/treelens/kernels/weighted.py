"""Kernels of the table with weights and scale, the L1 metric, and nearest graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treelens.array_checks import check_array, check_positive
from treelens.kernels.gram import normalize_kernel, pair_sums
from treelens.kernels.mixture import row_blocks
from treelens.kernels.table import KERNELS, check_kernel
from treelens.parallel import in_threads
from treelens.patterns.histograms import Features

_FEW_NEIGHBORS = 16  # so many are found faster one after the other than by sorting


@dataclass(frozen=True, eq=False)
class WeightedKernel:
    """The kernel of a model."""

    name: str  # a key of treelens.kernels.table.KERNELS
    weights: np.ndarray | None = None  # (n_patterns,); None: all ones
    gamma: float | None = None  # None where the kernel has no scale
    offset: float = 1.0  # the constant b of "wwl": the largest <W, Z(G, G)> of training graphs

    def validate(self) -> None:
        check_kernel(self.name)
        check_positive(self.offset, "offset", zero=True)
        if self.gamma is not None or KERNELS[self.name].has_gamma:
            check_positive(0.0 if self.gamma is None else self.gamma, "gamma")
        if self.weights is not None:
            check_array(self.weights, "weights", np.float64, (None,), 0.0)

    @property
    def pair_feature(self) -> str:
        return KERNELS[self.name].pair_feature

    def matrix(self, left: Features, right: Features | None = None, n_jobs: int = 1) -> np.ndarray:
        """Return kernel values between two sides, or within one, shape (n_left, n_right)."""
        other = None if right is None else right.pairs
        sums = pair_sums(left.pairs, other, self.weights, n_jobs=n_jobs)
        return self.of_sums(sums, left.diagonal, (left if right is None else right).diagonal)

    def of_sums(
        self, sums: np.ndarray, left_diagonal: np.ndarray, right_diagonal: np.ndarray
    ) -> np.ndarray:
        """Return kernel values from the sums ``<W, Z>`` of every pair, which are left as they are.

        The diagonals are ``<W, Z(G, G)>`` of every graph.
        """
        unscaled = self.unscaled(sums, left_diagonal, right_diagonal)
        return self.scaled(unscaled, out=unscaled)

    def unscaled(
        self, sums: np.ndarray, left_diagonal: np.ndarray, right_diagonal: np.ndarray
    ) -> np.ndarray:
        """Return what does not depend on ``gamma``: distances, or kernel values without a scale."""
        if self.name in ("wl-oa", "wl-subtree", "wwl-linear"):
            return sums
        if self.name == "wl-subtree-cosine":
            return normalize_kernel(sums.copy(), left_diagonal, right_diagonal, "cosine")
        if self.name == "wwl":
            return self.offset - sums
        if self.name == "laplacian":
            return l1_distance(sums.copy(), left_diagonal, right_diagonal)
        tanimoto = normalize_kernel(sums.copy(), left_diagonal, right_diagonal, "tanimoto")
        return tanimoto if self.name == "tanimoto" else np.subtract(1.0, tanimoto, out=tanimoto)

    def scaled(self, unscaled: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return kernel values from :meth:`unscaled` ones; ``out`` may be those themselves."""
        if not KERNELS[self.name].has_gamma:
            return unscaled
        assert self.gamma is not None
        return exponential(unscaled, self.gamma, out)


def l1_distance(
    sums: np.ndarray, left_diagonal: np.ndarray, right_diagonal: np.ndarray
) -> np.ndarray:
    """``0.5 (<W, Z(i, i)> + <W, Z(j, j)>) - <W, Z(i, j)>`` in place: a metric, 0 on the diagonal.

    For minima of relative frequencies it is ``0.5 (1/H) sum_v w_v |frequency_i(v) -
    frequency_j(v)|``. Diagonals include patterns unknown to the vocabulary.
    """
    for row, own in zip(sums, left_diagonal, strict=True):
        np.subtract(0.5 * (own + right_diagonal), row, out=row)
        np.maximum(row, 0.0, out=row)
    return sums


def exponential(distance: np.ndarray, gamma: float, out: np.ndarray | None = None) -> np.ndarray:
    """``exp(-gamma * distance)``."""
    values = np.multiply(distance, -gamma, out=out)
    return np.exp(values, out=values)


class Nearest(NamedTuple):
    """Nearest graphs of each graph, the most similar first."""

    positions: np.ndarray  # (n_graphs, k)
    similarity: np.ndarray  # (n_graphs, k), from 0 to 1


def nearest_graphs(
    graphs: Features,
    others: Features,
    k: int,
    left_out: np.ndarray | None = None,
    n_jobs: int = 1,
) -> Nearest:
    """Return the ``k`` most similar of ``others``, or all of them where there are fewer."""
    # `left_out` (n_graphs,) is the position of each graph among the others, if it is one of them:
    # it is not its own neighbour.
    similarity = similarities(graphs, others, n_jobs)
    if left_out is not None:
        similarity[np.arange(len(similarity)), left_out] = -1.0
    return nearest_of(similarity, min(k, similarity.shape[1] - (left_out is not None)), n_jobs)


def similarities(graphs: Features, others: Features, n_jobs: int = 1) -> np.ndarray:
    """Return the Tanimoto similarity of graphs to others, (n_graphs, n_others)."""
    similarity = pair_sums(graphs.pairs, others.pairs, others.weights, n_jobs=n_jobs)

    def divide(rows: slice) -> None:
        block = similarity[rows]
        union = graphs.diagonal[rows, None] + others.diagonal - block
        empty = union <= 0.0
        union[empty] = block[empty] = 1.0  # two graphs without any pattern are alike
        np.divide(block, union, out=block)
        np.minimum(block, 1.0, out=block)

    in_threads(divide, row_blocks(*similarity.shape), n_jobs)
    return similarity


def nearest_of(similarity: np.ndarray, k: int, n_jobs: int = 1) -> Nearest:
    """Return the ``k`` largest entries of each row of ``similarity``, which is overwritten.

    Of others that are as similar the first comes first.
    """
    found = Nearest(np.empty((len(similarity), k), np.int64), np.empty((len(similarity), k)))

    def search(rows: slice) -> None:
        block = similarity[rows]
        own = np.arange(len(block))
        if k > _FEW_NEIGHBORS:
            best = np.argsort(-block, axis=1, kind="stable")[:, :k]
            found.positions[rows] = best
            found.similarity[rows] = np.take_along_axis(block, best, axis=1)
            return
        for column in range(k):  # the first of the largest, then that of the others, ...
            best = block.argmax(axis=1)
            found.positions[rows, column], found.similarity[rows, column] = best, block[own, best]
            block[own, best] = -np.inf

    in_threads(search, row_blocks(*similarity.shape), n_jobs)
    return found
