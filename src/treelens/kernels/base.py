"""What a kernel is: parameters with names, bounds and priors, and values between graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class Kernel(ABC):
    """Similarity of graphs in one view: 1 of a graph with itself.

    A subclass is a frozen dataclass with a float for each of ``PARAMETERS``, in their order.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]]

    @classmethod
    @abstractmethod
    def usual(cls, data: Any) -> Self:
        """Return the kernel that a search begins with, which is the middle of the prior."""

    @abstractmethod
    def matrix(self, left: Any, right: Any, n_jobs: int = 1) -> np.ndarray:
        """Return values between two sides of a view, shape (n_left, n_right)."""

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
