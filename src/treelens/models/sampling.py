"""Draws of training graphs: those that weights are learned on, and landmarks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def draw_by_group(groups: np.ndarray, size: int, seed: int) -> np.ndarray:
    """``size`` positions, or all of them, in proportion to the groups' sizes, ascending.

    Examples
    --------
    >>> draw_by_group(np.array([0, 0, 0, 0, 1, 1]), 3, seed=0).tolist()
    [0, 3, 5]
    """
    n = len(groups)
    if size >= n:
        return np.arange(n)
    shuffled = np.random.default_rng(seed).permutation(n)
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    # Every n / size-th position of the list sorted by group, so that each has its share.
    picks = (np.arange(size) * n) // size
    return np.sort(by_group[picks])


def tenths_by_rank(values: np.ndarray) -> np.ndarray:
    """Groups of values: a sample drawn from each tenth keeps the spread of the whole."""
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return rank * 10 // len(values)


# Fewer graphs than this tell too little about the scales of a kernel.
_FEWEST = 200


def draw_evenly(codes: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Positions of as many graphs of each class as the rarest has, ascending; at most ``size``.

    Where most targets are the same number, a Gaussian process can say them without any noise and
    at any weights, and evidence rewards weights that do: they rank worse than uniform ones. So the
    weights of rare classes are learned from classes of one size, 200 graphs in all or more.

    Examples
    --------
    >>> draw_evenly(np.array([0, 0, 0, 1, 0, 1] * 100), 8, seed=0).shape
    (8,)
    """
    counts = np.bincount(codes)
    each = max(int(counts.min()), -(-_FEWEST // len(counts)))
    each = min(each, max(1, size // len(counts)))
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    by_class = [shuffled[codes[shuffled] == code][:each] for code in range(len(counts))]
    return np.sort(np.concatenate(by_class))


class LandmarkPlan(NamedTuple):
    """How many landmarks there shall be, and those that are drawn by chance: half of them."""

    n_landmarks: int
    first: np.ndarray


def landmarks_for(
    groups: np.ndarray, exact_size: int, n_landmarks: int, seed: int
) -> LandmarkPlan | None:
    """Landmarks where there are too many graphs for all of them to be used, else None."""
    if len(groups) <= exact_size:
        return None
    total = min(n_landmarks, len(groups))
    return LandmarkPlan(total, draw_by_group(groups, max(1, total // 2), seed + 1))
