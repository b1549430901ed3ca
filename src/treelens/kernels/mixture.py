"""The kernel of the Gaussian process: a mixture of Tanimoto similarity and L1 distance.

``k = amplitude (share exp(-gamma (1 - T)) + (1 - share) exp(-rho D))``, with ``T`` the weighted
Tanimoto similarity of pattern counts and ``D`` their weighted L1 distance. Both parts are positive
semidefinite: ``T`` is, hence ``exp(gamma T)``, and ``D`` is an L1 distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import distance

from treelens.array_checks import check_positive
from treelens.kernels import _compiled_mixture
from treelens.kernels.gram import interleaved, pair_sums
from treelens.patterns.features import Features

_FASTEST_DECAY = 1e6  # beyond, rounding of the sums would decide; learned ones are far smaller


@dataclass(frozen=True)
class MixtureScales:
    """The numbers of the mixture kernel.

    Attributes
    ----------
    gamma : float
        How fast likeness falls as Tanimoto similarity does.
    rho : float
        How fast it falls as L1 distance grows.
    amplitude : float
        ``k(G, G)``: the variance of the process.
    share : float
        Of the Tanimoto part, from 0 to 1.
    """

    gamma: float
    rho: float
    amplitude: float
    share: float

    def validate(self) -> None:
        check_positive(self.amplitude, "amplitude")
        for name, most in (("gamma", _FASTEST_DECAY), ("rho", _FASTEST_DECAY), ("share", 1.0)):
            check_positive(getattr(self, name), name, most, zero=True)

    def as_tuple(self) -> tuple[float, float, float, float]:
        return self.gamma, self.rho, self.amplitude, self.share


@dataclass(frozen=True)
class CovariateScales:
    """The numbers of the kernel of covariates, ``amplitude exp(-|x - x'|^2 / (2 length^2))``.

    Attributes
    ----------
    amplitude : float
        The variance of what covariates say.
    length : float
        How far covariates, which are standardised, must move for it to change.
    """

    amplitude: float
    length: float

    def validate(self) -> None:
        check_positive(self.amplitude, "amplitude", zero=True)
        check_positive(self.length, "length")

    def matrix(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Kernel values between covariates (n_left, d) and (n_right, d)."""
        squares = distance.cdist(left, right, "sqeuclidean")
        return self.amplitude * np.exp(-0.5 * squares / self.length**2)


def mixture_kernel(
    scales: MixtureScales,
    sums: np.ndarray,
    left_diagonal: np.ndarray,
    right_diagonal: np.ndarray,
    *,
    n_jobs: int = 1,
) -> np.ndarray:
    """Overwrite weighted sums of minima with kernel values.

    Parameters
    ----------
    scales : MixtureScales
    sums : ndarray, shape (n_left, n_right)
    left_diagonal, right_diagonal : ndarray
        The sums of each graph with itself.
    n_jobs : int

    Examples
    --------
    >>> scales = MixtureScales(gamma=1.0, rho=1.0, amplitude=2.0, share=0.5)
    >>> one = np.array([1.0])
    >>> float(mixture_kernel(scales, np.array([[1.0]]), one, one)[0, 0])  # a graph with itself
    2.0
    """
    interleaved(
        lambda k, step: _compiled_mixture.mixture_rows(
            k, step, False, sums, left_diagonal, right_diagonal, *scales.as_tuple(), sums
        ),
        n_jobs,
    )
    return sums


@dataclass(frozen=True)
class MixtureKernel:
    """A kernel with its weights in place: what a fitted Gaussian process compares graphs by.

    Attributes
    ----------
    weights : ndarray, shape (n_patterns,)
    scales : MixtureScales
    covariates : CovariateScales, optional
        Of a kernel of covariates that is added; features must then hold some.
    """

    weights: np.ndarray
    scales: MixtureScales
    covariates: CovariateScales | None = None

    @property
    def variance(self) -> float:
        """The kernel of any graph with itself."""
        return self.scales.amplitude + (self.covariates.amplitude if self.covariates else 0.0)

    def matrix(self, left: Features, right: Features, n_jobs: int = 1) -> np.ndarray:
        """Kernel values between two sides, shape (n_left, n_right)."""
        sums = pair_sums(left.pairs, right.pairs, self.weights, n_jobs=n_jobs)
        kernel = mixture_kernel(self.scales, sums, left.diagonal, right.diagonal, n_jobs=n_jobs)
        if self.covariates is not None:
            kernel += self.covariate_matrix(left, right)
        return kernel

    def covariate_matrix(self, left: Features, right: Features) -> np.ndarray:
        """The part that covariates add; there must be some."""
        assert self.covariates is not None
        assert left.covariates is not None
        assert right.covariates is not None
        return self.covariates.matrix(left.covariates, right.covariates)
