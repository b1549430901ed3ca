"""What a Gaussian process believes after it has seen the targets.

Exact to some ten thousand graphs: one Cholesky factor. Beyond, on landmarks: the process is
replaced by its best guess from m of the training graphs (the deterministic training conditional;
Quiñonero-Candela and Rasmussen 2005), which takes time n m² and memory n m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treelens.learning.evidence import JITTER
from treelens.learning.factor import (
    cholesky_in_place,
    half_solve,
    inverse_of_factor,
    solve_factored,
)

# Relative to the amplitude: landmarks that repeat must not make their matrix singular.
_LANDMARK_JITTER = 1e-8


class LeaveOneOut(NamedTuple):
    """What the process says of every training graph once it is left out, in closed form."""

    mean: np.ndarray  # (n, n_columns)
    variance: np.ndarray  # (n,) of the target, noise included


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """Means and variances from all training graphs.

    Attributes
    ----------
    coefficients : ndarray, shape (n, n_columns)
        ``inv(A) y``.
    factor : ndarray, shape (n, n)
        Upper triangular, ``factor.T @ factor == A``; what lies below the diagonal means nothing.
    """

    coefficients: np.ndarray
    factor: np.ndarray

    @classmethod
    def fit(
        cls, kernel: np.ndarray, noise: np.ndarray, targets: np.ndarray, n_jobs: int = 1
    ) -> ExactPosterior:
        """Condition on targets of shape (n, n_columns); ``kernel`` (n, n) is overwritten."""
        factor = _factored(kernel, noise, n_jobs)
        return cls(solve_factored(factor, targets), factor)

    def reduction(self, kernel: np.ndarray) -> np.ndarray:
        """How much the training graphs take off the variance, from ``kernel`` (n_new, n)."""
        return (half_solve(self.factor, kernel.T) ** 2).sum(axis=0)

    def leave_one_out(self, targets: np.ndarray, n_jobs: int = 1) -> LeaveOneOut:
        """Means and variances of each training graph given all others."""
        inverse = np.empty_like(self.factor)
        inverse_of_factor(self.factor.copy(), inverse, n_jobs)
        diagonal = np.diagonal(inverse).copy()  # (n,)
        return LeaveOneOut(targets - self.coefficients / diagonal[:, None], 1.0 / diagonal)


@dataclass(frozen=True, eq=False)
class MeanPosterior:
    """An exact posterior out of a file, which keeps no factor: enough for means.

    Attributes
    ----------
    coefficients : ndarray, shape (n, n_columns)
    """

    coefficients: np.ndarray

    def completed(self, kernel: np.ndarray, noise: np.ndarray, n_jobs: int = 1) -> ExactPosterior:
        """With the factor that variances need; ``kernel`` (n, n) is overwritten."""
        return ExactPosterior(self.coefficients, _factored(kernel, noise, n_jobs))


def _factored(kernel: np.ndarray, noise: np.ndarray, n_jobs: int) -> np.ndarray:
    """The factor of the covariance of the targets, in the place of ``kernel``."""
    kernel[np.diag_indices_from(kernel)] *= 1.0 + JITTER
    kernel[np.diag_indices_from(kernel)] += noise
    return cholesky_in_place(kernel, n_jobs)


@dataclass(frozen=True, eq=False)
class LandmarkPosterior:
    """The same from landmarks: ``kernel`` is always between graphs and landmarks.

    Attributes
    ----------
    coefficients : ndarray, shape (m, n_columns)
    precision_gain : ndarray, shape (m, m)
        ``inv(K_mm) - inv(K_mm + K_mn inv(noise) K_nm)``.
    """

    coefficients: np.ndarray
    precision_gain: np.ndarray

    @classmethod
    def fit(
        cls,
        among: np.ndarray,
        kernel: np.ndarray,
        noise: np.ndarray,
        targets: np.ndarray,
        n_jobs: int = 1,
    ) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """Condition on targets.

        Parameters
        ----------
        among : ndarray, shape (m, m)
            The kernel among landmarks; overwritten.
        kernel : ndarray, shape (n, m)
            Between training graphs and landmarks.
        noise : ndarray, shape (n,)
        targets : ndarray, shape (n, n_columns)
        """
        amplitude = float(among[0, 0])  # of every graph with itself
        among[np.diag_indices_from(among)] *= 1.0 + _LANDMARK_JITTER
        weighted = kernel / noise[:, None]
        joint = among + kernel.T @ weighted
        right = weighted.T @ targets  # (m, n_columns)
        factor = cholesky_in_place(joint, n_jobs)
        coefficients = solve_factored(factor, right)
        half = half_solve(factor, kernel.T)  # (m, n)
        diagonal = 1.0 / noise - (half**2).sum(axis=0) / noise**2  # of inv(A)
        alpha = (targets - kernel @ coefficients) / noise[:, None]
        own_factor = cholesky_in_place(among, n_jobs)
        # What landmarks cannot tell of a graph is left in its variance, as it is in predictions.
        untold = np.maximum(amplitude - (half_solve(own_factor, kernel.T) ** 2).sum(axis=0), 0.0)
        left_out = LeaveOneOut(targets - alpha / diagonal[:, None], 1.0 / diagonal + untold)
        gain = _inverse(own_factor, n_jobs) - _inverse(factor, n_jobs)
        return cls(coefficients, gain), left_out

    def reduction(self, kernel: np.ndarray) -> np.ndarray:
        """How much the training graphs take off the variance, from ``kernel`` (n_new, m)."""
        return np.maximum(((kernel @ self.precision_gain) * kernel).sum(axis=1), 0.0)


def _inverse(factor: np.ndarray, n_jobs: int) -> np.ndarray:
    inverse = np.zeros_like(factor)
    inverse_of_factor(factor, inverse, n_jobs)
    return np.triu(inverse) + np.triu(inverse, 1).T
