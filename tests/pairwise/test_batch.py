"""The projected gradient: its first step, and that the adaptive step never goes uphill."""

from __future__ import annotations

import numpy as np
import pytest

from pairwise.test_solvers import Quadratic
from treelens.pairwise.batch import first_step, projected_gradient
from treelens.pairwise.constraints import CONSTRAINT_SETS

BALL = CONSTRAINT_SETS["ball"](np.array([0, 2, 3]), np.array([1.0, 2.0]))


def test_the_first_step_leads_as_far_as_the_widest_radius() -> None:
    direction = np.array([3.0, 0.0, 4.0])
    step = first_step(direction, BALL)
    assert np.linalg.norm(step * direction) == pytest.approx(2.0)
    assert first_step(np.zeros(3), BALL) == 1.0


def test_the_objective_falls_with_every_iteration() -> None:
    """Curvatures so different that the first step is far too long."""
    target = Quadratic(np.array([1.0, 50.0, 2500.0]), np.array([1.3, 0.8, 1.1]))
    weights, certificate = projected_gradient(target, BALL, np.ones(3), max_iter=30, tol=0.0)
    assert len(certificate.values) == 31
    assert (np.diff(certificate.values) <= 1e-14 * certificate.values[0]).all()
    np.testing.assert_allclose(BALL.project(weights), weights, atol=1e-12)


def test_at_the_optimum_nothing_is_done() -> None:
    target = Quadratic(np.ones(3), np.ones(3))
    weights, certificate = projected_gradient(target, BALL, np.ones(3), max_iter=10, tol=1e-6)
    assert weights.tolist() == [1.0, 1.0, 1.0]
    assert target.n_evaluations == 1
    assert certificate.converged


def test_no_iterations_are_none() -> None:
    target = Quadratic(np.ones(3), np.array([2.0, 2.0, 2.0]))
    weights, certificate = projected_gradient(target, BALL, np.ones(3), max_iter=0, tol=1e-6)
    assert weights.tolist() == [1.0, 1.0, 1.0]
    assert not certificate.converged
