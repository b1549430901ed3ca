"""Smoothed hinges for pairs of graphs.

Two graphs with different labels should be at least ``alpha1`` apart (V1), two with the same label
at most ``alpha2`` (V2). Both hinges are one function of how deep a pair lies on the wrong side of
its margin; smoothing replaces the kink by a parabola of width ``sigma``.
"""

from __future__ import annotations

import numpy as np


def smooth_hinge_different(distance: np.ndarray, alpha1: float, sigma: float) -> np.ndarray:
    """V1: the smoothed loss of pairs with different labels.

    Examples
    --------
    >>> smooth_hinge_different(np.array([0.5, 2.0, 3.0]), alpha1=3.0, sigma=1.0).tolist()
    [2.0, 0.5, 0.0]
    """
    return _smooth(alpha1 - np.asarray(distance), sigma)


def smooth_hinge_same(distance: np.ndarray, alpha2: float, sigma: float) -> np.ndarray:
    """V2: the smoothed loss of pairs with the same label.

    Examples
    --------
    >>> smooth_hinge_same(np.array([1.0, 2.0, 3.5]), alpha2=1.0, sigma=1.0).tolist()
    [0.0, 0.5, 2.0]
    """
    return _smooth(np.asarray(distance) - alpha2, sigma)


def _smooth(inside: np.ndarray, sigma: float) -> np.ndarray:
    """``inside`` is how deep a pair lies on the wrong side of its margin.

    Cut to [0, sigma] as ``t``, all three pieces are ``t (inside - t / 2) / sigma``.
    """
    cut = np.clip(inside, 0.0, sigma)
    return cut * (inside - 0.5 * cut) / sigma
