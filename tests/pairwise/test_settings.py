"""Settings of learning: radii, checks, solvers by name, and looser limits."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import treelens as tl
from treelens.pairwise.settings import (
    SOLVER_KINDS,
    LearnerSettings,
    as_solver,
    limited,
    solver_name,
)


@pytest.mark.parametrize(
    ("radius", "expected"), [(2, [2.0, 2.0]), ([0.5], [0.5, 0.5]), ([0.0, 1.0], [0.0, 1.0])]
)
def test_one_radius_for_every_depth(radius, expected) -> None:
    found = LearnerSettings(radius=radius).radii(2)
    assert found.tolist() == expected
    found[0] = 9.0
    assert found[1] == expected[1]  # each depth has its own


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        ([1.0, 2.0, 3.0], r"one number or one per depth \(2\)"),
        ([[1.0, 2.0]], r"one number or one per depth \(2\)"),
        ([], "one number or one per depth"),
        (-1.0, "finite and not negative"),
        (np.inf, "finite and not negative"),
        ([1.0, np.nan], "finite and not negative"),
    ],
)
def test_what_is_no_radius(radius, message) -> None:
    with pytest.raises(ValueError, match=message):
        LearnerSettings(radius=radius).radii(2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "newton"}, "solver must be one of quasi-newton, batch, stochastic; got"),
        ({"margins": "half"}, r"margins must be 'quantile' or \(alpha1, alpha2\)"),
        ({"margins": (0.2, 0.3)}, "alpha1 >= alpha2"),
        ({"margins": (1.0, 0.5, 0.2)}, "alpha1 >= alpha2"),
        ({"margins": (np.nan, 0.5)}, "alpha1 >= alpha2"),
        ({"sigma": "small"}, "sigma must be 'auto' or a positive number"),
        ({"sigma": 0.0}, "sigma must be"),
        ({"sigma": np.nan}, "sigma must be"),
        ({"n_jobs": 0}, "n_jobs must be at least 1"),
        ({"max_iter": 0}, "'max_iter' parameter of QuasiNewton"),
        ({"tol": -1}, "'tol' parameter of QuasiNewton"),
        ({"solver": "batch", "step_size": 0.0}, "'step_size' parameter of ProjectedGradient"),
        *(({"solver": "stochastic", name: -1}, f"'{name}' parameter of StochasticGradient")
          for name in ("n_steps", "step_size", "halvings", "n_checks")),
    ],
)  # fmt: skip
def test_choices_that_make_no_sense(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        LearnerSettings(**settings).check()


def test_solvers_by_name():
    for name in SOLVER_KINDS:
        assert solver_name(as_solver(name)) == name
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
    class Learner(BaseEstimator):
        def __init__(self, radius=1.0, tol=1e-4, max_iter=500):
            self.radius, self.tol, self.max_iter = radius, tol, max_iter

    found = limited(Learner(), tol=0.01, max_iter=40)
    assert (found.max_iter, found.tol) == (40, 0.01)
