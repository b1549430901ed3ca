"""Blocked factor and inverse, against NumPy's; on a GPU with CuPy, elsewhere with NumPy."""

import numpy as np
import pytest

from devices import THERE
from treelens.gp import factor_device
from treelens.gp.linalg import NotPositiveDefiniteError
from treelens.kernels.device import Device

pytestmark = pytest.mark.interpreted
DEVICE = Device.open("cuda") if THERE else Device("none", np)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(factor_device, "BLOCK", 7)


def _matrix(n, seed=0):
    roots = np.random.default_rng(seed).normal(size=(n, n))
    return roots @ roots.T + np.eye(n)


@pytest.mark.parametrize("n", [1, 6, 7, 8, 30])
def test_factor_solution_and_inverse(n):
    matrix, right = _matrix(n), np.random.default_rng(1).normal(size=(n, 2))
    held = DEVICE.put(matrix.copy())
    factor = factor_device.factor_on_device(held, DEVICE.arrays)
    upper = np.triu(DEVICE.get(factor))
    np.testing.assert_allclose(upper.T @ upper, matrix, rtol=1e-10, atol=1e-10)
    solution = factor_device.solve_on_device(factor, DEVICE.put(right), DEVICE.arrays)
    np.testing.assert_allclose(DEVICE.get(solution), np.linalg.solve(matrix, right), atol=1e-10)
    half = factor_device.half_solve_on_device(factor, DEVICE.put(right), DEVICE.arrays)
    forms = np.einsum("ip,ij,jp->p", right, np.linalg.inv(matrix), right)
    np.testing.assert_allclose((DEVICE.get(half) ** 2).sum(axis=0), forms, rtol=1e-10)
    inverse = DEVICE.get(factor_device.invert_on_device(factor, DEVICE.arrays))
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix), atol=1e-12)


def test_only_the_upper_triangle_is_read():
    matrix = _matrix(20)
    spoiled = matrix + np.tril(np.full((20, 20), 5.0), -1)
    factors = [
        np.triu(DEVICE.get(factor_device.factor_on_device(DEVICE.put(m.copy()), DEVICE.arrays)))
        for m in (matrix, spoiled)
    ]
    np.testing.assert_array_equal(*factors)


def test_a_matrix_without_a_factor_is_refused():
    matrix = _matrix(20)
    matrix[15, 15] = -1.0
    with pytest.raises(NotPositiveDefiniteError, match="noise is too small"):
        factor_device.factor_on_device(DEVICE.put(matrix), DEVICE.arrays)
