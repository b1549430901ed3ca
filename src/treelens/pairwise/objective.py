"""The problem of learning: smoothed hinges over all pairs of graphs, and the constraint set.

Two graphs with different labels should be at least ``alpha1`` apart (V1), two with the same label
at most ``alpha2`` (V2). Both hinges are one function of how deep a pair lies on the wrong side of
its margin; smoothing replaces the kink by a parabola of width ``sigma``.

Where all hinges are active the weights can only rise, where none is active they stay at 1: what is
learned depends on where the margins lie among the distances, which varies with the depth and the
data. So the default margins are quantiles of the training distances under uniform weights.

Pairs are visited in blocks of rows, so nothing of size n² is ever stored.

The constraint set of the weights is, per depth, a ball around 1, intersected with ``w >= 0``, which
keeps the kernel positive semi-definite. There are its exact projection and the exact minimiser of a
linear function, which the solvers' certificate needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from treelens.kernels import _compiled
from treelens.kernels.gram import N_SHARES, PairLists
from treelens.pairwise import _compiled_pairs
from treelens.parallel import in_threads
from treelens.patterns.histograms import PairFeatures

# Nearly all pairs are active, but not all: once different classes are as far apart as the farthest
# tenth of all pairs, or equal ones as near as the nearest tenth, they no longer add to the
# gradient. On molecules and synthetic graphs that lets weights fall as well as rise.
DIFFERENT_QUANTILE = 0.9
SAME_QUANTILE = 0.1
# Width of the smoothing as a share of the interquartile range of the distances.
SIGMA_SHARE = 0.5
_N_BINS = 1 << 14
_MIN_SPREAD = 1e-2  # relative to the largest similarity, where all distances are equal
_MIN_CURVATURE = 1e-3
_BLOCK = 1 << 16  # pairs that are worked on at a time


@dataclass(frozen=True)
class Margins:
    """Where the hinges bend."""

    alpha1: float  # graphs with different labels should be at least this far apart
    alpha2: float  # graphs with the same label should be at most this far apart
    sigma: float  # width over which a hinge goes from slope 0 to slope 1
    b: float = 1.0  # the distance is b - <W, Z>


def smooth_hinge_same(distance: ArrayLike, alpha2: float, sigma: float) -> np.ndarray:
    """Return V2, the smoothed loss of pairs with the same label."""
    # With `inside` clipped to [0, sigma] as `t`, all three pieces are `t (inside - t / 2) / sigma`.
    inside = np.asarray(distance) - alpha2  # how deep on the wrong side of the margin
    cut = np.clip(inside, 0.0, sigma)
    return cut * (inside - 0.5 * cut) / sigma


def smooth_hinge_different(distance: ArrayLike, alpha1: float, sigma: float) -> np.ndarray:
    """Return V1, the smoothed loss of pairs with different labels."""
    return smooth_hinge_same(-np.asarray(distance), -alpha1, sigma)


@dataclass(frozen=True)
class AllPairsObjective:
    """The mean loss over all ordered pairs of graphs, a graph with itself included."""

    features: PairFeatures
    codes: np.ndarray  # (n_graphs,) class of each graph, numbered from 0
    margins: Margins
    balance: bool
    n_jobs: int = 1

    @cached_property
    def _lists(self) -> PairLists:
        return PairLists.of(self.features, self.features)

    def value(self, weights: np.ndarray) -> float:
        return self.value_and_gradient(weights)[0]

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient, shape (n_patterns,)."""
        features, margins, lists = self.features, self.margins, self._lists
        losses = np.zeros((N_SHARES, features.n_graphs))
        gradients = np.zeros((N_SHARES, features.n_patterns))
        heads = [lists.heads() for _ in range(N_SHARES)]
        lanes = np.empty((N_SHARES, 2, _compiled.LANES))
        kinds = pair_weights(self.codes, self.balance)

        def work(share: int, first: int, sums: np.ndarray) -> None:
            _compiled_pairs.slopes_of_rows(
                first,
                sums,
                features.scale,
                self.codes,
                margins.b,
                margins.alpha1,
                margins.alpha2,
                margins.sigma,
                *kinds,
                losses[share],
            )
            _compiled.gather_rows(
                first,
                first + len(sums),
                1,
                first,
                sums,
                *lists,
                heads[share],
                lanes[share],
                gradients[share],
            )

        over_blocks(features, weights, work, self.n_jobs)
        return float(losses.sum()), gradients.sum(axis=0)


def over_blocks(
    features: PairFeatures,
    weights: np.ndarray,
    work: Callable[[int, int, np.ndarray], None],
    n_jobs: int,
) -> None:
    """Run ``work(share, first, sums)`` on blocks of rows of ``<W, Z>``, share by share."""
    # `sums` (n_rows, n_graphs) are those of the graphs from `first` on; only columns from the
    # diagonal on are filled.
    lists, n = PairLists.of(features, features, weights), features.n_graphs
    size = max(1, _BLOCK // n)

    def run(share: int) -> None:
        head, room = lists.heads(), np.empty((size, n))
        for first in range(share * size, n, N_SHARES * size):
            last = min(first + size, n)
            sums = room[: last - first]
            _compiled.sum_rows(
                first,
                last,
                1,
                first,
                True,
                *lists,
                features.scale,
                features.scale,
                head,
                sums,
                np.nan,
            )
            work(share, first, sums)

    in_threads(run, range(N_SHARES), n_jobs)


def choose_margins(
    features: PairFeatures,
    margins: str | Sequence[float],
    sigma: str | float,
    b: float,
    n_jobs: int = 1,
) -> Margins:
    """Return the margins, ``"quantile"`` and ``"auto"`` replaced by numbers from all distances."""
    if isinstance(margins, str) or isinstance(sigma, str):
        # No pair is more similar than the graph that is most similar to itself.
        largest = float(features.diagonal().max(initial=0.0)) or 1.0
        shares = [SAME_QUANTILE, 0.25, 0.75, DIFFERENT_QUANTILE]
        quantiles = b + distance_quantiles(features, largest, shares, n_jobs)
        near, low, high, far = quantiles.tolist()
        margins = (far, near) if isinstance(margins, str) else margins
        if isinstance(sigma, str):
            sigma = SIGMA_SHARE * max(high - low, _MIN_SPREAD * largest)
    return Margins(float(margins[0]), float(margins[1]), float(sigma), b)


def distance_quantiles(
    features: PairFeatures, largest: float, shares: list[float], n_jobs: int = 1
) -> np.ndarray:
    """Return quantiles of ``-<1, Z>`` over all pairs ``i < j``, from a fine histogram."""
    counts = np.zeros((N_SHARES, _N_BINS), dtype=np.int64)

    def count(share: int, first: int, sums: np.ndarray) -> None:
        above = np.concatenate([row[k:] for k, row in enumerate(sums, first + 1)])
        bins = np.minimum(above * (_N_BINS / largest), _N_BINS - 1).astype(np.int64)
        counts[share] += np.bincount(bins, minlength=_N_BINS)

    over_blocks(features, np.ones(features.n_patterns), count, n_jobs)
    above = np.cumsum(counts.sum(axis=0)[::-1])  # pairs at least so similar, bin by bin
    known = np.concatenate([[0.0], above / max(above[-1], 1)])
    return np.interp(shares, known, np.linspace(-largest, 0.0, _N_BINS + 1))


def pair_weights(codes: np.ndarray, balance: bool) -> tuple[float, float]:
    """Return the weight of an unordered pair with different and with the same label."""
    # It stands for two ordered pairs; the weights of all n² ordered pairs sum to 1. Balanced,
    # either kind has the total weight 1/2.
    n_pairs = float(len(codes)) ** 2
    n_same = float((np.bincount(codes).astype(float) ** 2).sum())
    if not balance:
        return 2.0 / n_pairs, 2.0 / n_pairs
    return 1.0 / (n_pairs - n_same), 1.0 / n_same


def own_features(features: PairFeatures) -> sparse.csr_array:
    """Return ``Z(i, i)`` of every graph, shape (n_graphs, n_patterns)."""
    table = features.rows.to_sparse(features.n_patterns)
    values = table.data if features.minimum else table.data**2
    table.data = values * np.repeat(features.scale**2, np.diff(table.indptr))
    return table


def largest_pair_norm(features: PairFeatures) -> float:
    """Return ``max ||Z(i, j)||_2`` over all pairs, the Lipschitz constant of the loss."""
    # It is reached on the diagonal: `combine(a, b)² <= combine(a, a) combine(b, b)` for the
    # minimum and for the product, and then Cauchy-Schwarz.
    return float(np.sqrt(own_features(features).power(2).sum(axis=1)).max(initial=0.0))


def curvature_guess(features: PairFeatures) -> np.ndarray:
    """Return the mean of ``Z(i, i)`` relative to its largest entry, shape (n_patterns,)."""
    # It varies over the patterns much as the objective's curvature does, and so preconditions it.
    sums = own_features(features).sum(axis=0)
    return np.maximum(sums / max(sums.max(initial=0.0), np.finfo(float).tiny), _MIN_CURVATURE)


# --- the constraint set -------------------------------------------------------------------------

CENTER = 1.0
# A norm this little above the radius counts as on the sphere, so that projecting twice is
# projecting once although norms are rounded. A wider margin would stop the solvers early: from a
# point outside the set no step into it descends.
_ON_SPHERE = 1.0 + 1e-14
_MAX_ROUNDS = 200
_FLAT = 1e-150  # slopes so much flatter than the steepest count as zero: their squares would vanish


@dataclass(frozen=True)
class BallConstraint:
    """Per depth a ball around 1, intersected with the non-negative orthant."""

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
    """Return the nearest point with ``||w - 1|| <= radius`` and ``w >= 0``."""
    return project_ball_in(np.ones_like(weights), weights, radius)


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
    return np.maximum(CENTER + bent / both if multiplier else weights, 0.0)


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
    """Return the ``t > 0`` with ``||max(-1, shift / t)|| == radius``."""
    # With the `k` most negative coordinates at -1, `t_k² = (sum of the other squares) /
    # (radius² - k)`; the right `k` is the one for which exactly those coordinates are below -t.
    if radius <= CENTER:  # one coordinate alone fills the ball before it reaches -1
        return float(np.linalg.norm(shift)) / radius
    rising = np.maximum(shift, 0.0)
    falling = np.sort(-shift[shift < 0])  # summed from the smallest up: nothing cancels
    rest = float(rising @ rising) + np.concatenate([[0.0], np.cumsum(falling**2)])[::-1]
    n_candidates = int(min(len(falling), np.ceil(radius**2 - 1)))
    falling, rest = falling[::-1][:n_candidates], rest[: n_candidates + 1]
    divisors = np.sqrt(rest / (radius**2 - np.arange(n_candidates + 1)))
    # k fits when coordinate k (from 1) lies below -t_k and coordinate k + 1 does not.
    enough = np.append(falling <= divisors[:-1], True)
    return float(divisors[np.argmax(enough)])
