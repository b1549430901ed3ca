"""Choices of a learner: one radius a depth, and an error for what makes no sense."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.pairwise.settings import LearnerSettings


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
        ({"solver": "newton"}, "solver must be one of 'quasi-newton', 'batch', 'stochastic', got"),
        ({"constraint": "cube"}, "constraint must be one of 'ball', 'box'"),
        ({"pairs": "some"}, "pairs must be one of 'all', 'local'"),
        ({"margins": "half"}, r"margins must be one of 'quantile' or a pair \(alpha1, alpha2\), g"),
        ({"margins": (0.2, 0.3)}, "alpha1 >= alpha2"),
        ({"margins": (1.0, 0.5, 0.2)}, "alpha1 >= alpha2"),
        ({"margins": (np.nan, 0.5)}, "alpha1 >= alpha2"),
        ({"sigma": "small"}, "sigma must be one of 'auto' or a positive number"),
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"sigma": np.nan}, "sigma must be positive"),
        ({"step_size": 0.0}, "step_size must be positive"),
        ({"n_epochs": 2, "pairs": "local"}, "n_epochs pairs all graphs off"),
        *(({name: 0}, f"{name} must be at least 1, got 0")
          for name in ("n_neighbors", "min_support", "max_iter", "n_steps", "n_epochs", "n_jobs")),
        *(({name: -1}, f"{name} must not be negative, got -1")
          for name in ("halvings", "n_checks", "tol")),
    ],
)  # fmt: skip
def test_choices_that_make_no_sense(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        LearnerSettings(**settings).check()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"margins": (0.5, 0.5), "sigma": 1e-9},
        {"n_epochs": 1, "step_size": 1e-9},
        {"halvings": 0, "n_checks": 0, "tol": 0.0, "max_iter": 1},
        {"pairs": "local", "n_neighbors": 1},
    ],
)
def test_the_ends_of_what_makes_sense(settings) -> None:
    LearnerSettings(**settings).check()
