"""Hinges for pairs of graphs: plain and smoothed, with their slopes.

Two graphs with different labels should be at least ``alpha1`` apart (V1), two with the same label
at most ``alpha2`` (V2). Both hinges are one function of how deep a pair lies on the wrong side of
its margin; smoothing replaces the kink by a parabola of width ``sigma``.
"""

from __future__ import annotations

import numpy as np


def hinge_different(distance: np.ndarray, alpha1: float) -> np.ndarray:
    """Loss of pairs with different labels: how much they are nearer than ``alpha1``.

    Examples
    --------
    >>> hinge_different(np.array([0.2, 1.0, 3.0]), alpha1=1.0).tolist()
    [0.8, 0.0, 0.0]
    """
    return np.maximum(alpha1 - np.asarray(distance), 0.0)


def hinge_same(distance: np.ndarray, alpha2: float) -> np.ndarray:
    """Loss of pairs with the same label: how much they are farther than ``alpha2``.

    Examples
    --------
    >>> hinge_same(np.array([0.25, 1.0]), alpha2=0.5).tolist()
    [0.0, 0.5]
    """
    return np.maximum(np.asarray(distance) - alpha2, 0.0)


def hinge_different_slope(distance: np.ndarray, alpha1: float) -> np.ndarray:
    """A subgradient of :func:`hinge_different` in the distance; 0 at the kink."""
    return np.where(np.asarray(distance) < alpha1, -1.0, 0.0)


def hinge_same_slope(distance: np.ndarray, alpha2: float) -> np.ndarray:
    """A subgradient of :func:`hinge_same` in the distance; 0 at the kink."""
    return np.where(np.asarray(distance) > alpha2, 1.0, 0.0)


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


def smooth_hinge_different_slope(distance: np.ndarray, alpha1: float, sigma: float) -> np.ndarray:
    """Derivative of V1 in the distance, between -1 and 0."""
    return -_smooth_slope(alpha1 - np.asarray(distance), sigma)


def smooth_hinge_same_slope(distance: np.ndarray, alpha2: float, sigma: float) -> np.ndarray:
    """Derivative of V2 in the distance, between 0 and 1."""
    return _smooth_slope(np.asarray(distance) - alpha2, sigma)


def _smooth(inside: np.ndarray, sigma: float) -> np.ndarray:
    """``inside`` is how deep a pair lies on the wrong side of its margin.

    Cut to [0, sigma] as ``t``, all three pieces are ``t (inside - t / 2) / sigma``.
    """
    cut = np.clip(inside, 0.0, sigma)
    return cut * (inside - 0.5 * cut) / sigma


def _smooth_slope(inside: np.ndarray, sigma: float) -> np.ndarray:
    return np.clip(inside, 0.0, sigma) / sigma
