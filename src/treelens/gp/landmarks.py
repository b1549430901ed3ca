"""The posterior of a Gaussian process through landmarks, for more graphs than a matrix can hold.

The covariance is replaced by its projection on m of the training graphs (the deterministic training
conditional; Quiñonero-Candela and Rasmussen 2005), ``Q = K_nm inv(K_mm) K_mn``. Time is ``n m²``
and memory ``m²``: graphs come in blocks, of which only sums over landmarks are kept. With
``K_mm = U'U``, ``V = inv(U') K_mn`` and noise variances ``N``, these are ``M = I + V inv(N) V'``
and ``r = V inv(N) y``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from treelens.gp.linalg import (
    cholesky_in_place,
    inverse_in_place,
    quadratic_forms,
    solve_factored,
    solve_upper,
    symmetric,
)
from treelens.gp.posterior import LeaveOneOut
from treelens.kernels.mixture import MixtureKernel
from treelens.parallel import blas_threads
from treelens.patterns.features import Features, select_features

# Relative to the amplitude: landmarks that are similar must not make their matrix singular.
LANDMARK_JITTER = 1e-7
BLOCK = 2048  # graphs that are worked on at a time
_LEAST_LEFT = 1e-9  # keeps the sign of one minus a leverage where rounding might turn it
_ROUNDS = 3  # in which landmarks are added to those drawn at random
# Some graphs, and the kernel between them and the landmarks, shape (b, m).
KernelBlock = tuple[slice, np.ndarray]


class BlockSums(NamedTuple):
    """What some graphs add to the sums over landmarks."""

    inner: np.ndarray  # (m, m), of which the upper triangle counts
    right: np.ndarray  # (m, n_columns)


def sums_of_block(
    factor: np.ndarray, kernel: np.ndarray, noise: np.ndarray, targets: np.ndarray, n_jobs: int = 1
) -> BlockSums:
    """Return the sums over graphs from their kernel with the landmarks, shape (b, m)."""
    scaled = solve_upper(factor, kernel.T, transposed=True, n_jobs=n_jobs)  # (m, b)
    scaled /= np.sqrt(noise)
    with blas_threads(n_jobs):
        inner = blas.dsyrk(1.0, scaled, lower=1).T  # a lower triangle in Fortran's order
        return BlockSums(inner, scaled @ (targets / np.sqrt(noise)[:, None]))


@dataclass(frozen=True, eq=False)
class LandmarkSums:
    """All that a posterior through landmarks keeps of the training graphs.

    Attributes
    ----------
    factor : ndarray, shape (m, m)
        ``U``, upper triangular: ``U.T @ U`` is the kernel among landmarks.
    inner : ndarray, shape (m, m)
        ``M``, of which the upper triangle counts.
    right : ndarray, shape (m, n_columns)
        ``r``.
    """

    factor: np.ndarray
    inner: np.ndarray
    right: np.ndarray

    @classmethod
    def added(cls, factor: np.ndarray, blocks: Iterable[BlockSums], n_columns: int) -> LandmarkSums:
        """Add up the sums of all blocks of graphs, wherever these were computed."""
        inner, right = np.eye(len(factor)), np.zeros((len(factor), n_columns))
        for block in blocks:
            inner += block.inner
            right += block.right
        return cls(factor, inner, right)

    @cached_property
    def inner_factor(self) -> np.ndarray:
        """Upper triangular ``R`` with ``R.T @ R == M``."""
        return cholesky_in_place(self.inner.copy())

    @cached_property
    def inner_solution(self) -> np.ndarray:
        """``inv(M) r``, shape (m, n_columns)."""
        return solve_factored(self.inner_factor, self.right)

    def coefficients(self) -> np.ndarray:
        """What each landmark adds to the mean per unit of kernel, shape (m, n_columns)."""
        return solve_upper(self.factor, self.inner_solution, transposed=False)

    def inner_inverse(self, n_jobs: int = 1) -> np.ndarray:
        """``inv(M)``, shape (m, m)."""
        return symmetric(inverse_in_place(self.inner_factor.copy(), n_jobs))

    def outside(self, middle: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """``inv(U) @ middle @ inv(U.T)`` for a symmetric ``middle`` (m, m)."""
        half = solve_upper(self.factor, middle, transposed=False, n_jobs=n_jobs)
        return solve_upper(self.factor, half.T, transposed=False, n_jobs=n_jobs)


def factor_landmarks(among: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Overwrite the kernel among landmarks with its Cholesky factor."""
    among[np.diag_indices_from(among)] *= 1.0 + LANDMARK_JITTER
    return cholesky_in_place(among, n_jobs)


def block_slices(n: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


@dataclass(frozen=True, eq=False)
class LandmarkPosterior:
    """Means and variances through landmarks: ``kernel`` is always between graphs and landmarks.

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
        landmarks: np.ndarray,
        among: np.ndarray,
        blocks: Callable[[], Iterable[KernelBlock]],
        noise: np.ndarray,
        targets: np.ndarray,
        n_jobs: int = 1,
    ) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """Condition on targets, and predict each of them from all others.

        Parameters
        ----------
        landmarks : ndarray of int, shape (m,)
            Their positions among the graphs.
        among : ndarray, shape (m, m)
            The kernel among landmarks.
        blocks : callable
            Gives all training graphs, block by block, each time it is called.
        noise : ndarray, shape (n,)
            Variances.
        targets : ndarray, shape (n, n_columns)
        n_jobs : int
        """
        factor = factor_landmarks(among.copy(), n_jobs)
        parts = (sums_of_block(factor, k, noise[w], targets[w], n_jobs) for w, k in blocks())
        sums = LandmarkSums.added(factor, parts, targets.shape[1])
        return cls.of_sums(sums, landmarks, among, blocks(), noise, targets, n_jobs)

    @classmethod
    def of_sums(
        cls,
        sums: LandmarkSums,
        landmarks: np.ndarray,
        among: np.ndarray,
        blocks: Iterable[KernelBlock],
        noise: np.ndarray,
        targets: np.ndarray,
        n_jobs: int = 1,
    ) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """As :meth:`fit`, from sums; ``blocks``, noise and targets are of graphs to leave out."""
        amplitude = float(among[0, 0])  # of every graph with itself
        unit, inverse = np.eye(len(among)), sums.inner_inverse(n_jobs)
        gain = sums.outside(unit - inverse, n_jobs)
        fitted = cls(sums.coefficients(), 0.5 * (gain + gain.T))
        left_out = _leave_one_out(sums, blocks, amplitude, noise, targets, n_jobs)
        joint = sums.outside(inverse, n_jobs)
        own = _without_landmark(fitted, joint, among, noise[landmarks], targets[landmarks], n_jobs)
        left_out.mean[landmarks], left_out.variance[landmarks] = own
        return fitted, left_out

    def reduction(self, kernel: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """How much the training graphs reduce the variance, from ``kernel`` (n_new, m)."""
        return np.maximum(quadratic_forms(self.precision_gain, kernel, n_jobs), 0.0)

    def joint_reduction(self, kernel: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """How much the training graphs reduce the covariance, shape (n_new, n_new)."""
        with blas_threads(n_jobs):
            return kernel @ self.precision_gain @ kernel.T


def _leave_one_out(
    sums: LandmarkSums,
    blocks: Iterable[KernelBlock],
    amplitude: float,
    noise: np.ndarray,
    targets: np.ndarray,
    n_jobs: int,
) -> LeaveOneOut:
    """Leave-one-out predictions in closed form, with the landmarks unchanged."""
    mean, variance = np.empty_like(targets), np.empty(len(targets))
    for where, kernel in blocks:
        half = solve_upper(sums.factor, kernel.T, transposed=True, n_jobs=n_jobs)  # (m, b)
        inner = solve_upper(sums.inner_factor, half, transposed=True, n_jobs=n_jobs)
        # Of the inverse of Q + N: its diagonal, and its product with the targets.
        diagonal = 1.0 / noise[where] - (inner**2).sum(axis=0) / noise[where] ** 2
        alpha = (targets[where] - half.T @ sums.inner_solution) / noise[where, None]
        mean[where] = targets[where] - alpha / diagonal[:, None]
        # The variance that landmarks leave unexplained, as in predictions.
        unexplained = np.maximum(amplitude - (half**2).sum(axis=0), 0.0)
        variance[where] = 1.0 / diagonal + unexplained
    return LeaveOneOut(mean, variance)


def _without_landmark(
    fitted: LandmarkPosterior,
    joint: np.ndarray,
    among: np.ndarray,
    noise: np.ndarray,
    targets: np.ndarray,
    n_jobs: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Leave-one-out predictions of landmarks, each left out as a landmark, too.

    A new graph is no landmark; as one it would still bend the mean towards the graphs around it.
    ``joint`` (m, m) is ``inv(K_mm + K_mn inv(noise) K_nm)``: without a landmark its row and column
    go, which is the same as subtracting the outer product of its column.
    """
    with blas_threads(n_jobs):
        through = among @ joint  # (m, m)
    own, cross = np.diagonal(joint), np.diagonal(through)
    coefficients = fitted.coefficients
    mean = among @ coefficients - (cross / own)[:, None] * coefficients
    leverage = ((through * among).sum(axis=1) - cross**2 / own) / noise
    left = np.maximum(1.0 - leverage, _LEAST_LEFT)
    unexplained = 1.0 / (np.diagonal(fitted.precision_gain) + own)  # given the other landmarks
    return (mean - leverage[:, None] * targets) / left[:, None], noise / left + unexplained


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """Training graphs under a kernel, ready to be conditioned on through any landmarks.

    Attributes
    ----------
    kernel : MixtureKernel
    graphs : Features
        Of all training graphs.
    noise : ndarray, shape (n,)
        Variances.
    targets : ndarray, shape (n, n_columns)
    n_jobs : int
    """

    kernel: MixtureKernel
    graphs: Features
    noise: np.ndarray
    targets: np.ndarray
    n_jobs: int = 1

    def through(self, landmarks: np.ndarray) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """Return the posterior through the graphs at some positions."""
        anchors = select_features(self.graphs, landmarks)
        among = self.kernel.matrix(anchors, anchors, self.n_jobs)
        return LandmarkPosterior.fit(
            landmarks, among, lambda: self._rows(anchors), self.noise, self.targets, self.n_jobs
        )

    def unexplained(self, landmarks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals (n, n_columns) and the variance (n,) that landmarks leave unexplained.

        This is less work than the posterior.
        """
        anchors, n_jobs = select_features(self.graphs, landmarks), self.n_jobs
        among = self.kernel.matrix(anchors, anchors, n_jobs)
        amplitude = float(among[0, 0])  # of every graph with itself
        factor = factor_landmarks(among, n_jobs)
        parts = (
            sums_of_block(factor, kernel, self.noise[where], self.targets[where], n_jobs)
            for where, kernel in self._rows(anchors)
        )
        sums = LandmarkSums.added(factor, parts, self.targets.shape[1])
        residuals, variance = self.targets.copy(), np.empty(len(self.targets))
        for where, kernel in self._rows(anchors):
            half = solve_upper(factor, kernel.T, transposed=True, n_jobs=n_jobs)
            residuals[where] -= half.T @ sums.inner_solution
            variance[where] = np.maximum(amplitude - (half**2).sum(axis=0), 0.0)
        return residuals, variance

    def _rows(self, anchors: Features) -> Iterable[KernelBlock]:
        for where in block_slices(len(self.targets)):
            block = select_features(self.graphs, np.arange(where.start, where.stop))
            yield where, self.kernel.matrix(block, anchors, self.n_jobs)


def choose_landmarks(fit: LandmarkFit, first: np.ndarray, n_landmarks: int) -> np.ndarray:
    """Return positions of landmarks, ascending: ``first``, and those that these explain worst.

    They are added in rounds, each time the graphs with the largest product of squared residual and
    squared unexplained variance: where the mean is wrong and no landmark is near. By the residual
    alone, landmarks would gather around wrong labels; spread out by the variance alone (a pivoted
    factor, leverage) they gain little, as under these kernels nearly every graph adds a direction
    of its own.

    Parameters
    ----------
    fit : LandmarkFit
    first : ndarray of int
        Drawn at random.
    n_landmarks : int
        How many in all.
    """
    chosen = first
    for size in np.linspace(len(first), n_landmarks, _ROUNDS + 1).astype(int)[1:]:
        residuals, variance = fit.unexplained(chosen)
        doubt = (residuals**2).sum(axis=1) * variance**2
        doubt[chosen] = -1.0
        worst = np.argsort(-doubt, kind="stable")[: max(size - len(chosen), 0)]
        chosen = np.sort(np.concatenate([chosen, worst]))
    return chosen
