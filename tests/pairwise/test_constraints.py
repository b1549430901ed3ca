"""Projections and linear minimisers against a generic solver, and against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelens.pairwise.objective import (
    BallConstraint,
    ball_minimizer,
    project_ball,
    project_ball_in,
)

RADII = (0.3, 1.0, 1.2, np.sqrt(2.0), 2.0, 3.7)
vectors = st.lists(st.floats(-6, 6), min_size=1, max_size=8).map(np.array)


def inside(w, radius):
    return (w >= 0).all() and np.linalg.norm(w - 1) <= radius * (1 + 1e-11)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("seed", range(4))
def test_projections_and_minimizers_are_those_of_a_generic_solver(generic, radius, seed):
    rng = np.random.default_rng(seed)
    v, metric, ends = rng.normal(scale=3, size=6), np.exp(rng.normal(size=6)), (0, 6)
    for ours, m in (
        (project_ball(v, radius), np.ones(6)),
        (project_ball_in(metric, v, radius), metric),
    ):
        theirs = generic(
            lambda w, m=m: ((m * (w - v) ** 2).sum(), 2 * m * (w - v)), np.ones(6), radius, ends
        )
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    g = rng.normal(size=6) + (1.5 if seed % 2 else 0)
    theirs = generic(lambda w: (g @ w, g), np.full(6, 1.0 + 1e-3), radius, ends)
    assert g @ ball_minimizer(g, radius) <= g @ theirs + 1e-6


@given(vectors, st.sampled_from(RADII), st.integers(0, 1000))
def test_projection_obeys_the_variational_inequality(v, radius, seed):
    """``<v - p, w - p> <= 0`` for every ``w`` of the set holds for the projection alone."""
    p = project_ball(v, radius)
    assert inside(p, radius)
    for point in np.random.default_rng(seed).normal(scale=3, size=(20, len(v))):
        assert (v - p) @ (project_ball(point, radius) - p) <= 1e-9
    assert project_ball(p, radius).tolist() == p.tolist()  # projecting twice is projecting once
    np.testing.assert_allclose(project_ball_in(np.ones(len(v)), v, radius), p, atol=1e-11)
    assert project_ball(np.abs(v), 1000.0).tolist() == np.abs(v).tolist()
    assert project_ball(v, 0.0).tolist() == [1.0] * len(v)


@given(vectors, st.sampled_from(RADII))
def test_nothing_in_the_set_is_below_the_linear_minimizer(g, radius):
    lowest = ball_minimizer(g, radius)
    assert inside(lowest, radius)
    for point in np.random.default_rng(0).normal(scale=3, size=(30, len(g))):
        assert g @ lowest <= g @ project_ball(point, radius) + 1e-9


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
