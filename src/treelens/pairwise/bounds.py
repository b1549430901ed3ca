"""The paper's theory: constants of the pair loss, stability of single-pair steps, generalisation.

Constants. The paper's Lemma 3 swaps two of them. As its own proof shows, the gradient of a pair's
loss is at most ``max ||Z||`` (the Lipschitz constant), and its second derivative at most
``max ||Z||² / sigma`` (the smoothness).

Stability. Run the stochastic algorithm twice with the same draws, once with one of the n graphs
replaced. A step on a pair without that graph, if it is at most ``2 / smoothness``, brings the two
runs no farther apart: the loss is convex and smooth, and projections do not expand. A step on a
pair with it, which has probability at most ``2 / n``, adds at most twice the step times the
Lipschitz constant. So ``E ||W - W'|| <= (4 / n) * (sum of the steps) * lipschitz``, for the last
iterate and for the mean of them.

Generalisation. Two bounds of the gap ``R(W) - R_n(W)``: the paper's, from stability, and one for
the weights of any solver, since it holds for all weights of the constraint at once. Both hold with
probability ``1 - delta`` over the draw of the n training graphs. Both bound the *loss of pairs*,
the mean of the smoothed hinges over pairs of new graphs, not the classification error.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from treelens.pairwise import objective
from treelens.pairwise.learn import LearnedWeights, PairwiseWeights
from treelens.pairwise.objective import Margins
from treelens.pairwise.solvers import stage_ends
from treelens.patterns.histograms import PairFeatures

# --- constants --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LossConstants:
    """Constants of the loss of one pair as a function of the weights."""

    pair_norm: float  # max ||Z(i, j)||_2 over all pairs, a graph with itself included
    lipschitz: float  # upper bound of the gradient norm
    smoothness: float  # upper bound of the second derivative
    loss_bound: float  # upper bound of the loss; the lower bound is 0

    @property
    def largest_step(self) -> float:
        """The largest step that cannot drive two runs apart."""
        return 2.0 / self.smoothness if self.smoothness > 0 else np.inf


def constants_of(
    features: PairFeatures, margins: Margins, radii: np.ndarray, *, pair_factor: float = 1.0
) -> LossConstants:
    """Return the constants for given graphs and all weights within the radii (n_depths,).

    All are times the largest factor of a pair. Where no ``<W, Z>`` exceeds ``b``, as the paper
    demands, distances lie in ``[0, b]``; else they reach below 0, and the loss above the paper's
    ``M = max(b - sigma / 2 - alpha2, alpha1 - sigma / 2)``.
    """
    pair_norm = objective.largest_pair_norm(features)
    nearest = min(0.0, margins.b - reachable_similarity(features, radii))
    # Where the margins are wider than sigma these are the linear pieces that M is made of.
    bound = float(
        max(
            objective.smooth_hinge_same(margins.b, margins.alpha2, margins.sigma),
            objective.smooth_hinge_different(nearest, margins.alpha1, margins.sigma),
        )
    )
    smoothness = pair_factor * pair_norm**2 / margins.sigma
    return LossConstants(pair_norm, pair_factor * pair_norm, smoothness, pair_factor * bound)


def reachable_similarity(features: PairFeatures, radii: np.ndarray) -> float:
    """Return the maximum of ``<W, Z>`` over these graphs and all weights of the constraint."""
    # For weights that are not negative `<W, Z>` is a kernel, so no pair exceeds the largest
    # `<W, Z(i, i)>`; and per depth `<w, z> <= ||z||_1 + radius ||z||_2` in the ball.
    own = objective.own_features(features)
    of_depth = np.repeat(np.eye(len(radii)), np.diff(features.level_offsets), axis=0)
    squares = own.power(2) @ of_depth  # (n_graphs, n_depths)
    return float((own.sum(axis=1) + np.sqrt(squares) @ radii).max(initial=0.0))


# --- stability --------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepPlan:
    """The steps of a stochastic run."""

    n_steps: int
    step_size: float  # the largest
    step_sum: float  # of all steps: stability depends on it

    @classmethod
    def halving(cls, n_steps: int, step_size: float, halvings: int = 0) -> StepPlan:
        """Return the steps of the stochastic solver, halved from stage to stage."""
        lengths = np.diff([0, *stage_ends(n_steps, halvings)])
        total = float(lengths @ (step_size * 0.5 ** np.arange(len(lengths))))
        return cls(n_steps, step_size, total)


def weight_stability(n_graphs: int, plan: StepPlan, constants: LossConstants) -> float:
    """Return the bound of ``E ||W - W'||`` when one graph is replaced: ``4 mu T L / n``."""
    if plan.step_size > constants.largest_step * (1.0 + 1e-12):
        raise ValueError(
            f"The stability bound holds for steps of at most 2 / smoothness = "
            f"{constants.largest_step:.4g}; the step size is {plan.step_size:.4g}."
        )
    return 4.0 * plan.step_sum * constants.lipschitz / n_graphs


# --- generalisation ---------------------------------------------------------------------------


def stability_gap(n_graphs: int, k_n: float, loss_bound: float, delta: float = 0.05) -> float:
    """Return the paper's Theorem 3: ``2 k_n + (n k_n + M) sqrt((2 / n) log(2 / delta))``.

    ``k_n`` is the stability of the loss, ``L * weight_stability(...)``: 0 for weights that do not
    depend on the data. ``loss_bound`` is ``M``. The bound fails with probability at most ``delta``.

    Notes
    -----
    The last line of the paper's proof has ``log(1 / delta)``; the statement, and this function,
    have ``log(2 / delta)``. The proof also treats the n pairs of a graph with itself as if they
    were pairs of two graphs, which can cost ``M / n``; the difference between the two logarithms,
    which a one-sided inequality would save, pays for that from 14 graphs on at ``delta = 0.05``.
    """
    spread = math.sqrt(2.0 / n_graphs * math.log(2.0 / delta))
    return 2.0 * k_n + (n_graphs * k_n + loss_bound) * spread


def any_solver_gap(
    n_graphs: int, radius: float, lipschitz: float, loss_bound: float, delta: float = 0.05
) -> float:
    """Return a bound for all weights within ``radius`` of uniform ones, whatever the solver.

    ``2 radius L / sqrt(m) + M / n + M sqrt((2 / n) log(1 / delta))`` with ``m = floor(n / 2)``.

    ``radius`` is that of a ball that contains the constraint set: ``sqrt(sum of squared radii)``.

    Notes
    -----
    The mean over pairs of two graphs is a mean, over all ways to pair the graphs off, of means over
    m independent pairs, so the expected largest gap is at most that of m independent pairs; that is
    at most twice the Rademacher complexity of the loss, which contraction and Cauchy-Schwarz bound
    by ``radius L / sqrt(m)``. Replacing a graph changes the largest gap by at most ``2 M / n``:
    McDiarmid's inequality gives the last term. Pairs of a graph with itself add ``M / n``.
    """
    complexity = 2.0 * radius * lipschitz / math.sqrt(n_graphs // 2)
    spread = math.sqrt(2.0 / n_graphs * math.log(1.0 / delta))
    return complexity + loss_bound / n_graphs + loss_bound * spread


# --- learned weights --------------------------------------------------------------------------


def fitted_bound(
    features: PairFeatures,
    codes: np.ndarray,
    learner: PairwiseWeights,
    learned: LearnedWeights,
    delta: float = 0.05,
) -> dict[str, Any]:
    """Return what ``GraphSVC.generalization_bound`` does, from the training graphs."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must be a probability between 0 and 1, got {delta!r}.")
    n_graphs, margins, balance = features.n_graphs, learned.margins, learner.balance
    # The largest weight of a pair relative to the plain mean: balanced, the rarer kind counts more.
    factor = 0.5 * float(n_graphs) ** 2 * max(objective.pair_weights(codes, balance))
    constants = constants_of(features, margins, learned.radii, pair_factor=factor)
    loss = objective.AllPairsObjective(features, codes, margins, balance).value(learned.weights)
    stability = _stability(n_graphs, learner, learned, constants, delta)
    radius = float(np.linalg.norm(learned.radii))
    uniform = any_solver_gap(n_graphs, radius, constants.lipschitz, constants.loss_bound, delta)
    gap = uniform if stability["gap"] is None else min(uniform, stability["gap"])
    # What the theorems take as fixed and this model took from the data.
    caveats = ["The constants are those of the training graphs, not of all possible graphs."]
    if isinstance(learner.margins, str) or isinstance(learner.sigma, str):
        caveats.append(
            "Margins or smoothing come from the training distances; the theorems take them as "
            "fixed beforehand."
        )
    if balance:
        caveats.append("Pairs are balanced by the training classes, whose shares count as known.")
    meaning = (
        "With probability 1 - delta over the draw of the training graphs, the mean pair loss "
        "(smoothed hinges of the learned distance) over pairs of new graphs is at most 'loss' "
        "+ 'gap'. It is no bound on the classification error."
    )
    return {
        "gap": gap,
        "delta": delta,
        "n_graphs": n_graphs,
        "loss": loss,
        "vacuous": loss + gap >= constants.loss_bound,
        "stability": stability,
        "any_solver": {"gap": uniform, "radius": radius},
        "constants": {**asdict(constants), "pair_factor": factor},
        "caveats": caveats,
        "meaning": meaning,
    }


def _stability(
    n_graphs: int,
    learner: PairwiseWeights,
    learned: LearnedWeights,
    constants: LossConstants,
    delta: float,
) -> dict[str, Any]:
    """Return the paper's bound, for uniform weights and the stochastic solver, or why not."""
    plan = StepPlan(0, 0.0, 0.0)  # uniform weights do not depend on the data
    if learned.moved.any():
        solver = learner.used_solver()
        if learned.step_size is None:
            reason = f"The {learned.solver} solver takes no single-pair steps."
            return {"gap": None, "reason": reason}
        plan = StepPlan.halving(solver.n_steps, learned.step_size, solver.halvings)
    try:
        weights = weight_stability(n_graphs, plan, constants)
    except ValueError as error:
        return {"gap": None, "reason": str(error)}
    # Two points of the constraint set are never farther apart than twice the radius.
    weights = min(weights, 2.0 * float(np.linalg.norm(learned.radii)))
    k_n = constants.lipschitz * weights
    gap = stability_gap(n_graphs, k_n, constants.loss_bound, delta)
    return {"gap": gap, "weights": weights, "k_n": k_n, **asdict(plan)}
