"""Normalisations of a kernel matrix, given each graph's similarity with itself."""

from __future__ import annotations

import numpy as np


def normalize_kernel(
    kernel: np.ndarray, left_diagonal: np.ndarray, right_diagonal: np.ndarray, how: str | None
) -> np.ndarray:
    """Normalise in place and return a kernel matrix (n_left, n_right).

    ``"cosine"``: ``k(x, y) / sqrt(k(x, x) k(y, y))``. ``"tanimoto"`` (also called min-max on
    intersections of counts): ``k(x, y) / (k(x, x) + k(y, y) - k(x, y))``. Two graphs that share
    nothing, empty ones included, get 0. None: no normalisation.

    Examples
    --------
    >>> normalize_kernel(np.array([[1.0]]), np.array([2.0]), np.array([2.0]), "tanimoto")
    array([[0.33333333]])
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
