"""What a kernel is: parameters with names, bounds and priors, and values between graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from treelens.array_checks import check_positive
from treelens.patterns.histograms import GraphViews, ViewData

if TYPE_CHECKING:
    from typing_extensions import Self


class Parameter(NamedTuple):
    """One number of a kernel, searched as its logarithm or, of a share, as its logit."""

    name: str
    low: float
    high: float
    is_share: bool = False
    spread: float = 2.0  # standard deviation of the normal prior on the coordinate

    def coordinate(self, value: float) -> float:
        """Return the coordinate in which a value is searched."""
        return float(np.log(value) - np.log1p(-value) if self.is_share else np.log(value))

    def value(self, coordinate: float) -> float:
        """Return the value at a coordinate."""
        return float(1.0 / (1.0 + np.exp(-coordinate)) if self.is_share else np.exp(coordinate))

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest coordinate."""
        return self.coordinate(self.low), self.coordinate(self.high)


_PATH_NODES = 32  # of quadrature, where a kernel does not know better
_STEP = 1e-5  # of differences, in standard deviations of a column


class Kernel(ABC):
    """Similarity of graphs in one view: 1 of a graph with itself.

    A subclass is a frozen dataclass with a float for each of ``PARAMETERS``, in their order. For
    tables of numbers (:class:`treelens.Table`, ``chem.Descriptors``) it can be one of your own: it
    needs :meth:`usual` and :meth:`matrix`, which has to be positive definite. The search takes
    slopes in its parameters from differences, and so do explanations in the numbers unless it has
    :meth:`gradient` and :meth:`slopes_along`. Kernels of counted patterns have closed forms.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> import numpy as np
    >>> import treelens as tl
    >>> from scipy.spatial.distance import cdist
    >>> @dataclass(frozen=True)
    ... class Exponential(tl.Kernel):
    ...     length: float
    ...     PARAMETERS: ClassVar = (tl.Parameter("length", 1e-2, 1e3),)
    ...     @classmethod
    ...     def usual(cls, data):
    ...         return cls(float(np.sqrt(data.shape[1])))
    ...     def matrix(self, left, right, n_jobs=1):
    ...         return np.exp(-cdist(left, right) / self.length)
    >>> Exponential(2.0).matrix(np.zeros((1, 1)), np.array([[2.0]])).round(3).tolist()
    [[0.368]]
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]]

    @classmethod
    @abstractmethod
    def usual(cls, data: Any) -> Self:
        """Return the kernel that a search begins with, which is the middle of the prior."""

    @abstractmethod
    def matrix(self, left: Any, right: Any, n_jobs: int = 1) -> np.ndarray:
        """Return values between two sides of a view, shape (n_left, n_right)."""

    def gradient(self, rows: np.ndarray, right: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return slopes of ``sum over i of coefficients[g, i] k(rows[g], right[i])``.

        There is one for each number of each row: shape (n_rows, n_numbers).
        """
        units = np.eye(rows.shape[1])
        slopes = [self.slopes_along(rows, right, np.tile(unit, (len(rows), 1))) for unit in units]
        return np.stack([(slope * coefficients).sum(axis=1) for slope in slopes], axis=1)

    def slopes_along(
        self, rows: np.ndarray, right: np.ndarray, directions: np.ndarray
    ) -> np.ndarray:
        """Return slopes of ``k(rows[g], right[i])`` where row g moves in its direction.

        Directions are of the shape of ``rows``, slopes of shape (n_rows, n_right). By default they
        are central differences, good to some six digits where the kernel is smooth.
        """
        ahead = self.matrix(rows + _STEP * directions, right)
        behind = self.matrix(rows - _STEP * directions, right)
        slopes: np.ndarray = (ahead - behind) / (2.0 * _STEP)
        return slopes

    def path(
        self, start: np.ndarray, rows: np.ndarray, right: np.ndarray, coefficients: np.ndarray
    ) -> np.ndarray:
        """Return mean gradients on the straight lines from ``start`` to the rows, as ``gradient``.

        Times ``rows - start`` they add up to what the sums change by (integrated gradients).
        """
        found = np.zeros_like(rows)
        for step, weight in self.path_nodes(start, rows):
            found += weight * self.gradient(start + step * (rows - start), right, coefficients)
        return found

    def path_along(
        self, start: np.ndarray, rows: np.ndarray, right: np.ndarray, directions: np.ndarray
    ) -> np.ndarray:
        """Return mean slopes on the straight lines from ``start`` to the rows, per pair."""
        found = np.zeros((len(rows), len(right)))
        for step, weight in self.path_nodes(start, rows):
            here = start + step * (rows - start)
            found += weight * self.slopes_along(here, right, directions)
        return found

    def path_nodes(self, start: np.ndarray, rows: np.ndarray) -> Iterator[tuple[float, float]]:
        """Yield places from 0 to 1 and weights of a quadrature rule (Gauss-Legendre)."""
        return gauss_legendre(_PATH_NODES)

    @property
    def coordinates(self) -> np.ndarray:
        """The parameters as they are searched, shape (n_parameters,)."""
        return np.array([each.coordinate(self.values[each.name]) for each in self.PARAMETERS])

    @property
    def values(self) -> dict[str, float]:
        """The parameters by name."""
        return {each.name: getattr(self, each.name) for each in self.PARAMETERS}

    @classmethod
    def at(cls, coordinates: np.ndarray) -> Self:
        """Return the kernel at some coordinates."""
        pairs = zip(cls.PARAMETERS, coordinates.tolist(), strict=True)
        return cls(**{each.name: each.value(x) for each, x in pairs})


def gauss_legendre(n: int) -> Iterator[tuple[float, float]]:
    """Yield nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return zip((0.5 * (nodes + 1.0)).tolist(), (0.5 * weights).tolist(), strict=True)


@dataclass(frozen=True)
class Term:
    """A kernel on one view, times the variance that the view explains."""

    kernel: Kernel
    amplitude: float

    def validate(self) -> None:
        check_positive(self.amplitude, "amplitude", zero=True)

    def matrix(self, left: ViewData, right: ViewData, n_jobs: int = 1) -> np.ndarray:
        """Return covariances between two sides of the view, shape (n_left, n_right)."""
        values = self.kernel.matrix(left, right, n_jobs)
        values *= self.amplitude
        return values


@dataclass(frozen=True)
class SumKernel:
    """The covariance of a Gaussian process: a sum of terms, one for each view."""

    terms: tuple[Term, ...]

    @property
    def variance(self) -> float:
        """The covariance of any graph with itself."""
        return sum(term.amplitude for term in self.terms)

    def matrix(self, left: GraphViews, right: GraphViews, n_jobs: int = 1) -> np.ndarray:
        """Return covariances between two sides, shape (n_left, n_right)."""
        sides = zip(self.terms, left, right, strict=True)
        first, *others = (term.matrix(a, b, n_jobs) for term, a, b in sides)
        for more in others:
            first += more
        return first
