"""From counts and targets to a fitted Gaussian process: choose, learn, condition."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from treelens.gp.censoring import Conditioned, of_measurements, through_landmarks
from treelens.gp.choice import (
    Candidate,
    Part,
    TrainingData,
    fit_learned,
    fit_uniform,
    parts_of_graphs,
    preferred,
    with_descriptors,
)
from treelens.gp.covariates import CovariateTable, FittedCovariates
from treelens.gp.evidence import EvidenceParameters
from treelens.gp.landmarks import LandmarkFit, LandmarkPosterior, posterior_through_landmarks
from treelens.gp.model import FittedGP, WeightedForest
from treelens.gp.posterior import ExactPosterior, LeaveOneOut, MeanPosterior
from treelens.gp.sampling import LandmarkPlan, LearningSample
from treelens.gp.search import EvidenceFit, Tick, maximise_evidence
from treelens.patterns.histograms import PatternHistograms

if TYPE_CHECKING:
    import pandas as pd

# Iterations on all graphs that refine what was found on part of them: an evaluation of many graphs
# is expensive, and the start is nearer the more graphs there are.
_REFINE_FEW, REFINE_MANY, _MANY = 15, 6, 1000
_MANY_COPIES = 0.2  # a larger share of replicates than this gets a warning


class Described(NamedTuple):
    """Covariates together with descriptors of molecules."""

    table: CovariateTable
    sample: np.ndarray  # (n_graphs, n_numbers), of the graphs that weights are learned from
    everything: Callable[[], np.ndarray]  # of all graphs: computed where it is needed


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """A fitted model with how it was found."""

    model: FittedGP
    histograms: PatternHistograms  # of all training graphs, up to the depth in use
    search: EvidenceFit  # on all graphs that weights were learned from
    left_out: LeaveOneOut  # of all training graphs, on the scale of the standardised targets
    chosen: Candidate
    candidates: list[Candidate]  # all that were compared, uniform weights first
    n_learning: int  # how many graphs weights were learned from


def fit_gaussian_process(
    at_depth: Callable[[int], TrainingData],
    *,
    covariates: CovariateTable | None = None,
    described: Described | None = None,
    descriptors: bool | str = False,
    weights: str,
    depth: int | None,
    max_depth: int,
    sample: LearningSample,
    groups: np.ndarray,
    landmarks: LandmarkPlan | None,
    max_steps: int,
    seed: int,
    tick: Tick = lambda what: None,
) -> FittedEvidence:
    """Choose the weights on parts of a sample, refine them on all of it, condition on all graphs.

    Parameters
    ----------
    at_depth : callable
        The training data with patterns up to some depth.
    covariates : CovariateTable, optional
        Their columns; the numbers are in the training data.
    described : Described, optional
        The same covariates, and descriptors of molecules.
    descriptors : bool or "auto"
        Whether to use the latter; ``"auto"``: as held-out graphs decide.
    weights : {"auto", "uniform", "depths", "branches"}
    depth : int or None
        None: of uniform weights that with the largest marginal likelihood, else ``max_depth``.
    max_depth : int
    sample : LearningSample
    groups : ndarray, shape (n_graphs,)
        Classes, or tenths of the values, of which every part has its share.
    landmarks : LandmarkPlan, optional
        Condition through some graphs only; None: exactly.
    max_steps : int
        Of each stage of the search.
    seed : int
    tick : callable
    """
    deepest = max_depth if depth is None else depth
    data = at_depth(deepest)
    if described is not None and descriptors is True:
        covariates, data = described.table, replace(data, covariates=described.everything())
    copies = None if data.copies is None else data.copies[sample.weights]
    parts = parts_of_graphs(sample.weights, groups[sample.weights], seed, copies)
    if weights == "uniform" and (described is None or descriptors != "auto"):
        # nothing to compare: one part settles the depth
        parts = [Part(parts[0].fitted, np.empty(0, dtype=int))]
    depths = list(range(deepest + 1)) if depth is None else [depth]
    options: dict[str, Any] = {"max_steps": max_steps, "tick": tick}
    candidates = [fit_uniform(data, parts, depths, **options)]
    chosen = candidates[0]
    if described is not None and descriptors == "auto":
        richer = replace(data, covariates=described.sample)
        beside = with_descriptors(richer, parts, chosen, **options)
        candidates.append(beside)
        if data.codes is None and covariates is None:
            # Of numbers a doubt speaks for descriptors: they helped on nearly all sets.
            chosen = chosen if chosen.beats(beside, 2.0) else beside
        else:  # of classes they rarely did, and they share the kernel of other covariates
            chosen = preferred(candidates)
        data = richer if chosen.descriptors else data
    learned = "branches" if weights == "auto" else weights
    more = fit_learned(data, parts, chosen, deepest, learned, **options)
    candidates += more
    chosen = preferred([chosen, *more]) if weights == "auto" else [chosen, *more][-1]
    if chosen.descriptors:
        assert described is not None
        covariates, data = described.table, replace(data, covariates=described.everything())
    if chosen.depth < deepest:
        data = replace(at_depth(chosen.depth), covariates=data.covariates)
    search = _refined(data, chosen, sample, max_steps, tick)
    model, left_out = _condition(data, search.parameters, landmarks, covariates)
    return FittedEvidence(
        model, data.histograms, search, left_out, chosen, candidates, len(sample.weights)
    )


def _refined(
    data: TrainingData, chosen: Candidate, sample: LearningSample, max_steps: int, tick: Tick
) -> EvidenceFit:
    """A few iterations on the whole sample, from what was found on parts of it."""
    n = len(sample.weights)
    steps = min(max_steps, _REFINE_FEW if n <= _MANY else REFINE_MANY)
    problem, present = data.problem(sample.weights)
    start = EvidenceParameters(
        chosen.start.scales, np.zeros(problem.hierarchy.n_groups), np.zeros(present.sum())
    )
    if chosen.weights != "uniform":
        start = chosen.start._replace(deviations=chosen.start.deviations[present])
    options = {"max_steps": steps, "check_noise": True, "device": data.device, "tick": tick}
    search = maximise_evidence(problem, chosen.weights, start, **options)  # type: ignore[arg-type]
    found = search.parameters.spread(present)
    if sample.scales is not None:  # noise and amplitude in the proportions that predictions meet
        problem, present = data.problem(sample.scales)
        start = found._replace(deviations=found.deviations[present])
        again = maximise_evidence(problem, "uniform", start, **options)  # type: ignore[arg-type]
        found = found._replace(scales=again.parameters.scales)
    if max_steps < REFINE_MANY and not search.converged:
        warnings.warn(
            f"The search for weights did not converge in max_steps={max_steps} iterations; a "
            "larger max_steps may fit a little better.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return replace(search, parameters=found)


def _warn_of_copies(copies: np.ndarray | None) -> None:
    """Many replicates are worth a word: each of them says little that is new."""
    if copies is None:
        return
    n_more = len(copies) - len(np.unique(copies))
    if n_more > _MANY_COPIES * len(copies):
        warnings.warn(
            f"{n_more} of {len(copies)} training graphs are copies of others. Leave-one-out scores "
            "leave all copies of a graph out together; merge replicates (their mean, with "
            "sample_weight their number) to fit faster.",
            UserWarning,
            stacklevel=2,
        )


def _condition(
    data: TrainingData,
    parameters: EvidenceParameters,
    plan: LandmarkPlan | None,
    table: CovariateTable | None,
) -> tuple[FittedGP, LeaveOneOut]:
    """Return the posterior given all training graphs, and leave-one-out predictions."""
    targets, n_jobs, histograms = data.targets, data.n_jobs, data.histograms
    weighted = WeightedForest(
        data.forest,
        data.log_weights(parameters),
        data.hierarchy.level_weights(parameters.level_logits),
    )
    kernel, noise = data.kernel(parameters), parameters.noise / targets.weights
    used = noise  # but where limits are
    everything = weighted.weighed(histograms)._replace(covariates=data.covariates)
    beside: FittedCovariates | None = None
    if table is not None and kernel.covariates is not None and data.covariates is not None:
        beside = FittedCovariates(table, kernel.covariates, data.covariates)
    basis, positions = histograms, np.arange(histograms.n_graphs)
    posterior: ExactPosterior | LandmarkPosterior | MeanPosterior
    if plan is not None:
        fit = LandmarkFit(kernel, everything, noise, targets.values, n_jobs)
        positions, posterior, left_out = posterior_through_landmarks(
            fit, plan.first, plan.n_landmarks
        )
        basis = histograms.select_graphs(positions)
        if targets.limits is not None:
            fit = through_landmarks(fit, positions, targets)
            posterior, left_out = fit.through(positions)
            left_out = of_measurements(left_out, fit.noise, noise)
    elif data.device != "cpu":
        from treelens.gp.device import condition_on_device

        posterior, left_out = condition_on_device(
            everything.pairs, kernel, noise, targets.values, data.device
        )
    else:
        among = kernel.matrix(everything, everything, n_jobs)
        found = Conditioned.fit(targets, among, parameters.noise, n_jobs)
        posterior, used = found.posterior, found.noise
        left_out = found.leave_one_out(n_jobs, data.copies)
        _warn_of_copies(data.copies)
    model = FittedGP(
        weighted, kernel.scales, parameters.noise, basis, positions, posterior, targets.offset,
        targets.scale, targets.weights * (noise / used) if plan is None else None,
        covariates=beside,
    )  # fmt: skip
    return model, left_out


def evidence_history(search: EvidenceFit, n_graphs: int) -> pd.DataFrame:
    """Return the iterations of a search on so many graphs, with the log evidence after each."""
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
