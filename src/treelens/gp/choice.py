"""Which training graphs weights are learned from, and the choice of which weights to use.

The stages of the search run on part of the training graphs, where an evaluation is cheap. The
marginal likelihood settles the depth of uniform weights, as all depths have the same number of
parameters. Learned weights are compared with them on graphs that they were not learned from: every
candidate is fitted to part of the training graphs, and predicts each of the others from all. A
richer candidate is preferred if its gain exceeds half the standard error of that gain. Numbers are
compared by log predictive density and by squared error, and a candidate must not lose in either by
as much: where a few values are far off, wider intervals and better means are not the same. Classes
are compared by log probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from treelens.gp.data import TrainingData
from treelens.gp.evidence import EvidenceParameters
from treelens.gp.search import STAGES, EvidenceFit, maximise_evidence
from treelens.models.predictions import calibrated, fit_slope

# Candidates are fitted to so many graphs at most; more would cost time and change few choices.
LARGEST_PART = 600
FEWEST, _FEW, _MANY = 20, 400, 700
_FEWEST_RARE = 200  # fewer graphs than this tell too little about the scales of a kernel
_LIKELY = 0.5  # standard errors by which richer weights have to be better
_CLEARLY_BETTER = 3.0  # nats: then single labels need no fit to be worse
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
class Candidate:
    """One kind of weights, and how well it predicts graphs that it was not learned from."""

    weights: str  # "uniform", "depths" or "branches"
    depth: int
    fits: list[EvidenceFit]  # with parameters of all patterns, one for each part
    scores: np.ndarray  # (n_graphs,) log predictive densities, or log probabilities of classes
    squared_errors: np.ndarray | None = None  # (n_graphs,), of numbers

    @property
    def start(self) -> EvidenceParameters:
        """The mean over parts, as a start for the search on all graphs."""
        return EvidenceParameters.mean([fit.parameters for fit in self.fits])

    @property
    def curvature(self) -> np.ndarray:
        """The mean over parts of what their searches learned of the curvature."""
        return np.mean([fit.curvature for fit in self.fits], axis=0)

    def gain_over(self, other: Candidate) -> tuple[float, float]:
        """Return the mean difference of the scores and its standard error."""
        return _mean_and_error(self.scores - other.scores)

    def beats(self, other: Candidate, n_errors: float, n_worse: float = 0.0) -> bool:
        """Whether a gain exceeds its standard error so many times, and none is much below zero.

        ``n_worse``: the standard errors by which a mean may get worse.
        """
        gains = [self.gain_over(other)]
        if self.squared_errors is not None and other.squared_errors is not None:
            gains.append(_mean_and_error(other.squared_errors - self.squared_errors))
        clear = any(gain > n_errors * error for gain, error in gains)
        return clear and all(gain >= -n_worse * error for gain, error in gains)


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
    positions: np.ndarray, groups: np.ndarray, keys: np.ndarray, copies: np.ndarray | None = None
) -> list[Part]:
    """Return parts of the training graphs, each with its share of all groups.

    Of fewer than 400 graphs, each quarter in turn is left out. Of more, one half is fitted to and
    the other compared on, at most 600 each; below 700 also the other way round. Fewer than 20 are
    too few to compare anything on. ``groups`` (n,) are classes, or tenths of the values, ``keys``
    (n,) as for :func:`draw_by_group`; ``copies`` (n,) numbers that replicates share, which are
    never on both sides.
    """
    n = len(positions)
    if n < FEWEST:
        return [Part(positions, positions[:0])]
    copies = np.arange(n) if copies is None else copies
    by_group = np.lexsort((keys, groups))
    if n < _FEW:
        quarter = np.empty(n, dtype=int)
        quarter[by_group] = np.arange(n) % 4
        _, own = np.unique(copies, return_inverse=True)
        of_kind = np.empty(n, dtype=int)
        of_kind[own[by_group[::-1]]] = quarter[by_group[::-1]]  # that of the first one drawn
        quarter = of_kind[own]
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

    The first part settles it: ``depths``, which ascend, are tried from the second on until the next
    one is worse. The first, single labels, is tried only where deeper ones are hardly better.
    """
    labels, deeper = (depths[0], depths[1:]) if len(depths) > 1 else (None, depths)
    best, shallow = deeper[0], _fit_part(data, parts[0], "uniform", deeper[0], None)
    found = shallow
    for depth in deeper[1:]:
        tried = _fit_part(data, parts[0], "uniform", depth, found)
        if tried.objective >= found.objective:
            break
        best, found = depth, tried
    if labels is not None and shallow.objective - found.objective < _CLEARLY_BETTER:
        tried = _fit_part(data, parts[0], "uniform", labels, shallow)
        if tried.objective < found.objective:
            best, found = labels, tried
    fits = [found, *(_fit_part(data, part, "uniform", best, found) for part in parts[1:])]
    return Candidate("uniform", best, fits, *_scores(data, parts, fits, best))


def fit_learned(
    data: TrainingData, parts: list[Part], uniform: Candidate, depth: int, learned: str
) -> list[Candidate]:
    """Fit the stages up to ``learned`` to every part, from uniform weights on; all patterns."""
    found = [uniform]
    for stage in STAGES[1 : STAGES.index(learned) + 1]:
        found.append(_fit_parts(data, parts, stage, depth, found[-1].fits))
    return found[1:]


def _fit_parts(
    data: TrainingData, parts: list[Part], stage: str, depth: int, starts: list[EvidenceFit]
) -> Candidate:
    """Run a stage on every part, each from its own start."""
    fits = [
        _fit_part(data, part, stage, depth, start)
        for part, start in zip(parts, starts, strict=True)
    ]
    return Candidate(stage, depth, fits, *_scores(data, parts, fits, depth))


def _fit_part(
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
    held = special.log_ndtr(limits * (mean - values)[:, 0] / np.sqrt(variance))
    return np.where(limits == 0, exact, held)


def preferred(candidates: list[Candidate]) -> Candidate:
    """Go from the simplest candidate on to each next one that beats the best so far.

    Weights that are learned on all graphs gain more than those of parts do, so half a standard
    error is enough: on 75 splits of 27 data sets that was better than a whole one.
    """
    best = candidates[0]
    for candidate in candidates[1:]:
        if candidate.beats(best, _LIKELY, _LIKELY):
            best = candidate
    return best


def _scores(
    data: TrainingData, parts: list[Part], found: list[EvidenceFit], depth: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Scores and, of numbers, squared errors of all graphs compared on; see :class:`Candidate`."""
    if not any(len(part.compared) for part in parts):
        return np.empty(0), None
    left_out = []
    for part, fit in zip(parts, found, strict=True):
        left_out.append(data.leave_one_out(fit.parameters, depth, part.compared, part.fitted))
    mean, variance = map(np.concatenate, zip(*left_out, strict=True))
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
