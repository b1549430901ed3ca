"""Draws of training graphs: those that weights are learned on, and landmarks."""

from __future__ import annotations

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


def landmarks_for(
    groups: np.ndarray, exact_size: int, n_landmarks: int, seed: int
) -> np.ndarray | None:
    """Landmarks where there are too many graphs for all of them to be used, else None."""
    if len(groups) <= exact_size:
        return None
    return draw_by_group(groups, n_landmarks, seed + 1)
