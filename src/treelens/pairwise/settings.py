"""Settings of learning and of its solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from treelens._sklearn_compat import BaseEstimator, Interval

_AT_LEAST_ONE = [Interval(Integral, 1, None, closed="left")]
_NOT_NEGATIVE = [Interval(Integral, 0, None, closed="left")]
_STEP = [Interval(Real, 0, None, closed="neither"), None]
_TOL = [Interval(Real, 0, None, closed="left")]


class QuasiNewton(BaseEstimator):
    """Projected quasi-Newton on all pairs; converges in tens of iterations.

    Parameters
    ----------
    max_iter : int, default=200
    tol : float, default=1e-4
        Relative duality gap at which it stops.

    Examples
    --------
    >>> import treelens as tl
    >>> tl.PairwiseWeights(radius=3.0, solver=tl.QuasiNewton(tol=1e-2))
    PairwiseWeights(radius=3.0, solver=QuasiNewton(tol=0.01))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": _AT_LEAST_ONE,
        "tol": _TOL,
    }

    def __init__(self, max_iter: int = 200, tol: float = 1e-4) -> None:
        self.max_iter = max_iter
        self.tol = tol


class ProjectedGradient(BaseEstimator):
    """Projected gradient on all pairs.

    Parameters
    ----------
    max_iter : int, default=200
    tol : float, default=1e-4
        Relative duality gap at which it stops.
    step_size : float or None, default=None
        None adapts the step; a number makes it constant.

    Examples
    --------
    >>> import treelens as tl
    >>> tl.PairwiseWeights(solver=tl.ProjectedGradient(max_iter=50))
    PairwiseWeights(solver=ProjectedGradient(max_iter=50))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **QuasiNewton._parameter_constraints,
        "step_size": _STEP,
    }

    def __init__(
        self, max_iter: int = 200, tol: float = 1e-4, step_size: float | None = None
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.step_size = step_size


class StochasticGradient(BaseEstimator):
    """Stochastic gradient steps on single pairs, as in the paper, for very many graphs.

    Parameters
    ----------
    n_steps : int, default=1_000_000
    step_size : float or None, default=None
        Initial step size; None chooses it from the radius.
    halvings : int, default=8
        How often the step size is halved; each stage is twice as long as the one before. 0 keeps
        it constant.
    average : bool, default=True
        Whether to return the mean iterate of the last stage instead of the last iterate.
    n_checks : int, default=10
        How often to evaluate the full objective; 0 leaves ``history_`` empty.
    tol : float, default=1e-4
        Relative duality gap at which it counts as converged.

    Examples
    --------
    >>> import treelens as tl
    >>> tl.PairwiseWeights(solver=tl.StochasticGradient(n_steps=1000))
    PairwiseWeights(solver=StochasticGradient(n_steps=1000))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_steps": _AT_LEAST_ONE,
        "step_size": _STEP,
        "halvings": _NOT_NEGATIVE,
        "average": ["boolean"],
        "n_checks": _NOT_NEGATIVE,
        "tol": _TOL,
    }

    def __init__(
        self,
        n_steps: int = 1_000_000,
        step_size: float | None = None,
        halvings: int = 8,
        average: bool = True,
        n_checks: int = 10,
        tol: float = 1e-4,
    ) -> None:
        self.n_steps = n_steps
        self.step_size = step_size
        self.halvings = halvings
        self.average = average
        self.n_checks = n_checks
        self.tol = tol


Solver = QuasiNewton | ProjectedGradient | StochasticGradient
SOLVER_KINDS: dict[str, type[Solver]] = {
    "quasi-newton": QuasiNewton,
    "batch": ProjectedGradient,
    "stochastic": StochasticGradient,
}


def as_solver(solver: Any) -> Any:
    """Return the solver of a name with its default settings; a solver is returned as it is."""
    return SOLVER_KINDS[solver]() if isinstance(solver, str) else solver


def solver_name(solver: Any) -> str:
    return next(name for name, kind in SOLVER_KINDS.items() if type(solver) is kind)


def limited(learner: Any, tol: float, max_iter: int) -> Any:
    """Return a copy of a learner whose solver, if it has one, stops at these limits or before."""
    learner = clone(learner)
    if hasattr(learner, "solver"):
        learner.solver = solver = clone(as_solver(learner.solver))
        solver.tol = max(solver.tol, tol)
        if hasattr(solver, "max_iter"):
            solver.max_iter = min(solver.max_iter, max_iter)
    return learner


@dataclass(frozen=True)
class LearnerSettings:
    """The parameters of :class:`treelens.PairwiseWeights` with those of its solver, a name."""

    radius: float | Sequence[float] = 1.0
    solver: str = "quasi-newton"
    margins: str | tuple[float, float] = "quantile"
    sigma: str | float = "auto"
    b: float = 1.0
    balance: bool = True
    max_iter: int = 200
    tol: float = 1e-4
    n_steps: int = 1_000_000
    step_size: float | None = None
    halvings: int = 8
    average: bool = True
    n_checks: int = 10
    n_jobs: int = 1
    random_state: Any = None

    def radii(self, n_depths: int) -> np.ndarray:
        """Return one radius per depth, checked."""
        radii = np.atleast_1d(np.asarray(self.radius, dtype=np.float64))
        if radii.ndim != 1 or len(radii) not in (1, n_depths):
            raise ValueError(
                f"radius must be one number or one per depth ({n_depths}), got {self.radius!r}."
            )
        if not np.isfinite(radii).all() or (radii < 0).any():
            raise ValueError(f"radius must be finite and not negative, got {self.radius!r}.")
        return np.broadcast_to(radii, (n_depths,)).copy()

    def check(self) -> None:
        """Raise a ValueError where solver, margins or sigma make no sense."""
        # Numbers of the solver are checked by its class.
        margins, sigma = self.margins, self.sigma
        if self.solver not in SOLVER_KINDS:
            raise ValueError(
                f"solver must be one of {', '.join(SOLVER_KINDS)}; got {self.solver!r}."
            )
        fit = not isinstance(margins, str) and len(margins) == 2 and margins[0] >= margins[1]
        if not fit and margins != "quantile":
            raise ValueError(
                "margins must be 'quantile' or (alpha1, alpha2) with alpha1 >= alpha2, got "
                f"{margins!r}: different classes should be at least alpha1 apart, equal ones at "
                "most alpha2."
            )
        if sigma != "auto" and (isinstance(sigma, str) or not sigma > 0):
            raise ValueError(f"sigma must be 'auto' or a positive number, got {sigma!r}.")
