"""The certificate: a lower bound that holds, on a problem whose optimum is known."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.pairwise.certificate import Certificate
from treelens.pairwise.constraints import BallConstraint

TARGET = np.array([1.9, 1.0, 0.2])  # outside the ball of radius 1/2 around ones


def value_and_gradient(w):
    return float(((w - TARGET) ** 2).sum()), 2 * (w - TARGET)


@pytest.fixture
def certificate():
    return Certificate(BallConstraint(np.array([0, 3]), np.array([0.5])), tol=1e-3)


def optimum():
    shift = TARGET - 1.0
    return 1.0 + 0.5 * shift / np.linalg.norm(shift)


def test_the_bound_never_exceeds_the_optimum(certificate, rng):
    best = value_and_gradient(optimum())[0]
    for _ in range(200):
        point = certificate.constraint.project(1.0 + rng.normal(size=3))
        certificate.observe(point, *value_and_gradient(point))
        assert certificate.lower_bound <= best + 1e-12


def test_at_the_optimum_the_gap_closes(certificate):
    point = optimum()
    value, gradient = value_and_gradient(point)
    certificate.observe(point, value, gradient)
    certificate.record(value)
    assert certificate.lower_bound == pytest.approx(value)
    assert certificate.converged


def test_away_from_it_the_gap_is_at_least_the_true_one(certificate):
    point = np.ones(3)
    value, gradient = value_and_gradient(point)
    certificate.observe(point, value, gradient)
    certificate.record(value)
    best = value_and_gradient(optimum())[0]
    assert certificate.gaps[-1] >= (value - best) / value
    assert not certificate.converged


def test_it_stalls_only_after_a_good_while_without_progress(certificate):
    for value in np.linspace(2.0, 1.0, 40):
        certificate.record(value)
    assert not certificate.stalled
    for _ in range(29):
        certificate.record(1.0)
    assert not certificate.stalled
    for _ in range(2):
        certificate.record(1.0)
    assert certificate.stalled
