"""Which scale numbers are learned on: the one under which left-out graphs are most probable.

Scales are compared by the log densities of values in their own units, so each carries the slope of
its map (the Jacobian). Wider intervals and better predictions are not the same: a map must not make
the absolute errors of medians larger either. What the values alone say (how far their distribution
is from a normal one, and whether a map brings it nearer) screens the candidates: most targets need
no further fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from treelens.array_checks import LARGEST
from treelens.gp.censoring import starting_weights
from treelens.gp.choice import draw_by_group, log_densities, tenths_by_rank
from treelens.gp.data import TrainingData, TrainingView
from treelens.gp.posterior import ScaledTargets
from treelens.gp.search import maximise_evidence
from treelens.maps import Logarithm, Logit, SmoothScores, TargetMap
from treelens.targets import Targets, natural_bounds

SAMPLE_SIZE = 500  # graphs that scales are compared on
DEPTH = 2  # of their patterns
_FEWEST_GRAPHS = 50  # fewer tell too little about the shape of a distribution
_MAX_STEPS = 25
_LEAST_MARGINAL_GAIN = 0.1  # nats per value, from the distribution of the values alone
_CONSTANT = 1e-9  # values that differ by less of their size are the same
_N_ERRORS = 2.0  # standard errors by which a map has to be better than none
# Times the squared error of means without a map. A logarithm of values over ten powers of ten has
# better medians and densities, and means that are larger than any value there is.
_LARGEST_SQUARES = 100.0


def choose_scale(
    y: Targets, keys: np.ndarray, views_of: Callable[[np.ndarray], tuple[TrainingView, ...]]
) -> TargetMap | None:
    """Return the scale to learn numbers on; None where no map is clearly better than theirs.

    ``keys`` (n_graphs,) are random numbers to draw by, and ``views_of(positions)`` returns some of
    the graphs, in every view.
    """
    values = y.numbers_on(None)
    if len(values) < _FEWEST_GRAPHS:
        return None
    scales = candidate_scales(values[y.exact])
    if not scales:
        return None
    some = draw_by_group(tenths_by_rank(values), SAMPLE_SIZE, keys)
    sample, views = y[some], views_of(some)
    plain = left_out(sample, None, views)
    best, largest = None, 0.0
    for scale in scales:
        found = left_out(sample, scale, views)
        gains = found.densities - plain.densities
        gain, error = float(gains.mean()), float(gains.std(ddof=1)) / np.sqrt(len(gains))
        nearer = found.errors.mean() <= plain.errors.mean()
        nearer &= found.squares <= _LARGEST_SQUARES * plain.squares
        if nearer and gain > max(largest, _N_ERRORS * error):
            best, largest = scale, gain
    return best


def candidate_scales(values: np.ndarray) -> list[TargetMap]:
    """Return maps that bring the distribution of the values clearly nearer to a normal one."""
    if len(values) < 2 or np.ptp(values) <= _CONSTANT * np.abs(values).max():
        return []
    low, high = natural_bounds(values)
    found: list[TargetMap | None] = [SmoothScores.fit(values, low, high)]
    if high < LARGEST:
        found.append(Logit(low, high))
    if values.min() > 0:
        found.append(Logarithm("ln"))
    return [x for x in found if x is not None and marginal_gain(x, values) > _LEAST_MARGINAL_GAIN]


def marginal_gain(scale: TargetMap, values: np.ndarray) -> float:
    """Return what a map adds to the mean log density of values under a normal distribution."""
    spread = np.std(scale.forward(values))
    return float(np.log(scale.slope(values)).mean() - np.log(spread) + np.log(np.std(values)))


class LeftOut(NamedTuple):
    """How a scale predicts values that are left out, in their own units."""

    densities: np.ndarray  # (n_graphs,) logarithms; of limits, of the probabilities that they hold
    errors: np.ndarray  # (n_exact,) absolute ones, of medians
    squares: float  # the mean squared error of means


def left_out(y: Targets, scale: TargetMap | None, views: tuple[TrainingView, ...]) -> LeftOut:
    """Fit uniform weights on a scale, and predict each value from the others."""
    values = y.numbers_on(scale)[:, None]
    targets = ScaledTargets.standardized(values, _weights(y, scale), None)
    data = TrainingData(views, replace(targets, limits=y.limits), max_steps=_MAX_STEPS)
    everything, depth = np.arange(len(values)), min(DEPTH, data.depth)
    problem, present = data.problem(everything, depth)
    search = maximise_evidence(problem, "uniform", None, max_steps=_MAX_STEPS, roughly=True)
    mean, variance = data.leave_one_out(search.parameters.widened(present), depth, everything)
    slope, median = np.ones(len(values)), targets.offset[0] + targets.scale * mean[:, 0]
    expected = median
    if scale is not None:
        expected = scale.inverse_mean(median, targets.scale * np.sqrt(variance))
        slope, median = scale.slope(y.numbers()), scale.inverse(median)
    found = log_densities(targets.values, mean, variance, y.limits)
    densities = np.where(y.exact, found + np.log(slope / targets.scale), found)
    numbers, exact = y.numbers(), y.exact
    with np.errstate(over="ignore"):
        squares = float(np.mean((numbers - expected)[exact] ** 2))
    return LeftOut(densities, np.abs(numbers - median)[exact], squares)


def _weights(y: Targets, scale: TargetMap | None) -> np.ndarray:
    """Return weights of graphs from what is known of their noise, one on average: (n_graphs,)."""
    if y.noise is None:
        return np.ones(len(y))
    values, std = y.numbers(), np.where(np.isnan(y.noise), np.nanmedian(y.noise), y.noise)
    if scale is not None:
        std, values = scale.forward_std(values, std), scale.forward(values)
    weights = starting_weights(std**2, values)
    return weights / weights.mean()
