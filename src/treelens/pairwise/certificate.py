"""How far from the optimum: the record that every solver keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from treelens.pairwise.constraints import Constraint

# A gap is relative to the objective, but never to less than this share of its first value: an
# objective that falls to zero would otherwise never count as reached.
_LEAST_SHARE = 1e-9
_PATIENCE = 30
_ROUNDING = 1e-15


@dataclass
class Certificate:
    """Objective values, and how far each can be from the optimum at most.

    A convex function lies above its tangent planes, so the least value of a tangent plane on the
    constraint set is a lower bound of the optimum. The best bound so far makes the gap.

    Attributes
    ----------
    constraint : Constraint
    tol : float
        Relative gap that counts as converged.
    values, gaps : list of float
        Objective and relative gap after every iteration.
    lower_bound : float
    """

    constraint: Constraint
    tol: float
    values: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    lower_bound: float = -np.inf

    def observe(self, weights: np.ndarray, value: float, gradient: np.ndarray) -> None:
        """Take the tangent plane at a point into account."""
        lowest = self.constraint.linear_minimizer(gradient)
        self.lower_bound = max(self.lower_bound, value + float(gradient @ (lowest - weights)))

    def record(self, value: float) -> None:
        """Note the objective at the end of an iteration."""
        self.values.append(value)
        scale = max(value, _LEAST_SHARE * self.values[0], np.finfo(float).tiny)
        self.gaps.append(max(value - self.lower_bound, 0.0) / scale)

    @property
    def converged(self) -> bool:
        return bool(self.gaps and self.gaps[-1] <= self.tol)

    @property
    def stalled(self) -> bool:
        """Whether the objective has not fallen by more than rounding for a good while."""
        if len(self.values) <= _PATIENCE:
            return False
        return self.values[-_PATIENCE - 1] - self.values[-1] <= _ROUNDING * abs(self.values[-1])
