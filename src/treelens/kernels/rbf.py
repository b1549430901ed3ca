"""The kernel of views that are tables of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from treelens.array_checks import check_positive
from treelens.kernels._compiled import squared_distances
from treelens.kernels.base import Kernel, Parameter, gauss_legendre
from treelens.parallel import run_in_shares

# Nodes of quadrature for paths of length 0, for each length scale more, and at most: up to some 60
# length scales all digits.
_PATH_NODES, _NODES_PER_LENGTH, _MOST_NODES = 8, 2, 128


@dataclass(frozen=True)
class Rbf(Kernel):
    """``exp(-|x - x'|^2 / (2 length^2))``: two rows of numbers are alike where they are near.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> Rbf(length=5.0).matrix(rows, rows).round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]
    """

    length: float

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("length", 1e-2, 1e3),)

    def validate(self) -> None:
        check_positive(self.length, "length")

    @classmethod
    def usual(cls, data: np.ndarray) -> Rbf:
        """Of d standardised numbers: rows differ by some ``sqrt(2 d)``."""
        return cls(float(np.sqrt(2.0 * max(1, data.shape[1]))))

    def matrix(self, left: np.ndarray, right: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        squares = np.empty((len(left), len(right)))
        columns = np.ascontiguousarray(right.T)

        def fill(first: int, last: int) -> None:
            squared_distances(np.ascontiguousarray(left[first:last]), columns, squares[first:last])

        run_in_shares(fill, len(left), n_jobs)
        return self.of_squares(squares, out=squares)

    def gradient(self, rows: np.ndarray, right: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        pulls = self._values(rows, right)
        pulls *= coefficients
        return (pulls @ right - pulls.sum(axis=1)[:, None] * rows) / self.length**2

    def slopes_along(
        self, rows: np.ndarray, right: np.ndarray, directions: np.ndarray
    ) -> np.ndarray:
        ahead = directions @ right.T - np.einsum("gc,gc->g", directions, rows)[:, None]
        ahead *= self._values(rows, right)
        return ahead / self.length**2

    def path_nodes(self, start: np.ndarray, rows: np.ndarray) -> Iterator[tuple[float, float]]:
        longest = float(np.linalg.norm(rows - start, axis=1).max(initial=0.0)) / self.length
        more = min(_NODES_PER_LENGTH * np.ceil(longest), _MOST_NODES - _PATH_NODES)
        return gauss_legendre(_PATH_NODES + int(more))

    def _values(self, rows: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the matrix by a matrix product: faster, and good to some 1e-14."""
        squares = rows @ right.T
        squares *= -2.0
        squares += np.einsum("gc,gc->g", rows, rows)[:, None]
        squares += np.einsum("ic,ic->i", right, right)
        np.maximum(squares, 0.0, out=squares)
        return self.of_squares(squares, out=squares)

    def of_squares(self, squares: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return values from squared distances."""
        out = np.multiply(squares, -0.5 / self.length**2, out=out)
        return np.exp(out, out=out)
