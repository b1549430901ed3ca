"""From counts and targets to a fitted Gaussian process; and one that is given more graphs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treelens.array_checks import Columns
from treelens.gp.censoring import through_landmarks
from treelens.gp.choice import (
    LearningSample,
    PartFit,
    draw_by_group,
    fit_learned,
    fit_uniform,
    halves_of_graphs,
)
from treelens.gp.data import TrainingData
from treelens.gp.evidence import EvidenceParameters, EvidenceProblem, with_enough_digits
from treelens.gp.landmarks import BLOCK, MOST_KEPT, LandmarkFit, posterior_through_landmarks
from treelens.gp.model import FittedGP
from treelens.gp.posterior import Conditioned, ExactPosterior, LeaveOneOut, ScaledTargets
from treelens.gp.rescaling import rescaled
from treelens.gp.search import REFINE_MANY, EvidenceFit, maximise_evidence
from treelens.gp.views import StoredView, shown_by
from treelens.graphs.collection import GraphCollection
from treelens.graphs.content import mixed
from treelens.models.predictions import TrainingGraphs
from treelens.patterns.histograms import (
    replicate_numbers,
)

# Iterations on all graphs that refine what was found on part of them: an evaluation of many graphs
# is expensive, and the start is nearer the more graphs there are.
_REFINE_FEW, _MANY = 15, 1000
# Patterns that learned weights choose among reach at least so far, whatever uniform weights prefer:
# learning finds the few that matter.
_LEAST_DEPTH = 2
# With a smaller gain in nats no difference is claimed: the weights were learned from these graphs.
_SMALLEST_GAIN = 0.01
# One landmark of so many is drawn by chance; the others are chosen by what those leave open. Where
# a class is rare, most of the chosen are of it, and chance has to speak for the others.
_BY_CHANCE, _BY_CHANCE_IF_RARE = 4, 2
_MANY_COPIES = 0.2  # a larger share of replicates than this gets a warning


class LandmarkPlan(NamedTuple):
    """Landmarks that are drawn by chance, and how many there shall be in all."""

    first: np.ndarray
    n_landmarks: int


def landmarks_for(
    groups: np.ndarray, exact_size: int, n_landmarks: int, keys: np.ndarray, rare: bool = False
) -> LandmarkPlan | None:
    """Landmarks where there are too many graphs for all of them to be used, else None."""
    if len(groups) <= exact_size:
        return None
    total = min(n_landmarks, len(groups))
    by_chance = total // (_BY_CHANCE_IF_RARE if rare else _BY_CHANCE)
    return LandmarkPlan(draw_by_group(groups, max(1, by_chance), mixed(keys)), total)


def check_memory(n_graphs: int, n_learning: int, n_landmarks: int | None) -> None:
    """Refuse, before any work, what the available memory cannot hold."""
    conditioning = 3 * n_graphs**2
    if n_landmarks is not None:  # of graphs by landmarks while these are chosen, then of a block
        kept = 2 * min(MOST_KEPT, n_graphs * n_landmarks)
        conditioning = 8 * n_landmarks**2 + max(kept, 4 * min(BLOCK, n_graphs) * n_landmarks)
    needed, available = 8 * max(2 * n_learning**2, conditioning), available_bytes()
    if needed > available:
        raise MemoryError(
            f"Fitting {n_graphs} graphs would take about {needed / 2**30:.1f} GiB, and "
            f"{available / 2**30:.1f} GiB are free. Lower exact_size (beyond it predictions go "
            "through landmarks), n_landmarks or learning_size."
        )


def available_bytes(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory that is free, within the limit of a container where there is one."""
    import psutil

    available = int(psutil.virtual_memory().available)
    try:
        used = int((cgroups / "memory.current").read_text())
        return min(available, max(int((cgroups / "memory.max").read_text()) - used, 0))
    except (OSError, ValueError):  # no such group, or no limit ("max")
        return available


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """A fitted model with how it was found."""

    model: FittedGP
    views: tuple[StoredView, ...]  # of all training graphs, up to the depth in use
    search: EvidenceFit  # on all graphs that weights were learned from
    left_out: LeaveOneOut  # of all training graphs, on the scale of the standardised targets
    used: PartFit  # the weights in use, as they were found on half of the sample
    uniform: PartFit  # uniform weights, which learned ones are compared with
    n_learning: int  # how many graphs weights were learned from


def fit_gaussian_process(
    data: TrainingData,
    *,
    weights: str,
    depth: int | None,
    sample: LearningSample,
    groups: np.ndarray,
    landmarks: LandmarkPlan | None,
    keys: np.ndarray,
) -> FittedEvidence:
    """Learn the weights on half of a sample, refine them on all of it, condition on all graphs.

    ``groups`` (n_graphs,) are classes or tenths of the values, of which every part has its share,
    and ``keys`` (n_graphs,) random numbers to draw by. Without ``landmarks`` the posterior is
    exact. Without ``depth`` patterns reach as far as is most likely with uniform weights.
    """
    copies = None if data.copies is None else data.copies[sample.weights]
    part = halves_of_graphs(sample.weights, groups[sample.weights], keys[sample.weights], copies)
    if data.device == "cpu":
        data = data.sharing(np.sort(np.concatenate(part)))
    uniform = used = fit_uniform(data, part, range(data.depth + 1) if depth is None else [depth])
    if weights == "uniform":
        data = data.truncated(uniform.depth)
    else:
        learned = "branches" if weights == "auto" else weights
        data = data.truncated(max(uniform.depth, _LEAST_DEPTH))
        used = fit_learned(data, part, uniform, learned)
    search, among = _refined(data, used, sample), None
    if sample.noise is not None:
        parameters, among = _with_scales_of(data, search.parameters, sample.noise)
        search = replace(search, parameters=parameters)
        among = among if landmarks is None and len(among) == len(groups) else None
    model, left_out = _given_all(data, search.parameters, landmarks, among)
    return FittedEvidence(model, data.stored, search, left_out, used, uniform, len(sample.weights))


def _refined(data: TrainingData, used: PartFit, sample: LearningSample) -> EvidenceFit:
    """A few iterations on the whole sample, from what was found on part of it."""
    n, max_steps = len(sample.weights), data.max_steps
    steps = min(max_steps, _REFINE_FEW if n <= _MANY else REFINE_MANY)
    problem, present = data.problem(sample.weights)
    start = problem.start.with_scales_of(used.search.parameters)
    if used.weights != "uniform":
        start = used.search.parameters.restricted(present)
    options: dict[str, Any] = {"max_steps": steps, "check_noise": True}
    options |= {"device": data.device, "tick": data.tick}
    curvature = used.search.curvature
    search = maximise_evidence(problem, used.weights, start, curvature=curvature, **options)
    found = search.parameters.widened(present)
    if sample.scales is not None:  # noise and amplitude in the proportions that predictions meet
        problem, present = data.problem(sample.scales)
        start = found.restricted(present)
        curvature = search.curvature
        again = maximise_evidence(problem, "uniform", start, curvature=curvature, **options)
        found = found.with_scales_of(again.parameters)
    if max_steps < REFINE_MANY and not search.converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"The search for weights did not converge in max_steps={max_steps} iterations; a "
            "larger max_steps may fit a little better.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return replace(search, parameters=found)


def _with_scales_of(
    data: TrainingData, parameters: EvidenceParameters, positions: np.ndarray
) -> tuple[EvidenceParameters, np.ndarray]:
    """Return the parameters with amplitude and noise of some graphs, and their covariances."""
    problem, present = data.problem(positions)
    own = parameters.restricted(present)
    targets = data.targets.select(positions)
    among = _covariances(problem, own)
    values, noise, fixed = targets.values, own.noise / targets.weights, np.zeros(len(positions))
    if targets.limits is not None:
        sites = Conditioned.fit(targets, among.copy(), own.noise, data.n_jobs)
        values, limited = sites.values, targets.limits != 0
        noise, fixed = np.where(limited, 0.0, noise), np.where(limited, sites.noise, 0.0)

    def found(dtype: type) -> tuple[float, float]:
        return rescaled(among, noise, values, fixed, dtype, data.n_jobs)

    of_amplitude, of_noise = with_enough_digits(found, problem.dtype_for(own))
    among *= of_amplitude
    return parameters.rescaled(of_amplitude, of_noise), among


def _covariances(problem: EvidenceProblem, parameters: EvidenceParameters) -> np.ndarray:
    """Covariances among graphs; without limits, the upper triangle is enough."""
    if problem.limits is not None:
        return problem.kernel_matrix(parameters)
    return problem.upper_kernel(parameters)


def _given_all(
    data: TrainingData,
    parameters: EvidenceParameters,
    plan: LandmarkPlan | None,
    among: np.ndarray | None,
) -> tuple[FittedGP, LeaveOneOut]:
    """Return the posterior given all training graphs, and leave-one-out predictions.

    ``among`` are covariances of all training graphs, where they are known already.
    """
    targets, n_jobs = data.targets, data.n_jobs
    pairs = zip(data.views, parameters.terms, strict=True)
    views = tuple(view.fitted(own) for view, own in pairs)
    everything, kernel = shown_by(views, data.stored), data.kernel(parameters)
    noise = used = parameters.noise / targets.weights
    positions = np.arange(len(noise))
    posterior: Any
    if plan is not None:
        fit = LandmarkFit(kernel, everything, noise, targets.values, n_jobs)
        positions, posterior, left_out = posterior_through_landmarks(fit, *plan)
        if targets.limits is not None:
            posterior, left_out = through_landmarks(fit, positions, targets)
    elif data.device != "cpu":
        from treelens.gp.device import condition_on_device

        posterior, left_out = condition_on_device(
            everything.patterns,
            kernel.terms[0],
            noise,
            targets.values,
            data.device,
            data.left_out_together,
        )
    else:
        if among is None:
            problem, present = data.problem(positions)
            among = _covariances(problem, parameters.restricted(present))
        found = Conditioned.fit(targets, among, parameters.noise, n_jobs)
        posterior, used = found.posterior, found.noise
        left_out = found.leave_one_out(n_jobs, data.left_out_together)
    n, n_kinds = len(noise), len(noise if data.copies is None else np.unique(data.copies))
    if plan is None and n - n_kinds > _MANY_COPIES * n:
        about = "leave out together; merge replicates (sample_weight: how many) to fit faster"
        if data.codes is not None:
            about = "predict from one another: they are those of graphs like these, not of new ones"
        warnings.warn(
            f"{n - n_kinds} of {n} training graphs are copies of others, which leave-one-out "
            f"scores {about}.",
            UserWarning,
            stacklevel=2,
        )
    model = FittedGP(
        views,
        kernel,
        parameters.noise,
        positions,
        posterior,
        targets.offset,
        targets.scale,
        targets.weights * (noise / used) if plan is None else None,
    )
    return model, left_out


def evidence_history(search: EvidenceFit, n_graphs: int) -> Columns:
    """Return the iterations of a search on so many graphs, with the log evidence after each."""
    history = Columns.of_rows([vars(step) for step in search.history])
    objective = history["objective"]
    evidence = -objective - 0.5 * n_graphs * np.log(2.0 * np.pi)
    names = {"objective": "evidence"}
    return Columns((names.get(k, k), evidence if k in names else x) for k, x in history.items())


@dataclass(frozen=True, repr=False)
class LearningGain:
    """Learned against uniform weights at the best depth, on graphs that neither was fitted to.

    Both are fitted to half of the graphs, at most 600; the model's weights are then refined on all.
    Scores are means over graphs of the log predictive density (of classes, of the log probability),
    in nats: learned weights predict better where the difference is positive.
    """

    difference: float
    standard_error: float  # of the difference
    learned: float
    uniform: float
    sentence: str  # the comparison in words
    compared: dict[str, float]  # the means of both; empty where no graphs could be held out

    def __repr__(self) -> str:
        return self.sentence


def learning_gain(used: PartFit, uniform: PartFit) -> LearningGain:
    """Compare the weights in use with uniform ones, both as found on part of the graphs."""
    gain, error = used.gain_over(uniform)
    baseline = f"uniform weights at depth {uniform.depth}"
    in_use = {
        "uniform": baseline,
        "depths": "one weight per depth",
        "branches": "a weight per pattern",
    }[used.weights]
    size, n = f"{gain:+.3f} ± {error:.3f} in mean log probability", len(uniform.scores)
    if used.weights == "uniform":
        sentence = f"Used: {in_use}; no weights were learned."
    elif n == 0:
        sentence = f"Used: {in_use}; the graphs are too few to compare weights."
    else:
        verdict = f"learned weights and {baseline} predict about equally well"
        if abs(gain) >= max(2.0 * error, _SMALLEST_GAIN):
            better = "better" if gain > 0 else "worse"
            verdict = f"learned weights predict {better} than {baseline}"
        sentence = f"Used: {in_use}. On {n} held-out graphs {verdict} ({size})."
    compared = {each.weights: _mean_score(each) for each in (uniform, used)} if n else {}
    return LearningGain(gain, error, _mean_score(used), _mean_score(uniform), sentence, compared)


def _mean_score(fit: PartFit) -> float:
    return float(fit.scores.mean()) if len(fit.scores) else 0.0


def condition(
    model: FittedGP,
    graphs: GraphCollection,
    training: TrainingGraphs,
    targets: ScaledTargets,
    n_jobs: int = 1,
) -> tuple[FittedGP, LeaveOneOut]:
    """Return the model given more graphs, and leave-one-out predictions of all.

    Patterns that training never saw join the vocabulary with the weights that they inherit, which
    predictions give them already: the result is the exact posterior given old and new graphs.
    ``training`` (but for its histograms) and ``targets`` are of all graphs, the new ones last.
    """
    posterior = model.full_posterior(n_jobs)
    if not isinstance(posterior, ExactPosterior):
        raise ValueError(
            "condition needs an exact posterior, and this model predicts through landmarks: fit "
            "again, with a larger exact_size if possible."
        )
    rows = model.kernel_rows(model.refine(graphs, n_jobs).features, n_jobs)
    wider, more = zip(*(view.extended(graphs, n_jobs) for view in model.views), strict=True)
    new = shown_by(wider, more)
    triples = zip(wider, model.training.views, more, strict=True)
    stored = tuple(view.joined(before, own) for view, before, own in triples)
    extended = replace(
        model,
        views=wider,
        basis_indices=np.arange(len(targets.values)),
        sample_weights=targets.weights,
        training=replace(training, views=stored),
    )
    used, among = model.noise / targets.weights, extended.kernel.matrix(new, new, n_jobs)
    posterior = posterior.extended(rows, among, used[-len(graphs) :], targets.values, n_jobs)
    copies = None
    if model.classes is None:  # see TrainingData.left_out_together
        copies = replicate_numbers(extended.training_graphs)
    left_out = posterior.leave_one_out(targets.values, n_jobs, copies)
    if targets.limits is not None:
        noise = np.where(targets.limits == 0, used, model.noise)
        left_out = left_out.of_measurements(used, noise)
    return replace(extended, posterior=posterior), left_out
