"""The search for the parameters of a Gaussian process by its marginal likelihood.

Weights are learned in stages, each from where the last one ended: the scales of the kernels with
uniform weights, then also one weight per level, then also one deviation per pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treelens.gp.descent import InverseHessian, Point, minimise
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
