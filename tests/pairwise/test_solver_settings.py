"""Solvers as objects: names for them, and working more roughly for a while."""

from __future__ import annotations

import pytest
from reproduction.learners import DepthScaledWeights
from sklearn.base import clone

import treelens as tl
from treelens.pairwise.settings import SOLVERS
from treelens.pairwise.solver_settings import SOLVER_KINDS, as_solver, limited, solver_name


def test_there_is_one_for_every_way_to_learn():
    assert tuple(SOLVER_KINDS) == SOLVERS
    for name in SOLVERS:
        assert solver_name(as_solver(name)) == name


def test_a_solver_stays_itself():
    solver = tl.QuasiNewton(tol=0.5)
    assert as_solver(solver) is solver


def test_limits_only_ever_make_it_rougher():
    rough, fine = tl.QuasiNewton(max_iter=3, tol=0.5), tl.QuasiNewton(max_iter=900, tol=1e-9)
    for solver, expected in ((rough, (3, 0.5)), (fine, (40, 0.01))):
        learner = tl.PairwiseWeights(2.0, solver=solver)
        found = limited(learner, tol=0.01, max_iter=40)
        assert (found.solver.max_iter, found.solver.tol) == expected
        assert found.radius == 2.0


@pytest.mark.parametrize("solver", ["quasi-newton", tl.QuasiNewton()])
def test_the_learner_that_was_given_is_left_alone(solver):
    learner = tl.PairwiseWeights(solver=solver)
    before = repr(clone(learner))
    assert limited(learner, max_iter=1).solver.max_iter == 1
    assert repr(learner) == before


def test_limits_that_a_solver_does_not_have_are_passed_over():
    solver = tl.StochasticGradient(n_steps=5000)
    found = limited(tl.PairwiseWeights(solver=solver), max_iter=1, n_steps=100)
    assert found.solver.n_steps == 100


def test_a_learner_with_settings_of_its_own():
    """The studies' learners have ``tol`` and ``max_iter`` beside their radius."""
    found = limited(DepthScaledWeights(max_iter=500), tol=0.01, max_iter=40)
    assert (found.max_iter, found.tol) == (40, 0.01)
