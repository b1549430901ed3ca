"""Cholesky factor and inverse: LAPACK's answers, the same bits for any number of threads."""

import numpy as np
import pytest

from treelens.gp import factor
from treelens.gp.factor import (
    NotPositiveDefiniteError,
    cholesky_in_place,
    half_solve,
    inverse_of_factor,
    quadratic_forms,
    solve_factored,
)

pytestmark = pytest.mark.interpreted


@pytest.fixture(params=[1, 5, 64, 65, 200])
def matrix(request, monkeypatch):
    monkeypatch.setattr(factor, "TILE", 64)  # several tiles, one of them ragged
    rng = np.random.default_rng(request.param)
    table = rng.normal(size=(request.param, request.param + 3))
    return table @ table.T / request.param + 0.1 * np.eye(request.param)


def _factored(matrix, n_jobs=1):
    work = np.triu(matrix) + np.tril(np.full_like(matrix, np.nan), -1)  # below: never read
    return cholesky_in_place(work, n_jobs)


def test_factor_and_inverse_agree_with_numpy(matrix):
    upper = np.triu(_factored(matrix))
    np.testing.assert_allclose(upper, np.linalg.cholesky(matrix).T, atol=1e-10)
    inverse = np.full_like(matrix, np.nan)
    inverse_of_factor(_factored(matrix), inverse)
    np.testing.assert_allclose(np.triu(inverse), np.triu(np.linalg.inv(matrix)), rtol=1e-9)
    assert np.isnan(inverse[np.tril_indices(len(matrix), -1)]).all()  # left alone


def test_any_number_of_threads_gives_the_same_bits(matrix):
    results = []
    for n_jobs in (1, 2, 3):
        upper = _factored(matrix, n_jobs)
        inverse = np.zeros_like(matrix)
        inverse_of_factor(upper.copy(), inverse, n_jobs)
        results.append((np.triu(upper), np.triu(inverse)))
    for upper, inverse in results[1:]:
        assert (upper == results[0][0]).all()
        assert (inverse == results[0][1]).all()


def test_solves(matrix):
    right = np.random.default_rng(0).normal(size=(len(matrix), 3))
    upper = _factored(matrix)
    upper[np.tril_indices(len(matrix), -1)] = 7.0  # finite, and of no consequence
    np.testing.assert_allclose(
        solve_factored(upper, right), np.linalg.solve(matrix, right), rtol=1e-8
    )
    quadratic = (half_solve(upper, right) ** 2).sum(axis=0)
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
