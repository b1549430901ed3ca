"""The marginal likelihood of a Gaussian process with given weights, and its gradient.

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

Objectives compare parameters of one problem: the same graphs, targets and patterns. Between
uniform weights at several depths the number of parameters is the same, so the larger marginal
likelihood is the better model; learned weights have more parameters at their maximum, and are
compared with uniform ones on graphs that they were not learned from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.spatial import distance

from treelens.gp.levels import LevelSums, SplitSums
from treelens.gp.posterior import JITTER, cholesky_in_place, inverse_in_place, solve_factored
from treelens.kernels.gram import (
    CovariateScales,
    Kept,
    MixtureScales,
    MixtureSlopes,
    mirrored,
    mixture_kernel,
    mixture_slopes,
)
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PairFeatures

# Standard deviations of the priors on the levels' logits and on the scales, which are logarithms:
# wide, but enough to keep the noise off zero where a few graphs repeat.
LOGIT_SPREAD = 2.0
SCALE_SPREAD = 2.0
# Graphs of which slopes use again what the kernel values were made of: six numbers a pair.
_KEPT_UP_TO = 1024
SCALE_NAMES = ("log_gamma", "log_rho", "log_amplitude", "log_noise", "share_logit")
N_SCALES = len(SCALE_NAMES)


@dataclass(frozen=True, eq=False)
class PatternHierarchy:
    """Which patterns share a level, and which pattern each one refines."""

    level_offsets: np.ndarray  # (n_levels + 1,): patterns of one level are neighbours
    parents: np.ndarray  # (n_patterns,) the pattern of an earlier level that each refines, or -1
    groups: np.ndarray  # (n_levels,): those of one group share a weight
    shares: np.ndarray  # (n_levels,) the part of that weight that each level has
    # So many patterns, the first ones, may deviate from the weight of their level. Cells of
    # attributes do not: it would cost much, and was not better.
    n_free: int

    @classmethod
    def of(cls, forest: PatternForest) -> PatternHierarchy:
        return cls(
            forest.level_offsets, forest.parents, forest.level_groups, forest.level_shares,
            forest.n_deviating,
        )  # fmt: skip

    @property
    def n_levels(self) -> int:
        return len(self.level_offsets) - 1

    @property
    def n_groups(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def n_patterns(self) -> int:
        return len(self.parents)

    def level_weights(self, logits: np.ndarray) -> np.ndarray:
        """The weight of each level from the logits of the groups, shape (n_levels,)."""
        return softmax_weights(logits)[self.groups] * self.shares

    @cached_property
    def group_of(self) -> np.ndarray:
        """Group of each pattern, shape (n_patterns,)."""
        return self.groups[self.level_of]

    @cached_property
    def level_of(self) -> np.ndarray:
        """Level of each pattern, shape (n_patterns,)."""
        return np.repeat(np.arange(self.n_levels), np.diff(self.level_offsets))

    def restricted(self, kept: np.ndarray) -> PatternHierarchy:
        """The patterns of a boolean mask, which holds the ancestors of all that it holds."""
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        parents = self.parents[kept]
        return PatternHierarchy(
            before[self.level_offsets], np.where(parents >= 0, before[parents], -1), self.groups,
            self.shares, int(before[self.n_free]),
        )  # fmt: skip

    def _levels(self) -> list[slice]:
        """Of the patterns that may deviate."""
        edges = self.level_offsets.tolist()
        return [slice(a, b) for a, b in pairwise(edges) if a < self.n_free]

    def sum_down(self, deviations: np.ndarray) -> np.ndarray:
        """Each pattern's deviation plus those of all its ancestors, shape (n_patterns,)."""
        totals = np.array(deviations, dtype=np.float64)
        for level in self._levels():
            parents = self.parents[level]
            totals[level] += np.where(parents >= 0, totals[parents], 0.0)
        return totals

    def sum_up(self, slopes: np.ndarray) -> np.ndarray:
        """Each pattern's slope plus those of its whole branch: the transpose of the above."""
        totals = np.array(slopes, dtype=np.float64)
        for level in reversed(self._levels()):
            parents = self.parents[level]
            known = parents >= 0
            totals += np.bincount(
                parents[known], weights=totals[level][known], minlength=len(totals)
            )
        return totals


class EvidenceParameters(NamedTuple):
    """Everything that evidence decides, in the coordinates in which it is searched."""

    scales: np.ndarray  # (n_scales,), see SCALE_NAMES; then log amplitude and length of covariates
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
        return np.concatenate([self.scales, self.level_logits, self.deviations])[:n_free]

    def replaced(self, vector: np.ndarray) -> EvidenceParameters:
        """These parameters with the first ones taken from ``vector``."""
        full = np.concatenate([self.scales, self.level_logits, self.deviations])
        full[: len(vector)] = vector
        first, second = len(self.scales), len(self.scales) + len(self.level_logits)
        return EvidenceParameters(full[:first], full[first:second], full[second:])


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
    limits: np.ndarray | None = None  # (n_graphs,) as in Targets
    levels: LevelSums | None = None  # of all groups, where they are known already

    @property
    def n_graphs(self) -> int:
        return len(self.targets)

    def n_free(self, learned: str) -> int:
        """How many parameters are searched: the scales, with the levels', with all weights."""
        groups, patterns = self.hierarchy.n_groups, self.hierarchy.n_free
        return (
            len(self.usual_scales)
            + {"uniform": 0, "depths": groups, "branches": groups + patterns}[learned]
        )

    def group_weights(self, parameters: EvidenceParameters) -> np.ndarray:
        """The weight of a pattern of each group that does not deviate, shape (n_groups,).

        Groups without patterns have none.
        """
        hierarchy, found = self.hierarchy, np.zeros(self.hierarchy.n_groups)
        filled = np.diff(hierarchy.level_offsets) > 0
        found[hierarchy.groups[filled]] = hierarchy.level_weights(parameters.level_logits)[filled]
        return found

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
            used = np.zeros(self.hierarchy.n_groups + 1, dtype=bool)  # the last stands for -1
            used[self.hierarchy.group_of] = True
            counted = used[self.levels.groups] @ self.levels.diagonals
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

    def covariate_distances(
        self, parameters: EvidenceParameters
    ) -> tuple[CovariateScales, np.ndarray] | None:
        """Scales and squared distances of the covariates, where there are any."""
        scales = parameters.covariate_scales()
        return None if scales is None else (scales, self.squares)

    def kernel_matrix(self, parameters: EvidenceParameters) -> np.ndarray:
        """Kernel values among the graphs, shape (n_graphs, n_graphs)."""
        layout = SplitSums.of(self, bool(parameters.deviations.any()), False)
        sums = np.zeros((self.n_graphs, self.n_graphs))
        layout.sum_into(sums, self.weights(parameters), self.group_weights(parameters))
        own, covariates = np.diagonal(sums).copy(), self.covariate_distances(parameters)
        return mixture_kernel(
            parameters.kernel_scales(), mirrored(sums), own, own, covariates=covariates,
            n_jobs=self.n_jobs,
        )  # fmt: skip


def softmax_weights(logits: np.ndarray) -> np.ndarray:
    """``n_groups * softmax(b)``: positive, one on average, and all ones for ``b = 0``."""
    shifted = np.exp(logits - logits.max())
    return len(logits) * shifted / shifted.sum()


class Evidence:
    """Objective and gradient of one problem, as a function of parameters and of what is learned."""

    def __init__(self, problem: EvidenceProblem) -> None:
        self.problem = problem
        self._sums = np.zeros((problem.n_graphs, problem.n_graphs))  # upper triangle
        self._matrix = np.empty_like(self._sums)
        self._weights: np.ndarray | None = None  # that sums and diagonal are made with
        self._diagonal = np.empty(problem.n_graphs)
        self._layouts: dict[tuple[bool, bool], SplitSums] = {}
        self._kept: Kept | None = {} if problem.n_graphs <= _KEPT_UP_TO else None

    def __call__(self, parameters: EvidenceParameters, learned: str) -> tuple[float, np.ndarray]:
        """Return the objective ``J`` and its gradient in the parameters that are learned.

        ``learned`` is ``"uniform"`` (the scales), ``"depths"`` (also the levels' logits) or
        ``"branches"`` (also all deviations).
        """
        problem = self.problem
        value, factor, alpha = self._factored(parameters, learned)
        weights = self._weights
        assert weights is not None
        inverse = inverse_in_place(factor, problem.n_jobs)
        precision = np.diagonal(inverse).copy()
        slopes = mixture_slopes(
            parameters.kernel_scales(), self._sums, self._diagonal, inverse, alpha,
            covariates=problem.covariate_distances(parameters), kept=self._kept,
            n_jobs=problem.n_jobs,
        )  # fmt: skip
        on_diagonal = 0.5 * (precision - (alpha**2).mean(axis=1))  # (n,)
        parts = [scale_slopes(problem, parameters, slopes, on_diagonal)]
        if learned != "uniform":
            by_weight, by_group = self._sums_for(learned, parameters).slopes(inverse, slopes.own)
            by_group *= problem.group_weights(parameters)
            by_weight *= weights[: len(by_weight)]
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
        if self._weights is None or not np.array_equal(weights, self._weights):
            layout = self._sums_for(learned, parameters)
            layout.sum_into(self._sums, weights, problem.group_weights(parameters))
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
            scales, self._sums, self._diagonal, self._diagonal, out=self._matrix, upper=True,
            covariates=problem.covariate_distances(parameters), kept=self._kept,
            n_jobs=problem.n_jobs,
        )  # fmt: skip
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
    """Slopes in the scales, the prior's included.

    ``on_diagonal`` (n_graphs,) are the slopes in the entries of the matrix's diagonal.
    """
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
    share = softmax_weights(parameters.level_logits) / hierarchy.n_groups  # softmax(b)
    by_logit = by_group - share * by_group.sum() + parameters.level_logits / LOGIT_SPREAD**2
    if learned == "depths":
        return [by_logit]
    by_pattern = np.zeros(hierarchy.n_patterns)
    by_pattern[: hierarchy.n_free] = by_log_weight[: hierarchy.n_free]
    by_deviation = hierarchy.sum_up(by_pattern) / np.sqrt(problem.strength)
    return [by_logit, (by_deviation + parameters.deviations)[: hierarchy.n_free]]
