"""How much one training graph can change the weights that single-pair steps arrive at.

Run the algorithm twice with the same draws, once with one of the n graphs replaced. A step on a
pair without that graph brings the two runs no farther apart, as long as it is at most
``2 / smoothness``: the loss is convex and smooth, and projections do not expand. A step on a pair
with it, which happens with probability at most ``2 / n``, adds at most twice the step times the
Lipschitz constant. So after all steps

    E ||W - W'||  <=  (4 / n) * (sum of the steps) * lipschitz.

That holds for steps of any order and size up to the limit, for epochs over disjoint pairs (every
graph is in one pair of an epoch), and for the mean of iterates instead of the last one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from treelens.pairwise.constants import LossConstants
from treelens.pairwise.stochastic import Schedule

_ROUNDING = 1e-12


@dataclass(frozen=True)
class StepPlan:
    """The steps of a stochastic run.

    Attributes
    ----------
    n_steps : int
    step_size : float
        The largest step.
    step_sum : float
        All steps added up: all that stability depends on.

    Examples
    --------
    >>> StepPlan.constant(500, 0.01).step_sum
    5.0
    """

    n_steps: int
    step_size: float
    step_sum: float

    @classmethod
    def constant(cls, n_steps: int, step_size: float) -> StepPlan:
        """Steps of one size: ``step_sum = mu T``."""
        return cls(n_steps, step_size, n_steps * step_size)

    @classmethod
    def of_schedule(cls, schedule: Schedule, n_graphs: int) -> StepPlan:
        """The steps that the stochastic solver plans, halved from stage to stage."""
        total, before = 0.0, 0
        for stage, end in enumerate(schedule.stage_ends(n_graphs)):
            total += (end - before) * schedule.step_size * 0.5**stage
            before = end
        return cls(schedule.total_steps(n_graphs), schedule.step_size, total)

    @classmethod
    def reaching(cls, distance: float, accuracy: float, constants: LossConstants) -> StepPlan:
        """A run that is sure, in expectation, to come within ``accuracy`` of a point's objective.

        The textbook guarantee for the mean of T projected steps of size mu is
        ``distance² / (2 mu T) + mu lipschitz² / 2``; either half gets half of the accuracy.

        Parameters
        ----------
        distance : float
            How far the point is from where the run starts.
        accuracy : float
            In units of the objective.
        constants : LossConstants
        """
        if distance == 0 or constants.lipschitz == 0:
            return cls(0, 0.0, 0.0)
        if not accuracy > 0:
            raise ValueError(f"accuracy must be positive, got {accuracy!r}.")
        step_size = min(accuracy / constants.lipschitz**2, constants.largest_step)
        return cls.constant(math.ceil(distance**2 / (step_size * accuracy)), step_size)


def weight_stability(n_graphs: int, plan: StepPlan, constants: LossConstants) -> float:
    """Bound of ``E ||W - W'||`` when one of the graphs is replaced: ``4 mu T L / n``.

    Examples
    --------
    >>> constants = LossConstants(0.5, lipschitz=0.5, smoothness=2.5, loss_bound=1.0)
    >>> weight_stability(100, StepPlan.constant(500, 0.01), constants)
    0.1
    """
    check_steps(plan, constants)
    _check_n_graphs(n_graphs)
    return 4.0 * plan.step_sum * constants.lipschitz / n_graphs


def loss_stability(n_graphs: int, plan: StepPlan, constants: LossConstants) -> float:
    """``k_n``, the bound of the change of any pair's expected loss: ``4 mu T L² / n``."""
    return constants.lipschitz * weight_stability(n_graphs, plan, constants)


def check_steps(plan: StepPlan, constants: LossConstants) -> None:
    """Raise a ValueError if a step is too large for the argument to hold."""
    if plan.step_size > constants.largest_step * (1.0 + _ROUNDING):
        raise ValueError(
            f"The stability bound holds for steps of at most 2 / smoothness = "
            f"{constants.largest_step:.4g}; the step size is {plan.step_size:.4g}."
        )


def _check_n_graphs(n_graphs: int) -> None:
    if n_graphs < 1:
        raise ValueError(f"n_graphs must be at least 1, got {n_graphs!r}.")
