"""The constraint set of the weights: per depth a ball around 1, intersected with ``w >= 0``.

Non-negative weights keep the kernel positive semi-definite. There are the exact projection and the
exact minimiser of a linear function, which the solvers' certificate needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

CENTER = 1.0
# A norm this little above the radius counts as on the sphere, so that projecting twice is
# projecting once although norms are rounded.
_ON_SPHERE = 1.0 + 1e-12
_MAX_ROUNDS = 200
_FLAT = 1e-150  # slopes so much flatter than the steepest count as zero: their squares would vanish


@dataclass(frozen=True)
class BallConstraint:
    """Per depth a ball around 1, intersected with the non-negative orthant.

    Examples
    --------
    >>> ball = BallConstraint(np.array([0, 2]), np.array([0.5]))
    >>> ball.project(np.array([4.0, 5.0])).tolist()
    [1.3, 1.4]
    """

    level_offsets: np.ndarray  # (n_depths + 1,)
    radii: np.ndarray  # (n_depths,)

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Return the nearest point of the set."""
        return self._by_level(project_ball, weights)

    def project_in(self, metric: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the nearest point in the norm ``sum_v metric_v x_v²``."""
        return self._by_level(project_ball_in, metric, weights)

    def linear_minimizer(self, gradient: np.ndarray) -> np.ndarray:
        """Return a point of the set that minimises ``<gradient, w>``."""
        return self._by_level(ball_minimizer, gradient)

    def _by_level(self, function: Callable[..., np.ndarray], *vectors: np.ndarray) -> np.ndarray:
        parts = zip(self.level_offsets[:-1], self.level_offsets[1:], self.radii, strict=True)
        return np.concatenate(
            [function(*(vector[a:b] for vector in vectors), radius) for a, b, radius in parts]
        )


def project_ball(weights: np.ndarray, radius: float) -> np.ndarray:
    """Return the nearest point with ``||w - 1|| <= radius`` and ``w >= 0``.

    It is ``max(0, 1 + (v - 1) / t)`` with the smallest ``t >= 1`` that fits the ball: the
    orthant alone if that suffices, else the ``t`` at which the norm is the radius. Coordinates
    that end at zero are those farthest below 1, so ``t`` is found by trying how many they are.
    """
    if radius == 0:
        return np.full_like(weights, CENTER)
    shift = np.maximum(weights, 0.0) - CENTER
    if _norm(shift) <= radius * _ON_SPHERE:
        return np.maximum(weights, 0.0)
    shift = weights - CENTER
    return np.maximum(CENTER + shift / _divisor(shift, radius), 0.0)


def project_ball_in(metric: np.ndarray, weights: np.ndarray, radius: float) -> np.ndarray:
    """Return the nearest point with distances measured as ``sum_v metric_v x_v²``.

    It is ``w = max(0, 1 + metric (v - 1) / (metric + multiplier))``. One over the norm is nearly
    linear in the multiplier, so Newton's method on that finds it in a few rounds; a bracket guards
    it where coordinates leave zero on the way.
    """
    if radius == 0:
        return np.full_like(weights, CENTER)
    shift = weights - CENTER
    bent, multiplier, low, high = metric * shift, 0.0, 0.0, np.inf
    for _ in range(_MAX_ROUNDS):
        both = metric + multiplier
        p = np.maximum(bent / both, -1.0)
        free = p * (p > -1.0)
        square, slope = float(p @ p), float(free @ (free / both))
        norm = np.sqrt(square)
        if norm <= radius * _ON_SPHERE and (multiplier == 0 or norm >= radius / _ON_SPHERE):
            break
        low, high = (multiplier, high) if norm > radius else (low, multiplier)
        multiplier = multiplier + (norm / radius - 1.0) * square / slope if slope > 0 else high
        if not low < multiplier < high:
            multiplier = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low + 1.0
    return np.maximum(CENTER + bent / (metric + multiplier), 0.0)


def ball_minimizer(gradient: np.ndarray, radius: float) -> np.ndarray:
    """Return a point with ``||w - 1|| <= radius`` and ``w >= 0`` that minimises ``<gradient, w>``.

    It is ``max(0, 1 - gradient / t)`` with the norm at the radius; or zero, when no slope is
    negative and the ball reaches that far.
    """
    steepest = np.abs(gradient).max(initial=0.0)
    if radius == 0 or steepest == 0:
        return np.full_like(gradient, CENTER)
    shift = -gradient / steepest
    shift[np.abs(shift) < _FLAT] = 0.0
    moving = shift != 0
    if (shift <= 0).all() and np.sqrt(np.count_nonzero(moving)) <= radius:
        return np.where(moving, 0.0, CENTER)
    return np.maximum(CENTER + shift / _divisor(shift, radius), 0.0)


def _divisor(shift: np.ndarray, radius: float) -> float:
    """Return the ``t > 0`` with ``||max(-1, shift / t)|| == radius``.

    With the ``k`` most negative coordinates at -1, ``t_k² = (sum of the other squares) /
    (radius² - k)``; the right ``k`` is the one for which exactly those coordinates are below -t.
    """
    if radius <= CENTER:  # one coordinate alone fills the ball before it reaches -1
        return _norm(shift) / radius
    rising = np.maximum(shift, 0.0)
    falling = np.sort(-shift[shift < 0])  # summed from the smallest up: nothing cancels
    rest = float(rising @ rising) + np.concatenate([[0.0], np.cumsum(falling**2)])[::-1]
    n_candidates = int(min(len(falling), np.ceil(radius**2 - 1)))
    falling, rest = falling[::-1][:n_candidates], rest[: n_candidates + 1]
    divisors = np.sqrt(rest / (radius**2 - np.arange(n_candidates + 1)))
    # k fits when coordinate k (from 1) lies below -t_k and coordinate k + 1 does not.
    enough = np.append(falling <= divisors[:-1], True)
    return float(divisors[np.argmax(enough)])


def _norm(vector: np.ndarray) -> float:
    return float(np.sqrt(vector @ vector))
