"""Quasi-Newton steps against SciPy, within bounds, and with curvature that is passed on."""

import numpy as np
import pytest
from scipy import optimize

from treelens.gp.search import InverseHessian, minimise

BOUNDS = np.array([[-5.0, 5.0], [-9.0, 9.0], [0.3, 8.0]])


@pytest.fixture
def bowl(rng):
    """A convex function of 12 numbers, of which the third would end below its bound."""
    root = rng.normal(size=(12, 12))
    hessian = root @ root.T + np.eye(12)

    def evaluate(x):
        evaluate.n += 1
        slopes = hessian @ x
        slopes[0] += np.sinh(x[0])
        return 0.5 * float(x @ hessian @ x) + float(np.cosh(x[0])), slopes

    evaluate.n = 0
    return evaluate, hessian


def _found(evaluate, start, curvature, least_gain=1e-10, max_steps=100, note=lambda point: None):
    settings = {"least_gain": least_gain, "max_steps": max_steps, "note": note}
    return minimise(evaluate, start, BOUNDS, curvature, **settings)


def test_it_ends_where_scipy_does(bowl, rng):
    evaluate, _ = bowl
    start = np.clip(3.0 * rng.normal(size=12), 0.4, 4.0)
    values = []
    end, converged = _found(
        evaluate, start, InverseHessian(np.eye(5)), note=lambda point: values.append(point.value)
    )
    limits = [*map(tuple, BOUNDS), *[(None, None)] * 9]
    expected = optimize.minimize(evaluate, start, jac=True, bounds=limits, tol=1e-12)
    assert converged
    np.testing.assert_allclose(end.vector, expected.x, atol=1e-4)
    assert end.vector[2] == 0.3
    assert (np.diff(values) <= 0).all()
    assert end.value == values[-1] == evaluate(end.vector)[0]


def test_curvature_that_is_known_saves_steps(bowl, rng):
    evaluate, hessian = bowl
    start = np.clip(rng.normal(size=12), 0.4, None)
    counts = []
    for first in (np.eye(12), np.linalg.inv(hessian)):
        evaluate.n = 0
        _found(evaluate, start, InverseHessian(first), 1e-6)
        counts.append(evaluate.n)
    assert counts[1] < 0.6 * counts[0]


def test_the_model_says_what_is_left_to_be_gained(bowl):
    evaluate, hessian = bowl
    start = np.full(12, 0.5)
    least = _found(evaluate, start, InverseHessian(np.linalg.inv(hessian)))[0].value
    for gain in (1.0, 1e-3):
        end, converged = _found(evaluate, start, InverseHessian(np.linalg.inv(hessian)), gain)
        assert converged
        assert end.value - least < 2.0 * gain
    _, converged = _found(evaluate, start, InverseHessian(np.eye(12)), 1e-9, max_steps=2)
    assert not converged


def test_the_block_of_the_first_coordinates_is_that_of_the_whole_matrix(rng):
    curvature = InverseHessian(np.diag(rng.uniform(0.5, 2.0, size=5)), 0.3)
    np.testing.assert_array_equal(curvature.block(), curvature.first)
    for _ in range(4):
        step = rng.normal(size=12)
        curvature.update(step, 2.0 * step + 0.1 * rng.normal(size=12), step)
    whole = np.array([curvature.times(row) for row in np.eye(12)])
    np.testing.assert_allclose(whole, whole.T, atol=1e-12)
    assert np.linalg.eigvalsh(whole).min() > 0
    np.testing.assert_allclose(curvature.block(), whole[:5, :5], atol=1e-12)


def test_a_step_through_negative_curvature_leaves_the_model_convex_and_longer(rng):
    curvature = InverseHessian(np.eye(3))
    step = rng.normal(size=3)
    curvature.update(step, -step, step)
    whole = np.array([curvature.times(row) for row in np.eye(3)])
    assert np.linalg.eigvalsh(whole).min() > 0
    assert step @ whole @ step > step @ step
    curvature.update(step, step, -step)  # a bound held the step: nothing is learned
    np.testing.assert_allclose(curvature.times(step), whole @ step, rtol=1e-12)


def test_values_that_rounding_has_made_noisy_end_the_search(rng):
    def evaluate(x):
        return 1e3 + float(1e-9 * rng.normal()), 1e-4 * np.ones(3)

    end, converged = minimise(
        evaluate, np.ones(3), np.empty((0, 2)), InverseHessian(np.eye(3)),
        least_gain=0.0, max_steps=50,
    )  # fmt: skip
    assert converged
    assert np.isfinite(end.vector).all()
