"""Weights learned again on resamples of the training graphs: their standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from treelens.patterns.histograms import PatternHistograms


@dataclass(frozen=True)
class WeightStability:
    """How much learned weights move when the training graphs change.

    Attributes
    ----------
    mean : ndarray, shape (n_patterns,)
        Over the resamples that hold the pattern; NaN where none does.
    error : ndarray, shape (n_patterns,)
        The standard error of the weight: an error bar. NaN where fewer than two resamples hold
        the pattern.
    n_resamples : ndarray of int, shape (n_patterns,)
        In how many resamples the pattern occurred.
    how : {"folds", "bootstrap"}
    """

    mean: np.ndarray
    error: np.ndarray
    n_resamples: np.ndarray
    how: str


def weight_stability(
    learn: Callable[[np.ndarray], np.ndarray],
    histograms: PatternHistograms,
    codes: np.ndarray,
    *,
    how: Literal["folds", "bootstrap"] = "folds",
    n_resamples: int = 10,
    random_state: Any = None,
) -> WeightStability:
    """Learn the weights again on resamples of the training graphs and see how they vary.

    Parameters
    ----------
    learn : callable
        From the positions of training graphs to weights of all patterns, shape (n_patterns,).
    histograms : PatternHistograms
        Of all training graphs; a resample without a pattern says nothing about its weight.
    codes : ndarray of int, shape (n_graphs,)
        Classes; every resample keeps their proportions.
    how : {"folds", "bootstrap"}
        Leave out one of ``n_resamples`` parts at a time, with the standard error of the
        jackknife, which allows for the overlap of what is left; or draw as many graphs with
        replacement and take the standard deviation.
    n_resamples : int
    random_state : int, Generator or None
    """
    if how not in ("folds", "bootstrap"):
        raise ValueError(f"how must be 'folds' or 'bootstrap', got {how!r}.")
    if n_resamples < 2:
        raise ValueError(f"n_resamples must be 2 or more, got {n_resamples}.")
    rng = np.random.default_rng(random_state)
    draw = _without_folds if how == "folds" else _bootstrap_draws
    rows = []
    for indices in draw(codes, n_resamples, rng):
        weights = np.asarray(learn(indices), dtype=float)
        held = _held_patterns(histograms, indices)
        rows.append(np.where(held, weights, np.nan))
    return _summary(np.array(rows), how)


def _summary(weights: np.ndarray, how: str) -> WeightStability:
    """From ``weights`` (n_resamples, n_patterns) with NaN where a pattern did not occur."""
    known = ~np.isnan(weights)
    n = known.sum(axis=0)
    mean = np.where(n > 0, np.nansum(weights, axis=0) / n.clip(1), np.nan)
    squares = np.nansum((weights - mean) ** 2, axis=0)
    # The jackknife's variance is (n - 1) / n times the sum of squares; the sample's 1 / (n - 1).
    factor = (n - 1) / n.clip(1) if how == "folds" else 1 / (n - 1).clip(1)
    error = np.where(n > 1, np.sqrt(factor * squares), np.nan)
    return WeightStability(mean, error, n, how)


def _held_patterns(histograms: PatternHistograms, indices: np.ndarray) -> np.ndarray:
    """Whether some of these graphs hold each pattern, shape (n_patterns,)."""
    chosen = np.zeros(histograms.n_graphs, dtype=bool)
    chosen[indices] = True
    pattern = np.repeat(np.arange(histograms.n_patterns), histograms.support)
    return np.bincount(pattern[chosen[histograms.graphs]], minlength=histograms.n_patterns) > 0


def _without_folds(codes: np.ndarray, n_folds: int, rng: np.random.Generator) -> list[np.ndarray]:
    """All positions but one fold's, for every fold; classes are dealt out evenly."""
    shuffled = rng.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold = np.empty(len(codes), dtype=int)
    fold[by_class] = np.arange(len(codes)) % n_folds
    return [np.flatnonzero(fold != k) for k in range(n_folds)]


def _bootstrap_draws(codes: np.ndarray, n_draws: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Positions drawn with replacement, as many of each class as there are."""
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    return [
        np.sort(np.concatenate([rng.choice(group, len(group)) for group in members]))
        for _ in range(n_draws)
    ]
