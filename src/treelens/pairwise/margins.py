"""Margins and pairs taken from the training graphs themselves.

Where all hinges are active the weights can only rise, where none is they stay: what is learned
depends on where the margins lie among the distances, and that moves with the depth and the data. So
the default margins are quantiles of the training distances under uniform weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelens.pairwise import _compiled, _compiled_pairs
from treelens.pairwise._compiled import PairArrays
from treelens.pairwise.objective import N_SHARES, Margins, in_shares
from treelens.patterns.pairs import PairFeatures

# Nearly all pairs take part, but not all: once different classes are as far apart as the farthest
# tenth of all pairs, or equal ones as near as the nearest tenth, they push no longer. On molecules
# and made graphs that lets weights fall as well as rise.
DIFFERENT_QUANTILE = 0.9
SAME_QUANTILE = 0.1
# The hinges bend over this share of the interquartile range of the distances.
SIGMA_SHARE = 0.5
_N_BINS = 1 << 14
_LEAST_SPREAD = 1e-2  # relative to the largest similarity, where all distances are equal


@dataclass(frozen=True)
class DistanceQuantiles:
    """Quantiles of the distances ``b - <1, Z>`` of some pairs.

    Attributes
    ----------
    shares, distances : ndarray, shape (n_knots,)
        This share of the pairs is nearer than that distance; both ascending.
    largest : float
        The largest similarity there can be.
    """

    shares: np.ndarray
    distances: np.ndarray
    largest: float

    @classmethod
    def of_all_pairs(
        cls, features: PairFeatures, pairs: PairArrays, b: float, n_jobs: int
    ) -> DistanceQuantiles:
        """Of all pairs ``i < j``, from a fine histogram of their similarities."""
        largest = _largest_similarity(features)
        ones = np.ones(features.n_patterns)
        counts = np.zeros((N_SHARES, _N_BINS), dtype=np.int64)

        def count(share: int) -> float:
            _compiled.similarity_counts(share, N_SHARES, pairs, ones, largest, counts[share])
            return 0.0

        in_shares(count, n_jobs)
        above = np.cumsum(counts.sum(axis=0)[::-1])  # pairs at least so similar, bin by bin
        distances = b - np.linspace(largest, 0.0, _N_BINS + 1)
        return cls(np.concatenate([[0.0], above / max(above[-1], 1)]), distances, largest)

    @classmethod
    def of_listed_pairs(
        cls, features: PairFeatures, pairs: PairArrays, b: float, first: np.ndarray,
        second: np.ndarray,
    ) -> DistanceQuantiles:  # fmt: skip
        """Of the listed pairs, exactly."""
        similarities = np.empty(len(first))
        ones = np.ones(features.n_patterns)
        _compiled_pairs.listed_similarities(pairs, first, second, ones, similarities)
        distances = b - np.sort(similarities)[::-1]
        return cls(np.linspace(0.0, 1.0, len(first)), distances, _largest_similarity(features))

    def __call__(self, share: float) -> float:
        """The distance below which this share of the pairs lies."""
        return float(np.interp(share, self.shares, self.distances))

    @property
    def spread(self) -> float:
        """Interquartile range, never zero."""
        return max(self(0.75) - self(0.25), _LEAST_SPREAD * self.largest)


def _largest_similarity(features: PairFeatures) -> float:
    """No pair is more similar than the graph that is most similar to itself."""
    largest = float(features.diagonal().max(initial=0.0))
    return largest if largest > 0 else 1.0


def choose_margins(
    margins: str | tuple[float, float],
    sigma: str | float,
    b: float,
    quantiles: DistanceQuantiles | None,
) -> Margins:
    """Fill in what was left to the data; ``quantiles`` may be None if nothing was."""
    if isinstance(margins, str):
        assert quantiles is not None
        alpha1, alpha2 = quantiles(DIFFERENT_QUANTILE), quantiles(SAME_QUANTILE)
    else:
        alpha1, alpha2 = float(margins[0]), float(margins[1])
    if isinstance(sigma, str):
        assert quantiles is not None
        sigma = SIGMA_SHARE * quantiles.spread
    return Margins(alpha1, alpha2, float(sigma), b)


def local_pairs(
    pairs: PairArrays, codes: np.ndarray, n_neighbors: int, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Every graph with its nearest graphs of the same and of other classes, uniform weights.

    Returns
    -------
    first, second : ndarray of int32, shape (n_pairs,)
        At most ``2 * n_neighbors * n_graphs`` pairs.
    """
    n_graphs = len(codes)
    nearest = np.empty((2, n_graphs, n_neighbors), dtype=np.int32)
    ones = np.ones(len(pairs.dense_of_pattern))

    def search(share: int) -> float:
        _compiled.nearest_graphs(share, N_SHARES, pairs, codes, ones, nearest[0], nearest[1])
        return 0.0

    in_shares(search, n_jobs)
    first = np.broadcast_to(np.arange(n_graphs, dtype=np.int32)[:, None], nearest.shape)
    found = nearest >= 0
    return first[found], nearest[found]


def listed_weights(same: np.ndarray, balance: bool) -> np.ndarray:
    """Weights of listed pairs, sum 1; balanced, either kind sums to 1/2."""
    n_same = int(same.sum())
    if not balance or n_same in (0, len(same)):
        return np.full(len(same), 1.0 / len(same))
    return np.where(same, 0.5 / n_same, 0.5 / (len(same) - n_same))
