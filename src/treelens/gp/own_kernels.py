"""A kernel of a user's own on a table of numbers, as the search of the evidence sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from treelens.gp.terms import (
    NumbersTerm,
    SearchedTerm,
    TermPairs,
    TermParameters,
    TermSlopes,
)
from treelens.kernels.base import Kernel, Term

_STEP = 1e-4  # in a coordinate, of the differences that slopes are taken from


@dataclass(frozen=True, eq=False)
class OwnKernelTerm(SearchedTerm):
    """Rows of standardised numbers under any kernel that has a matrix."""

    numbers: np.ndarray  # (n_graphs, n_numbers)
    kernel: type[Kernel]

    AMPLITUDE: ClassVar = NumbersTerm.AMPLITUDE
    USUAL_AMPLITUDE: ClassVar = NumbersTerm.USUAL_AMPLITUDE

    @property
    def KERNEL(self) -> type[Kernel]:  # type: ignore[override]
        return self.kernel

    @property
    def usual_kernel(self) -> Kernel:
        return self.kernel.usual(self.numbers)

    @property
    def n_graphs(self) -> int:
        return len(self.numbers)

    def pairs(self, n_jobs: int, dtype: Any = np.float64) -> OwnKernelPairs:
        return OwnKernelPairs(self, n_jobs, dtype)


class OwnKernelPairs(TermPairs):
    """Values among the training graphs; slopes in the parameters are central differences."""

    def __init__(self, term: OwnKernelTerm, n_jobs: int, dtype: Any) -> None:
        self.term, self.n_jobs, self.dtype = term, n_jobs, dtype

    def _covariances(self, scales: np.ndarray) -> np.ndarray:
        """Return the upper triangle of covariances, (n_graphs, n_graphs)."""
        numbers = self.term.numbers
        found: Term = self.term.term(TermParameters(scales, np.empty(0), np.empty(0)))
        return np.triu(found.matrix(numbers, numbers, self.n_jobs).astype(self.dtype))

    def add_to(self, matrix: np.ndarray, parameters: TermParameters, learned: str) -> None:
        matrix += self._covariances(parameters.scales)

    def slopes(
        self, parameters: TermParameters, pull: np.ndarray, learned: str, overwrite: bool
    ) -> TermSlopes:
        slopes = []
        for k in range(len(parameters.scales) - 1):
            step = _STEP * (np.arange(len(parameters.scales)) == k)
            up, down = (self._covariances(parameters.scales + s * step) for s in (1.0, -1.0))
            slopes.append(float(np.vdot(up - down, pull)) / (2.0 * _STEP))
        slopes.append(float(np.vdot(self._covariances(parameters.scales), pull)))
        return TermSlopes(np.array(slopes), np.empty(0), np.empty(0))
