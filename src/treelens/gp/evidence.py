"""The marginal likelihood of a Gaussian process, its gradient, and the search for its maximum.

The weight of a pattern is ``w_v = beta_level(v) * exp(theta_v)``: one ``beta`` per level (a depth
of a tree of patterns; a step and resolution of cells), a softmax of ``b`` times their number, and
``theta_v``, the sum of the deviations ``delta_a`` of ``v`` and all its ancestors, so that a
deviation moves a whole branch.
With ``A`` the mixture kernel (:mod:`treelens.kernels.gram`) of these weights plus noise on the
diagonal, and P columns of targets, the objective to minimise is

    J = mean over p of [ y_p' inv(A) y_p / 2 + log|A| / 2 ] + strength |delta|² / 2 + ...

that is, up to a constant, minus the log of the marginal likelihood ("evidence") times Gaussian
priors on the deviations, on ``b`` and, wide ones, on the logarithms of the kernel's scales. The
gradient needs one inverse, and one pass over the lists of the patterns.

Weights are learned in stages, each from where the last one ended: the scales of the kernel with
uniform weights, then also one weight per level, then also one deviation per pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special
from scipy.spatial import distance

from treelens.gp.levels import LevelSums, PatternHierarchy, SplitSums
from treelens.gp.posterior import JITTER, cholesky_in_place, inverse_in_place, solve_factored
from treelens.kernels.gram import (
    Covariates,
    CovariateScales,
    Kept,
    MixtureScales,
    MixtureSlopes,
    mirrored,
    mixture_kernel,
    mixture_slopes,
)
from treelens.parallel import one_blas_thread
from treelens.patterns.histograms import PairFeatures

STAGES = ("uniform", "depths", "branches")
N_SCALES = 5  # logarithms of gamma, rho, amplitude and noise, and the logit of the share
# Lowest and highest of them; then of the logarithms of covariates' amplitude and length.
_SCALE_BOUNDS = np.array(
    [
        *np.log([[1e-2, 1e2], [1e-5, 1e2], [1e-3, 1e3], [1e-5, 1e1]]),
        [-6.0, 6.0],
        *np.log([[1e-6, 1e3], [1e-2, 1e3]]),
    ]
)
# Standard deviations of the priors on the levels' logits and on the scales, which are logarithms:
# wide, but enough to keep the noise off zero where a few graphs repeat.
LOGIT_SPREAD = 2.0
SCALE_SPREAD = 2.0
# Graphs of which slopes use again what the kernel values were made of: six numbers a pair.
_KEPT_UP_TO = 1024
# A stage has converged when its last iterations gained less than this, in nats per graph.
_SMALL_GAIN = 1e-3
_PATIENCE = 2
_MEMORY = 20  # pairs of steps and gradient changes that L-BFGS keeps
_LOG_NOISES = np.log([0.003, 0.03, 0.2])  # to begin with where the given noise is too small
_STEEP = 0.003  # slope in the log noise, per graph: where it is steeper, noise is too small

Tick = Callable[[str], None]


class EvidenceParameters(NamedTuple):
    """Everything that evidence decides, in the coordinates in which it is searched."""

    scales: np.ndarray  # (n_scales,), see N_SCALES; then log amplitude and length of covariates
    level_logits: np.ndarray  # (n_groups,) b
    deviations: np.ndarray  # (n_patterns,) delta times the root of the prior's strength

    def kernel_scales(self) -> MixtureScales:
        gamma, rho, amplitude, _ = np.exp(self.scales[:4]).tolist()
        return MixtureScales(gamma, rho, amplitude, float(1.0 / (1.0 + np.exp(-self.scales[4]))))

    def covariate_scales(self) -> CovariateScales | None:
        """Of the covariates, where there are any."""
        numbers = np.exp(self.scales[N_SCALES:]).tolist()
        return CovariateScales(*numbers) if numbers else None

    @property
    def noise(self) -> float:
        """The variance of the noise."""
        return float(np.exp(self.scales[3]))

    def spread(self, kept: np.ndarray) -> EvidenceParameters:
        """These parameters of some patterns as those of all: the others do not deviate."""
        deviations = np.zeros(len(kept))
        deviations[kept] = self.deviations
        return self._replace(deviations=deviations)

    def vector(self, n_free: int) -> np.ndarray:
        """The first ``n_free`` numbers, which are those that are searched."""
        return np.concatenate(self)[:n_free]

    def replaced(self, vector: np.ndarray) -> EvidenceParameters:
        """These parameters with the first ones taken from ``vector``."""
        full = np.concatenate(self)
        full[: len(vector)] = vector
        ends = np.cumsum([len(part) for part in self[:2]])
        return EvidenceParameters(*np.split(full, ends))


@dataclass(frozen=True, eq=False)
class EvidenceProblem:
    """Training graphs, targets and priors."""

    features: PairFeatures  # of counts; with `levels` only those of patterns that may deviate
    hierarchy: PatternHierarchy
    targets: np.ndarray  # (n_graphs, n_columns) centred, and of about unit size
    noise_factors: np.ndarray  # (n_graphs,) relative to the common one: 1 / sample weight
    strength: float = 30.0  # of the prior on the deviations: their variance is 1 / strength
    n_jobs: int = 1
    covariates: np.ndarray | None = None  # (n_graphs, n_covariates), standardised
    limits: np.ndarray | None = None  # (n_graphs,) as in ScaledTargets
    levels: LevelSums | None = None  # of all groups, where they are known already

    @property
    def n_graphs(self) -> int:
        return len(self.targets)

    def n_free(self, learned: str) -> int:
        """How many parameters are searched: the scales, with the levels', with all weights."""
        groups, patterns = self.hierarchy.n_groups, self.hierarchy.n_free
        weights = {"uniform": 0, "depths": groups, "branches": groups + patterns}[learned]
        return len(self.usual_scales) + weights

    def weights(self, parameters: EvidenceParameters) -> np.ndarray:
        """The weight of every pattern, shape (n_patterns,)."""
        deviations = parameters.deviations / np.sqrt(self.strength)
        level = self.hierarchy.level_weights(parameters.level_logits)[self.hierarchy.level_of]
        return level * np.exp(self.hierarchy.sum_down(deviations))

    @cached_property
    def usual_scales(self) -> np.ndarray:
        """Scales at which neither part of the kernel is flat: the prior's mean, and the start."""
        counted = self.features.diagonal()
        if self.levels is not None:
            counted = (self.hierarchy.group_shares > 0)[self.levels.groups] @ self.levels.diagonals
        size = float(np.mean(counted)) or 1.0
        usual = [np.log(2.0), -np.log(size), 0.0, np.log(0.1), 0.0]
        if self.covariates is not None:  # two graphs differ by some sqrt(2 d)
            usual += [np.log(0.3), 0.5 * np.log(2.0 * max(1, self.covariates.shape[1]))]
        return np.array(usual)

    @cached_property
    def squares(self) -> np.ndarray:
        """Squared distances between covariates, shape (n_graphs, n_graphs)."""
        assert self.covariates is not None
        return distance.cdist(self.covariates, self.covariates, "sqeuclidean")

    def covariate_distances(self, parameters: EvidenceParameters) -> Covariates | None:
        """Scales and squared distances of the covariates, where there are any."""
        scales = parameters.covariate_scales()
        return None if scales is None else (scales, self.squares)

    def kernel_matrix(self, parameters: EvidenceParameters) -> np.ndarray:
        """Kernel values among the graphs, shape (n_graphs, n_graphs)."""
        sums, deviating = np.zeros((self.n_graphs, self.n_graphs)), parameters.deviations.any()
        layout = SplitSums.of(self, bool(deviating), False)
        layout.sum_into(sums, self.weights(parameters), parameters.level_logits)
        own, covariates = np.diagonal(sums).copy(), self.covariate_distances(parameters)
        return mixture_kernel(
            parameters.kernel_scales(),
            mirrored(sums),
            own,
            own,
            covariates=covariates,
            n_jobs=self.n_jobs,
        )


class Evidence:
    """Objective and gradient of one problem, as a function of parameters and of what is learned."""

    def __init__(self, problem: EvidenceProblem) -> None:
        self.problem = problem
        self._sums = np.zeros((problem.n_graphs, problem.n_graphs))  # upper triangle
        self._matrix = np.empty_like(self._sums)
        self._weights = np.empty(0)  # that sums and diagonal are made with
        self._diagonal = np.zeros(problem.n_graphs)
        self._layouts: dict[tuple[bool, bool], SplitSums] = {}
        self._kept: Kept | None = {} if problem.n_graphs <= _KEPT_UP_TO else None

    def __call__(self, parameters: EvidenceParameters, learned: str) -> tuple[float, np.ndarray]:
        """Return the objective ``J`` and its gradient in the parameters that are learned."""
        problem = self.problem
        value, factor, alpha = self._factored(parameters, learned)
        inverse = inverse_in_place(factor, problem.n_jobs)
        precision = np.diagonal(inverse).copy()
        slopes = mixture_slopes(
            parameters.kernel_scales(),
            self._sums,
            self._diagonal,
            inverse,
            alpha,
            covariates=problem.covariate_distances(parameters),
            kept=self._kept,
            n_jobs=problem.n_jobs,
        )
        on_diagonal = 0.5 * (precision - (alpha**2).mean(axis=1))  # (n,)
        parts = [scale_slopes(problem, parameters, slopes, on_diagonal)]
        if learned != "uniform":
            by_weight, by_group = self._sums_for(learned, parameters).slopes(
                inverse, slopes.own, self._weights, parameters.level_logits
            )
            parts += weight_slopes(problem, parameters, by_weight, learned, by_group)
        return value, np.concatenate(parts)

    def value(self, parameters: EvidenceParameters) -> float:
        """Return the objective alone, for a third of the work."""
        return self._factored(parameters, "uniform")[0]

    def _sums_for(self, learned: str, parameters: EvidenceParameters) -> SplitSums:
        deviating = learned == "branches" or bool(parameters.deviations.any())
        key = deviating, learned != "uniform"
        if key not in self._layouts:
            self._layouts[key] = SplitSums.of(self.problem, *key)
        return self._layouts[key]

    def _factored(
        self, parameters: EvidenceParameters, learned: str
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The objective, the Cholesky factor of the covariance, and ``inv(A) y``."""
        problem, weights = self.problem, self.problem.weights(parameters)
        if not np.array_equal(weights, self._weights):
            layout = self._sums_for(learned, parameters)
            layout.sum_into(self._sums, weights, parameters.level_logits)
            self._weights, self._diagonal = weights, np.diagonal(self._sums).copy()
        factor = cholesky_in_place(self._covariance(parameters), problem.n_jobs)
        log_determinant = 2.0 * np.log(np.diagonal(factor)).sum()
        alpha = solve_factored(factor, problem.targets)  # (n, n_columns)
        fit = float((problem.targets * alpha).sum()) / problem.targets.shape[1]
        return 0.5 * (fit + log_determinant) + prior_value(problem, parameters), factor, alpha

    def _covariance(self, parameters: EvidenceParameters) -> np.ndarray:
        """The upper triangle of the kernel matrix with noise on its diagonal."""
        problem, scales = self.problem, parameters.kernel_scales()
        mixture_kernel(
            scales,
            self._sums,
            self._diagonal,
            self._diagonal,
            out=self._matrix,
            upper=True,
            covariates=problem.covariate_distances(parameters),
            kept=self._kept,
            n_jobs=problem.n_jobs,
        )
        own = parameters.covariate_scales()
        amplitude = scales.amplitude * (1.0 + JITTER) + (own.amplitude if own else 0.0)
        np.fill_diagonal(self._matrix, amplitude + parameters.noise * problem.noise_factors)
        return self._matrix


def prior_value(problem: EvidenceProblem, parameters: EvidenceParameters) -> float:
    """Minus the log of the Gaussian priors, up to a constant."""
    logits, deviations = parameters.level_logits / LOGIT_SPREAD, parameters.deviations
    off = (parameters.scales - problem.usual_scales) / SCALE_SPREAD
    return 0.5 * float(deviations @ deviations + logits @ logits + off @ off)


def scale_slopes(
    problem: EvidenceProblem,
    parameters: EvidenceParameters,
    slopes: MixtureSlopes,
    on_diagonal: np.ndarray,
) -> np.ndarray:
    """Slopes in the scales, from those in the entries of the diagonal, (n_graphs,), and others."""
    scales, own = parameters.kernel_scales(), parameters.covariate_scales()
    gamma, rho, amplitude, share = slopes.scales.tolist()
    amplitude += scales.amplitude * (1.0 + JITTER) * float(on_diagonal.sum())
    noise = parameters.noise * float(on_diagonal @ problem.noise_factors)
    share *= scales.share * (1.0 - scales.share)
    found = [gamma, rho, amplitude, noise, share]
    if own is not None:
        found += [slopes.covariates[0] + own.amplitude * on_diagonal.sum(), slopes.covariates[1]]
    return np.array(found) + (parameters.scales - problem.usual_scales) / SCALE_SPREAD**2


def weight_slopes(
    problem: EvidenceProblem,
    parameters: EvidenceParameters,
    by_log_weight: np.ndarray,
    learned: str,
    by_group: np.ndarray | float = 0.0,
) -> list[np.ndarray]:
    """Slopes in the groups' logits and, for branches, in the deviations.

    ``by_log_weight`` are those in the logarithms of the weights of the first patterns,
    ``by_group`` (n_groups,) those in the weights of groups through all other patterns.
    """
    hierarchy, n = problem.hierarchy, len(by_log_weight)
    by_group = by_group + np.bincount(hierarchy.group_of[:n], by_log_weight, hierarchy.n_groups)
    share = special.softmax(parameters.level_logits)
    by_logit = by_group - share * by_group.sum() + parameters.level_logits / LOGIT_SPREAD**2
    if learned == "depths":
        return [by_logit]
    by_pattern = np.zeros(hierarchy.n_patterns)
    by_pattern[: hierarchy.n_free] = by_log_weight[: hierarchy.n_free]
    by_deviation = hierarchy.sum_up(by_pattern) / np.sqrt(problem.strength)
    return [by_logit, (by_deviation + parameters.deviations)[: hierarchy.n_free]]


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
    start = start or starting_parameters(problem)
    return _Stage(problem, stage, start, evaluate, tick).run(max_steps, check_noise)


@dataclass
class _Stage:
    """One run of L-BFGS over the first so many parameters."""

    problem: EvidenceProblem
    stage: str
    start: EvidenceParameters
    evaluate: Any  # Evidence, CensoredEvidence or DeviceEvidence
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
        found = self.start.replaced(self._inside(result.x))
        return EvidenceFit(found, tuple(self.history), converged)

    def _inside(self, vector: np.ndarray) -> np.ndarray:
        """The nearest parameters within the bounds of the scales."""
        inside, n_scales = vector.copy(), len(self.start.scales)
        inside[:n_scales] = np.clip(vector[:n_scales], *_SCALE_BOUNDS[:n_scales].T)
        return inside

    def _with_likely_noise(self, start: np.ndarray) -> np.ndarray:
        """Return the start, with the most likely of a few noise variances where its is too small.

        Graphs that contradict each other are rarer in part of the data than in all of it; with too
        little noise, the first step of the search ends where noise explains everything.
        """
        self._first = self._evaluate(start)
        if self._first[1][3] > -_STEEP * self.problem.n_graphs:
            return start
        least, best = self._first[0], start
        for log_noise in _LOG_NOISES[start[3] < _LOG_NOISES]:
            tried = np.concatenate([start[:3], [log_noise], start[4:]])
            value = self.evaluate.value(self.start.replaced(tried))
            if value < least:
                least, best, self._first = value, tried, None
        return best

    def _evaluate(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        if self._first is not None:  # the search begins where the noise was checked
            first, self._first = self._first, None
            return first
        inside = self._inside(vector)
        value, gradient = self.evaluate(self.start.replaced(inside), self.stage)
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
