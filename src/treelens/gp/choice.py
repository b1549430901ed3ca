"""Which training graphs weights are learned from, and the stages they are learned in.

Weights are learned in stages, from uniform ones through one per level to one per pattern, each from
where the last one ended. The stages run on half of a sample of the training graphs, where an
evaluation is cheap; the other half shows what learning gained. Nothing is chosen by that
comparison: the winner on held-out graphs changes with the draw, and the priors hold learned weights
to uniform ones where data are few. Uniform weights settle the depth, by their marginal likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy

from treelens.gp.data import TrainingData
from treelens.gp.search import STAGES, EvidenceFit, maximise_evidence
from treelens.models.predictions import calibrated, fit_slope

LARGEST_PART = 600  # graphs that the stages run on; the weights are then refined on all
FEWEST = 20  # fewer graphs than this are too few to compare anything on
_FEWEST_RARE = 200  # fewer graphs than this tell too little about the scales of a kernel
_MOST_RESCALED = 4000  # graphs that amplitude and noise are fitted to again
_RATIO = 3  # of a commoner class, at most so many graphs for one of the rarest


def draw_by_group(groups: np.ndarray, size: int, keys: np.ndarray) -> np.ndarray:
    """Return ``size`` positions, or all, in proportion to the groups' sizes, ascending.

    ``keys`` (n_graphs,) are random numbers: those of :func:`treelens.graphs.content.draw_keys`
    draw the same graphs in whatever order these come.
    """
    n = len(groups)
    if size >= n:
        return np.arange(n)
    # Every n / size-th position of the list sorted by group, so that each has its share.
    return np.sort(np.lexsort((keys, groups))[(np.arange(size) * n) // size])


def tenths_by_rank(values: np.ndarray) -> np.ndarray:
    """Groups of values: a sample drawn from each tenth keeps the spread of the whole."""
    n_below = np.searchsorted(np.sort(values), values)  # equal values are in one group
    return n_below * 10 // len(values)


def draw_rare(codes: np.ndarray, size: int, keys: np.ndarray) -> np.ndarray:
    """The rarest class whole, and at most three times as many graphs of each other one, ascending.

    Where most targets are the same number, evidence rewards weights that say them without any
    noise, which rank worse than uniform ones. So weights are learned from classes of nearer sizes,
    200 graphs in all or more, at most ``size``.
    """
    counts = np.bincount(codes)
    rarest = max(1, min(int(counts.min()), size // len(counts)))
    others = max(_RATIO * rarest, _FEWEST_RARE - rarest)
    others = max(1, min(others, (size - rarest) // max(1, len(counts) - 1)))
    shuffled = np.argsort(keys, kind="stable")
    by_class = [
        shuffled[codes[shuffled] == code][: rarest if code == counts.argmin() else others]
        for code in range(len(counts))
    ]
    return np.sort(np.concatenate(by_class))


class LearningSample(NamedTuple):
    """Which graphs weights are learned on, and which ones scales are then fitted to again."""

    weights: np.ndarray
    scales: np.ndarray | None = None  # None: those that were found with the weights stay
    noise: np.ndarray | None = None  # more graphs, for amplitude and noise; None where all are used

    @property
    def positions(self) -> np.ndarray:
        """All graphs that are used, ascending."""
        return np.unique(np.concatenate([part for part in self if part is not None]))

    @property
    def largest(self) -> int:
        return max(len(part) for part in self if part is not None)


def sample_for(groups: np.ndarray, rare: bool, size: int, keys: np.ndarray) -> LearningSample:
    """Graphs in proportion or, where a class is ``rare``, more of it than its share.

    Noise and amplitude are then fitted again in the proportions that predictions will meet.
    """
    in_proportion = draw_by_group(groups, size, keys)
    more = draw_by_group(groups, max(size, _MOST_RESCALED), keys)
    noise = more if len(more) > len(in_proportion) else None
    if not rare:
        return LearningSample(in_proportion, None, noise)
    return LearningSample(draw_rare(groups, size, keys), in_proportion, noise)


@dataclass(frozen=True, eq=False)
class PartFit:
    """What a stage found on part of the graphs, and how well it predicts others."""

    weights: str  # "uniform", "depths" or "branches"
    depth: int
    search: EvidenceFit  # with parameters of all patterns
    scores: np.ndarray  # (n_compared,) log predictive densities, or log probabilities of classes

    def gain_over(self, other: PartFit) -> tuple[float, float]:
        """Return the mean difference of the scores and its standard error; zeros without any."""
        differences = self.scores - other.scores
        if len(differences) < 2:
            return 0.0, 0.0
        error = np.std(differences, ddof=1) / np.sqrt(len(differences))
        return float(differences.mean()), float(error)


class Part(NamedTuple):
    """Graphs that the stages run on, and others that show what learning gained."""

    fitted: np.ndarray
    compared: np.ndarray


def halves_of_graphs(
    positions: np.ndarray, groups: np.ndarray, keys: np.ndarray, copies: np.ndarray | None = None
) -> Part:
    """Deal training graphs to two halves of at most 600 each, with their shares of all groups.

    Fewer than 20 are not divided. ``groups`` (n,) are classes, or tenths of the values, ``keys``
    (n,) as for :func:`draw_by_group`; ``copies`` (n,) numbers that replicates share, which are
    never on both sides.
    """
    n = len(positions)
    if n < FEWEST:
        return Part(positions, positions[:0])
    size = 2 * min(n // 2, LARGEST_PART)
    picked = np.lexsort((keys, groups))[(np.arange(size) * n) // size]
    fitted, compared = np.sort(picked[::2]), np.sort(picked[1::2])
    if copies is not None:
        compared = compared[~np.isin(copies[compared], copies[fitted])]
    return Part(positions[fitted], positions[compared])


def fit_uniform(data: TrainingData, part: Part, depths: Sequence[int]) -> PartFit:
    """Fit uniform weights, at the depth with the largest marginal likelihood.

    ``depths``, which ascend, are tried until the next one is worse. Single labels (depth 0) say
    nothing of structure: they are tried only where nothing else is asked for.
    """
    first, *deeper = [depth for depth in depths if depth > 0] or depths
    best, found = first, _searched(data, part, "uniform", first, None)
    for depth in deeper:
        tried = _searched(data, part, "uniform", depth, found)
        if tried.objective >= found.objective:
            break
        best, found = depth, tried
    return PartFit("uniform", best, found, _scores(data, part, found, best))


def fit_learned(data: TrainingData, part: Part, uniform: PartFit, learned: str) -> PartFit:
    """Run the stages up to ``learned``, from the scales of uniform weights on."""
    problem, present = data.problem(part.fitted)
    start = problem.start.with_scales_of(uniform.search.parameters).widened(present)
    found = replace(uniform.search, parameters=start)
    for stage in STAGES[1 : STAGES.index(learned) + 1]:
        found = _searched(data, part, stage, data.depth, found)
    return PartFit(learned, data.depth, found, _scores(data, part, found, data.depth))


def _searched(
    data: TrainingData, part: Part, stage: str, depth: int, before: EvidenceFit | None
) -> EvidenceFit:
    """Return what a stage finds on one part, with parameters of all patterns."""
    problem, present = data.problem(part.fitted, depth)
    result = maximise_evidence(
        problem,
        stage,
        None if before is None else before.parameters.restricted(present),
        curvature=None if before is None else before.curvature,
        max_steps=data.max_steps,
        roughly=True,
        device=data.device,
        tick=data.tick,
    )
    return replace(result, parameters=result.parameters.widened(present))


def log_densities(
    values: np.ndarray, mean: np.ndarray, variance: np.ndarray, limits: np.ndarray | None
) -> np.ndarray:
    """Log predictive densities, of limits the log probabilities that they hold, shape (n,)."""
    squares = ((values - mean) ** 2).mean(axis=1)
    exact = -0.5 * (squares / variance + np.log(2 * np.pi * variance))
    if limits is None:
        return exact
    held = scipy.special.log_ndtr(limits * (mean - values)[:, 0] / np.sqrt(variance))
    return np.where(limits == 0, exact, held)


def _scores(data: TrainingData, part: Part, found: EvidenceFit, depth: int) -> np.ndarray:
    """Scores of all graphs compared on; see :class:`PartFit`."""
    if not len(part.compared):
        return np.empty(0)
    mean, variance = data.leave_one_out(found.parameters, depth, part.compared, part.fitted)
    if data.codes is None:
        some = data.targets.select(part.compared)
        return log_densities(some.values, mean, variance, some.limits)
    codes = data.codes[part.compared]
    probabilities = calibrated(mean, fit_slope(mean, codes, np.ones(len(codes))))
    return np.log(np.maximum(probabilities[np.arange(len(codes)), codes], 1e-300))
