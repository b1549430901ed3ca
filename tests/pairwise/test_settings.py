"""Settings of learning: radii, checks, solvers by name, and looser limits."""

import numpy as np
import pytest
from sklearn.base import clone

import treelens as tl
from treelens.pairwise.settings import (
    LearnerSettings,
    limited,
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
    ],
)
def test_choices_that_make_no_sense(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        LearnerSettings(**settings).check()


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (tl.QuasiNewton, {"max_iter": 0}),
        (tl.QuasiNewton, {"tol": -1.0}),
        (tl.ProjectedGradient, {"step_size": 0.0}),
        *((tl.StochasticGradient, {name: -1})
          for name in ("n_steps", "step_size", "halvings", "n_checks")),
    ],
)  # fmt: skip
def test_numbers_of_a_solver_that_make_no_sense(kind, settings, make_features) -> None:
    (name,) = settings
    with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__}"):
        tl.PairwiseWeights(solver=kind(**settings)).fit(make_features(4), [0, 0, 1, 1])


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
