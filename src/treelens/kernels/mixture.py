"""A mixture of Tanimoto similarity and L1 distance: the kernel of views that count patterns.

``k = share exp(-gamma (1 - T)) + (1 - share) exp(-rho D)``, with ``T`` the weighted Tanimoto
similarity of pattern counts and ``D`` their weighted L1 distance. Both parts are positive
semidefinite: ``T`` is, hence ``exp(gamma T)``, and ``D`` is an L1 distance.

With ``S`` the weighted sum of minima of two graphs, and ``a`` and ``b`` those of each with itself,
``T = S / (a + b - S)`` and ``D = a + b - 2 S``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from treelens.array_checks import check_positive
from treelens.kernels.base import Kernel, Parameter
from treelens.kernels.gram import pair_sums
from treelens.parallel import in_threads
from treelens.patterns.histograms import Features

CACHED_NUMBERS = 32_768  # of kernel values that are computed at a time, so that they stay cached
_FASTEST_DECAY = 1e6  # beyond, rounding of the sums would decide; learned ones are far smaller


@dataclass(frozen=True)
class TanimotoL1(Kernel):
    """``share exp(-gamma (1 - T)) + (1 - share) exp(-rho D)`` of weighted counts of patterns."""

    gamma: float  # inverse length scale of the Tanimoto part
    rho: float  # inverse length scale of the L1 part
    share: float  # of the Tanimoto part, from 0 to 1

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("gamma", 1e-2, 1e2),
        Parameter("rho", 1e-5, 1e2),
        Parameter("share", 1.0 / (1.0 + np.exp(6.0)), 1.0 / (1.0 + np.exp(-6.0)), is_share=True),
    )

    def validate(self) -> None:
        for name, most in (("gamma", _FASTEST_DECAY), ("rho", _FASTEST_DECAY), ("share", 1.0)):
            check_positive(getattr(self, name), name, most, zero=True)

    @classmethod
    def usual(cls, data: Features) -> TanimotoL1:
        """With scales at which neither part is flat."""
        return cls(2.0, 1.0 / (float(np.mean(data.diagonal)) or 1.0), 0.5)

    def matrix(self, left: Features, right: Features, n_jobs: int = 1) -> np.ndarray:
        other = None if left is right else right.pairs  # among themselves: half the work
        sums = pair_sums(left.pairs, other, left.weights, n_jobs=n_jobs)
        return self.of_sums(sums, left.diagonal, right.diagonal, n_jobs)

    def of_sums(
        self,
        sums: np.ndarray,
        left_diagonal: np.ndarray,
        right_diagonal: np.ndarray,
        n_jobs: int = 1,
    ) -> np.ndarray:
        """Overwrite sums of minima (n_left, n_right) with kernel values."""

        def fill(rows: slice) -> None:
            block = MixtureBlock.of(self, sums[rows], left_diagonal[rows], right_diagonal)
            block.values(self, 1.0, out=sums[rows])

        in_threads(fill, row_blocks(*sums.shape), n_jobs)
        return sums


def row_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Return blocks of rows that are small enough to stay in the cache."""
    step = max(1, CACHED_NUMBERS // max(n_columns, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


class MixtureBlock(NamedTuple):
    """What the kernel values of some pairs are made of, arrays of one shape."""

    union: np.ndarray  # left + right - sums, or one where both graphs are empty
    tanimoto: np.ndarray
    minus_distance: np.ndarray
    tanimoto_part: np.ndarray  # exp(-gamma (1 - tanimoto))
    l1_part: np.ndarray  # exp(-rho distance)
    covariances: np.ndarray  # room for the result
    scratch: np.ndarray

    @classmethod
    def of(
        cls,
        kernel: TanimotoL1,
        sums: np.ndarray,
        left: np.ndarray,
        right: np.ndarray,
        block: MixtureBlock | None = None,
    ) -> MixtureBlock:
        """Compute the parts of ``sums`` (n_left, n_right), in the place of another block's."""
        # One array for all: the allocator would return several large ones to the system each time.
        block = block or cls(*np.empty((len(cls._fields), *sums.shape), sums.dtype))
        union, tanimoto, minus_distance, tanimoto_part, l1_part, _, _ = block
        np.add(left[:, None], right, out=union)
        union -= sums
        np.subtract(sums, union, out=minus_distance)
        np.minimum(minus_distance, 0.0, out=minus_distance)
        empty = None if left.min() > 0.0 else union <= 0.0
        if empty is not None:
            union[empty] = 1.0
        np.divide(sums, union, out=tanimoto)
        if empty is not None:  # two graphs without any pattern are the same graph
            tanimoto[empty] = 1.0
        np.subtract(tanimoto, 1.0, out=tanimoto_part)
        tanimoto_part *= kernel.gamma
        np.exp(tanimoto_part, out=tanimoto_part)
        np.multiply(minus_distance, kernel.rho, out=l1_part)
        np.exp(l1_part, out=l1_part)
        return block

    def values(
        self, kernel: TanimotoL1, amplitude: float, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return ``amplitude`` times the kernel."""
        out = self.covariances if out is None else out
        np.multiply(self.tanimoto_part, amplitude * kernel.share, out=out)
        np.multiply(self.l1_part, amplitude * (1.0 - kernel.share), out=self.scratch)
        out += self.scratch
        return out

    def slopes(self, kernel: TanimotoL1, amplitude: float, pull: np.ndarray) -> MixtureSlopes:
        """Return slopes from those in the covariances, ``pull``; the parts are used up."""
        tanimoto_part, l1_part = self.tanimoto_part, self.l1_part
        tanimoto_part *= pull
        l1_part *= pull
        by_tanimoto, by_l1 = float(tanimoto_part.sum()), float(l1_part.sum())
        similarity = float(np.vdot(tanimoto_part, self.tanimoto))
        distance = -float(np.vdot(l1_part, self.minus_distance))
        totals = amplitude * np.array(
            [
                kernel.share * kernel.gamma * (similarity - by_tanimoto),
                -(1.0 - kernel.share) * kernel.rho * distance,
                kernel.share * (1.0 - kernel.share) * (by_tanimoto - by_l1),
                kernel.share * by_tanimoto + (1.0 - kernel.share) * by_l1,
            ]
        )
        return MixtureSlopes(totals[:3], totals[3])

    def sum_slopes(
        self, kernel: TanimotoL1, amplitude: float, out: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fill ``out`` with slopes in the sums of pairs, after :meth:`slopes`.

        Returned are those in the sums with themselves of the left and of the right graphs.
        """
        tanimoto, by_union, by_distance = self.tanimoto, self.tanimoto_part, self.l1_part
        by_union *= amplitude * kernel.share * kernel.gamma
        by_distance *= amplitude * (1.0 - kernel.share) * kernel.rho
        by_union /= self.union
        # dT/dS = (1 + T) / union, dT/da = -T / union; dD/dS = -2, dD/da = 1
        np.multiply(by_union, tanimoto, out=tanimoto)
        by_union += tanimoto
        by_union += by_distance
        np.add(by_union, by_distance, out=out)
        tanimoto += by_distance
        return -tanimoto.sum(axis=1), -tanimoto.sum(axis=0)


class MixtureSlopes(NamedTuple):
    """Derivatives of an objective."""

    parameters: np.ndarray  # (3,) in the coordinates of gamma, rho and share
    log_amplitude: float
