"""Numbers by rank, on the scale of a normal distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from treelens.array_checks import LARGEST, check_array

_MOST_KNOTS = 200


@dataclass(frozen=True, eq=False)
class NormalScores:
    """A piecewise linear map from numbers to normal scores: of rank k among n, ``k - 1/2 over n``.

    Half of the normal distribution lies below the score of the median, and so on. The map is flat
    beyond the smallest and the largest knot: a value far outside is no stranger than the extreme.

    Examples
    --------
    >>> import numpy as np
    >>> scores = NormalScores.fit(np.array([1.0, 2.0, 3.0, 1000.0]))
    >>> scores.forward(np.array([1.0, 2.5, 1e6])).round(2).tolist()
    [-1.15, 0.0, 1.15]
    """

    values: np.ndarray  # (n_knots,) ascending
    scores: np.ndarray  # (n_knots,) ascending

    def validate(self) -> None:
        n = len(self.values)
        check_array(self.values, "values", np.float64, (n,), -LARGEST, LARGEST)
        check_array(self.scores, "scores", np.float64, (n,), -LARGEST, LARGEST)
        if not n or (np.diff(self.values) <= 0).any() or (np.diff(self.scores) <= 0).any():
            raise ValueError("values and scores must ascend")

    @classmethod
    def fit(cls, numbers: np.ndarray) -> NormalScores:
        """Learn the map from numbers, of which equal ones share the mean of their ranks."""
        values, counts = np.unique(numbers, return_counts=True)
        ranks = (np.cumsum(counts) - 0.5 * counts) / len(numbers)
        if len(values) > _MOST_KNOTS:
            kept = np.linspace(ranks[0], ranks[-1], _MOST_KNOTS)
            values, kept_at = np.unique(np.interp(kept, ranks, values), return_index=True)
            ranks = kept[kept_at]
        return cls(values.astype(np.float64), scipy.special.ndtri(ranks))

    def forward(self, numbers: np.ndarray) -> np.ndarray:
        """Return the scores of numbers; NaN of NaN."""
        return np.interp(numbers, self.values, self.scores)

    def slope(self, numbers: np.ndarray) -> np.ndarray:
        """Return how fast the scores rise at some numbers: 0 beyond the knots."""
        if len(self.values) < 2:
            return np.zeros(np.shape(numbers))
        rises = np.diff(self.scores) / np.diff(self.values)
        place = np.searchsorted(self.values, numbers, side="right") - 1
        inside = (numbers >= self.values[0]) & (numbers <= self.values[-1])
        return np.where(inside, rises[np.clip(place, 0, len(rises) - 1)], 0.0)

    def inverse(self, scores: np.ndarray) -> np.ndarray:
        """Return numbers that have these scores."""
        return np.interp(scores, self.scores, self.values)
