"""The posterior through landmarks, where there are too many training graphs for an exact one.

The covariance is replaced by its projection on m of the training graphs (the deterministic training
conditional; Quiñonero-Candela and Rasmussen 2005), ``Q = K_nm inv(K_mm) K_mn``. Time is ``n m²``
and memory ``m²``: graphs come in blocks, of which only sums over landmarks are kept. With
``K_mm = U'U``, ``V = inv(U') K_mn`` and noise variances ``N``, these are ``M = I + V inv(N) V'``
and ``r = V inv(N) y``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
from scipy.linalg import blas, lapack

from treelens.gp.posterior import (
    LeaveOneOut,
    cholesky_in_place,
    quadratic_forms,
    solve_factored,
    solve_upper,
)
from treelens.kernels.gram import mirrored
from treelens.parallel import batches, blas_threads

# Relative to the amplitude: landmarks that are similar must not make their matrix singular.
LANDMARK_JITTER = 1e-7
BLOCK = 2048  # graphs that are worked on at a time
_LEAST_LEFT = 1e-9  # keeps the sign of one minus a leverage where rounding might turn it
_ROUNDS = 3  # in which landmarks are added to those drawn at random
_ROUNDS_OF_GROUPS = 8
# Numbers that are kept while landmarks are chosen (1 GiB); of more graphs only some are looked at.
MOST_KEPT = 2**27
Projected = tuple[slice, np.ndarray]  # some graphs, and ``V`` of them, shape (m, b)


class Selectable(Protocol):
    """What a covariance is between: graphs, or cells of several endpoints."""

    def select(self: S, positions: np.ndarray, /) -> S: ...


S = TypeVar("S", bound=Selectable)
S_contra = TypeVar("S_contra", bound=Selectable, contravariant=True)


class Covariance(Protocol[S_contra]):
    """A stationary covariance."""

    @property
    def variance(self) -> float: ...

    def matrix(self, left: S_contra, right: S_contra, n_jobs: int = 1, /) -> np.ndarray: ...


def factor_landmarks(among: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Return the Cholesky factor ``U`` of the kernel among landmarks, which is overwritten."""
    among[np.diag_indices_from(among)] *= 1.0 + LANDMARK_JITTER
    return np.triu(cholesky_in_place(among, n_jobs))


def block_sums(
    projected: np.ndarray, noise: np.ndarray, targets: np.ndarray, n_jobs: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return what some graphs add to ``M``, of which the upper triangle counts, and to ``r``."""
    scaled = projected / np.sqrt(noise)
    with blas_threads(n_jobs):
        inner = blas.dsyrk(1.0, scaled, lower=1).T  # a lower triangle in Fortran's order
        return inner, scaled @ (targets / np.sqrt(noise)[:, None])


@dataclass(frozen=True, eq=False)
class LandmarkSums:
    """All that a posterior through landmarks keeps of the training graphs."""

    factor: np.ndarray  # (m, m) U, zero below the diagonal: U.T @ U is the kernel among landmarks
    inner: np.ndarray  # (m, m) M, of which the upper triangle counts
    right: np.ndarray  # (m, n_columns) r

    @classmethod
    def added(
        cls, factor: np.ndarray, blocks: Iterable[tuple[np.ndarray, np.ndarray]], n_columns: int
    ) -> LandmarkSums:
        """Add up the sums of all blocks of graphs, wherever these were computed."""
        inner, right = np.eye(len(factor)), np.zeros((len(factor), n_columns))
        for more_inner, more_right in blocks:
            inner += more_inner
            right += more_right
        return cls(factor, inner, right)

    @cached_property
    def inner_factor(self) -> np.ndarray:
        """Upper triangular ``R`` with ``R.T @ R == M``."""
        return cholesky_in_place(self.inner.copy())

    @cached_property
    def inner_solution(self) -> np.ndarray:
        """``inv(M) r``, shape (m, n_columns)."""
        return solve_factored(self.inner_factor, self.right)

    @cached_property
    def outer(self) -> np.ndarray:
        """``inv(U')``, (m, m) lower triangular."""
        return lapack.dtrtri(self.factor.T, lower=1)[0]

    @cached_property
    def inner_outer(self) -> np.ndarray:
        """``inv(R') inv(U')``, (m, m) lower triangular; its square is ``inv(K_mm M)``."""
        return blas.dtrsm(1.0, self.inner_factor.T, self.outer, lower=1)

    def posterior(self, n_jobs: int = 1) -> LandmarkPosterior:
        """Return the posterior of these sums."""
        coefficients = solve_upper(self.factor, self.inner_solution, transposed=False)
        with blas_threads(n_jobs):  # products of lower triangles, by a third of the arithmetic
            before = lapack.dlauum(self.outer, lower=1)[0]
            gain = before - lapack.dlauum(self.inner_outer, lower=1)[0]
        return LandmarkPosterior(coefficients, mirrored(gain.T))


@dataclass(frozen=True, eq=False)
class LandmarkPosterior:
    """Means and variances through landmarks: ``kernel`` is always between graphs and landmarks."""

    coefficients: np.ndarray  # (m, n_columns)
    precision_gain: np.ndarray  # (m, m) inv(K_mm) - inv(K_mm + K_mn inv(noise) K_nm)

    def reduction(
        self, kernel: np.ndarray, n_jobs: int = 1, prior: float | None = None
    ) -> np.ndarray:
        """How much the training graphs reduce the variance, from ``kernel`` (n_new, m)."""
        return np.maximum(quadratic_forms(self.precision_gain, kernel, n_jobs), 0.0)

    def joint_reduction(self, kernel: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """How much the training graphs reduce the covariance, shape (n_new, n_new)."""
        with blas_threads(n_jobs):
            return kernel @ self.precision_gain @ kernel.T


def column_squares(matrix: np.ndarray) -> np.ndarray:
    """Sum of the squares of each column, without a matrix of them."""
    return np.einsum("ij,ij->j", matrix, matrix)


@dataclass(frozen=True, eq=False)
class LandmarkFit(Generic[S]):
    """Training graphs under a kernel, ready to be conditioned on through any landmarks."""

    kernel: Covariance[S]
    graphs: S  # all that is trained on
    noise: np.ndarray  # (n,) variances
    targets: np.ndarray  # (n, n_columns)
    n_jobs: int = 1

    def through(self, landmarks: np.ndarray) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """Return the posterior through the graphs at some positions, and each graph left out."""
        sums, anchors = self.sums(landmarks), self.graphs.select(landmarks)
        return self.conditioned(sums, landmarks, self.projections(sums.factor, anchors))

    def sums(self, landmarks: np.ndarray) -> LandmarkSums:
        """Return the sums of all graphs over the landmarks at some positions."""
        anchors, noise, targets = self.graphs.select(landmarks), self.noise, self.targets
        factor = factor_landmarks(self.kernel.matrix(anchors, anchors, self.n_jobs), self.n_jobs)
        blocks = (
            block_sums(half, noise[where], targets[where], self.n_jobs)
            for where, half in self.projections(factor, anchors)
        )
        return LandmarkSums.added(factor, blocks, targets.shape[1])

    def projections(self, factor: np.ndarray, anchors: S) -> Iterator[Projected]:
        """Yield ``V`` of the graphs, block by block; ``anchors`` are the landmarks."""
        for where in batches(len(self.targets), BLOCK):
            block = self.graphs.select(np.arange(where.start, where.stop))
            rows = self.kernel.matrix(block, anchors, self.n_jobs)
            yield where, solve_upper(factor, rows.T, transposed=True, n_jobs=self.n_jobs)

    def conditioned(
        self, sums: LandmarkSums, landmarks: np.ndarray, projected: Iterable[Projected]
    ) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """Return the posterior of some sums, and predictions of each graph from all others."""
        targets, noise, n_jobs = self.targets, self.noise, self.n_jobs
        mean, variance = np.empty_like(targets), np.empty(len(targets))
        for where, half in projected:  # in closed form, with the landmarks unchanged
            inner = solve_upper(sums.inner_factor, half, transposed=True, n_jobs=n_jobs)
            # Of the inverse of Q + N: its diagonal, and its product with the targets.
            diagonal = 1.0 / noise[where] - column_squares(inner) / noise[where] ** 2
            alpha = (targets[where] - half.T @ sums.inner_solution) / noise[where, None]
            mean[where] = targets[where] - alpha / diagonal[:, None]
            # The variance that landmarks leave unexplained, as in predictions.
            unexplained = np.maximum(self.kernel.variance - column_squares(half), 0.0)
            variance[where] = 1.0 / diagonal + unexplained
        found = sums.posterior(n_jobs)
        coefficients, outer, inner = found.coefficients, sums.outer, sums.inner_outer
        # A new graph is no landmark, so landmarks are left out as such, too: else each would still
        # bend the mean towards the graphs around it. From J = inv(K_mm + K_mn inv(N) K_nm), whose
        # diagonal is the squared columns of ``inner``, its row and column go: the same as
        # subtracting the outer product of its column.
        through = solve_upper(sums.inner_factor, sums.factor, transposed=True, n_jobs=n_jobs)
        own, cross = column_squares(inner), np.einsum("ij,ij->j", inner, through)  # of J, K_mm J
        without = sums.factor.T @ sums.inner_solution - (cross / own)[:, None] * coefficients
        leverage = (column_squares(through) - cross**2 / own) / noise[landmarks]
        left = np.maximum(1.0 - leverage, _LEAST_LEFT)
        mean[landmarks] = (without - leverage[:, None] * targets[landmarks]) / left[:, None]
        variance[landmarks] = noise[landmarks] / left + 1.0 / column_squares(outer)
        return found, LeaveOneOut(mean, variance)


class LandmarkBasis(Generic[S]):
    """At most ``n_landmarks`` that are added in rounds, with ``V`` of all graphs."""

    def __init__(self, fit: LandmarkFit[S], n_landmarks: int) -> None:
        self.fit, self.landmarks = fit, np.empty(0, dtype=np.int64)
        self._projections = np.empty((n_landmarks, len(fit.targets)))
        self._factor, self._inner = np.zeros((n_landmarks, n_landmarks)), np.eye(n_landmarks)

    def add(self, new: np.ndarray) -> None:
        """Add landmarks at some positions; what was computed for those before stays as it is."""
        fit, start, stop = self.fit, len(self.landmarks), len(self.landmarks) + len(new)
        before = self._projections[:start]
        rows = fit.kernel.matrix(fit.graphs, fit.graphs.select(new), fit.n_jobs)
        across = before.take(new, axis=1)  # of the factor
        with blas_threads(fit.n_jobs):
            rows -= before.T @ across
            among = rows[new]
            among[np.diag_indices_from(among)] += LANDMARK_JITTER * fit.kernel.variance
            factor = np.triu(cholesky_in_place(among, fit.n_jobs))
            added = solve_upper(factor, rows.T, transposed=True, n_jobs=fit.n_jobs)
            self._projections[start:stop] = added
            added /= fit.noise
            self._inner[:stop, start:stop] += self._projections[:stop] @ added.T
        self._factor[:start, start:stop], self._factor[start:stop, start:stop] = across, factor
        self.landmarks = np.concatenate([self.landmarks, new])

    @property
    def projections(self) -> np.ndarray:
        """``V``, shape (m, n)."""
        return self._projections[: len(self.landmarks)]

    def sums(self) -> LandmarkSums:
        m, fit = len(self.landmarks), self.fit
        right = self.projections @ (fit.targets / fit.noise[:, None])
        return LandmarkSums(self._factor[:m, :m], self._inner[:m, :m], right)

    def posterior(self) -> tuple[np.ndarray, LandmarkPosterior, LeaveOneOut]:
        """Return the landmarks, ascending, the posterior, and leave-one-out predictions."""
        where = batches(len(self.fit.targets), BLOCK)
        blocks = ((here, self.projections[:, here]) for here in where)
        found, left_out = self.fit.conditioned(self.sums(), self.landmarks, blocks)
        order = np.argsort(self.landmarks)
        gain = found.precision_gain[np.ix_(order, order)]
        return self.landmarks[order], LandmarkPosterior(found.coefficients[order], gain), left_out


def choose_landmarks(
    fit: LandmarkFit[S], first: np.ndarray, n_landmarks: int, groups: np.ndarray | None = None
) -> LandmarkBasis[S]:
    """Return landmarks: ``first``, which were drawn at random, and those that these explain worst.

    They are added in rounds, each time the graphs with the largest product of squared residual and
    squared unexplained variance: where the mean is wrong and no landmark is near. By the residual
    alone they would gather around wrong labels; by the variance alone (a pivoted factor, leverage)
    they gain little, as nearly every graph adds a direction of its own. With ``groups`` (n,), such
    as endpoints, about the same share of each group is added.
    """
    basis = LandmarkBasis(fit, n_landmarks)
    basis.add(first)
    n_rounds = _ROUNDS if groups is None else _ROUNDS_OF_GROUPS
    for size in np.linspace(len(first), n_landmarks, n_rounds + 1).astype(int)[1:]:
        if size > len(basis.landmarks):
            projections = basis.projections
            residuals = fit.targets - projections.T @ basis.sums().inner_solution
            unexplained = np.maximum(fit.kernel.variance - column_squares(projections), 0.0)
            doubt = (residuals**2).sum(axis=1) * unexplained**2
            doubt[basis.landmarks] = -1.0
            if groups is not None:
                doubt = _room_within(groups, doubt, basis.landmarks[len(first) :])
                doubt[basis.landmarks] = -np.inf
            basis.add(np.argsort(-doubt, kind="stable")[: size - len(basis.landmarks)])
    return basis


def posterior_through_landmarks(
    fit: LandmarkFit[S], first: np.ndarray, n_landmarks: int
) -> tuple[np.ndarray, LandmarkPosterior, LeaveOneOut]:
    """Choose landmarks; return their positions, ascending, the posterior, and each left out."""
    if len(fit.targets) <= _most_looked_at(n_landmarks):
        return choose_landmarks(fit, first, n_landmarks).posterior()
    landmarks = landmark_positions(fit, first, n_landmarks)
    return landmarks, *fit.through(landmarks)


def _room_within(groups: np.ndarray, doubt: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Return minus the share of a group that is added once all of it with more doubt is, (n,).

    Those with the largest values are a part of each group of about the same size.
    """
    order = np.lexsort((-doubt, groups))
    counts = np.bincount(groups)
    starts = np.cumsum(counts) - counts
    places = np.empty(len(groups))
    places[order] = np.arange(len(groups)) - starts[groups[order]]
    before = np.bincount(groups[added], minlength=len(counts))
    return -(before[groups] + places + 0.5) / counts[groups]


def landmark_positions(
    fit: LandmarkFit[S], first: np.ndarray, n_landmarks: int, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return the positions of landmarks, ascending; of many graphs, only some are looked at."""
    n, most = len(fit.targets), _most_looked_at(n_landmarks)
    some = np.arange(n) if n <= most else np.union1d(first, np.arange(0, n, -(-n // most)))
    graphs, noise, targets = fit.graphs.select(some), fit.noise[some], fit.targets[some]
    part = replace(fit, graphs=graphs, noise=noise, targets=targets)
    own = None if groups is None else groups[some]
    chosen = choose_landmarks(part, np.searchsorted(some, first), n_landmarks, own)
    return np.sort(some[chosen.landmarks])


def _most_looked_at(n_landmarks: int) -> int:
    return max(MOST_KEPT // n_landmarks, 2 * n_landmarks)
