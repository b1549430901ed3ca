"""Solvers: projected gradient, projected quasi-Newton (the default) and stochastic steps.

Patterns differ in frequency by orders of magnitude, and so does the curvature of the objective;
plain gradients are slow. The quasi-Newton solver preconditions by a diagonal metric, models the
remaining curvature by limited-memory BFGS, minimises the model over the constraint set (cheap, as
it needs no pass over the pairs) and searches along the line to that minimiser. Every evaluation
costs one pass over the pairs, and nearly every one is a step.

The stochastic solver steps on single pairs, at the cost of the patterns that they share. It is the
paper's Algorithm 1 with its branches the right way round: V1, which pushes apart, for *different*
labels, V2 for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from treelens._sklearn_compat import BaseEstimator, Interval
from treelens.pairwise import _compiled_pairs
from treelens.pairwise._compiled_pairs import PairRows, StepRules, StepState
from treelens.pairwise.objective import CENTER, AllPairsObjective, BallConstraint, pair_weights

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]  # weights to value and gradient

_SHRINK = 0.5
_GROW = 1.3
_ROUNDING = 1e-14  # differences of objectives below this, relatively, are noise
_MEMORY = 20  # steps remembered by the model
_MODEL_STEPS = 60  # projected gradient steps on the model, at most
_MODEL_TOL = 1e-3  # relative to the first predicted decrease of the model
_ENOUGH = 1e-4  # share of the predicted decrease that a step must bring
_TRIALS = 30
_CHUNK = 1 << 16
# A gap is relative to the objective, but never to less than this share of its first value: an
# objective that falls to zero would otherwise never count as converged.
_MIN_SHARE = 1e-9
_PATIENCE = 30
_STALLED = 1e-15
# The gap is of first order in the distance to the optimum, the objective of second: where rounding
# of the objective (1e-16) hides all further progress, the gap is some 1e-8.
_GAP_AT_ROUNDING = 1e-6


# --- settings ---------------------------------------------------------------------------------

Constraints = dict[str, list[Any]]
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

    _parameter_constraints: ClassVar[Constraints] = {"max_iter": _AT_LEAST_ONE, "tol": _TOL}

    def __init__(self, max_iter: int = 200, tol: float = 1e-4) -> None:
        self.max_iter = max_iter
        self.tol = tol


class ProjectedGradient(BaseEstimator):
    """Projected gradient on all pairs.

    Parameters
    ----------
    max_iter, tol :
        As in :class:`QuasiNewton`.
    step_size : float or None, default=None
        None adapts the step; a number makes it constant.

    Examples
    --------
    >>> import treelens as tl
    >>> tl.PairwiseWeights(solver=tl.ProjectedGradient(max_iter=50))
    PairwiseWeights(solver=ProjectedGradient(max_iter=50))
    """

    _parameter_constraints = QuasiNewton._parameter_constraints | {"step_size": _STEP}

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

    _parameter_constraints: ClassVar[Constraints] = {
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


def solver_name(solver: Solver) -> str:
    return next(name for name, kind in SOLVER_KINDS.items() if type(solver) is kind)


# --- all pairs --------------------------------------------------------------------------------


@dataclass
class Minimization:
    """A convex objective, its constraint set, and the record of how it was minimised."""

    # A convex function lies above its tangent planes, so the minimum of a tangent plane over the
    # constraint set is a lower bound of the optimum. The best bound so far gives the gap.
    objective: Objective
    constraint: BallConstraint
    tol: float  # relative gap that counts as converged
    max_iter: float = np.inf
    values: list[float] = field(default_factory=list)  # at the start and after every iteration
    gaps: list[float] = field(default_factory=list)  # likewise, relative to the objective
    lower_bound: float = -np.inf
    exhausted: bool = False  # no step in any direction lowers the objective

    def evaluate(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return objective and gradient at a point, whose tangent plane may raise the bound."""
        value, gradient = self.objective(weights)
        lowest = self.constraint.linear_minimizer(gradient)
        self.lower_bound = max(self.lower_bound, value + float(gradient @ (lowest - weights)))
        return value, gradient

    def record(self, value: float) -> None:
        """Append the objective at the end of an iteration, and its gap to the lower bound."""
        self.values.append(value)
        scale = max(value, _MIN_SHARE * self.values[0], np.finfo(float).tiny)
        self.gaps.append(max(value - self.lower_bound, 0.0) / scale)

    @property
    def stalled(self) -> bool:
        """Whether the last 30 iterations brought no more than rounding."""
        return len(self.values) > _PATIENCE and (
            self.values[-_PATIENCE - 1] - self.values[-1] <= _STALLED * abs(self.values[-1])
        )

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance, or as small as rounding allows."""
        if not self.gaps:
            return False
        at_rounding = self.exhausted or self.stalled
        return self.gaps[-1] <= max(self.tol, _GAP_AT_ROUNDING if at_rounding else 0.0)

    @property
    def stopped(self) -> bool:
        """Whether it converged, stalled or is out of iterations."""
        return self.converged or self.stalled or len(self.values) > self.max_iter


def first_step(direction: np.ndarray, constraint: BallConstraint) -> float:
    """Return the step along a direction that is as long as the largest radius."""
    length = float(np.sqrt(direction @ direction))
    return float(constraint.radii.max()) / length if length > 0 else 1.0


def projected_gradient(
    problem: Minimization, weights: np.ndarray, step_size: float | None = None
) -> np.ndarray:
    """Return the weights that projected gradient steps from a point of the set arrive at.

    The step is constant with a ``step_size``. Without it the step grows while the parabola of that
    curvature stays above the objective, and is halved when it does not.
    """
    value, gradient = problem.evaluate(weights)
    problem.record(value)
    step = first_step(gradient, problem.constraint) if step_size is None else step_size
    while not problem.stopped:
        candidate = problem.constraint.project(weights - step * gradient)
        new_value, new_gradient = problem.evaluate(candidate)
        if step_size is None:
            move = candidate - weights
            bound = value + gradient @ move + (move @ move) / (2.0 * step)
            if new_value > bound + _ROUNDING * abs(value):
                step *= _SHRINK
                continue
            step *= _GROW
        weights, value, gradient = candidate, new_value, new_gradient
        problem.record(value)
    return weights


def projected_quasi_newton(
    problem: Minimization, weights: np.ndarray, metric: np.ndarray
) -> np.ndarray:
    """Return the weights that projected quasi-Newton steps from a point of the set arrive at."""
    # `metric` (n_patterns,) is positive: a guess at the curvature in every coordinate, up to a
    # common factor.
    curvature = CurvatureModel(metric)
    value, gradient = problem.evaluate(weights)
    problem.record(value)
    while not problem.stopped:
        target = _next_target(curvature, weights, gradient, problem.constraint)
        found = _line_search(problem, weights, target, value, gradient)
        if found is None:
            if curvature.empty:
                problem.exhausted = True  # not even the gradient itself descends
                break
            curvature = CurvatureModel(metric)
            continue
        new_weights, value, new_gradient = found
        curvature.learn(new_weights - weights, new_gradient - gradient)
        weights, gradient = new_weights, new_gradient
        problem.record(value)
    return weights


class CurvatureModel:
    """Limited-memory BFGS from the last steps and gradient changes."""

    # `B = scale diag(metric) - directions^T middle directions`.

    def __init__(self, metric: np.ndarray) -> None:
        self.metric = metric
        self._steps: list[np.ndarray] = []
        self._changes: list[np.ndarray] = []
        self.scale = 1.0

    @property
    def empty(self) -> bool:
        return not self._steps

    def learn(self, step: np.ndarray, change: np.ndarray) -> None:
        """Add a step and its gradient change; steps without curvature are skipped."""
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
            np.block(
                [
                    [bent @ steps.T, lower],
                    [lower.T, -np.diag(np.diag(products))],
                ]
            )
        )

    def times(self, vector: np.ndarray) -> np.ndarray:
        """Return ``B @ vector``."""
        plain = self.scale * self.metric * vector
        if self.empty:
            return plain
        return plain - (self._middle @ (self._directions @ vector)) @ self._directions


def _next_target(
    curvature: CurvatureModel, weights: np.ndarray, gradient: np.ndarray, constraint: BallConstraint
) -> np.ndarray:
    """Return the minimiser of the model over the set, by spectral projected gradient."""
    metric = curvature.metric
    if curvature.empty:
        direction = gradient / metric
        reach = first_step(direction, constraint)
        return constraint.project_in(metric, weights - reach * direction)
    point, slope = weights, gradient
    step = 1.0 / curvature.scale
    first_predicted = 0.0
    for _ in range(_MODEL_STEPS):
        move = constraint.project_in(metric, point - step * slope / metric) - point
        predicted = -float(slope @ move)
        if predicted <= _MODEL_TOL * first_predicted:
            break
        first_predicted = max(first_predicted, predicted)
        bent = curvature.times(move)
        bend = float(move @ bent)
        length = min(1.0, predicted / bend) if bend > 0 else 1.0
        point, slope = point + length * move, slope + length * bent
        step = float(move @ (metric * move)) / bend if bend > 0 else step
    return point


def _line_search(
    problem: Minimization,
    weights: np.ndarray,
    target: np.ndarray,
    value: float,
    gradient: np.ndarray,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Return the first point on the way to the target where the objective has fallen enough."""
    move = target - weights
    slope = float(gradient @ move)
    length = 1.0
    if slope >= 0:
        return None
    for _ in range(_TRIALS):
        candidate = weights + length * move
        new_value, new_gradient = problem.evaluate(candidate)
        if new_value <= value + _ENOUGH * length * slope:
            return candidate, new_value, new_gradient
        excess = new_value - value - length * slope
        parabola = -0.5 * slope * length**2 / excess if excess > 0 else 0.0
        length = float(np.clip(parabola, 0.1 * length, 0.5 * length))
    return None


# --- single pairs -----------------------------------------------------------------------------


def stochastic_gradient(
    objective: AllPairsObjective,
    constraint: BallConstraint,
    settings: StochasticGradient,
    step_size: float,
    seed: int | np.random.RandomState | None,
) -> tuple[np.ndarray, Minimization, int]:
    """Take single-pair projected steps from uniform weights.

    Returns the weights, the record (one entry per check) and the number of steps, fewer than
    planned if a check found the tolerance reached.
    """
    n_steps, halvings = settings.n_steps, settings.halvings
    problem = Minimization(objective.value_and_gradient, constraint, settings.tol)
    features, margins = objective.features, objective.margins
    state = StepState.fresh(features.n_patterns, len(constraint.radii))
    rules = StepRules(
        constraint.level_offsets,
        constraint.radii,
        margins.b,
        margins.alpha1,
        margins.alpha2,
        margins.sigma,
        step_size,
    )
    ends = stage_ends(n_steps, halvings)
    checks = np.linspace(0, ends[-1], settings.n_checks + 1).astype(int)[1:]
    n_done, stage, stage_start = 0, 0, 0
    pairs, weights = PairRows.of(features), np.full(features.n_patterns, CENTER)
    if settings.n_checks:
        problem.record(problem.evaluate(weights)[0])
    rng, stops = np.random.default_rng(seed), {*ends, *checks.tolist()}
    for first, second, factors in draw_pairs(objective, n_steps, rng, stops):
        while stage < halvings and n_done >= ends[stage]:
            stage, stage_start = stage + 1, n_done
            rules = rules._replace(step_size=0.5 * rules.step_size)
            state.total[:] = 0.0
        _compiled_pairs.run_steps(pairs, objective.codes, rules, state, first, second, factors)
        for level, part in enumerate(pairwise(constraint.level_offsets)):
            _compiled_pairs.rescale_level(state, level, *part)  # clears rounding of running sums
        n_done += len(first)
        shift = state.total / (n_done - stage_start) if settings.average else state.u
        weights = constraint.project(CENTER + shift)  # projecting again only removes rounding
        if n_done in checks:
            problem.record(problem.evaluate(weights)[0])
            if problem.converged:
                break
    return weights, problem, n_done


def stage_ends(n_steps: int, halvings: int) -> list[int]:
    """Return the number of steps after which each stage ends."""
    # Every stage has twice as many steps as the one before, so that the noise decays while the
    # weights can still get everywhere.
    n_units = 2 ** (halvings + 1) - 1
    return [n_steps * (2**k - 1) // n_units for k in range(1, halvings + 2)]


def draw_pairs(
    objective: AllPairsObjective, n_steps: int, rng: np.random.Generator, stops: set[int]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Draw first graphs, second graphs and factors, in chunks that end at the ``stops``."""
    # The factors make the mean over drawn ordered pairs the weighted objective.
    n_graphs = len(objective.codes)
    different, equal = (
        0.5 * float(n_graphs) ** 2 * np.array(pair_weights(objective.codes, objective.balance))
    )
    for done in range(0, n_steps, _CHUNK):
        size = min(_CHUNK, n_steps - done)
        first, second = rng.integers(n_graphs, size=(2, size), dtype=np.int32)
        same = objective.codes[first] == objective.codes[second]
        factors = np.where(same, equal, different)
        inside = sorted(stop - done for stop in stops if 0 < stop - done < size)
        for start, stop in zip([0, *inside], [*inside, size], strict=True):
            yield first[start:stop], second[start:stop], factors[start:stop]
