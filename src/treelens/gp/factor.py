"""Cholesky factor and inverse of a symmetric matrix, the same to the last bit on any machine load.

LAPACK's own results change in the last digits with the number of BLAS threads. Here the matrix is
cut into tiles of a fixed size, every tile is computed by one single-threaded call, and our own
threads share out the tiles: any number of them gives the same bits, and the time is LAPACK's.

Matrices are C-ordered and only their upper triangle is read or written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from treelens.parallel import one_blas_thread

TILE = 256


class NotPositiveDefiniteError(ValueError):
    """The matrix has no Cholesky factor: rounding left it without full rank."""


def cholesky_in_place(matrix: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Overwrite the upper triangle with ``U``, where ``U.T @ U`` is the matrix.

    Parameters
    ----------
    matrix : ndarray of float64, C-ordered, shape (n, n)
        Its lower triangle is left alone.
    n_jobs : int
        Threads. The result is the same, bit for bit, for every number of them.

    Raises
    ------
    NotPositiveDefiniteError

    Examples
    --------
    >>> matrix = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> np.triu(cholesky_in_place(matrix))
    array([[2., 1.],
           [0., 2.]])
    """
    tiles = _tiles(len(matrix))
    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
        for k, tile in enumerate(tiles):
            _factor_tile(matrix[tile, tile])
            later = tiles[k + 1 :]
            _run(pool, partial(_solve_tile, matrix, tile), later)
            _run(pool, partial(_update_rows, matrix, tile), later)
    return matrix


def inverse_of_factor(factor: np.ndarray, out: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """The upper triangle of ``inv(U.T @ U)`` from the factor ``U``.

    Parameters
    ----------
    factor : ndarray, C-ordered, shape (n, n)
        From :func:`cholesky_in_place`; its upper triangle is overwritten with ``inv(U)``.
    out : ndarray, C-ordered, shape (n, n)
        Its upper triangle is written.
    n_jobs : int
    """
    tiles = _tiles(len(factor))
    inverse = out  # the columns of inv(U) are made there, and moved over the factor they came from
    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
        _run(pool, lambda columns: _invert_columns(factor, columns, inverse), tiles[::-1])
        _run(pool, lambda columns: _move_columns(inverse, columns, factor), tiles)
        _run(pool, lambda rows: _multiply_rows(factor, tiles, rows, out), tiles)
    return out


def solve_factored(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``inv(U.T @ U) @ right`` for ``right`` of shape (n, p)."""
    with one_blas_thread():
        solution, _ = lapack.dpotrs(factor.T, right, lower=1)
    return solution


def half_solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``inv(U.T) @ right``: its squared columns sum to the quadratic forms of ``right``."""
    with one_blas_thread():
        return blas.dtrsm(1.0, factor.T, right, lower=1)


def quadratic_forms(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``row @ matrix @ row`` for every row of a symmetric matrix's vectors, shape (n,).

    Both halves of the matrix say the same: one of them is half the work.

    Parameters
    ----------
    matrix : ndarray, C-ordered, shape (m, m)
        Symmetric.
    rows : ndarray, C-ordered, shape (n, m)

    Examples
    --------
    >>> quadratic_forms(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 1.0], [0.0, 2.0]]))
    array([ 7., 12.])
    """
    with one_blas_thread():
        half = blas.dtrmm(1.0, matrix.T, rows.T)  # (m, n), from one triangle
    return 2.0 * (half.T * rows).sum(axis=1) - rows**2 @ np.diagonal(matrix)


def solve_in_tiles(
    factor: np.ndarray, right: np.ndarray, *, transposed: bool, n_jobs: int = 1
) -> np.ndarray:
    """``inv(U.T) @ right``, or without ``transposed`` ``inv(U) @ right``, columns shared out.

    Parameters
    ----------
    factor : ndarray, C-ordered, shape (n, n)
        From :func:`cholesky_in_place`.
    right : ndarray, shape (n, p)
    transposed : bool
    n_jobs : int
        Threads. The result is the same, bit for bit, for every number of them.

    Examples
    --------
    >>> factor = cholesky_in_place(np.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> solve_in_tiles(factor, np.array([[2.0], [3.0]]), transposed=True)
    array([[1.],
           [1.]])
    """
    out = np.empty(right.shape)

    def solve(columns: slice) -> None:
        out[:, columns] = blas.dtrsm(
            1.0, factor.T, right[:, columns], lower=1, trans_a=0 if transposed else 1
        )

    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
        _run(pool, solve, _tiles(right.shape[1]))
    return out


def add_products(out: np.ndarray, left: np.ndarray, right: np.ndarray, n_jobs: int = 1) -> None:
    """Add the upper triangle of ``left @ right.T``, which is symmetric, to ``out``, in tiles.

    Parameters
    ----------
    out : ndarray, shape (n, n)
        What lies below its diagonal means nothing.
    left, right : ndarray, shape (n, p)
    n_jobs : int
        Threads. The result is the same, bit for bit, for every number of them.
    """

    def add(rows: slice) -> None:
        out[rows, rows.start :] += left[rows] @ right[rows.start :].T

    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
        _run(pool, add, _tiles(len(out)))


def multiply(left: np.ndarray, right: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """``left @ right``, rows shared out to threads: the same bits for every number of them."""
    out = np.empty((len(left), right.shape[1]))

    def fill(rows: slice) -> None:
        out[rows] = left[rows] @ right

    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
        _run(pool, fill, _tiles(len(left)))
    return out


def both_halves(upper: np.ndarray) -> np.ndarray:
    """The symmetric matrix whose upper triangle is given."""
    return np.triu(upper) + np.triu(upper, 1).T


def _tiles(n: int) -> list[slice]:
    return [slice(start, min(start + TILE, n)) for start in range(0, n, TILE)]


def _run(pool: ThreadPoolExecutor, work: Callable[[slice], Any], tiles: Sequence[slice]) -> None:
    list(pool.map(work, tiles))


def _factor_tile(tile: np.ndarray) -> None:
    upper, failed = lapack.dpotrf(np.triu(tile), lower=0, clean=1)
    if failed:
        raise NotPositiveDefiniteError(
            "The covariance matrix is not positive definite: the noise is too small for how alike "
            "some graphs are."
        )
    rows, columns = np.triu_indices(len(tile))
    tile[rows, columns] = upper[rows, columns]


def _solve_tile(matrix: np.ndarray, tile: slice, columns: slice) -> None:
    """``U_kj = inv(U_kk).T A_kj``."""
    matrix[tile, columns] = blas.dtrsm(1.0, matrix[tile, tile].T, matrix[tile, columns], lower=1)


def _update_rows(matrix: np.ndarray, tile: slice, rows: slice) -> None:
    """``A_ij -= U_ki.T U_kj`` for the tiles ``j >= i`` of one row of tiles."""
    rest = slice(rows.start, None)
    product = matrix[tile, rows].T @ matrix[tile, rest]
    square = rows.stop - rows.start
    upper = np.triu_indices(square)
    corner = matrix[rows, rows]
    corner[upper] -= product[:, :square][upper]
    matrix[rows, rows.stop :] -= product[:, square:]


def _invert_columns(factor: np.ndarray, columns: slice, inverse: np.ndarray) -> None:
    """The columns of ``inv(U)`` of one tile; they reach down to the diagonal."""
    stop = columns.stop
    right = np.zeros((stop, stop - columns.start), order="F")
    right[columns] = np.eye(stop - columns.start)
    lead = factor[:stop, :stop].T  # Fortran-ordered, its lower triangle is U.T
    solution = blas.dtrsm(1.0, lead, right, lower=1, trans_a=1, overwrite_b=1)
    inverse[: columns.start, columns] = solution[: columns.start]
    upper = np.triu_indices(stop - columns.start)
    inverse[columns, columns][upper] = solution[columns][upper]


def _move_columns(source: np.ndarray, columns: slice, target: np.ndarray) -> None:
    target[: columns.start, columns] = source[: columns.start, columns]
    upper = np.triu_indices(columns.stop - columns.start)
    target[columns, columns][upper] = source[columns, columns][upper]


def _multiply_rows(
    inverse: np.ndarray, tiles: Sequence[slice], rows: slice, out: np.ndarray
) -> None:
    """``inv(U) inv(U).T`` for the tiles ``j >= i`` of one row of tiles."""
    for columns in tiles:
        if columns.start < rows.start:
            continue
        square = np.triu(inverse[columns, columns])
        left = np.triu(inverse[rows, rows]) if columns == rows else inverse[rows, columns]
        product = left @ square.T
        if columns.stop < len(inverse):
            rest = slice(columns.stop, None)
            product += inverse[rows, rest] @ inverse[columns, rest].T
        if columns == rows:
            upper = np.triu_indices(rows.stop - rows.start)
            out[rows, rows][upper] = product[upper]
        else:
            out[rows, columns] = product
