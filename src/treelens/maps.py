"""Increasing maps between the units of targets and the scale on which numbers are learned.

A Gaussian process takes its noise to be the same everywhere. Targets with a long tail or with
bounds, such as percentages, are nearer to that on another scale. Predictions go back through the
inverse map: intervals are those of quantiles, so they need not be symmetric and stay within bounds,
and means and variances are integrals over the predictive distribution.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from treelens.array_checks import LARGEST, check_array
from treelens.errors import GraphDataError

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_HERMITE_TERMS = 16  # of the series of a covariance
_N_KNOTS = 17
_SMALLEST_GAP = 0.02  # of neighbouring knots, as a share of the middle 90 % of the values
_FEWEST_BEYOND = 2  # values beyond the outer knots, which rank alone would place
_SOFTENING = 0.005  # of logits at the bounds, as a share of the range


class TargetMap(ABC):
    """An increasing map from the units of the targets to the scale that is learned.

    It increases, so that lower limits stay lower limits.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What the scale is called."""

    @property
    def in_words(self) -> str:
        """What values on the scale are called."""
        return {"logit": "log odds", "normal_scores": "normal scores"}.get(self.name, self.name)

    @abstractmethod
    def forward(self, values: np.ndarray) -> np.ndarray:
        """Return values on the scale that is learned."""

    @abstractmethod
    def inverse(self, values: np.ndarray) -> np.ndarray:
        """Return values in the units of the targets: of a prediction, its median."""

    @abstractmethod
    def slope(self, values: np.ndarray) -> np.ndarray:
        """Return the derivative of :meth:`forward`, at values in the units of the targets."""

    def allows(self, values: np.ndarray) -> np.ndarray:
        """Return which values, in the units of the targets, have a place on the scale."""
        finite: np.ndarray = np.isfinite(values)
        return finite

    @property
    def needs(self) -> str:
        """What values have to be like, in words."""
        return "finite values"

    def inverse_mean(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return means in the units of the targets, of normal variables on the scale."""
        return self._at_nodes(mean, std) @ _NODE_WEIGHTS

    def inverse_std(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return standard deviations in the units of the targets, of normal variables."""
        values = self._at_nodes(mean, std)
        values -= (values @ _NODE_WEIGHTS)[:, None]
        return np.sqrt(values**2 @ _NODE_WEIGHTS)

    def inverse_cov(self, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Return covariances in the units of the targets, of jointly normal variables.

        With Hermite coefficients ``c_ik = E[inverse(mean_i + std_i x) He_k(x)]``, the covariance is
        the sum over k of ``c_ik c_jk correlation_ij^k / k!`` (Mehler's formula).
        """
        std = np.sqrt(np.diagonal(cov))
        correlation = cov / np.maximum(np.outer(std, std), np.finfo(float).tiny)
        values = self._at_nodes(mean, std)  # (n, n_nodes)
        found = np.zeros_like(cov)
        for k in range(1, _HERMITE_TERMS + 1):
            own = values @ (_NODE_WEIGHTS * scipy.special.eval_hermitenorm(k, _NODES))
            found += np.outer(own, own) * correlation**k / math.factorial(k)
        np.fill_diagonal(found, self.inverse_std(mean, std) ** 2)
        return found

    def _at_nodes(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        return self.inverse(mean[:, None] + std[:, None] * _NODES)  # (n, n_nodes)

    def forward_std(self, values: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return small standard deviations of values in the units of the targets, on the scale."""
        found: np.ndarray = std * self.slope(values)
        return found

    def checked(self, values: np.ndarray, place: Callable[[int], str]) -> np.ndarray:
        """Return numbers on the scale, or raise an error that names the first without a place."""
        wrong = np.flatnonzero(~(np.isnan(values) | self.allows(values)))
        if len(wrong):
            first = int(wrong[0])
            raise GraphDataError(
                f"transform={self.name!r} needs {self.needs}, but {place(first)} is "
                f"{values[first]:g} ({len(wrong)} such values). Correct them, or leave it out."
            )
        return self.forward(values)


@dataclass(frozen=True)
class Logarithm(TargetMap):
    """Logarithms, of values above 0.

    Examples
    --------
    >>> scale = Logarithm("log10")
    >>> scale.forward(np.array([1.0, 1000.0])).round(6).tolist()
    [0.0, 3.0]
    """

    kind: str  # "log10" or "ln"

    BASES: ClassVar[dict[str, float]] = {"log10": 10.0, "ln": math.e}

    def validate(self) -> None:
        if self.kind not in self.BASES:
            raise ValueError(f"a logarithm is one of {', '.join(self.BASES)}")

    @property
    def name(self) -> str:
        return self.kind

    @property
    def _unit(self) -> float:
        return math.log(self.BASES[self.name])

    def forward(self, values: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.log10(values) if self.name == "log10" else np.log(values)
        return found

    def inverse(self, values: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.power(self.BASES[self.name], values)
        return found

    def slope(self, values: np.ndarray) -> np.ndarray:
        return 1.0 / (values * self._unit)

    def allows(self, values: np.ndarray) -> np.ndarray:
        positive: np.ndarray = (values > 0) & np.isfinite(values)
        return positive

    @property
    def needs(self) -> str:
        return "values above 0"

    # Log-normal variables have closed forms, which are exact however wide they are.

    def inverse_mean(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        return np.exp(mean * self._unit + (std * self._unit) ** 2 / 2)

    def inverse_std(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        return self.inverse_mean(mean, std) * np.sqrt(np.expm1((std * self._unit) ** 2))

    def inverse_cov(self, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        expected = self.inverse_mean(mean, np.sqrt(np.diagonal(cov)))
        return np.outer(expected, expected) * np.expm1(cov * self._unit**2)


@dataclass(frozen=True)
class Logit(TargetMap):
    """Log odds of values between two bounds, such as percentages; the bounds have a place, too.

    Examples
    --------
    >>> scale = Logit(0.0, 100.0)
    >>> scale.inverse(scale.forward(np.array([0.0, 50.0, 99.9]))).round(6).tolist()
    [0.0, 50.0, 99.9]
    >>> scale.inverse(np.array([-50.0, 50.0])).tolist()
    [0.0, 100.0]
    """

    low: float
    high: float

    @property
    def name(self) -> str:
        return "logit"

    def validate(self) -> None:
        if not -LARGEST <= self.low < self.high <= LARGEST:
            raise ValueError("the bounds of a logit must be finite, the lower one first")

    @property
    def _margin(self) -> float:
        return _SOFTENING * (self.high - self.low)

    def forward(self, values: np.ndarray) -> np.ndarray:
        return np.log((values - self.low + self._margin) / (self.high - values + self._margin))

    def inverse(self, values: np.ndarray) -> np.ndarray:
        width = self.high - self.low + 2.0 * self._margin
        found = self.low - self._margin + width * scipy.special.expit(values)
        within: np.ndarray = np.clip(found, self.low, self.high)
        return within

    def slope(self, values: np.ndarray) -> np.ndarray:
        below, above = values - self.low + self._margin, self.high - values + self._margin
        return 1.0 / below + 1.0 / above

    def allows(self, values: np.ndarray) -> np.ndarray:
        return (values >= self.low) & (values <= self.high)

    @property
    def needs(self) -> str:
        return f"values from {self.low:g} to {self.high:g}"


@dataclass(frozen=True, eq=False)
class SmoothScores(TargetMap):
    """Smoothed normal scores by rank: piecewise linear between knots, and linear beyond them.

    Examples
    --------
    >>> values = np.exp(np.linspace(-3.0, 3.0, 200))
    >>> scale = SmoothScores.fit(values)
    >>> bool(abs(scale.forward(np.array([1.0]))[0]) < 0.1)
    True
    >>> scale.inverse(scale.forward(values)).round(6).tolist() == values.round(6).tolist()
    True
    """

    values: np.ndarray  # (n_knots,) ascending, in the units of the targets
    scores: np.ndarray  # (n_knots,) ascending
    low: float = -LARGEST  # no prediction is below
    high: float = LARGEST

    @property
    def name(self) -> str:
        return "normal_scores"

    def validate(self) -> None:
        n = len(self.values)
        check_array(self.values, "values", np.float64, (n,), -LARGEST, LARGEST)
        check_array(self.scores, "scores", np.float64, (n,), -LARGEST, LARGEST)
        if n < 2 or (np.diff(self.values) <= 0).any() or (np.diff(self.scores) <= 0).any():
            raise ValueError("values and scores must ascend, two or more of them")

    @classmethod
    def fit(
        cls, numbers: np.ndarray, low: float = -LARGEST, high: float = LARGEST
    ) -> SmoothScores | None:
        """Learn knots from numbers; None where these have too few different values for two."""
        values, counts = np.unique(numbers, return_counts=True)
        n = len(numbers)
        ranks = np.cumsum(counts) - 0.5 * counts  # equal ones share a rank
        scores = scipy.special.ndtri(ranks / n)
        if len(values) < 2:
            return None
        outer = scipy.special.ndtri(1.0 - _FEWEST_BEYOND / max(n, 2 * _FEWEST_BEYOND + 1))
        knots = np.linspace(max(scores[0], -outer), min(scores[-1], outer), _N_KNOTS)
        smooth = _smoothed(values, scores, counts, knots)
        middle = np.quantile(numbers, 0.95) - np.quantile(numbers, 0.05)
        kept = _apart(smooth, _SMALLEST_GAP * (middle if middle > 0 else np.ptp(numbers)))
        return cls(smooth[kept], knots[kept], low, high) if len(kept) > 1 else None

    def forward(self, values: np.ndarray) -> np.ndarray:
        return _extended(values, self.values, self.scores)

    def inverse(self, values: np.ndarray) -> np.ndarray:
        found = _extended(values, self.scores, self.values)
        within: np.ndarray = np.clip(found, self.low, self.high)
        return within

    def slope(self, values: np.ndarray) -> np.ndarray:
        slopes = np.diff(self.scores) / np.diff(self.values)
        return slopes[np.searchsorted(self.values[1:-1], values, side="right")]


def _smoothed(
    values: np.ndarray, scores: np.ndarray, counts: np.ndarray, knots: np.ndarray
) -> np.ndarray:
    """Return a local line through values over scores at each knot, which ascends with them."""
    width = knots[1] - knots[0]
    found = np.interp(knots, scores, values)  # where a knot has no two values around it
    for k, knot in enumerate(knots):
        weights = counts * np.maximum(1.0 - np.abs(scores - knot) / width, 0.0)
        if np.count_nonzero(weights) > 2:
            middle = np.average(scores, weights=weights)
            spread = np.average((scores - middle) ** 2, weights=weights)
            mean = np.average(values, weights=weights)
            steep = np.average((scores - middle) * (values - mean), weights=weights)
            found[k] = mean + (knot - middle) * steep / max(spread, 1e-12)
    return np.maximum.accumulate(found)


def _apart(values: np.ndarray, gap: float) -> list[int]:
    """Return positions of ascending values, each above the one before by more than a gap."""
    kept = [0]
    for k in range(1, len(values)):
        if values[k] > values[kept[-1]] + gap:
            kept.append(k)
    return kept


def _extended(at: np.ndarray, knots: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Interpolate linearly, and go on beyond the outer knots with the slopes there."""
    slopes = np.diff(heights) / np.diff(knots)
    below, above = np.minimum(at - knots[0], 0.0), np.maximum(at - knots[-1], 0.0)
    found: np.ndarray = np.interp(at, knots, heights) + slopes[0] * below + slopes[-1] * above
    return found


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
        found: np.ndarray = np.interp(numbers, self.values, self.scores)
        return found

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
        found: np.ndarray = np.interp(scores, self.scores, self.values)
        return found
