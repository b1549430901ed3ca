"""Cholesky factors and inverses in place, against NumPy."""

import numpy as np
import pytest

from treelens.gp.posterior import (
    NotPositiveDefiniteError,
    cholesky_in_place,
    inverse_in_place,
    quadratic_forms,
    solve_factored,
    solve_upper,
)

pytestmark = pytest.mark.interpreted


@pytest.fixture(params=[1, 5, 200])
def matrix(request):
    rng = np.random.default_rng(request.param)
    table = rng.normal(size=(request.param, request.param + 3))
    return table @ table.T / request.param + 0.1 * np.eye(request.param)


def _factored(matrix, n_jobs=1):
    work = np.triu(matrix) + np.tril(np.full_like(matrix, 7.0), -1)  # below: never read
    factor = cholesky_in_place(work, n_jobs)
    assert np.shares_memory(factor, work)
    return factor


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_factor_and_inverse_agree_with_numpy(matrix, n_jobs):
    upper = _factored(matrix, n_jobs)
    np.testing.assert_allclose(np.triu(upper), np.linalg.cholesky(matrix).T, atol=1e-10)
    inverse = inverse_in_place(upper, n_jobs)
    assert np.shares_memory(inverse, upper)
    np.testing.assert_allclose(np.triu(inverse), np.triu(np.linalg.inv(matrix)), rtol=1e-9)
    assert (inverse[np.tril_indices(len(matrix), -1)] == 7.0).all()  # left alone


def test_solves(matrix):
    right = np.random.default_rng(0).normal(size=(len(matrix), 3))
    upper = _factored(matrix)
    upper[np.tril_indices(len(matrix), -1)] = 7.0  # finite, and of no consequence
    np.testing.assert_allclose(
        solve_factored(upper, right), np.linalg.solve(matrix, right), rtol=1e-8
    )
    back = solve_upper(upper, np.triu(upper) @ right, transposed=False)
    np.testing.assert_allclose(back, right, rtol=1e-8, atol=1e-10)
    quadratic = (solve_upper(upper, right, transposed=True) ** 2).sum(axis=0)
    expected = np.einsum("ip,ip->p", right, np.linalg.solve(matrix, right))
    np.testing.assert_allclose(quadratic, expected, rtol=1e-8)


def test_quadratic_forms_from_one_half_of_the_matrix(matrix):
    rows = np.random.default_rng(1).normal(size=(7, len(matrix)))
    one_half = np.tril(matrix) + np.triu(np.full_like(matrix, np.nan), 1)
    expected = np.einsum("ni,ij,nj->n", rows, matrix, rows)
    np.testing.assert_allclose(quadratic_forms(matrix, rows), expected, rtol=1e-10)
    np.testing.assert_allclose(quadratic_forms(one_half, rows), expected, rtol=1e-10)


def test_a_matrix_without_full_rank_is_named():
    with pytest.raises(NotPositiveDefiniteError, match="positive definite"):
        cholesky_in_place(np.array([[1.0, 2.0], [2.0, 1.0]]))
