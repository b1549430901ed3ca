"""From counts and targets to a fitted Gaussian process: learn, condition, compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from treelens.gp.covariates import CovariateTable, FittedCovariates
from treelens.gp.evidence import (
    EvidenceParameters,
    EvidenceProblem,
    PatternHierarchy,
    add_covariates,
    level_weights,
)
from treelens.gp.evidence_search import EvidenceFit, learn_by_evidence, refit_scales
from treelens.gp.landmarks import LandmarkFit, LandmarkPosterior, choose_landmarks
from treelens.gp.model import FittedGP, WeightedForest
from treelens.gp.posterior import ExactPosterior, LeaveOneOut, MeanPosterior
from treelens.gp.sampling import LandmarkPlan, LearningSample
from treelens.kernels.gram import pair_sums
from treelens.kernels.mixture import MixtureKernel, mixture_kernel
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures

if TYPE_CHECKING:
    import pandas as pd

# Targets that differ by less than this part of their size are constant.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets centred and, if they are numbers, of unit size, with the way back.

    Attributes
    ----------
    values : ndarray, shape (n_graphs, n_columns)
    offset : ndarray, shape (n_columns,)
    scale : float
    weights : ndarray, shape (n_graphs,)
        Sample weights: a graph's noise variance is divided by its weight.
    """

    values: np.ndarray
    offset: np.ndarray
    scale: float
    weights: np.ndarray

    @classmethod
    def standardized(cls, raw: np.ndarray, weights: np.ndarray, scale: float | None) -> Targets:
        """Centre the columns of ``raw``; without a ``scale``, divide by their deviation."""
        offset = np.average(raw, axis=0, weights=weights)
        centred = raw - offset
        if scale is None:
            scale = float(np.sqrt(np.average((centred**2).mean(axis=1), weights=weights)))
        if scale <= _CONSTANT * float(np.abs(raw).max(initial=0.0)):  # rounding is no spread
            return cls(np.zeros_like(centred), offset, 1.0, weights)
        return cls(centred / scale, offset, scale, weights)

    def alike(self, raw: np.ndarray, weights: np.ndarray) -> Targets:
        """Targets of other graphs, with the offset and the scale of these."""
        return Targets((raw - self.offset) / self.scale, self.offset, self.scale, weights)

    def select(self, indices: np.ndarray | slice) -> Targets:
        return Targets(self.values[indices], self.offset, self.scale, self.weights[indices])


def class_columns(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes as numbers: ±1 for two, else +1 against -1 / (n_classes - 1) in each column."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    columns = np.full((len(codes), n_classes), -1.0 / (n_classes - 1))
    columns[np.arange(len(codes)), codes] = 1.0
    return columns


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """A fitted model with what was learned on the way.

    Attributes
    ----------
    model : FittedGP
    search : EvidenceFit
    left_out : LeaveOneOut
        Of all training graphs, on the scale of the standardised targets.
    compared : tuple of LeaveOneOut
        With the learned and with uniform weights, of the graphs in ``compared_on``.
    compared_on : ndarray
        Positions of graphs, in the proportions of the whole.
    n_learning : int
        How many graphs weights were learned on.
    """

    model: FittedGP
    search: EvidenceFit
    left_out: LeaveOneOut
    compared: tuple[LeaveOneOut, LeaveOneOut]
    compared_on: np.ndarray
    n_learning: int


def fit_gaussian_process(
    forest: PatternForest,
    histograms: PatternHistograms,
    targets: Targets,
    *,
    learned: str,
    sample: LearningSample,
    landmarks: LandmarkPlan | None,
    strength: float,
    max_steps: int,
    n_jobs: int = 1,
    device: str = "cpu",
    tick: Callable[[str], None] = lambda what: None,
    covariates: tuple[CovariateTable, np.ndarray] | None = None,
) -> FittedEvidence:
    """Learn the weights on a sample, then condition on all training graphs.

    Parameters
    ----------
    forest : PatternForest
    histograms : PatternHistograms
        Of the training graphs.
    targets : Targets
    learned : {"uniform", "depths", "branches"}
    sample : LearningSample
    landmarks : LandmarkPlan, optional
        Condition through some graphs only; None: exactly.
    strength : float
        Of the prior on the deviations.
    max_steps : int
    n_jobs : int
    device : str
        Where weights are learned and, without landmarks, all graphs are conditioned on.
    tick : callable
    covariates : (CovariateTable, ndarray), optional
        The columns, and their numbers for the training graphs.
    """
    hierarchy = PatternHierarchy(forest.level_offsets, forest.parents)
    looked_at = (
        sample.weights if sample.scales is None else np.union1d(sample.weights, sample.scales)
    )
    # Evidence says nothing about other patterns: they do not deviate.
    present = histograms.select_graphs(looked_at).support > 0

    def problem_of(some: np.ndarray) -> EvidenceProblem:
        features = PairFeatures.of_counts(histograms.select_graphs(some).select_patterns(present))
        return EvidenceProblem(
            features, hierarchy.restricted(present), targets.select(some).values,
            1.0 / targets.weights[some], strength, n_jobs,
            None if covariates is None else covariates[1][some],
        )  # fmt: skip

    problem, compared_on = problem_of(sample.weights), sample.weights
    search = learn_by_evidence(problem, learned, max_steps=max_steps, device=device, tick=tick)
    if sample.scales is not None:
        problem, compared_on = problem_of(sample.scales), sample.scales
        search = refit_scales(search, problem, max_steps=max_steps, device=device, tick=tick)
    tick("leaving one out")
    learned_one_out = _leave_one_out(problem, search.parameters, device)
    uniform_one_out = _leave_one_out(problem, search.uniform, device)
    parameters = search.parameters.spread(present)
    weighted = WeightedForest(
        forest, hierarchy.sum_down(parameters.deviations / np.sqrt(strength)),
        level_weights(parameters.level_logits),
    )  # fmt: skip
    model, left_out = _condition(
        weighted, histograms, targets, parameters, landmarks, n_jobs, device, covariates,
        known=learned_one_out if len(compared_on) == histograms.n_graphs else None,
    )  # fmt: skip
    compared = (learned_one_out, uniform_one_out)
    return FittedEvidence(model, search, left_out, compared, compared_on, len(sample.weights))


def _leave_one_out(
    problem: EvidenceProblem, parameters: EvidenceParameters, device: str
) -> LeaveOneOut:
    weights, scales = problem.weights(parameters), parameters.kernel_scales()
    noise = parameters.noise * problem.noise_factors
    if device != "cpu":
        weighted = MixtureKernel(weights, scales)
        return _on_device(problem.features, weighted, noise, problem.targets, device)[1]
    diagonal = problem.features.diagonal(weights)
    sums = pair_sums(problem.features, weights=weights, n_jobs=problem.n_jobs)
    kernel = mixture_kernel(scales, sums, diagonal, diagonal, n_jobs=problem.n_jobs)
    add_covariates(problem, parameters, kernel)
    posterior = ExactPosterior.fit(kernel, noise, problem.targets, problem.n_jobs)
    return posterior.leave_one_out(problem.targets, problem.n_jobs)


def _condition(
    weighted: WeightedForest,
    histograms: PatternHistograms,
    targets: Targets,
    parameters: EvidenceParameters,
    plan: LandmarkPlan | None,
    n_jobs: int,
    device: str,
    covariates: tuple[CovariateTable, np.ndarray] | None,
    known: LeaveOneOut | None,
) -> tuple[FittedGP, LeaveOneOut]:
    """The posterior given all training graphs, and what it says of each left out."""
    scales, noise = parameters.kernel_scales(), parameters.noise / targets.weights
    kernel = MixtureKernel(weighted.weights, scales, parameters.covariate_scales())
    everything = weighted.weighed(histograms)
    beside: FittedCovariates | None = None
    if covariates is not None and kernel.covariates is not None:
        everything = everything._replace(covariates=covariates[1])
        beside = FittedCovariates(covariates[0], kernel.covariates, covariates[1])
    basis, positions = histograms, np.arange(histograms.n_graphs)
    posterior: ExactPosterior | LandmarkPosterior | MeanPosterior
    if plan is None and device != "cpu":
        posterior, left_out = _on_device(everything.pairs, kernel, noise, targets.values, device)
    elif plan is None:
        among = kernel.matrix(everything, everything, n_jobs)
        posterior = ExactPosterior.fit(among, noise, targets.values, n_jobs)
        left_out = posterior.leave_one_out(targets.values, n_jobs) if known is None else known
    else:
        fit = LandmarkFit(kernel, everything, noise, targets.values, n_jobs)
        positions = choose_landmarks(fit, plan.first, plan.n_landmarks)
        basis = histograms.select_graphs(positions)
        posterior, left_out = fit.through(positions)
    model = FittedGP(
        weighted, scales, parameters.noise, basis, positions, posterior, targets.offset,
        targets.scale, targets.weights if plan is None else None, covariates=beside,
    )  # fmt: skip
    return model, left_out


def _on_device(
    features: PairFeatures,
    kernel: MixtureKernel,
    noise: np.ndarray,
    targets: np.ndarray,
    device: str,
) -> tuple[MeanPosterior, LeaveOneOut]:
    from treelens.gp.device import condition_on_device

    return condition_on_device(features, kernel, noise, targets, device)


def evidence_history(search: EvidenceFit, n_graphs: int) -> pd.DataFrame:
    """The steps of a search on so many graphs, with the log evidence after each."""
    import pandas as pd

    constant = 0.5 * n_graphs * np.log(2.0 * np.pi)
    return pd.DataFrame(
        [
            {
                "stage": step.stage,
                "evidence": -step.objective - constant,
                "gradient_norm": step.gradient_norm,
                "n_evaluations": step.n_evaluations,
            }
            for step in search.history
        ]
    )
