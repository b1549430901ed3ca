"""The evidence of a Gaussian process that looks at all graphs through landmarks.

The process is replaced by its best guess from m training graphs, ``Q = K_nm inv(K_mm) K_mn``,
and what that leaves out of the variance is charged for (Titsias 2009). With noise on the diagonal
of ``N``, the objective to minimise is

    F = mean over p of y_p' inv(Q + N) y_p / 2 + log|Q + N| / 2
        + trace(inv(N) (K - Q)) / 2 + priors

It is never below the exact objective (:mod:`treelens.gp.evidence`), and equals it where
every graph is a landmark. Time is ``n m²``, memory ``m²``: graphs come in blocks of a fixed size,
of which only sums over landmarks are kept. With ``K_mm = U'U`` and ``V = inv(U') K_mn`` these are
``M = I + V inv(N) V'`` and ``r = V inv(N) y``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from treelens.gp.evidence import (
    SCALE_SPREAD,
    EvidenceParameters,
    EvidenceProblem,
    own_gradient,
    prior_value,
    weight_slopes,
)
from treelens.gp.factor import (
    add_products,
    both_halves,
    cholesky_in_place,
    inverse_of_factor,
    multiply,
    solve_factored,
    solve_in_tiles,
)
from treelens.kernels import _compiled_mixture
from treelens.kernels.gram import pair_sums
from treelens.kernels.mixture import mixture_kernel
from treelens.pairwise import _compiled
from treelens.pairwise.objective import N_SHARES, in_shares, pair_arrays
from treelens.parallel import one_blas_thread
from treelens.patterns.features import Features, select_features
from treelens.patterns.pairs import PairFeatures

# Relative to the amplitude: landmarks that are alike must not make their matrix singular.
LANDMARK_JITTER = 1e-7
# So many graphs at a time, whatever the number of threads: sums over blocks have one order.
BLOCK = 2048


class ChunkSums(NamedTuple):
    """What some graphs add to the sums over landmarks."""

    inner: np.ndarray  # (m, m), of which the upper triangle counts
    right: np.ndarray  # (m, n_columns)


def sums_of_chunk(
    factor: np.ndarray, kernel: np.ndarray, noise: np.ndarray, targets: np.ndarray, n_jobs: int = 1
) -> ChunkSums:
    """Sums over the graphs whose kernel with the landmarks, shape (b, m), is given.

    Parameters
    ----------
    factor : ndarray, shape (m, m)
        Of :func:`factor_landmarks`.
    kernel : ndarray, shape (b, m)
    noise : ndarray, shape (b,)
        Variances.
    targets : ndarray, shape (b, n_columns)
    n_jobs : int
        Threads. The result is the same, bit for bit, for every number of them.
    """
    half = solve_in_tiles(factor, kernel.T, transposed=True, n_jobs=n_jobs)  # (m, b)
    weighed = half / noise
    inner = np.zeros_like(factor)
    add_products(inner, weighed, half, n_jobs)
    with one_blas_thread():
        return ChunkSums(inner, weighed @ targets)


@dataclass(frozen=True, eq=False)
class LandmarkSums:
    """All that a process through landmarks keeps of its training graphs.

    Attributes
    ----------
    factor : ndarray, shape (m, m)
        ``U``, upper triangular: ``U.T @ U`` is the kernel among landmarks.
    inner : ndarray, shape (m, m)
        ``M``, of which the upper triangle counts.
    right : ndarray, shape (m, n_columns)
        ``r``.
    square : float
        ``y' inv(N) y``, the mean over columns.
    log_noise, precision : float
        Sums of the logarithms of the noise variances, and of their inverses.
    """

    factor: np.ndarray
    inner: np.ndarray
    right: np.ndarray
    square: float
    log_noise: float
    precision: float

    @classmethod
    def gather(
        cls,
        among: np.ndarray,
        blocks: Iterable[tuple[slice, np.ndarray]],
        noise: np.ndarray,
        targets: np.ndarray,
        n_jobs: int = 1,
    ) -> LandmarkSums:
        """Pass over all graphs once.

        Parameters
        ----------
        among : ndarray, shape (m, m)
            The kernel among landmarks; overwritten.
        blocks : iterable of (slice, ndarray)
            Some of the graphs, and the kernel between them and the landmarks, shape (b, m).
        noise : ndarray, shape (n,)
            Variances.
        targets : ndarray, shape (n, n_columns)
        n_jobs : int
        """
        factor = factor_landmarks(among, n_jobs)
        chunks = (
            sums_of_chunk(factor, kernel, noise[where], targets[where], n_jobs)
            for where, kernel in blocks
        )
        return cls.added(factor, chunks, noise, targets)

    @classmethod
    def added(
        cls,
        factor: np.ndarray,
        chunks: Iterable[ChunkSums],
        noise: np.ndarray,
        targets: np.ndarray,
    ) -> LandmarkSums:
        """The same from the sums of all chunks of graphs, wherever these were made."""
        inner, right = np.eye(len(factor)), np.zeros((len(factor), targets.shape[1]))
        for chunk in chunks:
            inner += chunk.inner
            right += chunk.right
        square = float(((targets**2).mean(axis=1) / noise).sum())
        return cls(
            factor, inner, right, square, float(np.log(noise).sum()), float((1.0 / noise).sum())
        )

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
        return solve_in_tiles(self.factor, self.inner_solution, transposed=False)

    def inner_inverse(self, n_jobs: int = 1) -> np.ndarray:
        """``inv(M)``, shape (m, m)."""
        return both_halves(
            inverse_of_factor(self.inner_factor.copy(), np.empty_like(self.inner), n_jobs)
        )

    def outside(self, middle: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """``inv(U) @ middle @ inv(U.T)`` for a symmetric ``middle`` (m, m)."""
        half = solve_in_tiles(self.factor, middle, transposed=False, n_jobs=n_jobs)
        return solve_in_tiles(self.factor, half.T, transposed=False, n_jobs=n_jobs)

    def bound(self, amplitude: float) -> float:
        """The objective without its priors."""
        explained = float((self.right * self.inner_solution).sum()) / self.right.shape[1]
        log_determinant = 2.0 * float(np.log(np.diagonal(self.inner_factor)).sum())
        told = float(np.diagonal(self.inner).sum()) - len(self.inner)
        left = amplitude * self.precision - told
        return 0.5 * (self.square - explained + self.log_noise + log_determinant + left)


def factor_landmarks(among: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """The Cholesky factor of the kernel among landmarks, in its place."""
    among[np.diag_indices_from(among)] *= 1.0 + LANDMARK_JITTER
    return cholesky_in_place(among, n_jobs)


def block_slices(n: int) -> list[slice]:
    """The blocks in which all sums over graphs are made."""
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


@dataclass(frozen=True, eq=False)
class LandmarkProblem:
    """An evidence problem, and which of its graphs are landmarks.

    Attributes
    ----------
    problem : EvidenceProblem
    landmarks : ndarray of int, shape (m,)
        Ascending.
    """

    problem: EvidenceProblem
    landmarks: np.ndarray

    @cached_property
    def blocks(self) -> list[tuple[slice, PairFeatures]]:
        everything = Features(self.problem.features, np.zeros(self.problem.n_graphs))
        slices = block_slices(self.problem.n_graphs)
        return [(s, select_features(everything, np.arange(s.start, s.stop)).pairs) for s in slices]

    @cached_property
    def anchors(self) -> PairFeatures:
        """The landmarks' features."""
        everything = Features(self.problem.features, np.zeros(self.problem.n_graphs))
        return select_features(everything, self.landmarks).pairs


def landmark_bound(
    sparse: LandmarkProblem, parameters: EvidenceParameters, learned: str = "branches"
) -> tuple[float, np.ndarray]:
    """The objective ``F`` and its gradient in the parameters that are learned.

    Parameters
    ----------
    sparse : LandmarkProblem
    parameters : EvidenceParameters
    learned : {"uniform", "depths", "branches"}
        Whose gradient: the scales, also the levels' logits, also all deviations.

    Returns
    -------
    value : float
    gradient : ndarray, shape (sparse.problem.n_free(learned),)
    """
    return _Evaluation(sparse, parameters, learned).run()


class _Evaluation:
    """One evaluation: a pass over the graphs for the sums, and one for the slopes."""

    def __init__(self, sparse: LandmarkProblem, parameters: EvidenceParameters, learned: str):
        self.sparse, self.parameters, self.learned = sparse, parameters, learned
        self.problem, self.n_jobs = sparse.problem, sparse.problem.n_jobs
        self.scales = parameters.kernel_scales()
        self.weights = self.problem.weights(parameters)
        self.noise = parameters.noise * self.problem.noise_factors  # (n,)
        self.own = self.problem.features.diagonal(self.weights)  # (n,)
        self.anchor_own = self.own[sparse.landmarks]  # (m,)
        n, m = self.problem.n_graphs, len(sparse.landmarks)
        self.own_slopes, self.anchor_slopes = np.zeros(n), np.zeros((N_SHARES, m))
        self.totals = np.zeros((N_SHARES, 4))
        self.by_weight = np.zeros((N_SHARES, self.problem.hierarchy.n_patterns))

    def run(self) -> tuple[float, np.ndarray]:
        landmarks, anchors = self.sparse.landmarks, self.sparse.anchors
        among = self._kernel(anchors, self.anchor_own)[1]
        kernels = ((where, self._kernel(f, self.own[where])[1]) for where, f in self.sparse.blocks)
        sums = LandmarkSums.gather(among, kernels, self.noise, self.problem.targets, self.n_jobs)
        value = sums.bound(self.scales.amplitude) + prior_value(self.problem, self.parameters)
        inverse, coefficients = sums.inner_inverse(self.n_jobs), sums.coefficients()
        shared = coefficients @ coefficients.T / coefficients.shape[1]  # (m, m)
        unit = np.eye(len(landmarks))
        pulls = sums.outside(inverse - unit, self.n_jobs) + shared
        for where, features in self.sparse.blocks:
            self._add_block(where, features, pulls, coefficients)
        among_pulls = sums.outside(inverse + both_halves(sums.inner) - 2.0 * unit, self.n_jobs)
        self._add_landmarks(0.5 * (among_pulls + shared))
        gradient = self._scale_slopes(sums, inverse)
        if self.learned == "uniform":
            return value, gradient
        self.own_slopes[landmarks] += self.anchor_slopes.sum(axis=0)
        by_weight = self.by_weight.sum(axis=0) + own_gradient(self.problem, self.own_slopes)
        parts = weight_slopes(self.problem, self.parameters, self.weights * by_weight, self.learned)
        return value, np.concatenate([gradient, *parts])

    def _kernel(self, left: PairFeatures, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of minima with the landmarks, and the kernel made of them."""
        sums = pair_sums(left, self.sparse.anchors, self.weights, n_jobs=self.n_jobs)
        kernel = mixture_kernel(self.scales, sums.copy(), own, self.anchor_own, n_jobs=self.n_jobs)
        return sums, kernel

    def _add_block(
        self, where: slice, features: PairFeatures, pulls: np.ndarray, coefficients: np.ndarray
    ) -> None:
        """The slopes that come through the kernel between some graphs and the landmarks."""
        sums, kernel = self._kernel(features, self.own[where])
        targets = self.problem.targets[where]
        slopes = multiply(kernel, pulls, self.n_jobs)  # (b, m)
        slopes -= targets @ coefficients.T / targets.shape[1]
        slopes /= self.noise[where, None]
        self.own_slopes[where] += self._add_slopes(features, sums, self.own[where], slopes)

    def _add_landmarks(self, slopes: np.ndarray) -> None:
        """The slopes that come through the kernel among landmarks, of which the diagonal counts."""
        slopes[np.diag_indices_from(slopes)] *= 1.0 + LANDMARK_JITTER
        anchors = self.sparse.anchors
        sums = pair_sums(anchors, anchors, self.weights, n_jobs=self.n_jobs)
        self.anchor_slopes[0] += self._add_slopes(anchors, sums, self.anchor_own, slopes)

    def _add_slopes(
        self, left: PairFeatures, sums: np.ndarray, own: np.ndarray, slopes: np.ndarray
    ) -> np.ndarray:
        """Turn slopes in the kernel (b, m) into those in all it is made of; returns the left's."""
        own_slopes = np.zeros(len(own))
        in_shares(
            lambda k: _compiled_mixture.mixture_cross_slopes(
                k, N_SHARES, sums, own, self.anchor_own, *self.scales.as_tuple(), slopes,
                own_slopes, self.anchor_slopes[k], self.totals[k],
            ),
            self.n_jobs,
        )  # fmt: skip
        if self.learned != "uniform":
            arrays = self._anchor_arrays._replace(
                row_offsets=left.rows.offsets, row_patterns=left.rows.indices,
                row_values=left.rows.values,
            )  # fmt: skip
            in_shares(
                lambda k: _compiled.cross_gather_pass(
                    k, N_SHARES, arrays, slopes, self.by_weight[k]
                ),
                self.n_jobs,
            )
        return own_slopes

    @cached_property
    def _anchor_arrays(self) -> _compiled.PairArrays:
        return pair_arrays(self.sparse.anchors)

    def _scale_slopes(self, sums: LandmarkSums, inverse: np.ndarray) -> np.ndarray:
        """Slopes in the scales, the prior's included; the noise is in no kernel value."""
        gamma, rho, amplitude, share = self.totals.sum(axis=0).tolist()
        amplitude += 0.5 * self.scales.amplitude * sums.precision
        share *= self.scales.share * (1.0 - self.scales.share)
        # M - I and r fall as the noise grows: their slopes times what they are.
        told = float(np.diagonal(sums.inner).sum()) - len(inverse)
        solution = sums.inner_solution
        explained = float((sums.right * solution).sum()) / solution.shape[1]
        spread = len(inverse) - float(np.diagonal(inverse).sum())  # trace of inv(M) (M - I)
        within = float((solution**2).sum()) / solution.shape[1]  # r' inv(M) inv(M) r
        through_inner = spread + (explained - within) - told
        noise = 0.5 * (
            len(self.noise) - sums.square - self.scales.amplitude * sums.precision
            - through_inner + 2.0 * explained
        )  # fmt: skip
        prior = (self.parameters.scales - self.problem.usual_scales) / SCALE_SPREAD**2
        return np.array([gamma, rho, amplitude, noise, share]) + prior
