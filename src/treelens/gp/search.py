"""The search for the parameters of a Gaussian process by its marginal likelihood.

Weights are learned in stages, each from where the last one ended: the scales of the kernels with
uniform weights, then also one weight per level, then also one deviation per pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import optimize

from treelens.gp.evidence import Evidence, EvidenceParameters, EvidenceProblem
from treelens.parallel import one_blas_thread

STAGES = ("uniform", "depths", "branches")
# A stage has converged when its last iterations gained less than this, in nats per graph.
_SMALL_GAIN = 1e-3
_PATIENCE = 2
# Iterations on all graphs that refine what was found on part of them, where there are many.
REFINE_MANY = 6
_MEMORY = 20  # pairs of steps and gradient changes that L-BFGS keeps
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
    converged: bool  # whether it ended because iterations no longer gained anything

    @property
    def objective(self) -> float:
        return self.history[-1].objective


def maximise_evidence(
    problem: EvidenceProblem,
    stage: str,
    start: EvidenceParameters | None = None,
    *,
    max_steps: int = 100,
    check_noise: bool = False,
    device: str = "cpu",
    tick: Tick = lambda what: None,
) -> EvidenceFit:
    """Run one stage; ``check_noise``: that of the start may be too small, found on fewer graphs."""
    evaluate: Any
    if device != "cpu":
        from treelens.gp.device import DeviceEvidence

        evaluate = DeviceEvidence(problem, device)
    elif problem.limits is not None:
        from treelens.gp.censoring import CensoredEvidence

        evaluate = CensoredEvidence(problem)
    else:
        evaluate = Evidence(problem)
    start = start or problem.start
    return Stage(problem, stage, start, evaluate, tick).run(max_steps, check_noise)


@dataclass
class Stage:
    """One run of L-BFGS over the first so many parameters."""

    problem: Any  # EvidenceProblem or PanelProblem
    stage: str
    start: Any  # its parameters
    evaluate: Any  # Evidence, CensoredEvidence, DeviceEvidence or PanelEvidence
    tick: Tick
    history: list[EvidenceStep] = field(default_factory=list)
    _n_evaluations: int = 0
    _first: tuple[float, np.ndarray] | None = None
    _norms: dict[float, float] = field(default_factory=dict)  # gradient norm by objective

    def run(self, max_steps: int, check_noise: bool = False) -> EvidenceFit:
        start = self._inside(self.problem.vector(self.start, self.stage))
        with one_blas_thread():  # but where large matrices are factored
            if check_noise:
                start = self._with_likely_noise(start)
            result = optimize.minimize(
                self._evaluate,
                start,
                jac=True,
                method="L-BFGS-B",
                callback=self._note,
                options={"maxiter": max_steps, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 1e-6},
            )
        if not self.history:  # it began at a stationary point
            self._record(float(result.fun))
        converged = bool(self._has_converged() or result.success)
        found = self._at(self._inside(result.x))
        return EvidenceFit(found, tuple(self.history), converged)

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
        inside = self._inside(vector)
        value, gradient = self.evaluate(self._at(inside), self.stage)
        self._n_evaluations += 1
        norm = float(np.abs(inside - self._inside(inside - gradient)).max())  # within the bounds
        # Beyond bounds the objective goes on as a parabola: SciPy's bounds would cost 2 µs for each
        # of many thousand parameters that have none.
        beyond = vector - inside
        value += float(gradient @ beyond + 0.5 * self.problem.n_graphs * beyond @ beyond)
        self._norms[value] = norm
        return value, gradient + self.problem.n_graphs * beyond

    def _record(self, value: float) -> None:
        norm = self._norms.get(value, np.nan)
        self.history.append(EvidenceStep(self.stage, value, norm, self._n_evaluations))

    def _note(self, intermediate_result: optimize.OptimizeResult) -> None:
        self._record(float(intermediate_result.fun))
        self.tick(f"{self.stage}, iteration {len(self.history)}")
        if self._has_converged():
            raise StopIteration

    def _has_converged(self) -> bool:
        values = [step.objective for step in self.history[-_PATIENCE - 1 :]]
        least = _SMALL_GAIN * self.problem.n_graphs
        return len(values) > _PATIENCE and values[0] - values[-1] < least
