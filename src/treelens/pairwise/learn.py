"""Learning of pattern weights: pair features and labels in, learned weights out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from treelens.array_checks import check_array, check_positive
from treelens.graphs.convert import check_classes
from treelens.pairwise.objective import (
    CENTER,
    AllPairsObjective,
    BallConstraint,
    Margins,
    choose_margins,
    curvature_guess,
    largest_pair_norm,
)
from treelens.pairwise.settings import LearnerSettings
from treelens.pairwise.solvers import (
    Minimization,
    projected_gradient,
    projected_quasi_newton,
    stochastic_gradient,
)
from treelens.parallel import one_blas_thread
from treelens.patterns.histograms import PairFeatures


@dataclass(frozen=True)
class LearnedWeights:
    """Weights of all patterns, with the record of the solver that found them."""

    weights: np.ndarray  # (n_patterns,)
    history: np.ndarray  # (n_checks,) objective at the start and after every iteration or check
    gaps: np.ndarray  # (n_checks,) bound of the distance to the optimum, relative to the objective
    converged: bool  # whether the last gap is within the tolerance
    n_iter: int  # iterations; stochastic: steps
    margins: Margins
    moved: np.ndarray  # (n_depths,) ||w_h - 1||_2 of every depth
    radii: np.ndarray  # (n_depths,)
    # max ||Z(i, j)||_2: the loss of a pair has this Lipschitz constant in the weights, and the
    # smoothness pair_norm ** 2 / sigma
    pair_norm: float
    solver: str  # the solver that ran; "none" where there was nothing to learn
    step_size: float | None = None  # of the stochastic solver

    def validate(self) -> None:
        check_positive(self.margins.sigma, "sigma")
        for name in ("weights", "moved", "radii"):
            check_array(getattr(self, name), name, np.float64, (None,), 0.0)
        for name in ("history", "gaps"):
            check_array(getattr(self, name), name, np.float64, (None,))
        if len(self.moved) != len(self.radii) or min(self.pair_norm, self.step_size or 0.0) < 0:
            raise ValueError("moved and radii must be of the same length, norm and step positive")


def learn_weights(features: PairFeatures, y: Any, **options: Any) -> LearnedWeights:
    """Learn one weight per pattern from pairs of labelled graphs.

    Graphs of different classes should be far apart under ``d = b - <W, Z>``, graphs of one class
    close. The objective, a weighted mean of smoothed hinges over pairs, is convex.

    ``y`` are class labels, any number of classes. For the options see
    :class:`~treelens.pairwise.settings.LearnerSettings`.
    """
    settings = LearnerSettings(**options)
    settings.check()
    radii = settings.radii(len(features.level_offsets) - 1)
    codes = check_classes(y, features.n_graphs)[1]
    if np.bincount(codes).max() < 2:
        warnings.warn(
            f"No two of the {len(codes)} graphs share a label: weights are learned from pairs of "
            "different classes alone.",
            UserWarning,
            stacklevel=2,
        )
    margins = choose_margins(features, settings)
    pair_norm = largest_pair_norm(features)
    shared = (np.diff(features.lists.offsets) >= 2).any()
    if radii.any() and not shared:
        warnings.warn(
            "Nothing to learn: no two graphs share a pattern. The weights stay uniform; a smaller "
            "depth gives patterns that graphs share.",
            UserWarning,
            stacklevel=2,
        )
    if not radii.any() or not shared:
        return LearnedWeights(
            np.full(features.n_patterns, CENTER), np.zeros(0), np.zeros(0), True, 0, margins,
            np.zeros(len(radii)), radii, pair_norm, "none",
        )  # fmt: skip
    objective = AllPairsObjective(features, codes, margins, settings.balance, settings.n_jobs)
    constraint = BallConstraint(features.level_offsets, radii)
    stochastic = settings.solver == "stochastic"
    if stochastic and settings.step_size is None:  # the first steps cross the ball
        step_size = float(radii.max()) / max(pair_norm, np.finfo(float).tiny)
        settings = replace(settings, step_size=step_size)
    # The vectors are short: more BLAS threads would only wait for each other. And with one the
    # sums do not depend on the machine.
    with one_blas_thread():
        if stochastic:
            weights, record, n_iter = stochastic_gradient(objective, constraint, settings)
        else:
            start, evaluate = np.full(features.n_patterns, CENTER), objective.value_and_gradient
            record = Minimization(evaluate, constraint, settings.tol, settings.max_iter)
            if settings.solver == "batch":
                weights = projected_gradient(record, start, settings.step_size)
            else:
                weights = projected_quasi_newton(record, start, curvature_guess(features))
            n_iter = len(record.values) - 1
    moved = [np.linalg.norm(w - CENTER) for w in np.split(weights, features.level_offsets[1:-1])]
    if record.gaps and not record.converged:
        limit = "n_steps" if stochastic else "max_iter"
        warnings.warn(
            f"The {settings.solver} solver stopped after {n_iter} iterations at a relative gap of "
            f"{record.gaps[-1]:.2g}, above tol={settings.tol:g}: raise {limit}, or tol, of the "
            "solver.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return LearnedWeights(
        weights, np.array(record.values), np.array(record.gaps), record.converged, n_iter, margins,
        np.array(moved), radii, pair_norm, settings.solver,
        settings.step_size if stochastic else None,
    )  # fmt: skip
