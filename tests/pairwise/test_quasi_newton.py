"""The projected quasi-Newton method: its metric, its line search, and how it ends."""

from __future__ import annotations

import numpy as np
import pytest

from pairwise.test_solvers import Quadratic
from treelens.pairwise import quasi_newton
from treelens.pairwise.certificate import Certificate
from treelens.pairwise.constraints import CONSTRAINT_SETS
from treelens.pairwise.quasi_newton import CurvatureModel, projected_quasi_newton

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_the_metric_pays_off():
    """A guess of the curvatures within a factor of two beats no guess."""
    rng = np.random.default_rng(0)
    curvature = np.geomspace(1e-3, 1e3, 60)
    target = 1 + 0.2 * rng.normal(size=60)
    box = CONSTRAINT_SETS["box"](np.array([0, 60]), np.array([0.9]))
    used = []
    for metric in (np.ones(60), curvature * rng.uniform(0.7, 1.4, 60)):
        quadratic = Quadratic(curvature, target)
        projected_quasi_newton(quadratic, box, np.ones(60), metric, max_iter=400, tol=1e-8)
        used.append(quadratic.n_evaluations)
    assert used[1] < used[0] / 2


@pytest.mark.parametrize("overshoot", [3.0, 20.0])
def test_a_step_too_long_is_shortened_to_the_bottom_of_the_parabola(overshoot):
    """On a parabola the next trial is exact; twenty times too long takes one more, a tenth."""
    ball = CONSTRAINT_SETS["ball"](np.array([0, 1]), np.array([1.0]))
    bottom, start = np.array([1.5]), np.array([1.0])
    parabola = Quadratic(np.array([2.0]), bottom)
    value, gradient = parabola.value_and_gradient(start)
    target = start + overshoot * (bottom - start)
    certificate = Certificate(ball, tol=1e-4)
    found = quasi_newton._line_search(parabola, certificate, start, target, value, gradient)
    np.testing.assert_allclose(found[0], bottom, rtol=1e-12)


def test_a_search_that_fails_once_begins_anew_and_twice_ends_it(rng, monkeypatch):
    search, calls, failing = quasi_newton._line_search, [], {3}

    def failing_search(*arguments):
        calls.append(arguments)
        return None if len(calls) in failing else search(*arguments)

    monkeypatch.setattr(quasi_newton, "_line_search", failing_search)
    ball = CONSTRAINT_SETS["ball"](np.array([0, 6]), np.array([2.0]))
    problem = Quadratic(np.geomspace(1, 50, 6), 1 + 0.1 * rng.normal(size=6)), ball, np.ones(6)
    _, certificate = projected_quasi_newton(*problem, np.ones(6), max_iter=200, tol=1e-6)
    assert len(calls) > 3
    assert certificate.converged or certificate.stalled
    calls.clear()
    failing |= {1}
    weights, _ = projected_quasi_newton(*problem, np.ones(6), max_iter=200, tol=1e-6)
    assert len(calls) == 1  # with no curvature learned there is nothing to forget
    assert np.array_equal(weights, np.ones(6))


def test_curvature_model_obeys_the_secant_equation(rng):
    root = rng.normal(size=(12, 12))
    hessian = root @ root.T + np.eye(12)
    model = CurvatureModel(np.exp(rng.normal(size=12)))
    for _ in range(5):
        step = rng.normal(size=12)
        model.learn(step, hessian @ step)
    np.testing.assert_allclose(model.times(step), hessian @ step, rtol=1e-8)
    vectors = rng.normal(size=(20, 12))
    assert all(vector @ model.times(vector) > 0 for vector in vectors)
