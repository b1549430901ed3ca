"""Learned weights, and the certificate of how far they can be from the optimum."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from treelens.array_checks import check_array, check_positive
from treelens.pairwise.constraints import BallConstraint
from treelens.pairwise.objective import Margins

# A gap is relative to the objective, but never to less than this share of its first value: an
# objective that falls to zero would otherwise never count as converged.
_MIN_SHARE = 1e-9
_PATIENCE = 30
_ROUNDING = 1e-15


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


@dataclass
class Certificate:
    """Objective values, and upper bounds of their distance to the optimum.

    A convex function lies above its tangent planes, so the minimum of a tangent plane over the
    constraint set is a lower bound of the optimum. The best bound so far gives the gap.

    Attributes
    ----------
    constraint : BallConstraint
    tol : float
        Relative gap that counts as converged.
    values, gaps : list of float
        Objective and relative gap after every iteration.
    lower_bound : float
    """

    constraint: BallConstraint
    tol: float
    values: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    lower_bound: float = -np.inf

    def observe(self, weights: np.ndarray, value: float, gradient: np.ndarray) -> None:
        """Update the lower bound by the tangent plane at a point."""
        lowest = self.constraint.linear_minimizer(gradient)
        self.lower_bound = max(self.lower_bound, value + float(gradient @ (lowest - weights)))

    def record(self, value: float) -> None:
        """Append the objective at the end of an iteration, and its gap."""
        self.values.append(value)
        scale = max(value, _MIN_SHARE * self.values[0], np.finfo(float).tiny)
        self.gaps.append(max(value - self.lower_bound, 0.0) / scale)

    @property
    def converged(self) -> bool:
        return bool(self.gaps and self.gaps[-1] <= self.tol)

    @property
    def stalled(self) -> bool:
        """Whether the last 30 iterations lowered the objective by no more than rounding."""
        if len(self.values) <= _PATIENCE:
            return False
        return self.values[-_PATIENCE - 1] - self.values[-1] <= _ROUNDING * abs(self.values[-1])
