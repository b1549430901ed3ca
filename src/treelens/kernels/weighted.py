"""From weighted sums ``<W, Z>`` to the matrix of a kernel of the table."""

from __future__ import annotations

import numpy as np

from treelens.kernels.normalize import normalize_kernel
from treelens.kernels.table import check_kernel
from treelens.kernels.weisfeiler_lehman import exponential


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
