"""Learning of pattern weights: pair features and labels in, learned weights out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from treelens.array_checks import check_array, check_positive
from treelens.graphs.targets import check_classes
from treelens.pairwise.constraints import CENTER, BallConstraint
from treelens.pairwise.objective import (
    AllPairsObjective,
    Margins,
    choose_margins,
    curvature_guess,
    largest_pair_norm,
)
from treelens.pairwise.settings import LearnerSettings
from treelens.pairwise.solvers import (
    Certificate,
    projected_gradient,
    projected_quasi_newton,
    stochastic_gradient,
)
from treelens.parallel import one_blas_thread
from treelens.patterns.pairs import PairFeatures


@dataclass(frozen=True)
class LearnedWeights:
    """Weights of all patterns, with the record of the solver that found them.

    Attributes
    ----------
    weights : ndarray, shape (n_patterns,)
    history : ndarray, shape (n_checks,)
        Objective at the start and after every iteration (stochastic: at every check).
    gaps : ndarray, shape (n_checks,)
        Upper bound of the distance to the optimum, relative to the objective.
    converged : bool
        Whether the last gap is within the tolerance.
    n_iter : int
        Iterations; stochastic: steps.
    margins : Margins
        The margins, smoothing and offset that were used.
    moved : ndarray, shape (n_depths,)
        ``||w_h - 1||_2`` of every depth.
    radii : ndarray, shape (n_depths,)
    pair_norm : float
        ``max ||Z(i, j)||_2``; the loss of a pair has this Lipschitz constant in the weights and
        the smoothness ``pair_norm ** 2 / sigma``.
    solver : str
        The solver that ran; ``"none"`` where there was nothing to learn.
    step_size : float or None
        Of the stochastic solver.
    """

    weights: np.ndarray
    history: np.ndarray
    gaps: np.ndarray
    converged: bool
    n_iter: int
    margins: Margins
    moved: np.ndarray
    radii: np.ndarray
    pair_norm: float
    solver: str
    step_size: float | None = None

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

    Parameters
    ----------
    features : PairFeatures
    y : array-like, shape (n_graphs,)
        Class labels, any number of classes.
    **options
        See :class:`~treelens.pairwise.settings.LearnerSettings`.

    Returns
    -------
    LearnedWeights

    Examples
    --------
    >>> from treelens.graphs.build import build_collection
    >>> from treelens.patterns.histograms import PatternHistograms
    >>> from treelens.patterns.vocabulary import PatternVocabulary
    >>> edges = [[0, 1], [1, 2], [3, 4], [4, 5], [6, 7], [7, 8], [9, 10], [10, 11]]
    >>> graphs = build_collection([3, 3, 3, 3], np.array(edges), list("CCOCCOCCNCCN"))
    >>> histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, depth=1))
    >>> features = PairFeatures.from_histograms(histograms)
    >>> learned = learn_weights(features, [0, 0, 1, 1], radius=0.5, margins=(1.0, 0.0))
    >>> learned.converged
    True
    >>> bool(learned.weights[0] < 1 < learned.weights[1])  # C is in both classes, O only in one
    True
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
    margins = choose_margins(
        settings.margins, settings.sigma, settings.b, features, settings.n_jobs
    )
    pair_norm = largest_pair_norm(features)
    if not radii.any() or not _can_learn(features):
        return LearnedWeights(
            np.full(features.n_patterns, CENTER), np.zeros(0), np.zeros(0), True, 0, margins,
            np.zeros(len(radii)), radii, pair_norm, "none",
        )  # fmt: skip
    objective = AllPairsObjective(features, codes, margins, settings.balance, settings.n_jobs)
    constraint = BallConstraint(features.level_offsets, radii)
    step_size = settings.step_size
    if settings.solver == "stochastic" and step_size is None:  # the first steps cross the ball
        step_size = float(radii.max()) / max(pair_norm, np.finfo(float).tiny)
    # The vectors are short: more BLAS threads would only wait for each other. And with one the
    # sums do not depend on the machine.
    with one_blas_thread():
        weights, certificate, n_iter = _solve(objective, constraint, features, settings, step_size)
    moved = [np.linalg.norm(w - CENTER) for w in np.split(weights, features.level_offsets[1:-1])]
    learned = LearnedWeights(
        weights, np.array(certificate.values), np.array(certificate.gaps), certificate.converged,
        n_iter, margins, np.array(moved), radii, pair_norm, settings.solver,
        step_size if settings.solver == "stochastic" else None,
    )  # fmt: skip
    if not learned.converged and len(learned.gaps):
        limit = "n_steps" if settings.solver == "stochastic" else "max_iter"
        warnings.warn(
            f"The {settings.solver} solver stopped after {learned.n_iter} iterations at a relative "
            f"gap of {learned.gaps[-1]:.2g}, above tol={settings.tol:g}: raise {limit}, or tol, of "
            "the solver.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return learned


def _can_learn(features: PairFeatures) -> bool:
    """Return whether two graphs share a pattern; warn if not."""
    if (np.diff(features.lists.offsets) >= 2).any():
        return True
    warnings.warn(
        "Nothing to learn: no two graphs share a pattern. The weights stay uniform; a smaller "
        "depth gives patterns that graphs share.",
        UserWarning,
        stacklevel=3,
    )
    return False


def _solve(
    objective: AllPairsObjective,
    constraint: BallConstraint,
    features: PairFeatures,
    settings: LearnerSettings,
    step_size: float | None,
) -> tuple[np.ndarray, Certificate, int]:
    """Run the chosen solver from uniform weights; return weights, certificate, iterations."""
    if settings.solver == "stochastic":
        assert step_size is not None
        return stochastic_gradient(
            objective, constraint, n_steps=settings.n_steps, step_size=step_size,
            halvings=settings.halvings, average=settings.average, n_checks=settings.n_checks,
            tol=settings.tol, rng=np.random.default_rng(settings.random_state),
        )  # fmt: skip
    start = np.full(features.n_patterns, CENTER)
    limits: dict[str, Any] = {"max_iter": settings.max_iter, "tol": settings.tol}
    if settings.solver == "batch":
        weights, certificate = projected_gradient(
            objective.value_and_gradient, constraint, start, step_size=step_size, **limits
        )
    else:
        metric = curvature_guess(features)
        weights, certificate = projected_quasi_newton(
            objective.value_and_gradient, constraint, start, metric, **limits
        )
    return weights, certificate, len(certificate.values) - 1
