"""Targets of a Gaussian process, and its posterior given all training graphs.

The posterior takes one Cholesky factor, for up to some ten thousand graphs. Beyond, through
landmarks: :mod:`treelens.gp.landmarks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treelens.gp.evidence import JITTER
from treelens.gp.linalg import (
    cholesky_in_place,
    inverse_in_place,
    solve_factored,
    solve_upper,
    symmetric,
)
from treelens.parallel import blas_threads

# Targets that differ by less than this part of their size are constant.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets centred and, if they are numbers, of unit size, with the way back."""

    values: np.ndarray  # (n_graphs, n_columns)
    offset: np.ndarray  # (n_columns,)
    scale: float
    weights: np.ndarray  # (n_graphs,) a graph's noise variance is divided by its weight
    # (n_graphs,) 1 where the value is a lower limit, -1 where it is an upper one, else 0.
    limits: np.ndarray | None = None

    @classmethod
    def standardized(cls, raw: np.ndarray, weights: np.ndarray, scale: float | None) -> Targets:
        """Centre the columns of ``raw``; without a ``scale``, divide by their deviation."""
        offset = np.average(raw, axis=0, weights=weights)
        centred = raw - offset
        if scale is None:
            scale = float(np.sqrt(np.average((centred**2).mean(axis=1), weights=weights)))
        if scale <= _CONSTANT * float(np.abs(raw).max(initial=0.0)):  # rounding is no spread
            return cls(np.zeros_like(centred), offset, 1.0, weights)
        return cls(centred / scale, offset, scale, weights)

    def alike(self, raw: np.ndarray, weights: np.ndarray) -> Targets:
        """Targets of other graphs, with the offset and the scale of these."""
        return Targets((raw - self.offset) / self.scale, self.offset, self.scale, weights)

    def select(self, indices: np.ndarray | slice) -> Targets:
        limits = None if self.limits is None else self.limits[indices]
        if limits is not None and not limits.any():
            limits = None
        values, weights = self.values[indices], self.weights[indices]
        return Targets(values, self.offset, self.scale, weights, limits)


def class_columns(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes as numbers: ±1 for two, else +1 against -1 / (n_classes - 1) in each column."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    columns = np.full((len(codes), n_classes), -1.0 / (n_classes - 1))
    columns[np.arange(len(codes)), codes] = 1.0
    return columns


class LeaveOneOut(NamedTuple):
    """Predictions of every training graph from all the others, in closed form."""

    mean: np.ndarray  # (n, n_columns)
    variance: np.ndarray  # (n,) of the target, noise included


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """Means and variances from all training graphs; ``A`` is the covariance of the targets."""

    coefficients: np.ndarray  # (n, n_columns) inv(A) y
    factor: np.ndarray  # (n, n) upper triangular U, U.T @ U == A; not read below the diagonal

    @classmethod
    def fit(
        cls, kernel: np.ndarray, noise: np.ndarray, targets: np.ndarray, n_jobs: int = 1
    ) -> ExactPosterior:
        """Condition on targets of shape (n, n_columns); ``kernel`` (n, n) is overwritten."""
        factor = _factored(kernel, noise, n_jobs)
        return cls(solve_factored(factor, targets), factor)

    @property
    def targets(self) -> np.ndarray:
        """What it is conditioned on, ``A @ coefficients``: (n, n_columns)."""
        upper = np.triu(self.factor)
        return upper.T @ (upper @ self.coefficients)

    def log_evidence(self, targets: np.ndarray) -> float:
        """Log of the marginal likelihood, mean over columns, up to a constant."""
        fit = float((targets * self.coefficients).sum()) / targets.shape[1]
        return -0.5 * fit - float(np.log(np.diagonal(self.factor)).sum())

    def reduction(self, kernel: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """How much the training graphs reduce the variance, from ``kernel`` (n_new, n)."""
        half = solve_upper(self.factor, kernel.T, transposed=True, n_jobs=n_jobs)
        return np.einsum("ij,ij->j", half, half)

    def joint_reduction(self, kernel: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """How much the training graphs reduce the covariance, shape (n_new, n_new)."""
        half = solve_upper(self.factor, kernel.T, transposed=True, n_jobs=n_jobs)
        with blas_threads(n_jobs):
            return half.T @ half

    def extended(
        self,
        kernel: np.ndarray,
        among: np.ndarray,
        noise: np.ndarray,
        targets: np.ndarray,
        n_jobs: int = 1,
    ) -> ExactPosterior:
        """Condition on more graphs by adding rows to the Cholesky factor.

        ``kernel`` (n_more, n) is between these and those conditioned on before, ``among``
        (n_more, n_more) and ``noise`` (n_more,) are theirs; ``targets`` are of all graphs.
        """
        n = len(self.factor)
        factor = np.zeros((len(targets), len(targets)))
        factor[:n, :n] = np.triu(self.factor)
        factor[:n, n:] = solve_upper(self.factor, kernel.T, transposed=True, n_jobs=n_jobs)
        with blas_threads(n_jobs):
            left = among - factor[:n, n:].T @ factor[:n, n:]
        own = np.diag_indices_from(left)
        left[own] += JITTER * among[own] + noise
        factor[n:, n:] = np.triu(cholesky_in_place(left, n_jobs))
        return ExactPosterior(solve_factored(factor, targets, n_jobs), factor)

    def leave_one_out(
        self, targets: np.ndarray, n_jobs: int = 1, copies: np.ndarray | None = None
    ) -> LeaveOneOut:
        """Return means and variances of each training graph given all others.

        ``copies`` (n,) numbers graphs so that replicates share a number: these are left out
        together, else each would be predicted from its own copies.
        """
        inverse = inverse_in_place(self.factor.copy(), n_jobs)
        diagonal = np.diagonal(inverse).copy()  # (n,)
        mean, variance = targets - self.coefficients / diagonal[:, None], 1.0 / diagonal
        if copies is None:
            return LeaveOneOut(mean, variance)
        order = np.argsort(copies, kind="stable")
        starts = np.flatnonzero(np.diff(copies[order], prepend=-1))
        for group in np.split(order, starts[1:]):
            if len(group) > 1:
                group = np.sort(group)
                covariance = np.linalg.inv(symmetric(inverse[np.ix_(group, group)]))
                mean[group] = targets[group] - covariance @ self.coefficients[group]
                variance[group] = np.diagonal(covariance)
        return LeaveOneOut(mean, variance)


@dataclass(frozen=True, eq=False)
class MeanPosterior:
    """An exact posterior out of a file, which keeps no factor: enough for means."""

    coefficients: np.ndarray  # (n, n_columns)

    def completed(self, kernel: np.ndarray, noise: np.ndarray, n_jobs: int = 1) -> ExactPosterior:
        """With the factor that variances need; ``kernel`` (n, n) is overwritten."""
        return ExactPosterior(self.coefficients, _factored(kernel, noise, n_jobs))


def _factored(kernel: np.ndarray, noise: np.ndarray, n_jobs: int) -> np.ndarray:
    """The factor of the covariance of the targets, in the place of ``kernel``."""
    kernel[np.diag_indices_from(kernel)] *= 1.0 + JITTER
    kernel[np.diag_indices_from(kernel)] += noise
    return cholesky_in_place(kernel, n_jobs)
