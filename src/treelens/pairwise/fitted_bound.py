"""The bounds for weights that were learned, with what has to be assumed for them, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.pairwise.constants import LossConstants, constants_of, largest_pair_factor
from treelens.pairwise.generalization import any_solver_gap, stability_gap
from treelens.pairwise.result import LearnedWeights
from treelens.pairwise.risk import mean_pair_loss
from treelens.pairwise.settings import LearnerSettings
from treelens.pairwise.stability import StepPlan, check_steps, weight_stability
from treelens.pairwise.stochastic import Schedule
from treelens.patterns.pairs import PairFeatures

# For a solver that takes no single-pair steps, the bound is that of a stochastic run which is sure
# to keep this share of the fall in the objective that the solver reached.
KEPT_SHARE = 0.9
MEANING = (
    "With probability 1 - delta over the draw of the training graphs, the mean pair loss (smoothed "
    "hinges of the learned distance) over pairs of new graphs is at most 'loss' + 'gap'. It is no "
    "bound on the classification error."
)


def fitted_bound(
    features: PairFeatures,
    codes: np.ndarray,
    settings: LearnerSettings,
    learned: LearnedWeights,
    delta: float = 0.05,
) -> dict[str, Any]:
    """Bounds of the generalisation gap of learned weights, as plain data.

    Parameters
    ----------
    features : PairFeatures
        Of the training graphs, as the learner had them.
    codes : ndarray of int, shape (n_graphs,)
    settings : LearnerSettings
    learned : LearnedWeights
    delta : float

    Returns
    -------
    dict
        See :meth:`treelens.GraphSVC.generalization_bound`.
    """
    factor = largest_pair_factor(codes, settings.balance)
    box = settings.constraint == "box"
    constants = constants_of(features, learned.margins, learned.radii, box=box, pair_factor=factor)
    loss = mean_pair_loss(
        features, codes, learned.weights, learned.margins, balance=settings.balance
    )
    stability = _stability(features.n_graphs, settings, learned, constants, delta)
    any_solver = _any_solver(features.n_graphs, settings, learned, constants, delta)
    own = [any_solver] if stability.get("stand_in") else [stability, any_solver]
    gap = min((part["gap"] for part in own if part["gap"] is not None), default=None)
    return {
        "gap": gap,
        "delta": delta,
        "n_graphs": features.n_graphs,
        "loss": loss,
        "vacuous": gap is None or loss + gap >= constants.loss_bound,
        "stability": stability,
        "any_solver": any_solver,
        "constants": {
            "pair_norm": constants.pair_norm,
            "lipschitz": constants.lipschitz,
            "smoothness": constants.smoothness,
            "loss_bound": constants.loss_bound,
            "pair_factor": factor,
        },
        "caveats": _caveats(settings, learned),
        "meaning": MEANING,
    }


def _stability(
    n_graphs: int,
    settings: LearnerSettings,
    learned: LearnedWeights,
    constants: LossConstants,
    delta: float,
) -> dict[str, Any]:
    """The paper's bound: for the stochastic algorithm, or for one that stands in for the solver."""
    if settings.pairs == "local":
        return _none("Nearest neighbours are not independent pairs: the theorem does not apply.")
    plan, assumed, stand_in = _plan(n_graphs, settings, learned, constants)
    try:
        check_steps(plan, constants)
    except ValueError as error:
        return _none(str(error))
    weights = weight_stability(n_graphs, plan, constants)
    if settings.constraint == "ball":  # two points of the set are never farther apart than this
        weights = min(weights, 2.0 * float(np.linalg.norm(learned.radii)))
    k_n = constants.lipschitz * weights
    return {
        "gap": stability_gap(n_graphs, k_n, constants.loss_bound, delta),
        "weights": weights,
        "k_n": k_n,
        "n_steps": plan.n_steps,
        "step_size": plan.step_size,
        "step_sum": plan.step_sum,
        "assumed": assumed,
        "stand_in": stand_in,
    }


def _plan(
    n_graphs: int, settings: LearnerSettings, learned: LearnedWeights, constants: LossConstants
) -> tuple[StepPlan, str, bool]:
    """The steps that the bound is for, a sentence on them, and whether they are a stand-in's."""
    distance = float(np.linalg.norm(learned.moved))
    if distance == 0:
        return (
            StepPlan(0, 0.0, 0.0),
            "The weights are uniform and do not depend on the data.",
            False,
        )
    if learned.step_size is not None:
        schedule = Schedule(
            settings.n_steps, settings.n_epochs, learned.step_size, settings.halvings,
            settings.average, settings.n_checks,
        )  # fmt: skip
        return StepPlan.of_schedule(schedule, n_graphs), "The steps are the solver's own.", False
    fall = float(learned.history[0] - learned.history[-1])
    plan = StepPlan.reaching(distance, (1.0 - KEPT_SHARE) * fall, constants)
    assumed = (
        f"The {learned.solver} solver takes no single-pair steps. This bound is for a stand-in: "
        f"the weights from {plan.n_steps:,} such steps of size {plan.step_size:.3g}, which in "
        f"expectation keep {KEPT_SHARE:.0%} of the fall in the objective that the solver reached."
    )
    return plan, assumed, True


def _any_solver(
    n_graphs: int,
    settings: LearnerSettings,
    learned: LearnedWeights,
    constants: LossConstants,
    delta: float,
) -> dict[str, Any]:
    if settings.pairs == "local":
        return _none("Nearest neighbours are not independent pairs: the bound does not apply.")
    if settings.constraint == "box" and learned.radii.any():
        return _none("A box has no radius that does not grow with the number of patterns.")
    radius = float(np.linalg.norm(learned.radii))
    gap = any_solver_gap(n_graphs, radius, constants.lipschitz, constants.loss_bound, delta)
    return {"gap": gap, "radius": radius}


def _none(reason: str) -> dict[str, Any]:
    return {"gap": None, "reason": reason}


def _caveats(settings: LearnerSettings, learned: LearnedWeights) -> list[str]:
    """What the theorems take as fixed and this model took from the data."""
    caveats = ["The constants are those of the training graphs, not of all graphs there could be."]
    if isinstance(settings.margins, str) or isinstance(settings.sigma, str):
        caveats.append(
            "Margins or smoothing come from the training distances; the theorems take them as "
            "fixed beforehand."
        )
    if settings.balance:
        caveats.append("Pairs are balanced by the training classes, whose shares count as known.")
    if settings.min_support > 1 and learned.moved.any():
        caveats.append("Which patterns have the minimum support is taken as known.")
    return caveats
