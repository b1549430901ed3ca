"""A kernel of a user's own on a table of numbers, as the search of the evidence sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from treelens.gp.terms import (
    NumbersTerm,
    SearchedTerm,
    TermPairs,
    TermParameters,
    TermSlopes,
)
from treelens.kernels.base import Kernel, Term

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

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

    def pairs(self, n_jobs: int, dtype: DTypeLike = np.float64) -> OwnKernelPairs:
        return OwnKernelPairs(self, n_jobs, dtype)


class OwnKernelPairs(TermPairs):
    """Values among the training graphs; slopes in the parameters are differences.

    ``pull`` is zero below the diagonal, so upper triangles are all that is summed.
    """

    def __init__(self, term: OwnKernelTerm, n_jobs: int, dtype: DTypeLike) -> None:
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
        scales, slopes = parameters.scales, []
        for k, parameter in enumerate(self.term.kernel.PARAMETERS):
            ends = np.tile(scales, (2, 1))  # at a bound one end is the bound itself
            ends[:, k] = np.clip(scales[k] + np.array([-_STEP, _STEP]), *parameter.bounds)
            down, up = map(self._covariances, ends)
            slopes.append(float(np.vdot(up - down, pull)) / float(ends[1, k] - ends[0, k]))
        slopes.append(float(np.vdot(self._covariances(scales), pull)))
        return TermSlopes(np.array(slopes), np.empty(0), np.empty(0))
