"""Cholesky factors, inverses and triangular solutions by LAPACK, in place where possible.

Matrices are C-ordered and symmetric, and only their upper triangle is read or written: to LAPACK,
which is Fortran, the transpose of such a matrix is one whose lower triangle counts.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
from scipy.linalg import blas, lapack

from treelens.parallel import blas_threads

_LARGE = 1500  # rows; of a smaller matrix a second thread mostly waits for the first


def _threads(matrix: np.ndarray, n_jobs: int) -> AbstractContextManager[None]:
    return blas_threads(n_jobs if len(matrix) >= _LARGE else 1)


class NotPositiveDefiniteError(ValueError):
    """The matrix has no Cholesky factor: rounding left it without full rank."""

    def __init__(self) -> None:
        super().__init__(
            "The covariance matrix is not positive definite: the noise is too small for how "
            "similar some graphs are."
        )


def cholesky_in_place(matrix: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Overwrite the upper triangle with ``U``, where ``U.T @ U`` is the matrix."""
    with _threads(matrix, n_jobs):
        _, failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise NotPositiveDefiniteError
    return matrix


def inverse_in_place(factor: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Overwrite the upper triangle of a factor ``U`` with that of ``inv(U.T @ U)``."""
    with _threads(factor, n_jobs):
        lapack.dpotri(factor.T, lower=1, overwrite_c=1)
    return factor


def solve_factored(factor: np.ndarray, right: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Return ``inv(U.T @ U) @ right`` for ``right`` of shape (n, p)."""
    with _threads(factor, n_jobs):
        return lapack.dpotrs(factor.T, right, lower=1)[0]


def solve_upper(
    factor: np.ndarray, right: np.ndarray, *, transposed: bool, n_jobs: int = 1
) -> np.ndarray:
    """Return ``inv(U.T) @ right`` or, if not ``transposed``, ``inv(U) @ right``.

    The squared columns of the first sum to the quadratic forms of ``right`` (n, p).
    """
    with _threads(factor, n_jobs):
        return blas.dtrsm(1.0, factor.T, right, lower=1, trans_a=0 if transposed else 1)


def quadratic_forms(matrix: np.ndarray, rows: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Return ``row @ matrix @ row`` of a symmetric matrix for every row, shape (n,)."""
    with _threads(matrix, n_jobs):
        half = blas.dtrmm(1.0, matrix.T, rows.T)  # (m, n), from one triangle: half the work
    return 2.0 * np.einsum("ji,ij->i", half, rows) - rows**2 @ np.diagonal(matrix)


def symmetric(upper: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix whose upper triangle is given."""
    return np.triu(upper) + np.triu(upper, 1).T
