"""The kernel of tables: gradients, and their means on straight lines."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.kernels.base import Kernel
from treelens.kernels.rbf import Rbf

ROWS = np.random.default_rng(0).normal(size=(4, 3))
RIGHT = np.random.default_rng(1).normal(size=(6, 3))
ALPHA = np.random.default_rng(2).normal(size=(4, 6))
START = np.array([0.5, -1.0, 2.0])


def sums(kernel, rows):
    return np.einsum("gi,gi->g", ALPHA, kernel.matrix(rows, RIGHT))


@pytest.mark.parametrize("length", [0.4, 1.7, 30.0])
def test_gradients_are_those_of_differences(length):
    kernel, step = Rbf(length), 1e-5
    found = kernel.gradient(ROWS, RIGHT, ALPHA)
    for column in range(3):
        ahead, behind = ROWS.copy(), ROWS.copy()
        ahead[:, column] += step
        behind[:, column] -= step
        expected = (sums(kernel, ahead) - sums(kernel, behind)) / (2 * step)
        np.testing.assert_allclose(found[:, column], expected, rtol=1e-5, atol=1e-8)
    # Contracted with coefficients, slopes along a direction are the gradient along it.
    directions = np.random.default_rng(3).normal(size=ROWS.shape)
    along = kernel.slopes_along(ROWS, RIGHT, directions)
    expected = np.einsum("gc,gc->g", found, directions)
    np.testing.assert_allclose(np.einsum("gi,gi->g", ALPHA, along), expected, rtol=1e-10)


@pytest.mark.parametrize("length", [0.1, 1.0, 50.0])
def test_paths_lose_nothing_on_the_way(length):
    """Also over dozens of length scales; and both forms are one."""
    kernel, moved = Rbf(length), ROWS - START
    slopes = kernel.path(START, ROWS, RIGHT, ALPHA)
    change = sums(kernel, ROWS) - sums(kernel, np.tile(START, (4, 1)))
    np.testing.assert_allclose(np.einsum("gc,gc->g", slopes, moved), change, atol=1e-10)
    per_pair = kernel.path_along(START, ROWS, RIGHT, moved)
    np.testing.assert_allclose(np.einsum("gi,gi->g", ALPHA, per_pair), change, atol=1e-10)


def test_a_kernel_of_a_user_may_know_its_gradient():
    class Cosine(Kernel):
        PARAMETERS = ()

        @classmethod
        def usual(cls, data):
            return cls()

        def matrix(self, left, right, n_jobs=1):
            return np.cos(left[:, :1] - right[:, 0])

    class Explained(Cosine):
        def gradient(self, rows, right, coefficients):
            found = np.zeros_like(rows)
            found[:, 0] = -(coefficients * np.sin(rows[:, :1] - right[:, 0])).sum(axis=1)
            return found

    kernel = Explained()
    slopes = kernel.path(START, ROWS, RIGHT, ALPHA)
    change = sums(kernel, ROWS) - sums(kernel, np.tile(START, (4, 1)))
    np.testing.assert_allclose(np.einsum("gc,gc->g", slopes, ROWS - START), change, atol=1e-12)
    by_differences = Cosine().path(START, ROWS, RIGHT, ALPHA)
    np.testing.assert_allclose(by_differences, slopes, rtol=1e-5, atol=1e-8)
