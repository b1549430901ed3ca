"""The search for the parameters of a Gaussian process by its marginal likelihood.

Weights are learned in stages, each from where the last one ended: the scales of the kernels with
uniform weights, then also one weight per level, then also one deviation per pattern. Each stage is
a quasi-Newton descent that begins with the curvature that the one before it found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from treelens.gp.evidence import EvidenceParameters, EvidenceProblem, RoundedEvidence
from treelens.parallel import one_blas_thread

STAGES = ("uniform", "depths", "branches")
# A stage has converged when no more than this is left to be gained, in nats per graph: on parts of
# the graphs, from which others follow, and on all of them.
_ROUGHLY, _SMALL_GAIN = 1e-3, 3e-4
# Curvature per graph of scales, of logits and of deviations, and that of the priors of the first
# two, where none is known yet: within a factor of three of what was found on most sets.
_OF_SCALES, _OF_LOGITS, _OF_DEVIATIONS, _OF_PRIORS = 0.08, 0.004, 0.002, 0.25
# Iterations on all graphs that refine what was found on part of them, where there are many.
REFINE_MANY = 6
_LOG_NOISES = np.log([0.003, 0.03, 0.2])  # to begin with where the given noise is too small
_STEEP = 0.003  # slope in the log noise, per graph: where it is steeper, noise is too small

Tick = Callable[[str], None]


@dataclass(frozen=True)
class EvidenceStep:
    """One iteration of the search."""

    stage: str
    objective: float  # minus the log posterior, up to a constant: what is minimised
    gradient_norm: float  # the largest entry of its gradient, those aside that a bound stops
    n_evaluations: int  # of objective and gradient, since the stage began


@dataclass(frozen=True)
class EvidenceFit:
    """Where a stage of the search ended."""

    parameters: Any  # EvidenceParameters or PanelParameters
    history: tuple[EvidenceStep, ...]
    converged: bool  # whether it ended because there was little left to be gained
    # Inverse Hessian of scales and logits, times the number of graphs: (n, n), for the next search.
    curvature: np.ndarray

    @property
    def objective(self) -> float:
        return self.history[-1].objective


def maximise_evidence(
    problem: EvidenceProblem,
    stage: str,
    start: EvidenceParameters | None = None,
    *,
    curvature: np.ndarray | None = None,
    max_steps: int = 100,
    roughly: bool = False,
    check_noise: bool = False,
    device: str = "cpu",
    tick: Tick = lambda what: None,
) -> EvidenceFit:
    """Run one stage, with the curvature that an earlier one has found.

    ``check_noise``: that of the start may be too small, found on fewer graphs.
    """
    evaluate: Any
    if device != "cpu":
        from treelens.gp.device import DeviceEvidence

        evaluate = DeviceEvidence(problem, device)
    elif problem.limits is not None:
        from treelens.gp.censoring import CensoredEvidence

        evaluate = CensoredEvidence(problem)
    else:
        evaluate = RoundedEvidence(problem)
    start = start or problem.start
    least_gain = _ROUGHLY if roughly else _SMALL_GAIN
    search = Stage(problem, stage, start, evaluate, tick, least_gain)
    return search.run(max_steps, check_noise, curvature)


@dataclass
class Stage:
    """One search over the first so many parameters."""

    problem: Any  # EvidenceProblem or PanelProblem
    stage: str
    start: Any  # its parameters
    evaluate: Any  # Evidence, CensoredEvidence, DeviceEvidence or PanelEvidence
    tick: Tick
    least_gain: float = _SMALL_GAIN  # in nats per graph
    history: list[EvidenceStep] = field(default_factory=list)
    _n_evaluations: int = 0
    _first: tuple[float, np.ndarray] | None = None

    def run(
        self, max_steps: int, check_noise: bool = False, curvature: np.ndarray | None = None
    ) -> EvidenceFit:
        problem, n = self.problem, self.problem.n_graphs
        start = self._inside(problem.vector(self.start, self.stage))
        inverse = self._inverse_hessian(curvature)
        with one_blas_thread():  # but where large matrices are factored
            if check_noise:
                start = self._with_likely_noise(start)
            end, converged = minimise(
                self._evaluate,
                start,
                problem.scale_bounds,
                inverse,
                least_gain=self.least_gain * n,
                max_steps=max_steps,
                note=self._note,
            )
        if not self.history:  # it began where nothing was left to be gained
            self._record(end)
        found = self._at(end.vector)
        return EvidenceFit(found, tuple(self.history), converged, n * inverse.block())

    def _inverse_hessian(self, known: np.ndarray | None) -> InverseHessian:
        """What is known of the curvature of scales and logits, and what is usual of the others."""
        n, n_scales = self.problem.n_graphs, self.problem.n_scales
        of_logits = "uniform" if self.stage == "uniform" else "depths"
        size = len(self.problem.vector(self.start, of_logits))
        of_data = np.where(np.arange(size) < n_scales, _OF_SCALES, _OF_LOGITS)
        first = np.diag(1.0 / (n * of_data + _OF_PRIORS))
        if known is not None and len(known) > size:  # of logits that are no longer searched
            known = np.linalg.inv(np.linalg.inv(known)[:size, :size])
        if known is not None:
            first[: len(known), : len(known)] = known / n
        return InverseHessian(first, 1.0 / (1.0 + _OF_DEVIATIONS * n))

    def _inside(self, vector: np.ndarray) -> np.ndarray:
        """The nearest parameters within the bounds of the scales."""
        inside, bounds = vector.copy(), self.problem.scale_bounds
        inside[: len(bounds)] = np.clip(vector[: len(bounds)], *bounds.T)
        return inside

    def _at(self, vector: np.ndarray) -> Any:
        return self.problem.replaced(self.start, vector, self.stage)

    def _with_likely_noise(self, start: np.ndarray) -> np.ndarray:
        """Return the start, with the most likely of a few noise variances where its is too small.

        Graphs that contradict each other are rarer in part of the data than in all of it; with too
        little noise, the first step of the search ends where noise explains everything.
        """
        noise = self.problem.n_scales - 1
        self._first = self._evaluate(start)
        if self._first[1][noise] > -_STEEP * self.problem.n_graphs:
            return start
        least, best = self._first[0], start
        for log_noise in _LOG_NOISES[start[noise] < _LOG_NOISES]:
            tried = start.copy()
            tried[noise] = log_noise
            value = self.evaluate.value(self._at(tried))
            if value < least:
                least, best, self._first = value, tried, None
        return best

    def _evaluate(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        if self._first is not None:  # the search begins where the noise was checked
            first, self._first = self._first, None
            return first
        self._n_evaluations += 1
        value, gradient = self.evaluate(self._at(vector), self.stage)
        return value, gradient

    def _record(self, point: Point) -> None:
        inside = self._inside(point.vector - point.gradient)  # within the bounds
        norm = float(np.abs(point.vector - inside).max())
        self.history.append(EvidenceStep(self.stage, point.value, norm, self._n_evaluations))

    def _note(self, point: Point) -> None:
        self._record(point)
        self.tick(f"{self.stage}, iteration {len(self.history)}")


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
