"""Batches chosen from a joint normal distribution of candidates.

A batch is chosen one candidate after the other. Whatever the measurement of a candidate will be, it
reduces the variances of all others by an amount that the covariance gives exactly; the means are
left as they are, as if the candidate came out as predicted (the "kriging believer" of Ginsbourger
et al. 2010; for upper confidence bounds the batches of Desautels et al. 2014). So a near copy of a
chosen candidate has little uncertainty left, and loses its place to something new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

STRATEGIES = ("expected_improvement", "thompson", "ucb", "greedy", "uncertainty")
_LEAST = 1e-12  # relative to the largest variance
_JITTER = 1e-8


class Aim(NamedTuple):
    """What is wanted of candidates whose values are to be large.

    ``best`` are the values to improve on: a new value joins them in the place of the smallest. With
    ``near`` there is one that stays, as the boundary of two classes, and a strategy of uncertainty
    looks for values near it.
    """

    strategy: str
    best: np.ndarray
    exploration: float = 1.0  # standard deviations that "ucb" adds to the mean
    near: bool = False


class Batch(NamedTuple):
    """Chosen candidates, in order, and the score that each was chosen by."""

    positions: np.ndarray
    scores: np.ndarray


def expected_improvement(mean: np.ndarray, std: np.ndarray, best: float) -> np.ndarray:
    """Return the expected amount by which normal variables exceed ``best``."""
    above = mean - best
    scaled = above / std
    density = np.exp(-0.5 * np.minimum(scaled**2, 1400.0)) / np.sqrt(2.0 * np.pi)
    return np.maximum(above * ndtr(scaled) + std * density, 0.0)


def score(mean: np.ndarray, variance: np.ndarray, aim: Aim) -> np.ndarray:
    """Return how much each candidate is wanted by itself; never more with a smaller variance."""
    std = np.sqrt(np.maximum(variance, _LEAST * max(float(variance.max(initial=0.0)), 1e-300)))
    if aim.strategy == "greedy":
        return mean
    if aim.strategy == "ucb":
        return mean + aim.exploration * std
    if aim.strategy == "uncertainty":
        return 1.96 * std - np.abs(mean - aim.best.min()) if aim.near else std
    return expected_improvement(mean, std, float(aim.best.min()))


def choose_batch(
    mean: np.ndarray,
    covariance: np.ndarray,
    noise: float,
    n: int,
    aim: Aim,
    rng: np.random.Generator,
) -> Batch:
    """Choose ``n`` candidates from means (n_candidates,) and the covariance of noise-free values.

    ``noise`` is the variance that a measurement adds.
    """
    chosen, scores = np.empty(n, dtype=np.int64), np.empty(n)
    if aim.strategy == "thompson":  # the largest value of each of n samples, without repetition
        for k, sample in enumerate(joint_samples(mean, covariance, n, rng)):
            sample[chosen[:k]] = -np.inf
            chosen[k] = sample.argmax()
            scores[k] = sample[chosen[k]]
        return Batch(chosen, scores)
    if aim.strategy == "greedy":
        order = np.argsort(-mean, kind="stable")[:n]
        return Batch(order, mean[order])
    left = np.diagonal(covariance).copy()  # variances given the batch so far
    known = np.zeros((n, len(mean)))  # rows of a Cholesky factor of the batch
    free = np.ones(len(mean), dtype=bool)
    for k in range(n):
        wanted = np.where(free, score(mean, left, aim), -np.inf)
        pick = int(wanted.argmax())
        chosen[k], scores[k], free[pick] = pick, wanted[pick], False
        row = covariance[pick] - known[:k, pick] @ known[:k]
        known[k] = row / np.sqrt(max(left[pick], 0.0) + noise)
        left = np.maximum(left - known[k] ** 2, 0.0)
        if not aim.near:
            aim = aim._replace(best=np.sort([*aim.best, mean[pick]])[1:])
    return Batch(chosen, scores)


def joint_samples(
    mean: np.ndarray, covariance: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Return samples of a joint normal distribution, shape (n, n_candidates)."""
    jittered = covariance.copy()
    own = np.diag_indices_from(jittered)
    jittered[own] += _JITTER * max(float(jittered[own].max()), 1e-300)
    try:
        factor = np.linalg.cholesky(jittered)
    except np.linalg.LinAlgError:  # rounding of a nearly singular matrix
        values, vectors = np.linalg.eigh(jittered)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return mean + rng.standard_normal((n, len(mean))) @ factor.T


def shortlisted_batch(
    mean: np.ndarray,
    variance: np.ndarray,
    joint: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    noise: float,
    n: int,
    aim: Aim,
    rng: np.random.Generator,
    largest: int,
) -> Batch:
    """Choose a batch with the covariance of a few candidates only.

    ``joint(positions)`` gives means and covariance. The candidates with the best scores are
    shortlisted. Scores only fall while a batch grows, so the batch is that of all candidates once
    its last score is no less than the best score beside the shortlist, which is doubled until it is
    (up to ``largest``). Joint samples have no such bound: there the shortlist has the ``largest``
    highest upper bounds of three standard deviations.
    """
    if aim.strategy == "greedy":
        return choose_batch(mean, np.empty((0, 0)), noise, n, aim, rng)
    sampled = aim.strategy == "thompson"
    wanted = score(mean, variance, Aim("ucb", aim.best, 3.0) if sampled else aim)
    order = np.argsort(-wanted, kind="stable")
    size = largest if sampled else min(max(10 * n, 300), largest)
    while True:
        some = order[:size]
        batch = choose_batch(*joint(some), noise, n, aim, rng)
        if sampled or size >= min(largest, len(order)) or batch.scores[-1] >= wanted[order[size]]:
            return Batch(some[batch.positions], batch.scores)
        size = min(2 * size, largest)
