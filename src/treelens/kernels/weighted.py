"""Kernels of the table with weights and scale, their matrices, and the L1 metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelens.array_checks import check_array, check_positive
from treelens.kernels.gram import apply_in_place, normalize_kernel, pair_sums
from treelens.kernels.table import KERNELS, check_kernel
from treelens.patterns.features import Features


@dataclass(frozen=True, eq=False)
class WeightedKernel:
    """The kernel of a model.

    Attributes
    ----------
    name : str
        A key of ``treelens.kernels.table.KERNELS``.
    weights : ndarray, shape (n_patterns,), or None
        None: all ones.
    gamma : float or None
        None where the kernel has no scale.
    offset : float
        The constant ``b`` of the kernel "wwl": the largest ``<W, Z(G, G)>`` of training graphs.
    """

    name: str
    weights: np.ndarray | None = None
    gamma: float | None = None
    offset: float = 1.0

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
        """Kernel values between two sides, or within one, shape (n_left, n_right)."""
        other = None if right is None else right.pairs
        sums = pair_sums(left.pairs, other, self.weights, n_jobs=n_jobs)
        return self.of_sums(sums, left.diagonal, (left if right is None else right).diagonal)

    def of_sums(
        self, sums: np.ndarray, left_diagonal: np.ndarray, right_diagonal: np.ndarray
    ) -> np.ndarray:
        """Kernel values from weighted sums, which are left as they are."""
        return kernel_matrix(
            self.name, sums, left_diagonal, right_diagonal, self.offset, self.gamma
        )


def kernel_matrix(
    kernel: str,
    sums: np.ndarray,
    left_diagonal: np.ndarray,
    right_diagonal: np.ndarray,
    offset: float,
    gamma: float | None = None,
) -> np.ndarray:
    """A kernel matrix from the weighted sums ``<W, Z>`` of every pair, which are left as they are.

    The diagonals are ``<W, Z(G, G)>`` of every graph; see :class:`WeightedKernel` for the rest.
    """
    check_kernel(kernel)
    if kernel in ("wl-oa", "wl-subtree", "wwl-linear"):
        return sums
    if kernel == "wl-subtree-cosine":
        return normalize_kernel(sums.copy(), left_diagonal, right_diagonal, "cosine")
    if kernel == "tanimoto":
        return normalize_kernel(sums.copy(), left_diagonal, right_diagonal, "tanimoto")
    assert gamma is not None
    if kernel == "wwl":
        return exponential(offset - sums, gamma)
    if kernel == "laplacian":
        return exponential(l1_distance(sums.copy(), left_diagonal, right_diagonal), gamma)
    similarity = normalize_kernel(sums.copy(), left_diagonal, right_diagonal, "tanimoto")
    return exponential(np.subtract(1.0, similarity, out=similarity), gamma)


def l1_distance(
    sums: np.ndarray, left_diagonal: np.ndarray, right_diagonal: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """``0.5 (<W, Z(i, i)> + <W, Z(j, j)>) - <W, Z(i, j)>`` in place: a metric, 0 on the diagonal.

    For minima of relative frequencies it is ``0.5 (1/H) sum_v w_v |frequency_i(v) -
    frequency_j(v)|``. Diagonals include patterns unknown to the vocabulary.
    """

    def finish(rows: np.ndarray, first: int, last: int) -> None:
        for row, own in zip(rows, left_diagonal[first:last], strict=True):
            np.subtract(0.5 * (own + right_diagonal), row, out=row)
            np.maximum(row, 0.0, out=row)

    return apply_in_place(finish, sums, n_jobs)


def exponential(distance: np.ndarray, gamma: float, n_jobs: int = 1) -> np.ndarray:
    """``exp(-gamma * distance)``, in place."""

    def finish(rows: np.ndarray, first: int, last: int) -> None:
        np.multiply(rows, -gamma, out=rows)
        np.exp(rows, out=rows)

    return apply_in_place(finish, distance, n_jobs)
