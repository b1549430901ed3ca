"""Settings of learning: radii, checks, solvers by name, and looser limits."""

import numpy as np
import pytest
from sklearn.base import clone

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
    assert LearnerSettings(radius=radius).radii(2).tolist() == expected


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


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        ("quasi-newton", {"max_iter": 40, "tol": 0.01}),
        (tl.QuasiNewton(max_iter=3, tol=0.5), {"max_iter": 3, "tol": 0.5}),
        (tl.StochasticGradient(n_steps=5000), {"n_steps": 5000, "tol": 0.01}),
    ],
)
def test_limits_only_ever_make_it_rougher(solver, expected):
    learner = tl.PairwiseWeights(2.0, solver=solver)
    before = repr(clone(learner))
    found = limited(learner, tol=0.01, max_iter=40)
    assert expected.items() <= found.solver.get_params().items()
    assert found.radius == 2.0
    assert repr(learner) == before
