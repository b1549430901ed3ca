"""The one door of this room: pair features and labels in, learned weights out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from treelens.graphs.targets import check_classes
from treelens.pairwise._compiled import PairArrays, PairLoss
from treelens.pairwise.batch import projected_gradient
from treelens.pairwise.certificate import Certificate
from treelens.pairwise.constraints import (
    CENTER,
    CONSTRAINT_SETS,
    BallConstraint,
    BoxConstraint,
)
from treelens.pairwise.margins import (
    DistanceQuantiles,
    choose_margins,
    listed_weights,
    local_pairs,
)
from treelens.pairwise.objective import (
    AllPairsObjective,
    ListedPairsObjective,
    Margins,
    curvature_guess,
    largest_pair_norm,
    pair_arrays,
    pair_weights,
)
from treelens.pairwise.quasi_newton import projected_quasi_newton
from treelens.pairwise.result import LearnedWeights, distance_moved
from treelens.pairwise.settings import LearnerSettings
from treelens.pairwise.stochastic import Schedule, stochastic_gradient
from treelens.parallel import one_blas_thread
from treelens.patterns.pairs import PairFeatures

Listed = tuple[np.ndarray, np.ndarray]  # first and second graphs of chosen pairs


def learn_weights(features: PairFeatures, y: Any, **options: Any) -> LearnedWeights:
    """Learn one weight per pattern from pairs of labelled graphs.

    Graphs of different classes should be far apart under ``d = b - <W, Z>``, graphs of one class
    near. The objective, a weighted mean of smoothed hinges over pairs, is convex.

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
    codes = check_classes(y, features.n_graphs)[1].astype(np.int32)
    movable = np.diff(features.lists.offsets) >= settings.min_support  # (n_patterns,)
    _warn_single_members(codes)
    pairs = pair_arrays(features)
    listed = None
    if settings.pairs == "local":
        listed = local_pairs(pairs, codes, settings.n_neighbors, settings.n_jobs)
    margins = _margins(features, pairs, listed, settings)
    pair_norm = largest_pair_norm(features)
    if not radii.any() or not _can_learn(features, movable):
        return _uniform(features, margins, radii, pair_norm)
    objective = _objective(pairs, codes, movable, margins, listed, settings)
    constraint = CONSTRAINT_SETS[settings.constraint](features.level_offsets, radii)
    schedule = _schedule(settings, radii, pair_norm)
    metric = curvature_guess(features)
    # The vectors are short: more BLAS threads would only wait for each other. And with one the
    # sums do not depend on the machine.
    with one_blas_thread():
        weights, certificate, n_iter = _solve(objective, constraint, schedule, metric, settings)
    learned = LearnedWeights(
        weights, np.array(certificate.values), np.array(certificate.gaps), certificate.converged,
        n_iter, margins, distance_moved(weights, features.level_offsets), radii, pair_norm,
        settings.solver, schedule.step_size if settings.solver == "stochastic" else None,
    )  # fmt: skip
    _warn_if_not_there(learned, settings)
    return learned


def _warn_single_members(codes: np.ndarray) -> None:
    if np.bincount(codes).max() < 2:
        warnings.warn(
            f"No two of the {len(codes)} graphs share a label: nothing can be drawn together, "
            "weights are learned from pairs of different classes alone.",
            UserWarning,
            stacklevel=3,
        )


def _can_learn(features: PairFeatures, movable: np.ndarray) -> bool:
    """Whether some pattern that may move is shared by two graphs; warns if not."""
    support = np.diff(features.lists.offsets)
    if (movable & (support >= 2)).any():
        return True
    shared = "no two graphs share a pattern"
    if (support >= 2).any():
        shared = f"no pattern has the minimum support ({support.max()} graphs is the most)"
    warnings.warn(
        f"Nothing to learn: {shared}. The weights stay uniform; a smaller depth gives patterns "
        "that graphs share.",
        UserWarning,
        stacklevel=3,
    )
    return False


def _margins(
    features: PairFeatures, pairs: PairArrays, listed: Listed | None, settings: LearnerSettings
) -> Margins:
    quantiles = None
    if isinstance(settings.margins, str) or isinstance(settings.sigma, str):
        if listed is None:
            quantiles = DistanceQuantiles.of_all_pairs(features, pairs, settings.b, settings.n_jobs)
        else:
            quantiles = DistanceQuantiles.of_listed_pairs(features, pairs, settings.b, *listed)
    return choose_margins(settings.margins, settings.sigma, settings.b, quantiles)


def _objective(
    pairs: PairArrays,
    codes: np.ndarray,
    movable: np.ndarray,
    margins: Margins,
    listed: Listed | None,
    settings: LearnerSettings,
) -> AllPairsObjective | ListedPairsObjective:
    loss = PairLoss(
        margins.b, margins.alpha1, margins.alpha2, margins.sigma,
        *pair_weights(codes, settings.balance),
    )  # fmt: skip
    if listed is None:
        return AllPairsObjective(pairs, codes, loss, movable, settings.n_jobs)
    first, second = listed
    weights = listed_weights(codes[first] == codes[second], settings.balance)
    return ListedPairsObjective(
        pairs, codes, loss, movable, first, second, weights, settings.n_jobs
    )


def _solve(
    objective: AllPairsObjective | ListedPairsObjective,
    constraint: BallConstraint | BoxConstraint,
    schedule: Schedule,
    metric: np.ndarray,
    settings: LearnerSettings,
) -> tuple[np.ndarray, Certificate, int]:
    """Run the chosen solver from uniform weights; returns weights, certificate, iterations."""
    if settings.solver == "stochastic":
        rng = np.random.default_rng(settings.random_state)
        return stochastic_gradient(objective, constraint, schedule, tol=settings.tol, rng=rng)
    start = np.full(objective.n_patterns, CENTER)
    limits: dict[str, Any] = {"max_iter": settings.max_iter, "tol": settings.tol}
    if settings.solver == "batch":
        weights, certificate = projected_gradient(
            objective, constraint, start, step_size=settings.step_size, **limits
        )
    else:
        weights, certificate = projected_quasi_newton(
            objective, constraint, start, metric, **limits
        )
    return weights, certificate, len(certificate.values) - 1


def _schedule(settings: LearnerSettings, radii: np.ndarray, pair_norm: float) -> Schedule:
    """The stochastic solver's plan; by itself it begins with steps across the whole ball."""
    step_size = settings.step_size
    if step_size is None:
        step_size = float(radii.max()) / max(pair_norm, np.finfo(float).tiny)
    return Schedule(
        settings.n_steps, settings.n_epochs, step_size, settings.halvings, settings.average,
        settings.n_checks,
    )  # fmt: skip


def _uniform(
    features: PairFeatures, margins: Margins, radii: np.ndarray, pair_norm: float
) -> LearnedWeights:
    """Weights of 1, exactly optimal where nothing may or can move."""
    return LearnedWeights(
        np.full(features.n_patterns, CENTER), np.zeros(0), np.zeros(0), True, 0, margins,
        np.zeros(len(radii)), radii, pair_norm, "none",
    )  # fmt: skip


def _warn_if_not_there(learned: LearnedWeights, settings: LearnerSettings) -> None:
    if not learned.converged and len(learned.gaps):
        limit = "n_steps" if settings.solver == "stochastic" else "max_iter"
        warnings.warn(
            f"The {settings.solver} solver stopped after {learned.n_iter} iterations at a relative "
            f"gap of {learned.gaps[-1]:.2g}, above tol={settings.tol:g}: raise {limit}, or tol, of "
            "the solver.",
            ConvergenceWarning,
            stacklevel=3,
        )
