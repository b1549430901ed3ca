"""A panel through landmarks: some of the cells stand for all of them.

Cells are compared with unit variance each, so that they are to :class:`LandmarkFit` what graphs of
one endpoint are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treelens.gp.censoring import Limits, fit_sites
from treelens.gp.landmarks import BLOCK, LandmarkFit, LandmarkSums, landmark_positions
from treelens.gp.panel import Cells
from treelens.gp.panel_posterior import LandmarkPanel, LeftOutBlock, Observed, members_of
from treelens.gp.posterior import JITTER, solve_upper
from treelens.kernels.base import Kernel
from treelens.parallel import blas_threads
from treelens.patterns.histograms import GraphViews


@dataclass(frozen=True, eq=False)
class SeenCells:
    """Cells as their covariance sees them."""

    graphs: GraphViews
    positions: np.ndarray  # (n_cells,) of the graph of each cell
    endpoints: np.ndarray  # (n_cells,)

    def select(self, positions: np.ndarray) -> SeenCells:
        """Return some of the cells."""
        return SeenCells(self.graphs, self.positions[positions], self.endpoints[positions])


@dataclass(frozen=True, eq=False)
class CellKernel:
    """Correlations of cells: covariances over the standard deviations of the endpoints."""

    kernels: tuple[Kernel, ...]  # of views
    shared: np.ndarray  # (n_views, n_endpoints, n_endpoints) B

    @property
    def variance(self) -> float:
        """The covariance of any cell with itself."""
        return 1.0

    @property
    def sizes(self) -> np.ndarray:
        """Standard deviations of the endpoints without noise, (n_endpoints,)."""
        return np.sqrt(np.diagonal(self.shared.sum(axis=0)))

    def matrix(self, left: SeenCells, right: SeenCells, n_jobs: int = 1) -> np.ndarray:
        """Return correlations between two sides, shape (n_left, n_right)."""
        rows, row_of = np.unique(left.positions, return_inverse=True)
        columns, column_of = np.unique(right.positions, return_inverse=True)
        sides = left.graphs.select(rows), right.graphs.select(columns)
        scaled = self.shared / np.outer(self.sizes, self.sizes)
        found = np.zeros((len(row_of), len(column_of)))
        for kernel, between, one, other in zip(self.kernels, scaled, *sides, strict=True):
            part = kernel.matrix(one, other, n_jobs)[row_of][:, column_of]
            part *= between[left.endpoints][:, right.endpoints]
            found += part
        return found


@dataclass(frozen=True, eq=False)
class CellsThroughLandmarks:
    """Measured cells, conditioned on through some of them."""

    fit: LandmarkFit[SeenCells]
    cells: Cells
    given: Observed
    landmarks: np.ndarray  # (m,) positions among the cells, ascending
    sums: LandmarkSums
    shared: np.ndarray  # (n_views, n_endpoints, n_endpoints) B

    @classmethod
    def given_observed(
        cls,
        kernel: CellKernel,
        graphs: GraphViews,
        cells: Cells,
        given: Observed,
        landmarks: np.ndarray,
        n_jobs: int = 1,
    ) -> CellsThroughLandmarks:
        """Condition on values, sites in the place of limits among them."""
        sizes = kernel.sizes[cells.endpoints]
        seen = SeenCells(graphs, cells.graphs, cells.endpoints)
        values = (given.values / sizes)[:, None]
        noise = given.noise / sizes**2
        fit = LandmarkFit(kernel, seen, noise, values, n_jobs)
        return cls(fit, cells, given, landmarks, fit.sums(landmarks), kernel.shared)

    @cached_property
    def posterior(self) -> LandmarkPanel:
        """What predicts new graphs."""
        found = self.sums.posterior(self.fit.n_jobs)
        basis = self.cells.select(self.landmarks)
        sizes = self._sizes[self.landmarks]
        gain = found.precision_gain / np.outer(sizes, sizes)
        return LandmarkPanel(basis, self.shared, found.coefficients[:, 0] / sizes, gain)

    @property
    def _sizes(self) -> np.ndarray:
        return np.sqrt(np.diagonal(self.shared.sum(axis=0)))[self.cells.endpoints]

    def without_noise(self, seen: SeenCells) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and covariance of other cells, with unit variance a priori."""
        n_jobs = self.fit.n_jobs
        sums = self.sums
        rows = self.fit.kernel.matrix(seen, self.fit.graphs.select(self.landmarks), n_jobs)
        half = solve_upper(sums.factor, rows.T, transposed=True, n_jobs=n_jobs)
        inner = solve_upper(sums.inner_factor, half, transposed=True, n_jobs=n_jobs)
        with blas_threads(n_jobs):
            left = inner.T @ inner - half.T @ half
        left += self.fit.kernel.matrix(seen, seen, n_jobs)
        return half.T @ sums.inner_solution[:, 0], left

    def left_out_blocks(self, groups: np.ndarray) -> list[LeftOutBlock]:
        """Return the cells of each group given all others; ``groups`` (n_cells,) are numbers.

        A new graph is no landmark: those of a group are left out as landmarks, too.
        """
        found = list[LeftOutBlock]()
        n_jobs = self.fit.n_jobs
        sizes = self._sizes
        landmark = np.full(len(groups), -1)
        landmark[self.landmarks] = np.arange(len(self.landmarks))
        anchors = self.fit.graphs.select(self.landmarks)
        for blocks in _some_at_a_time(members_of(groups)):
            positions = np.concatenate(blocks)
            seen = self.fit.graphs.select(positions)
            rows = self.fit.kernel.matrix(seen, anchors, n_jobs)
            half = solve_upper(self.sums.factor, rows.T, transposed=True, n_jobs=n_jobs)
            inner = solve_upper(self.sums.inner_factor, half, transposed=True, n_jobs=n_jobs)
            among = self.fit.kernel.matrix(seen, seen, n_jobs)
            stop = 0
            for members in blocks:
                here = slice(stop, stop := stop + len(members))
                own = _Group(half[:, here], inner[:, here], among[here, here])
                noise = self.fit.noise[members]
                values = self.fit.targets[members, 0]
                anchored = landmark[members]
                mean, covariance = own.left_out(self.sums, anchored[anchored >= 0], noise, values)
                scale = sizes[members]
                used = self.given.noise[members]
                covariance = covariance * np.outer(scale, scale) + np.diag(used)
                found.append(LeftOutBlock(members, scale * mean, covariance, used))
        return found


@dataclass(frozen=True, eq=False)
class _Group:
    """Cells that are left out together, n of them."""

    half: np.ndarray  # (m, n) V
    inner: np.ndarray  # (m, n) inv(R') V
    among: np.ndarray  # (n, n) their covariance

    def left_out(
        self, sums: LandmarkSums, landmarks: np.ndarray, noise: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and covariance of the cells without them and without their landmarks."""
        explained = self.half.T @ self.half
        left = self.inner.T @ self.inner  # K J K', J = inv(K_mm + K_mn inv(N) K_nm)
        mean = self.half.T @ sums.inner_solution[:, 0]
        if len(landmarks):  # rows and columns of inv(K_mm) and of J go
            own = sums.outer[:, landmarks]
            cross = self.half.T @ own
            explained -= cross @ np.linalg.solve(own.T @ own, cross.T)
            right = own.T @ sums.inner_solution[:, 0]
            own = sums.inner_outer[:, landmarks]
            cross = self.inner.T @ own
            square = own.T @ own
            mean -= cross @ np.linalg.solve(square, right)
            left -= cross @ np.linalg.solve(square, cross.T)
        share = left / noise
        without = np.linalg.inv(np.eye(len(noise)) - share)
        covariance = self.among - explained + without @ left
        return without @ (mean - share @ values), 0.5 * (covariance + covariance.T)


def _some_at_a_time(groups: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yield groups of cells, so many that there is room for their kernel rows."""
    some = list[np.ndarray]()
    n = 0
    for members in groups:
        if some and n + len(members) > BLOCK:
            yield some
            some = []
            n = 0
        some.append(members)
        n += len(members)
    yield some


def chosen_landmarks(
    kernel: CellKernel,
    graphs: GraphViews,
    cells: Cells,
    noise: np.ndarray,
    first: np.ndarray,
    n_landmarks: int,
) -> np.ndarray:
    """Return positions of landmarks: ``first``, and cells that these explain worst.

    Each endpoint has its share of them: by the residuals of all, easy endpoints would have few.
    """
    sizes = kernel.sizes[cells.endpoints]
    seen = SeenCells(graphs, cells.graphs, cells.endpoints)
    fit = LandmarkFit(kernel, seen, noise / sizes**2, (cells.values / sizes)[:, None])
    return landmark_positions(fit, first, n_landmarks, cells.endpoints)


def through_landmarks(
    kernel: CellKernel,
    graphs: GraphViews,
    cells: Cells,
    noise: np.ndarray,
    landmarks: np.ndarray,
    n_jobs: int = 1,
) -> CellsThroughLandmarks:
    """Condition on cells with noise variances (n_cells,), of which some may be limits.

    These become sites, given all measured values.
    """
    given = Observed(cells.values, noise)
    limited = np.flatnonzero(cells.limits)
    if len(limited):
        exact = np.flatnonzero(cells.limits == 0)
        some = Observed(cells.values[exact], noise[exact])
        anchors = np.searchsorted(exact, landmarks[cells.limits[landmarks] == 0])
        within = cells.select(exact), some, anchors
        before = CellsThroughLandmarks.given_observed(kernel, graphs, *within, n_jobs)
        seen = SeenCells(graphs, cells.graphs, cells.endpoints).select(limited)
        mean, covariance = before.without_noise(seen)
        covariance[np.diag_indices_from(covariance)] += JITTER
        sizes = kernel.sizes[cells.endpoints[limited]]
        limits = Limits(
            cells.values[limited] / sizes, cells.limits[limited], noise[limited] / sizes**2
        )
        sites = fit_sites(limits, mean, covariance, n_jobs=n_jobs)
        values = cells.values.copy()
        variances = noise.copy()
        values[limited], variances[limited] = sites.mean * sizes, sites.variance * sizes**2
        given = Observed(values, variances)
    return CellsThroughLandmarks.given_observed(kernel, graphs, cells, given, landmarks, n_jobs)
