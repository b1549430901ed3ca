"""Solvers as objects: each holds the settings that are its own, and nothing else."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import clone

from treelens._sklearn_compat import BaseEstimator, Interval

_AT_LEAST_ONE = [Interval(Integral, 1, None, closed="left")]
_NOT_NEGATIVE = [Interval(Integral, 0, None, closed="left")]
_STEP = [Interval(Real, 0, None, closed="neither"), None]
_TOL = [Interval(Real, 0, None, closed="left")]


class QuasiNewton(BaseEstimator):
    """Projected quasi-Newton on all pairs: tens of iterations.

    Parameters
    ----------
    max_iter : int, default=200
    tol : float, default=1e-4
        Relative gap at which it stops.

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
        Relative gap at which it stops.
    step_size : float or None, default=None
        None searches along the line; a number makes the step constant.

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
    """Steps on single pairs, as in the paper: for very many graphs.

    Parameters
    ----------
    n_steps : int, default=1_000_000
    step_size : float or None, default=None
        Of the first steps; None chooses it from the radius.
    halvings : int, default=8
        How often it halves its step; each stage is twice as long as the one before. 0 keeps the
        step constant.
    average : bool, default=True
        Whether it returns the mean of its last stage instead of the last point.
    n_checks : int, default=10
        How often it evaluates the full objective; 0 leaves ``history_`` empty.
    tol : float, default=1e-4
        Relative gap at which it counts as converged.

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
    """The solver of a name, with the settings that it has by default; a solver as it is."""
    return SOLVER_KINDS[solver]() if isinstance(solver, str) else solver


def solver_name(solver: Any) -> str:
    return next(name for name, kind in SOLVER_KINDS.items() if type(solver) is kind)


def limited(learner: Any, **limits: float) -> Any:
    """A copy of a learner that works more roughly, if it can.

    ``tol`` is to be at least, ``max_iter`` and ``n_steps`` at most so large: of its solver, or of
    a learner that has them itself.
    """
    learner = clone(learner)
    own = learner.get_params(deep=False)
    if isinstance(own.get("solver"), str) and not own.keys() & limits.keys():
        learner.set_params(solver=as_solver(learner.solver))
    changes = {}
    for name, known in learner.get_params().items():
        setting = name.removeprefix("solver__")
        if setting in limits:
            changes[name] = (max if setting == "tol" else min)(known, limits[setting])
    return learner.set_params(**changes)
