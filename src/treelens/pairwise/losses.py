"""Smoothed hinges for pairs of graphs, and margins chosen from the training distances.

Two graphs with different labels should be at least ``alpha1`` apart (V1), two with the same label
at most ``alpha2`` (V2). Both hinges are one function of how deep a pair lies on the wrong side of
its margin; smoothing replaces the kink by a parabola of width ``sigma``.

Where all hinges are active the weights can only rise, where none is active they stay at 1: what is
learned depends on where the margins lie among the distances, which varies with the depth and the
data. So the default margins are quantiles of the training distances under uniform weights.
"""

from __future__ import annotations

import numpy as np

from treelens.pairwise import _compiled
from treelens.pairwise._compiled import PairArrays
from treelens.pairwise.objective import N_SHARES, Margins, in_shares, pair_arrays
from treelens.patterns.pairs import PairFeatures

# Nearly all pairs are active, but not all: once different classes are as far apart as the farthest
# tenth of all pairs, or equal ones as near as the nearest tenth, they no longer add to the
# gradient. On molecules and synthetic graphs that lets weights fall as well as rise.
DIFFERENT_QUANTILE = 0.9
SAME_QUANTILE = 0.1
# Width of the smoothing as a share of the interquartile range of the distances.
SIGMA_SHARE = 0.5
_N_BINS = 1 << 14
_MIN_SPREAD = 1e-2  # relative to the largest similarity, where all distances are equal


def smooth_hinge_different(distance: np.ndarray, alpha1: float, sigma: float) -> np.ndarray:
    """Return V1, the smoothed loss of pairs with different labels.

    Examples
    --------
    >>> smooth_hinge_different(np.array([0.5, 2.0, 3.0]), alpha1=3.0, sigma=1.0).tolist()
    [2.0, 0.5, 0.0]
    """
    return _smooth(alpha1 - np.asarray(distance), sigma)


def smooth_hinge_same(distance: np.ndarray, alpha2: float, sigma: float) -> np.ndarray:
    """Return V2, the smoothed loss of pairs with the same label.

    Examples
    --------
    >>> smooth_hinge_same(np.array([1.0, 2.0, 3.5]), alpha2=1.0, sigma=1.0).tolist()
    [0.0, 0.5, 2.0]
    """
    return _smooth(np.asarray(distance) - alpha2, sigma)


def _smooth(inside: np.ndarray, sigma: float) -> np.ndarray:
    """Return the loss of pairs that lie ``inside`` deep on the wrong side of their margin.

    With ``inside`` clipped to [0, sigma] as ``t``, all three pieces are
    ``t (inside - t / 2) / sigma``.
    """
    cut = np.clip(inside, 0.0, sigma)
    return cut * (inside - 0.5 * cut) / sigma


def choose_margins(
    margins: str | tuple[float, float],
    sigma: str | float,
    b: float,
    features: PairFeatures,
    pairs: PairArrays | None = None,
    n_jobs: int = 1,
) -> Margins:
    """Return the margins, with ``"quantile"`` and ``"auto"`` replaced by numbers.

    Those come from the distances ``b - <1, Z>`` of all pairs of ``features``; ``pairs`` are their
    arrays, if at hand.
    """
    if isinstance(margins, str) or isinstance(sigma, str):
        # No pair is more similar than the graph that is most similar to itself.
        largest = float(features.diagonal().max(initial=0.0)) or 1.0
        shares = [SAME_QUANTILE, 0.25, 0.75, DIFFERENT_QUANTILE]
        arrays = pair_arrays(features) if pairs is None else pairs
        near, low, high, far = (b + distance_quantiles(arrays, largest, shares, n_jobs)).tolist()
        margins = (far, near) if isinstance(margins, str) else margins
        if isinstance(sigma, str):
            sigma = SIGMA_SHARE * max(high - low, _MIN_SPREAD * largest)
    return Margins(float(margins[0]), float(margins[1]), float(sigma), b)


def distance_quantiles(
    pairs: PairArrays, largest: float, shares: list[float], n_jobs: int = 1
) -> np.ndarray:
    """Return quantiles of ``-<1, Z>`` over all pairs ``i < j``, from a fine histogram."""
    ones = np.ones(len(pairs.dense_of_pattern))
    counts = np.zeros((N_SHARES, _N_BINS), dtype=np.int64)

    def count(share: int) -> None:
        _compiled.similarity_counts(share, N_SHARES, pairs, ones, largest, counts[share])

    in_shares(count, n_jobs)
    above = np.cumsum(counts.sum(axis=0)[::-1])  # pairs at least so similar, bin by bin
    known = np.concatenate([[0.0], above / max(above[-1], 1)])
    return np.interp(shares, known, np.linspace(-largest, 0.0, _N_BINS + 1))
