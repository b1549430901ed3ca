"""Full-batch projected gradient: the plain solver, and the yardstick of the others."""

from __future__ import annotations

import numpy as np

from treelens.pairwise.certificate import Certificate
from treelens.pairwise.constraints import Constraint
from treelens.pairwise.objective import Objective

_SHRINK = 0.5
_GROW = 1.3


def projected_gradient(
    objective: Objective,
    constraint: Constraint,
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    step_size: float | None = None,
) -> tuple[np.ndarray, Certificate]:
    """Step against the gradient, project, repeat.

    Parameters
    ----------
    objective : Objective
    constraint : Constraint
    start : ndarray, shape (n_patterns,)
        A point of the constraint set.
    max_iter : int
    tol : float
        Stop at this relative gap.
    step_size : float, optional
        A constant step. Without it the step grows while the parabola of that curvature stays
        above the objective, and is halved when it does not.

    Returns
    -------
    weights : ndarray, shape (n_patterns,)
    certificate : Certificate
    """
    certificate = Certificate(constraint, tol)
    weights, adaptive = start, step_size is None
    value, gradient = objective.value_and_gradient(weights)
    certificate.observe(weights, value, gradient)
    certificate.record(value)
    step = first_step(gradient, constraint) if step_size is None else step_size
    while len(certificate.values) <= max_iter and not (
        certificate.converged or certificate.stalled
    ):
        candidate = constraint.project(weights - step * gradient)
        new_value, new_gradient = objective.value_and_gradient(candidate)
        certificate.observe(candidate, new_value, new_gradient)
        move = candidate - weights
        bound = value + gradient @ move + (move @ move) / (2.0 * step)
        if adaptive and new_value > bound + _rounding(value):
            step *= _SHRINK
            continue
        weights, value, gradient = candidate, new_value, new_gradient
        certificate.record(value)
        if adaptive:
            step *= _GROW
    return weights, certificate


def first_step(direction: np.ndarray, constraint: Constraint) -> float:
    """How often a direction fits into the constraint set, about."""
    length = float(np.sqrt(direction @ direction))
    return float(constraint.radii.max()) / length if length > 0 else 1.0


def _rounding(value: float) -> float:
    """Differences of objectives below this say nothing."""
    return 1e-14 * abs(value)
