"""A kernel of the table with its weights and scales in place, and its matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelens.array_checks import check_array, check_positive
from treelens.kernels.gram import pair_sums
from treelens.kernels.normalize import normalize_kernel
from treelens.kernels.table import KERNELS, check_kernel
from treelens.kernels.weisfeiler_lehman import exponential
from treelens.patterns.features import Features


@dataclass(frozen=True, eq=False)
class WeightedKernel:
    """What a model compares graphs by.

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
        """Kernel values where the weighted sums are at hand; they are left as they are."""
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
    """A kernel matrix from weighted sums; ``sums`` is left as it is.

    Parameters
    ----------
    kernel : str
        A key of ``treelens.kernels.table.KERNELS``.
    sums : ndarray, shape (n_left, n_right)
        ``<W, Z>`` of every pair.
    left_diagonal, right_diagonal : ndarray
        ``<W, Z(G, G)>`` of every graph.
    offset : float
        The constant ``b``: the largest ``<W, Z(G, G)>`` of the training graphs.
    gamma : float, optional
    """
    check_kernel(kernel)
    if kernel == "wwl":
        assert gamma is not None
        return exponential(offset - sums, gamma)
    if kernel == "laplacian":
        assert gamma is not None
        distance = 0.5 * (left_diagonal[:, None] + right_diagonal[None, :]) - sums
        return exponential(np.maximum(distance, 0.0, out=distance), gamma)
    if kernel == "tanimoto":
        return normalize_kernel(sums.copy(), left_diagonal, right_diagonal, "tanimoto")
    if kernel == "tanimoto-rbf":
        assert gamma is not None
        similarity = normalize_kernel(sums.copy(), left_diagonal, right_diagonal, "tanimoto")
        return exponential(np.subtract(1.0, similarity, out=similarity), gamma)
    if kernel == "wl-subtree-cosine":
        return normalize_kernel(sums.copy(), left_diagonal, right_diagonal, "cosine")
    return sums
