"""Minimise a smooth function by quasi-Newton steps, with curvature that is known already.

Each step goes to the minimum of a quadratic model, whose inverse Hessian is updated from the steps
taken (BFGS). Where a search begins near another one, of the stage before or of part of the same
data, its first steps are as good as the last ones of that search: curvature is passed on. The model
also says how much is still to be gained, which is when to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

_MEMORY = 30  # steps whose changes of the gradient are remembered
_LONGEST = 2.0  # of one step in a coordinate that the curvature is known of: a factor of seven
_ENOUGH = 1e-4  # of the decrease that the slope promises, for a step to be taken
_MOST_TRIES = 12
_DAMPED = 0.2  # where curvature along a step is less than this part of what was expected


@dataclass
class InverseHessian:
    """A matrix of the first coordinates, a multiple of one for all others, and updates of both."""

    first: np.ndarray  # (n_first, n_first)
    others: float = 1.0  # the diagonal of the rest
    _updates: list[tuple[np.ndarray, np.ndarray, float]] = field(default_factory=list)

    def times(self, vector: np.ndarray) -> np.ndarray:
        """Return the product with a vector (n,), by the two loops of L-BFGS."""
        product, along, n_first = vector.copy(), [], len(self.first)
        for step, change, inverse in reversed(self._updates):
            along.append(inverse * float(step @ product))
            product -= along[-1] * change
        product[:n_first] = self.first @ product[:n_first]
        product[n_first:] *= self.others
        for (step, change, inverse), own in zip(self._updates, reversed(along), strict=True):
            product += (own - inverse * float(change @ product)) * step
        return product

    def update(self, step: np.ndarray, change: np.ndarray, expected: np.ndarray) -> None:
        """Learn from a step, the change of the gradient, and the one that the model expected.

        Where curvature along the step is negative or hardly positive, the model takes part of what
        it expected (Powell's damping): it stays convex, and the next step is longer.
        """
        before, found = float(step @ expected), float(step @ change)
        if before <= 0.0:  # the step ended at a bound
            return
        if found < _DAMPED * before:
            share = (1.0 - _DAMPED) * before / (before - found)
            change = share * change + (1.0 - share) * expected
            found = float(step @ change)
        self._updates = [*self._updates[1 - _MEMORY :], (step, change, 1.0 / found)]

    def block(self) -> np.ndarray:
        """Return the matrix of the first coordinates, updates included: (n_first, n_first).

        From the compact form of L-BFGS (Byrd, Nocedal and Schnabel 1994).
        """
        if not self._updates:
            return self.first
        n_first = len(self.first)
        steps, changes = (np.array([update[k] for update in self._updates]) for k in (0, 1))
        own, rest = changes[:, :n_first], changes[:, n_first:]
        moved = own @ self.first  # (n_updates, n_first)
        products = steps @ changes.T
        inverse = np.linalg.inv(np.triu(products))
        middle = np.diag(np.diagonal(products)) + moved @ own.T + self.others * rest @ rest.T
        left = inverse @ steps[:, :n_first]
        cross = left.T @ moved
        return self.first + left.T @ middle @ left - cross - cross.T


class Point(NamedTuple):
    """Where a search is."""

    vector: np.ndarray  # (n,)
    value: float
    gradient: np.ndarray  # (n,)


def minimise(
    evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    bounds: np.ndarray,
    curvature: InverseHessian,
    *,
    least_gain: float,
    max_steps: int,
    note: Callable[[Point], None] = lambda point: None,
) -> tuple[Point, bool]:
    """Return where the search ended, and whether less than ``least_gain`` was left to be gained.

    ``bounds`` (n_bounded, 2) are of the first coordinates. ``curvature`` is updated on the way;
    ``note`` is called after each step.
    """
    here, n_bounded = Point(start, *evaluate(start)), len(bounds)
    for n_steps in range(max_steps + 1):
        slopes = here.gradient.copy()
        some, least, most = here.vector[:n_bounded], bounds[:, 0], bounds[:, 1]
        held = (some <= least) & (slopes[:n_bounded] > 0) | (some >= most) & (
            slopes[:n_bounded] < 0
        )
        slopes[:n_bounded][held] = 0.0
        direction = -curvature.times(slopes)
        direction[:n_bounded][held] = 0.0
        if -0.5 * float(slopes @ direction) < least_gain:
            return here, True
        if n_steps == max_steps:
            break
        there, length = _next_point(evaluate, here, slopes, direction, bounds, curvature)
        if there is None:  # most often, rounding hides what is left to be gained
            return here, bool(np.isfinite(here.value))
        # The model's Hessian times the direction is minus the gradient.
        step, change = there.vector - here.vector, there.gradient - here.gradient
        curvature.update(step, change, -length * slopes)
        here = there
        note(here)
    return here, False


def _next_point(
    evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]],
    here: Point,
    slopes: np.ndarray,
    direction: np.ndarray,
    bounds: np.ndarray,
    curvature: InverseHessian,
) -> tuple[Point | None, float]:
    """Return a point that is lower by enough, and how much of the direction it took."""
    slope, n_bounded = float(slopes @ direction), len(bounds)
    furthest = float(np.abs(direction[: len(curvature.first)]).max(initial=0.0))
    length = min(1.0, _LONGEST / max(furthest, 1e-300))
    for _ in range(_MOST_TRIES):
        vector = here.vector + length * direction
        vector[:n_bounded] = np.clip(vector[:n_bounded], *bounds.T)
        value, gradient = evaluate(vector)
        gain = here.value - value
        if not np.isfinite(gain):
            length *= 0.1
            continue
        if gain >= -_ENOUGH * length * slope:
            return Point(vector, value, gradient), length
        # the minimum of the parabola through what is known, if it is near
        shorter = -0.5 * slope * length**2 / -(gain + slope * length)
        length = float(np.clip(shorter, 0.1 * length, 0.5 * length))
    return None, length
