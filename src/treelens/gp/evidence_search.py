"""The search for the parameters under which the targets are least surprising.

Three stages, each from where the last one ended: the scales of the kernel with uniform weights,
then also one weight per level, then all of it. The first is the model with uniform weights that the
others are compared with; it costs little and makes a good start.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from treelens.gp.evidence import (
    Evidence,
    EvidenceParameters,
    EvidenceProblem,
)

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
# So many steps in a row that gain less than this on average (in nats) end a stage.
_SMALL_GAIN = 0.1
_PATIENCE = 3
_MEMORY = 20  # pairs of steps and gradient changes that L-BFGS keeps


@dataclass(frozen=True)
class EvidenceStep:
    """One iteration of the search.

    Attributes
    ----------
    stage : {"uniform", "depths", "branches"}
    objective : float
        Minus the log posterior, up to a constant: what is minimised.
    gradient_norm : float
        The largest entry of its gradient, those aside that a bound stops.
    n_evaluations : int
        Of objective and gradient, since the stage began.
    """

    stage: str
    objective: float
    gradient_norm: float
    n_evaluations: int


@dataclass(frozen=True)
class EvidenceFit:
    """Where the search ended.

    Attributes
    ----------
    parameters : EvidenceParameters
    uniform : EvidenceParameters
        Where the first stage ended: uniform weights with scales of their own.
    history : tuple of EvidenceStep
    converged : bool
        Whether every stage ended because steps no longer gained anything, not for lack of steps.
    """

    parameters: EvidenceParameters
    uniform: EvidenceParameters
    history: tuple[EvidenceStep, ...]
    converged: bool


def learn_by_evidence(
    problem: EvidenceProblem,
    learned: str = "branches",
    *,
    max_steps: int = 100,
    device: str = "cpu",
    tick: Callable[[str], None] = lambda what: None,
) -> EvidenceFit:
    """Find the scales and weights under which the targets are least surprising.

    Parameters
    ----------
    problem : EvidenceProblem
    learned : {"uniform", "depths", "branches"}
        What of the weights: nothing, one number per level, or every branch as well.
    max_steps : int
        Of each stage; a stage that needs more ends with a ``ConvergenceWarning``.
    device : str
        ``"cpu"``, or a GPU as PyTorch names it, such as ``"cuda"``.
    tick : callable
        Told of every step, for a progress bar.
    """
    evaluate = evaluator(problem, device)
    parameters = starting_parameters(problem)
    history: list[EvidenceStep] = []
    uniform, converged = parameters, True
    for stage in STAGES[: STAGES.index(learned) + 1]:
        search = _Stage(problem, stage, parameters, evaluate, tick)
        parameters, rested = search.run(max_steps)
        converged = converged and rested
        history += search.history
        if stage == "uniform":
            uniform = parameters
    if not converged:
        warnings.warn(
            f"The search for weights stopped before it came to rest (max_steps={max_steps}): a "
            "larger max_steps may fit a little better.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return EvidenceFit(parameters, uniform, tuple(history), converged)


def refit_scales(
    fit: EvidenceFit,
    problem: EvidenceProblem,
    *,
    max_steps: int = 100,
    device: str = "cpu",
    tick: Callable[[str], None] = lambda what: None,
) -> EvidenceFit:
    """The same weights with the scales under which other targets are least surprising.

    Parameters
    ----------
    fit : EvidenceFit
    problem : EvidenceProblem
        Other graphs, over the same patterns.
    max_steps, device, tick :
        As for :func:`learn_by_evidence`.
    """
    evaluate = evaluator(problem, device)
    parameters, uniform = (
        _Stage(problem, "uniform", start, evaluate, tick).run(max_steps)[0]
        for start in (fit.parameters, fit.uniform)
    )
    return replace(fit, parameters=parameters, uniform=uniform)


Evaluator = Callable[[EvidenceParameters, str], tuple[float, np.ndarray]]


def evaluator(problem: EvidenceProblem, device: str) -> Evaluator:
    """Objective and gradient as a function of parameters and of what is learned."""
    if device != "cpu":
        from treelens.gp.evidence_device import DeviceEvidence

        return DeviceEvidence(problem, device)
    return Evidence(problem)


def starting_parameters(problem: EvidenceProblem) -> EvidenceParameters:
    """Uniform weights, and scales at which neither part of the kernel is flat."""
    n_levels, n_patterns = problem.hierarchy.n_levels, problem.hierarchy.n_patterns
    return EvidenceParameters(problem.usual_scales.copy(), np.zeros(n_levels), np.zeros(n_patterns))


@dataclass
class _Stage:
    """One run of L-BFGS over the first so many parameters."""

    problem: EvidenceProblem
    stage: str
    start: EvidenceParameters
    evaluate: Evaluator
    tick: Callable[[str], None]
    history: list[EvidenceStep] = field(default_factory=list)
    _n_evaluations: int = 0
    _norms: dict[float, float] = field(default_factory=dict)  # gradient norm by objective

    def run(self, max_steps: int) -> tuple[EvidenceParameters, bool]:
        """Where the stage ended, and whether it came to rest."""
        lower, upper = self._bounds()
        start = np.clip(self.start.vector(len(lower)), lower, upper)
        result = optimize.minimize(
            self._evaluate, start, jac=True, method="L-BFGS-B",
            bounds=optimize.Bounds(lower, upper), callback=self._note,
            options={"maxiter": max_steps, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 1e-6},
        )  # fmt: skip
        if not self.history:  # it began at rest
            self._record(float(result.fun))
        return self.start.replaced(result.x), bool(self._at_rest() or result.success)

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        n_free = self.problem.n_free(self.stage)
        lower, upper = np.full(n_free, -np.inf), np.full(n_free, np.inf)
        n_scales = len(self.problem.usual_scales)
        lower[:n_scales], upper[:n_scales] = SCALE_BOUNDS[:n_scales].T
        return lower, upper

    def _evaluate(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.evaluate(self.start.replaced(vector), self.stage)
        self._n_evaluations += 1
        self._norms[value] = _projected_norm(vector, gradient, len(self.start.scales))
        return value, gradient

    def _record(self, value: float) -> None:
        norm = self._norms.get(value, np.nan)
        self.history.append(EvidenceStep(self.stage, value, norm, self._n_evaluations))

    def _note(self, intermediate_result: optimize.OptimizeResult) -> None:
        self._record(float(intermediate_result.fun))
        self.tick(f"{self.stage}, step {len(self.history)}")
        if self._at_rest():
            raise StopIteration

    def _at_rest(self) -> bool:
        values = [step.objective for step in self.history[-_PATIENCE - 1 :]]
        return len(values) > _PATIENCE and values[0] - values[-1] < _PATIENCE * _SMALL_GAIN


def _projected_norm(vector: np.ndarray, gradient: np.ndarray, n_scales: int) -> float:
    """The largest entry of the gradient that a bound does not stop."""
    moving, lower, upper = gradient.copy(), *SCALE_BOUNDS[:n_scales].T
    scales, slopes = vector[:n_scales], gradient[:n_scales]
    stopped = ((scales <= lower) & (slopes > 0)) | ((scales >= upper) & (slopes < 0))
    moving[:n_scales][stopped] = 0.0
    return float(np.abs(moving).max())
