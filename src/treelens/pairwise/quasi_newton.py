"""Projected quasi-Newton: the default solver.

Patterns differ in frequency by orders of magnitude, and so do the curvatures of the objective;
plain gradients crawl. Here distances are measured in a metric that evens this out, the last few
steps give a limited-memory BFGS model of what curvature remains, the model is minimised over the
constraint set (cheap: it never looks at the graphs), and a line search along the way there makes
the objective fall. Every evaluation costs one pass over the pairs, and nearly every one is a step.
"""

from __future__ import annotations

import numpy as np

from treelens.pairwise.batch import first_step
from treelens.pairwise.certificate import Certificate
from treelens.pairwise.constraints import Constraint
from treelens.pairwise.objective import Objective

_MEMORY = 20  # steps remembered by the model
_MODEL_STEPS = 60  # projected gradient steps on the model, at most
_MODEL_TOL = 1e-3  # relative to the model's first promise
_ENOUGH = 1e-4  # share of the promised decrease that a step must bring
_TRIALS = 30


def projected_quasi_newton(
    objective: Objective,
    constraint: Constraint,
    start: np.ndarray,
    metric: np.ndarray,
    *,
    max_iter: int,
    tol: float,
) -> tuple[np.ndarray, Certificate]:
    """Minimise a convex objective over a convex set.

    Parameters
    ----------
    metric : ndarray, shape (n_patterns,)
        Positive; a guess at the curvature in every coordinate, up to one factor for all. Ones
        will do, but slower.
    objective, constraint, start, max_iter, tol
        See :func:`~treelens.pairwise.batch.projected_gradient`, also for what is returned.
    """
    certificate = Certificate(constraint, tol)
    curvature = CurvatureModel(metric)
    weights = start
    value, gradient = objective.value_and_gradient(weights)
    certificate.observe(weights, value, gradient)
    certificate.record(value)
    while len(certificate.values) <= max_iter and not (
        certificate.converged or certificate.stalled
    ):
        target = _next_target(curvature, weights, gradient, constraint)
        found = _line_search(objective, certificate, weights, target, value, gradient)
        if found is None:
            if curvature.empty:
                break  # not even the gradient itself leads down: rounding is all that is left
            curvature = CurvatureModel(metric)
            continue
        new_weights, value, new_gradient = found
        curvature.learn(new_weights - weights, new_gradient - gradient)
        weights, gradient = new_weights, new_gradient
        certificate.record(value)
    return weights, certificate


class CurvatureModel:
    """Limited-memory BFGS from the last steps and gradient changes.

    ``B = scale diag(metric) - directions^T middle directions``.
    """

    def __init__(self, metric: np.ndarray) -> None:
        self.metric = metric
        self._steps: list[np.ndarray] = []
        self._changes: list[np.ndarray] = []
        self.scale = 1.0

    @property
    def empty(self) -> bool:
        return not self._steps

    def learn(self, step: np.ndarray, change: np.ndarray) -> None:
        """Add one step and the gradient change it brought; steps without curvature are skipped."""
        product = float(step @ change)
        if product <= 1e-12 * float(np.sqrt((step @ step) * (change @ change))):
            return
        self._steps = [*self._steps, step][-_MEMORY:]
        self._changes = [*self._changes, change][-_MEMORY:]
        self.scale = float(change @ (change / self.metric)) / product
        steps, changes = np.array(self._steps), np.array(self._changes)  # (n_memory, n_patterns)
        products = steps @ changes.T
        lower = np.tril(products, -1)
        bent = self.scale * self.metric * steps
        self._directions = np.vstack([bent, changes])
        self._middle = np.linalg.pinv(
            np.block([
                [bent @ steps.T, lower],
                [lower.T, -np.diag(np.diag(products))],
            ])
        )  # fmt: skip

    def times(self, vector: np.ndarray) -> np.ndarray:
        """``B @ vector``."""
        plain = self.scale * self.metric * vector
        if self.empty:
            return plain
        return plain - (self._middle @ (self._directions @ vector)) @ self._directions


def _next_target(
    curvature: CurvatureModel, weights: np.ndarray, gradient: np.ndarray, constraint: Constraint
) -> np.ndarray:
    """The minimiser of the model over the set, by spectral projected gradient in the metric."""
    metric = curvature.metric
    if curvature.empty:
        direction = gradient / metric
        reach = first_step(direction, constraint)
        return constraint.project_in(metric, weights - reach * direction)
    point, slope = weights, gradient
    step = 1.0 / curvature.scale
    first_promise = 0.0
    for _ in range(_MODEL_STEPS):
        move = constraint.project_in(metric, point - step * slope / metric) - point
        promise = -float(slope @ move)
        if promise <= _MODEL_TOL * first_promise:
            break
        first_promise = max(first_promise, promise)
        bent = curvature.times(move)
        bend = float(move @ bent)
        length = min(1.0, promise / bend) if bend > 0 else 1.0
        point, slope = point + length * move, slope + length * bent
        step = float(move @ (metric * move)) / bend if bend > 0 else step
    return point


def _line_search(
    objective: Objective,
    certificate: Certificate,
    weights: np.ndarray,
    target: np.ndarray,
    value: float,
    gradient: np.ndarray,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """The first point between here and the target where the objective has fallen enough."""
    move = target - weights
    slope = float(gradient @ move)
    length = 1.0
    if slope >= 0:
        return None
    for _ in range(_TRIALS):
        candidate = weights + length * move
        new_value, new_gradient = objective.value_and_gradient(candidate)
        certificate.observe(candidate, new_value, new_gradient)
        if new_value <= value + _ENOUGH * length * slope:
            return candidate, new_value, new_gradient
        excess = new_value - value - length * slope
        parabola = -0.5 * slope * length**2 / excess if excess > 0 else 0.0
        length = float(np.clip(parabola, 0.1 * length, 0.5 * length))
    return None
