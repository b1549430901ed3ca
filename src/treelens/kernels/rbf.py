"""The kernel of views that are tables of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.spatial import distance

from treelens.array_checks import check_positive
from treelens.kernels.base import Kernel, Parameter


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
        squares = distance.cdist(left, right, "sqeuclidean")
        return self.of_squares(squares, out=squares)

    def of_squares(self, squares: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return values from squared distances."""
        out = np.multiply(squares, -0.5 / self.length**2, out=out)
        return np.exp(out, out=out)
