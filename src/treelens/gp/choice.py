"""The search for weights that maximise the marginal likelihood, and the choice of which to use.

Weights are learned in stages, each from where the last one ended: the scales of the kernel with
uniform weights, then also one weight per level, then also one deviation per pattern. The stages
run on part of the training graphs, where an evaluation is cheap; a few more iterations on all of
them refine the result.

The marginal likelihood settles the depth of uniform weights, as all depths have the same number of
parameters. Learned weights are compared with them on graphs that they were not learned from: every
candidate is fitted to part of the training graphs, and predicts each of the others from all. A
richer candidate is preferred only if its gain exceeds the standard error of that gain. Numbers are
compared by log predictive density and by squared error, and a candidate must not lose in either:
where a few values are far off, wider intervals and better means are not the same. Classes are
compared by log probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from treelens.gp.censoring import CensoredEvidence, Conditioned, log_densities
from treelens.gp.evidence import Evidence, EvidenceParameters, EvidenceProblem, PatternHierarchy
from treelens.gp.levels import SharedSums
from treelens.gp.posterior import LeaveOneOut, Targets
from treelens.kernels.gram import MixtureKernel
from treelens.models.thresholds import calibrated, fit_slope
from treelens.parallel import one_blas_thread
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PairFeatures, PatternHistograms, replicate_numbers

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
# Candidates are fitted to so many graphs at most; more would cost time and change few choices.
LARGEST_PART = 800
FEWEST, _FEW, _MANY = 20, 400, 700
_NOISE_FACTOR = 3.0  # between noise variances that are tried


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
    """Run one stage of the search; ``tick`` is called at every iteration.

    ``check_noise`` says that the start was found on part of the graphs, and its noise may be too
    small for all.
    """
    start = starting_parameters(problem) if start is None else start
    evaluate: Any
    if device != "cpu":
        from treelens.gp.device import DeviceEvidence

        evaluate = DeviceEvidence(problem, device)
    else:
        evaluate = Evidence(problem) if problem.limits is None else CensoredEvidence(problem)
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


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Counts of patterns and targets of the training graphs."""

    forest: PatternForest
    histograms: PatternHistograms
    targets: Targets
    codes: np.ndarray | None = None  # (n_graphs,) classes; None where numbers are predicted
    covariates: np.ndarray | None = None  # (n_graphs, n_covariates), standardised
    strength: float = 30.0  # of the prior on the deviations
    n_jobs: int = 1
    device: str = "cpu"
    max_steps: int = 100  # of each stage of the search
    tick: Tick = lambda what: None
    shared: SharedSums | None = None  # of graphs that candidates are fitted to and compared on

    @cached_property
    def hierarchy(self) -> PatternHierarchy:
        return PatternHierarchy.of(self.forest)

    @cached_property
    def deviating(self) -> PatternHistograms:
        """Counts of the patterns that may deviate from the weight of their level."""
        return self.histograms.select_levels(
            self.forest.level_offsets[:-1] < self.forest.n_deviating
        )

    @cached_property
    def copies(self) -> np.ndarray | None:
        """A number per graph that replicates share: the same patterns and covariates.

        None where no graph stands twice.
        """
        return replicate_numbers(self.histograms.rows, self.covariates)

    @cached_property
    def pattern_depths(self) -> np.ndarray:
        return np.repeat(self.forest.level_depths, np.diff(self.forest.level_offsets))

    def problem(
        self, positions: np.ndarray, depth: int | None = None
    ) -> tuple[EvidenceProblem, np.ndarray]:
        """Return the problem of some graphs, and the mask of the patterns it is about.

        Patterns that these graphs lack do not change their marginal likelihood; those beyond
        ``depth`` have no weight.
        """
        levels = None if self.shared is None else self.shared.among(positions)
        histograms = self.histograms if levels is None else self.deviating
        histograms = histograms.select_graphs(positions)
        present = np.ones(self.forest.n_patterns, dtype=bool)
        present[: histograms.n_patterns] = histograms.support > 0
        if depth is not None:
            present &= self.pattern_depths <= depth
        some = self.targets.select(positions)
        problem = EvidenceProblem(
            PairFeatures.of_counts(histograms.select_patterns(present[: histograms.n_patterns])),
            self.hierarchy.restricted(present), some.values, 1.0 / some.weights, self.strength,
            self.n_jobs, None if self.covariates is None else self.covariates[positions],
            some.limits, levels,
        )  # fmt: skip
        return problem, present

    def log_weights(self, parameters: EvidenceParameters) -> np.ndarray:
        """``theta``, the sum of the deviations of each pattern and its ancestors."""
        return self.hierarchy.sum_down(parameters.deviations / np.sqrt(self.strength))

    def kernel(self, parameters: EvidenceParameters) -> MixtureKernel:
        """Return the kernel with parameters of all patterns."""
        levels = self.hierarchy.level_weights(parameters.level_logits)
        weights = levels[self.hierarchy.level_of] * np.exp(self.log_weights(parameters))
        return MixtureKernel(weights, parameters.kernel_scales(), parameters.covariate_scales())

    def leave_one_out(
        self, parameters: EvidenceParameters, depth: int | None, positions: np.ndarray
    ) -> LeaveOneOut:
        """Return predictions of some graphs, each from all others among them.

        The noise variance is the most likely of those from the one in the parameters upwards:
        found on part of the data, it is too small where graphs outside contradict those inside.
        """
        problem, present = self.problem(positions, depth)
        some = parameters._replace(deviations=parameters.deviations[present])
        among, targets = problem.kernel_matrix(some), self.targets.select(positions)
        noise, kept = parameters.noise, None
        while kept is None or noise < 1.0:
            found = Conditioned.fit(targets, among.copy(), noise, self.n_jobs)
            if kept is not None and found.log_evidence <= kept.log_evidence:
                break
            noise, kept = _NOISE_FACTOR * noise, found
        copies = None if self.copies is None else self.copies[positions]
        return kept.leave_one_out(self.n_jobs, copies)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One kind of weights, and how well it predicts graphs that it was not learned from."""

    weights: str  # "uniform", "depths" or "branches"
    depth: int
    fits: list[EvidenceParameters]  # of all patterns, one for each part
    scores: np.ndarray  # (n_graphs,) log predictive densities, or log probabilities of classes
    squared_errors: np.ndarray | None = None  # (n_graphs,), of numbers
    descriptors: bool = False  # whether descriptors of molecules stand beside the patterns

    @property
    def start(self) -> EvidenceParameters:
        """The mean over parts, as a start for the search on all graphs."""
        return EvidenceParameters(
            *(np.mean(arrays, axis=0) for arrays in zip(*self.fits, strict=True))
        )

    def gain_over(self, other: Candidate) -> tuple[float, float]:
        """Return the mean difference of the scores and its standard error."""
        return _mean_and_error(self.scores - other.scores)

    def beats(self, other: Candidate, n_errors: float = 1.0) -> bool:
        """Whether a gain exceeds its standard error so many times, and no mean gets worse."""
        gains = [self.gain_over(other)]
        if self.squared_errors is not None and other.squared_errors is not None:
            gains.append(_mean_and_error(other.squared_errors - self.squared_errors))
        return min(gain for gain, _ in gains) >= 0 and any(
            gain > n_errors * error for gain, error in gains
        )


def _mean_and_error(differences: np.ndarray) -> tuple[float, float]:
    """Return the mean and its standard error; zeros where there is nothing to compare."""
    if len(differences) < 2:
        return 0.0, 0.0
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    return float(differences.mean()), float(error)


class Part(NamedTuple):
    """Graphs that candidates are fitted to, and others that they are compared on."""

    fitted: np.ndarray
    compared: np.ndarray


def parts_of_graphs(
    positions: np.ndarray, groups: np.ndarray, seed: int, copies: np.ndarray | None = None
) -> list[Part]:
    """Return parts of the training graphs, each with its share of all groups.

    Of fewer than 400 graphs, each quarter in turn is left out. Of more, one half is fitted to and
    the other compared on, at most 800 each; below 700 also the other way round. Fewer than 20 are
    too few to compare anything on. ``groups`` (n,) are classes, or tenths of the values; ``copies``
    (n,) numbers that replicates share, which are never on both sides.
    """
    n = len(positions)
    if n < FEWEST:
        return [Part(positions, positions[:0])]
    copies = np.arange(n) if copies is None else copies
    shuffled = np.random.default_rng(seed).permutation(n)
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    if n < _FEW:
        quarter = np.empty(n, dtype=int)
        quarter[by_group] = np.arange(n) % 4
        _, first, own = np.unique(copies, return_index=True, return_inverse=True)
        quarter = quarter[first[own]]
        parts = [Part(positions[quarter != k], positions[quarter == k]) for k in range(4)]
        # all graphs may be copies of one
        found = [part for part in parts if len(part.fitted) and len(part.compared)]
        return found or [Part(positions, positions[:0])]
    size = 2 * min(n // 2, LARGEST_PART)
    picked = by_group[(np.arange(size) * n) // size]
    fitted, compared = np.sort(picked[::2]), np.sort(picked[1::2])
    both = [(fitted, compared), (compared, fitted)][: 2 if n < _MANY else 1]
    return [
        Part(positions[some], positions[others[~np.isin(copies[others], copies[some])]])
        for some, others in both
    ]


def fit_uniform(data: TrainingData, parts: list[Part], depths: list[int]) -> Candidate:
    """Fit uniform weights to every part, at the depth with the largest marginal likelihood.

    The first part settles the depth: ``depths`` are tried in ascending order, until the next one is
    worse (deeper patterns are rarer still).
    """
    by_depth: dict[int, tuple[EvidenceParameters, float]] = {}
    best = depths[0]
    for depth in depths:
        start = by_depth[best][0] if by_depth else None
        by_depth[depth] = _fit_part(data, parts[0], "uniform", depth, start)
        best = min(by_depth, key=lambda depth: by_depth[depth][1])
        if best < depth:
            break
    fits = [by_depth[best][0]]
    for part in parts[1:]:
        fits.append(_fit_part(data, part, "uniform", best, fits[0])[0])
    return Candidate("uniform", best, fits, *_scores(data, parts, fits, best))


def with_descriptors(data: TrainingData, parts: list[Part], candidate: Candidate) -> Candidate:
    """Fit uniform weights again to data that has descriptors of molecules among its covariates."""
    fits: list[EvidenceParameters] = []
    for part, found in zip(parts, candidate.fits, strict=True):
        problem, _ = data.problem(part.fitted, candidate.depth)
        scales = problem.usual_scales.copy()
        scales[: len(found.scales)] = found.scales
        start = found._replace(scales=scales)
        fits.append(_fit_part(data, part, "uniform", candidate.depth, start)[0])
    scores = _scores(data, parts, fits, candidate.depth)
    return Candidate("uniform", candidate.depth, fits, *scores, descriptors=True)


def fit_learned(
    data: TrainingData, parts: list[Part], uniform: Candidate, depth: int, learned: str
) -> list[Candidate]:
    """Fit the stages up to ``learned`` to every part, from uniform weights on; all patterns."""
    fits, found = uniform.fits, []
    for stage in STAGES[1 : STAGES.index(learned) + 1]:
        fits = [
            _fit_part(data, part, stage, depth, start)[0]
            for part, start in zip(parts, fits, strict=True)
        ]
        scores = _scores(data, parts, fits, depth)
        found.append(Candidate(stage, depth, fits, *scores, uniform.descriptors))
    return found


def _fit_part(
    data: TrainingData, part: Part, stage: str, depth: int, start: EvidenceParameters | None
) -> tuple[EvidenceParameters, float]:
    """Return the parameters, of all patterns, that a stage finds on one part, and its objective."""
    problem, present = data.problem(part.fitted, depth)
    if start is not None:
        start = start._replace(deviations=start.deviations[present])
    result = maximise_evidence(
        problem, stage, start, max_steps=data.max_steps, device=data.device, tick=data.tick
    )
    return result.parameters.spread(present), result.objective


def preferred(candidates: list[Candidate]) -> Candidate:
    """Go from the simplest candidate on to each next one that beats the best so far."""
    best = candidates[0]
    for candidate in candidates[1:]:
        if candidate.beats(best):
            best = candidate
    return best


def _scores(
    data: TrainingData, parts: list[Part], found: list[EvidenceParameters], depth: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Scores and, of numbers, squared errors of all graphs compared on; see :class:`Candidate`."""
    if not any(len(part.compared) for part in parts):
        return np.empty(0), None
    means, variances = [], []
    for part, parameters in zip(parts, found, strict=True):
        both = np.union1d(part.fitted, part.compared)
        left_out = data.leave_one_out(parameters, depth, both)
        compared = np.searchsorted(both, part.compared)
        means.append(left_out.mean[compared])
        variances.append(left_out.variance[compared])
    mean, variance = np.concatenate(means), np.concatenate(variances)
    compared = np.concatenate([part.compared for part in parts])
    if data.codes is None:
        some = data.targets.select(compared)
        errors = (some.values - mean)[:, 0]
        if some.limits is not None:  # a limit that holds is no error
            errors = np.where(some.limits * errors < 0, 0.0, errors)
        return log_densities(some.values, mean, variance, some.limits), errors**2
    codes = data.codes[compared]
    probabilities = calibrated(mean, fit_slope(mean, codes, np.ones(len(codes))))
    return np.log(np.maximum(probabilities[np.arange(len(codes)), codes], 1e-300)), None
