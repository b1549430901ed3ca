"""Cholesky factor and inverse of a symmetric matrix on a GPU, in the matrix's own place.

Like :mod:`treelens.gp.linalg`, by blocks, so that nearly all arithmetic is in products of
large matrices, which run near the speed of the device, and no second matrix is needed. Vendor
routines for the inverse take three times the arithmetic or a second matrix.

``arrays`` is CuPy, or NumPy under the simulator. Matrices are C-ordered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.gp.linalg import NotPositiveDefiniteError

BLOCK = 2048


def factor_on_device(matrix: Any, arrays: Any) -> Any:
    """Overwrite the upper triangle with ``U``, where ``U.T @ U`` is the matrix."""
    for here in _blocks(len(matrix)):
        rest = slice(here.start, None)
        if here.start:
            above = matrix[: here.start]
            matrix[here, rest] -= above[:, here].T @ above[:, rest]
        corner = _upper_factor(matrix[here, here], arrays)
        matrix[here, here] = corner
        if here.stop < len(matrix):
            later = slice(here.stop, None)
            matrix[here, later] = _inverse_upper(corner, arrays).T @ matrix[here, later]
    return matrix


def invert_on_device(factor: Any, arrays: Any) -> Any:
    """Overwrite an upper factor ``U`` with the whole of ``inv(U.T @ U)``."""
    blocks = _blocks(len(factor))
    for k, here in enumerate(blocks):  # inv(U), block column by block column
        corner = _inverse_upper(arrays.triu(factor[here, here]), arrays)
        if here.start:
            above = factor[: here.start, here] @ corner
            for rows in blocks[:k]:  # what lies below the diagonal is no part
                inner = slice(rows.start, here.start)
                factor[rows, here] = -(factor[rows, inner] @ above[inner])
        factor[here, here] = corner
        factor[here, : here.start] = 0.0
    for k, here in enumerate(blocks):  # inv(U) inv(U).T; a block is not needed once it is written
        for columns in blocks[k:]:
            rest = slice(columns.start, None)
            factor[here, columns] = factor[here, rest] @ factor[columns, rest].T
    for here in blocks:
        factor[here.stop :, here] = factor[here, here.stop :].T
    return factor


def solve_on_device(factor: Any, right: Any, arrays: Any) -> Any:
    """``inv(U.T @ U) @ right`` for ``right`` of shape (n, p)."""
    half = half_solve_on_device(factor, right, arrays)
    return _solve_triangular(arrays)(factor, half, lower=False)


def half_solve_on_device(factor: Any, right: Any, arrays: Any) -> Any:
    """``inv(U.T) @ right``: its squared columns sum to the quadratic forms of ``right``."""
    return _solve_triangular(arrays)(factor, right, trans=1, lower=False)


def _blocks(n: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def _upper_factor(corner: Any, arrays: Any) -> Any:
    symmetric = arrays.triu(corner) + arrays.triu(corner, 1).T
    try:
        factor = arrays.linalg.cholesky(symmetric).T
    except np.linalg.LinAlgError:
        factor = arrays.full_like(symmetric, np.nan)
    if not bool(arrays.isfinite(factor).all()):  # CuPy says nothing, and returns no numbers
        raise NotPositiveDefiniteError
    return arrays.ascontiguousarray(factor)


def _inverse_upper(corner: Any, arrays: Any) -> Any:
    return _solve_triangular(arrays)(corner, arrays.eye(len(corner)), lower=False)


def _solve_triangular(arrays: Any) -> Any:
    if arrays is np:
        from scipy.linalg import solve_triangular
    else:
        from cupyx.scipy.linalg import solve_triangular
    return solve_triangular
