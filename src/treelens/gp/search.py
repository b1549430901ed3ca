"""The search for scales and weights that maximise the marginal likelihood.

Weights are learned in stages, each from where the last one ended: the scales of the kernel with
uniform weights, then also one weight per level, then also one deviation per pattern. The stages
run on part of the training graphs, where an evaluation is cheap; a few more iterations on all of
them refine the result. Which stage to trust is decided on the graphs outside that part
(:mod:`treelens.gp.choice`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy import optimize

from treelens.gp.censoring import CensoredEvidence
from treelens.gp.evidence import Evidence, EvidenceParameters, EvidenceProblem
from treelens.parallel import one_blas_thread

STAGES = ("uniform", "depths", "branches")
# Lowest and highest gamma, rho, amplitude, noise (as logarithms), and logit of the share; then of
# covariates amplitude and length.
SCALE_BOUNDS = np.array(
    [
        np.log([1e-2, 1e2]),
        np.log([1e-5, 1e2]),
        np.log([1e-3, 1e3]),
        np.log([1e-5, 1e1]),
        [-6.0, 6.0],
        np.log([1e-6, 1e3]),
        np.log([1e-2, 1e3]),
    ]
)
# A stage has converged when its last iterations gained less than this, in nats per graph.
_SMALL_GAIN = 1e-3
_PATIENCE = 2
_MEMORY = 20  # pairs of steps and gradient changes that L-BFGS keeps

_LOG_NOISES = np.log([0.003, 0.03, 0.2])  # to begin with where the given noise is too small
_STEEP = 0.003  # slope in the log noise, per graph: where it is steeper, noise is too small

Tick = Callable[[str], None]


class Evaluator(Protocol):
    """Objective and gradient of one problem as a function of parameters and what is learned."""

    def __call__(
        self, parameters: EvidenceParameters, learned: str
    ) -> tuple[float, np.ndarray]: ...
    def value(self, parameters: EvidenceParameters) -> float: ...


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

    parameters: EvidenceParameters
    history: tuple[EvidenceStep, ...]
    converged: bool  # whether it ended because iterations no longer gained anything

    @property
    def objective(self) -> float:
        return self.history[-1].objective


def starting_parameters(problem: EvidenceProblem) -> EvidenceParameters:
    """Uniform weights, and scales at which neither part of the kernel is flat."""
    n_groups, n_patterns = problem.hierarchy.n_groups, problem.hierarchy.n_patterns
    return EvidenceParameters(problem.usual_scales.copy(), np.zeros(n_groups), np.zeros(n_patterns))


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
    """Run one stage of the search.

    Parameters
    ----------
    problem : EvidenceProblem
    stage : {"uniform", "depths", "branches"}
        What of the weights is learned: nothing, one number per level, or every branch as well.
    start : EvidenceParameters, optional
    max_steps : int
    check_noise : bool
        Whether the start was found on part of the graphs, and its noise may be too small for all.
    device : str
        ``"cpu"``, or a GPU such as ``"cuda"``.
    tick : callable
        Called at every iteration, for a progress bar.
    """
    start = starting_parameters(problem) if start is None else start
    search = _Stage(problem, stage, start, evaluator(problem, device), tick)
    return search.run(max_steps, check_noise)


def evaluator(problem: EvidenceProblem, device: str) -> Evaluator:
    """Return objective and gradient as a function of parameters and of what is learned."""
    if device != "cpu":
        from treelens.gp.device import DeviceEvidence

        return DeviceEvidence(problem, device)
    return Evidence(problem) if problem.limits is None else CensoredEvidence(problem)


@dataclass
class _Stage:
    """One run of L-BFGS over the first so many parameters."""

    problem: EvidenceProblem
    stage: str
    start: EvidenceParameters
    evaluate: Evaluator
    tick: Tick
    history: list[EvidenceStep] = field(default_factory=list)
    _n_evaluations: int = 0
    _first: tuple[float, np.ndarray] | None = None
    _norms: dict[float, float] = field(default_factory=dict)  # gradient norm by objective

    def run(self, max_steps: int, check_noise: bool = False) -> EvidenceFit:
        start = self._inside(self.start.vector(self.problem.n_free(self.stage)))
        with one_blas_thread():  # but where large matrices are factored
            if check_noise:
                start = self._with_likely_noise(start)
            result = optimize.minimize(
                self._evaluate, start, jac=True, method="L-BFGS-B", callback=self._note,
                options={"maxiter": max_steps, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 1e-6},
            )  # fmt: skip
        if not self.history:  # it began at a stationary point
            self._record(float(result.fun))
        converged = bool(self._has_converged() or result.success)
        found = self.start.replaced(self._inside(result.x))
        return EvidenceFit(found, tuple(self.history), converged)

    def _inside(self, vector: np.ndarray) -> np.ndarray:
        """The nearest parameters within the bounds of the scales."""
        inside, n_scales = vector.copy(), len(self.start.scales)
        inside[:n_scales] = np.clip(vector[:n_scales], *SCALE_BOUNDS[:n_scales].T)
        return inside

    def _with_likely_noise(self, start: np.ndarray) -> np.ndarray:
        """Return the start, with the most likely of a few noise variances where its is too small.

        Graphs that contradict each other are rarer in part of the data than in all of it. A noise
        variance found on part can be so small for all graphs that the first step of the search ends
        where noise explains everything.
        """
        self._first = self._evaluate(start)
        if self._first[1][3] > -_STEEP * self.problem.n_graphs:
            return start
        values, tried = {float(start[3]): self._first[0]}, start.copy()
        for log_noise in _LOG_NOISES[start[3] < _LOG_NOISES]:
            tried[3] = log_noise
            values[float(log_noise)] = self.evaluate.value(self.start.replaced(tried))
        tried[3] = min(values, key=lambda log_noise: values[log_noise])
        if tried[3] != start[3]:
            self._first = None
        return tried

    def _evaluate(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        if self._first is not None:  # the search begins where the noise was checked
            first, self._first = self._first, None
            return first
        inside = self._inside(vector)
        value, gradient = self.evaluate(self.start.replaced(inside), self.stage)
        self._n_evaluations += 1
        norm = _projected_norm(inside, gradient, len(self.start.scales))
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


def _projected_norm(vector: np.ndarray, gradient: np.ndarray, n_scales: int) -> float:
    """The largest entry of the gradient that a bound does not stop."""
    moving, lower, upper = gradient.copy(), *SCALE_BOUNDS[:n_scales].T
    scales, slopes = vector[:n_scales], gradient[:n_scales]
    stopped = ((scales <= lower) & (slopes > 0)) | ((scales >= upper) & (slopes < 0))
    moving[:n_scales][stopped] = 0.0
    return float(np.abs(moving).max())
