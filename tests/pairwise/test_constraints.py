"""Projections and linear minimisers against a generic solver, and against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from treelens.pairwise.objective import (
    BallConstraint,
    ball_minimizer,
    project_ball,
    project_ball_in,
)

RADII = (0.3, 1.0, 1.2, np.sqrt(2.0), 2.0, 3.7)
vectors = st.lists(st.floats(-6, 6), min_size=1, max_size=8).map(np.array)


def generic(objective, gradient, start, radius):
    """The least value over ball and orthant, by sequential quadratic programming."""
    found = minimize(
        objective, start, jac=gradient, method="SLSQP", bounds=[(0, None)] * len(start),
        constraints={
            "type": "ineq",
            "fun": lambda w: radius**2 - ((w - 1) ** 2).sum(),
            "jac": lambda w: -2 * (w - 1),
        },
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    return found.x


def inside(w, radius):
    return (w >= 0).all() and np.linalg.norm(w - 1) <= radius * (1 + 1e-11)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("seed", range(4))
def test_projection_is_that_of_a_generic_solver(radius, seed):
    rng = np.random.default_rng(seed)
    v = rng.normal(scale=3, size=6)
    metric = np.exp(rng.normal(size=6))
    ours = project_ball(v, radius)
    theirs = generic(lambda w: ((w - v) ** 2).sum(), lambda w: 2 * (w - v), np.ones(6), radius)
    np.testing.assert_allclose(ours, theirs, atol=2e-5)
    ours = project_ball_in(metric, v, radius)
    theirs = generic(
        lambda w: (metric * (w - v) ** 2).sum(), lambda w: 2 * metric * (w - v), np.ones(6), radius
    )
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


@settings(deadline=None)
@given(vectors, st.sampled_from(RADII), st.randoms(use_true_random=False))
def test_projection_obeys_the_variational_inequality(v, radius, random):
    """``<v - p, w - p> <= 0`` for every ``w`` of the set holds for the projection alone."""
    p = project_ball(v, radius)
    assert inside(p, radius)
    rng = np.random.default_rng(random.randrange(1000))
    for _ in range(20):
        w = project_ball(rng.normal(scale=3, size=len(v)), radius)
        assert (v - p) @ (w - p) <= 1e-9


@settings(deadline=None)
@given(vectors, st.sampled_from(RADII))
def test_projecting_twice_is_projecting_once(v, radius):
    once = project_ball(v, radius)
    assert project_ball(once, radius).tolist() == once.tolist()
    np.testing.assert_allclose(project_ball_in(np.ones(len(v)), v, radius), once, atol=1e-11)


@given(vectors)
def test_inside_nothing_changes(v):
    w = np.abs(v)
    assert project_ball(w, 1000.0).tolist() == w.tolist()
    assert project_ball(w, 0.0).tolist() == [1.0] * len(w)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("seed", range(4))
def test_linear_minimizer_is_that_of_a_generic_solver(radius, seed):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=6) + (1.5 if seed % 2 else 0)
    ours = ball_minimizer(g, radius)
    assert inside(ours, radius)
    theirs = generic(lambda w: g @ w, lambda w: g, np.full(6, 1.0 + 1e-3), radius)
    assert g @ ours <= g @ theirs + 1e-6


@settings(deadline=None)
@given(vectors, st.sampled_from(RADII))
def test_nothing_in_the_set_is_below_the_linear_minimizer(g, radius):
    lowest = ball_minimizer(g, radius)
    assert inside(lowest, radius)
    rng = np.random.default_rng(0)
    for _ in range(30):
        w = project_ball(rng.normal(scale=3, size=len(g)), radius)
        assert g @ lowest <= g @ w + 1e-9


def test_all_upward_slopes_lead_to_zero_if_the_ball_reaches():
    g = np.array([1.0, 2.0, 0.0, 3.0])
    assert ball_minimizer(g, 2.0).tolist() == [0.0, 0.0, 1.0, 0.0]
    assert ball_minimizer(np.zeros(3), 2.0).tolist() == [1.0, 1.0, 1.0]


@given(st.integers(0, 10_000))
def test_depths_are_independent(seed):
    rng = np.random.default_rng(seed)
    offsets, radii = np.array([0, 3, 3, 8]), np.array([0.5, 1.0, 2.0])
    v = rng.normal(scale=3, size=8)
    ball = BallConstraint(offsets, radii)
    for function in (ball.project, ball.linear_minimizer):
        changed = v.copy()
        changed[3:] += 1.0
        np.testing.assert_array_equal(function(v)[:3], function(changed)[:3])
    np.testing.assert_allclose(ball.project(v)[3:], project_ball(v[3:], 2.0))
