"""A panel given its measured cells: what it predicts, and cells that are left out.

Predictions are sums over all cells or, through landmarks, over some: :mod:`treelens.gp.landmarks`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from treelens.gp.censoring import conditioned_on_limits
from treelens.gp.panel import Cells, cell_covariance
from treelens.gp.posterior import (
    JITTER,
    ScaledTargets,
    cholesky_in_place,
    inverse_in_place,
    solve_factored,
    solve_upper,
)
from treelens.kernels.base import Kernel
from treelens.kernels.gram import mirrored
from treelens.parallel import blas_threads
from treelens.patterns.histograms import GraphViews

_MOST_IN_DOUBLE = 12_000  # cells, of which the covariance is kept in float64
_REFINEMENTS = 3  # of coefficients by a factor in float32
_MOST_FOR_SITES = 6000  # cells that sites of limits are found with
_MOST_COVARIANCES = 2**26  # of new graphs with cells, for all endpoints: 512 MB
_FEWEST_TOGETHER = 16  # new graphs


def digits_for(n_cells: int) -> type:
    """Return the type of numbers of the covariance of cells: of many, there is room for float32."""
    return np.float64 if n_cells <= _MOST_IN_DOUBLE else np.float32


class AmongCells(NamedTuple):
    """Kernel values among the graphs that have cells, what endpoints share, and these cells."""

    kernels: list[np.ndarray]  # (n_own, n_own) each
    shared: Sequence[np.ndarray]
    cells: Cells  # whose graphs are those of the kernels

    @classmethod
    def of(
        cls,
        kernels: Sequence[Kernel],
        shared: Sequence[np.ndarray],
        graphs: GraphViews,
        cells: Cells,
        n_jobs: int = 1,
    ) -> AmongCells:
        """Return them for the graphs that have cells, which may be few of all.

        Views of one endpoint are summed, so that there is one matrix.
        """
        some, places = np.unique(cells.graphs, return_inverse=True)
        own = graphs if len(some) == graphs.patterns.pairs.n_graphs else graphs.select(some)
        cells = cells._replace(graphs=places)
        among = (
            kernel.matrix(view, view, n_jobs) for kernel, view in zip(kernels, own, strict=True)
        )
        if cells.n_endpoints > 1:
            return cls(list(among), shared, cells)
        variance = np.sum(shared, axis=0)  # (1, 1)
        total = np.zeros((len(some), len(some)))
        for matrix, between in zip(among, shared, strict=True):
            matrix *= between[0, 0] / variance[0, 0]
            total += matrix
        return cls([total], [variance], cells)

    def rounded(self, dtype: type) -> list[np.ndarray]:
        """Return the kernel values in numbers of a type."""
        return [own.astype(dtype, copy=False) for own in self.kernels]


class Observed(NamedTuple):
    """What a process is conditioned on: measured values, or sites in the place of limits."""

    values: np.ndarray  # (n_cells,)
    noise: np.ndarray  # (n_cells,) variances


@dataclass(frozen=True, eq=False)
class PanelPosterior(ABC):
    """A panel given its measured cells: sums over some cells, the basis."""

    basis: Cells
    shared: np.ndarray  # (n_views, n_endpoints, n_endpoints) B
    coefficients: np.ndarray  # (n_basis,)

    def weights_of_graphs(self, view: int, n_graphs: int) -> np.ndarray:
        """Return what a unit of a view's kernel with each graph adds: (n_graphs, n_endpoints)."""
        basis = self.basis
        found = np.zeros((n_graphs, basis.n_endpoints))
        parts = self.coefficients[:, None] * self.shared[view][basis.endpoints]
        np.add.at(found, basis.graphs, parts)
        return found

    def mean(self, rows: list[np.ndarray]) -> np.ndarray:
        """Return means (n_new, n_endpoints) from kernel values with the training graphs."""
        return np.sum(
            [own @ self.weights_of_graphs(k, own.shape[1]) for k, own in enumerate(rows)], axis=0
        )

    def covariance(self, rows: list[np.ndarray], n_jobs: int = 1) -> np.ndarray:
        """Return covariances between endpoints (n_new, n_endpoints, n_endpoints), without noise."""
        found = self.shared.sum(axis=0) - self.reduction(rows, n_jobs)
        every = np.arange(self.basis.n_endpoints)
        found[:, every, every] = np.maximum(found[:, every, every], 0.0)
        return found

    def reduction(self, rows: list[np.ndarray], n_jobs: int = 1) -> np.ndarray:
        """Return what measured cells take off covariances, (n_new, n_endpoints, n_endpoints).

        Differences of rows give what they take off those of the differences of graphs.
        """
        n_new, size = len(rows[0]), self.basis.n_endpoints * len(self.basis.values)
        step = max(_FEWEST_TOGETHER, _MOST_COVARIANCES // size)
        blocks = ([row[k : k + step] for row in rows] for k in range(0, n_new, step))
        found = [np.moveaxis(self._taken(self._across(x), n_jobs), 2, 0) for x in blocks]
        n = self.basis.n_endpoints
        return np.concatenate(found) if found else np.empty((0, n, n))

    def _across(self, rows: list[np.ndarray]) -> list[np.ndarray]:
        """Return covariances of some new graphs with the basis, (n_new, n_basis) by endpoint."""
        basis = self.basis
        across = []
        for endpoint in range(basis.n_endpoints):
            own = np.zeros((len(rows[0]), len(basis.values)))
            for row, shared in zip(rows, self.shared, strict=True):
                own += row[:, basis.graphs] * shared[endpoint][basis.endpoints]
            across.append(own)
        return across

    @abstractmethod
    def _taken(self, across: list[np.ndarray], n_jobs: int) -> np.ndarray:
        """Return what measured cells take off covariances, (n_endpoints, n_endpoints, n_new).

        ``across`` are covariances with the basis, (n_new, n_basis) for each endpoint.
        """


@dataclass(frozen=True, eq=False)
class ExactPanel(PanelPosterior):
    """A panel whose basis are all measured cells."""

    factor: np.ndarray  # (n_cells, n_cells) upper triangular U, U.T @ U == A
    given: Observed

    @classmethod
    def fit(
        cls,
        kernels: list[np.ndarray],
        shared: Sequence[np.ndarray],
        noise: np.ndarray,
        cells: Cells,
        n_jobs: int = 1,
    ) -> ExactPanel:
        """Condition on cells, whose noise variances are (n_cells,).

        ``kernels`` are among their graphs, in float32 where the factor shall be.
        """
        given = with_limits(cells, kernels, shared, noise, n_jobs)
        factor = cell_covariance(kernels, shared, given.noise, cells, n_jobs)
        factor = cholesky_in_place(factor, n_jobs)
        found = cls(cells, np.array(shared), np.zeros(len(noise)), factor, given)
        for _ in range(1 if factor.dtype == np.float64 else _REFINEMENTS):
            found = found._refined(kernels, n_jobs)
        return found

    def _refined(self, kernels: list[np.ndarray], n_jobs: int) -> ExactPanel:
        """Return the posterior without the error that rounding has left in its coefficients."""
        cells, given = self.basis, self.given
        left = given.values
        if self.coefficients.any():
            own = self.shared.sum(axis=0)[cells.endpoints, cells.endpoints] * JITTER + given.noise
            found = self.mean(kernels)[cells.graphs, cells.endpoints] + own * self.coefficients
            left = given.values - found
        change = solve_factored(self.factor, left[:, None], n_jobs)[:, 0].astype(float)
        return replace(self, coefficients=self.coefficients + change)

    def _taken(self, across: list[np.ndarray], n_jobs: int) -> np.ndarray:
        right = [own.astype(self.factor.dtype, copy=False).T for own in across]
        halves = [solve_upper(self.factor, own, transposed=True, n_jobs=n_jobs) for own in right]
        products = [[np.einsum("ij,ij->j", a, b) for b in halves] for a in halves]
        return np.array(products, dtype=float)

    def left_out_blocks(
        self, groups: np.ndarray, n_jobs: int = 1, inverse: np.ndarray | None = None
    ) -> list[LeftOutBlock]:
        """Return the cells of each group given all others; ``groups`` (n_cells,) are numbers.

        ``inverse`` (n_cells, n_cells) is the upper triangle of that of the covariance, if known.
        """
        if inverse is None:
            inverse = inverse_in_place(self.factor.copy(), n_jobs)
        found = []
        given = self.given
        for members in members_of(groups):
            block = inverse[np.ix_(members, members)].astype(float)
            covariance = np.linalg.inv(mirrored(block))
            mean = given.values[members] - covariance @ self.coefficients[members]
            found.append(LeftOutBlock(members, mean, covariance, given.noise[members]))
        return found


@dataclass(frozen=True, eq=False)
class LandmarkPanel(PanelPosterior):
    """A panel whose basis are landmarks, some of the cells."""

    gain: np.ndarray  # (m, m) as in LandmarkPosterior

    def _taken(self, across: list[np.ndarray], n_jobs: int) -> np.ndarray:
        with blas_threads(n_jobs):
            moved = [own @ self.gain for own in across]
        return np.array([[np.einsum("ij,ij->i", a, b) for b in across] for a in moved])


def with_limits(
    cells: Cells,
    kernels: list[np.ndarray],
    shared: Sequence[np.ndarray],
    noise: np.ndarray,
    n_jobs: int = 1,
) -> Observed:
    """Return values and noise variances, sites in the place of limits.

    ``noise`` (n_cells,) is that of measurements. Of many cells, sites are given those with limits
    and a sample of the others.
    """
    limited = cells.limits != 0
    if not limited.any():
        return Observed(cells.values, noise)
    order = np.random.default_rng(0).permutation(len(noise))
    order = order[np.argsort(~limited[order], kind="stable")]
    some = np.sort(order[: max(_MOST_FOR_SITES, int(limited.sum()))])
    own = cells.select(some)
    targets = ScaledTargets(own.values[:, None], np.zeros(1), 1.0, np.ones(len(some)), own.limits)
    matrix = cell_covariance(kernels, shared, np.zeros(len(some)), own, n_jobs).astype(float)
    found, used, _ = conditioned_on_limits(targets, mirrored(matrix), noise[some], n_jobs)
    sites = own.limits != 0
    values = cells.values.copy()
    values[limited] = found[sites, 0]
    variances = noise.copy()
    variances[limited] = used[sites]
    return Observed(values, variances)


# --- cells that are left out ----------------------------------------------------------------------


def members_of(groups: np.ndarray) -> list[np.ndarray]:
    """Return the positions of each group's members, from a number for each."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


class LeftOutBlock(NamedTuple):
    """Cells of one graph, predicted without any of them."""

    members: np.ndarray  # (n,) positions of the cells
    mean: np.ndarray  # (n,)
    covariance: np.ndarray  # (n, n) with the noise of what the process is conditioned on
    noise: np.ndarray  # (n,) variances of it, which are on the diagonal

    @property
    def quiet(self) -> np.ndarray:
        """Variances without noise, (n,)."""
        return np.maximum(np.diagonal(self.covariance) - self.noise, 0.0)

    def each_given_others(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of each cell, given the values of the others in the block."""
        precision = np.linalg.inv(self.covariance)
        own = np.diagonal(precision)
        return values - precision @ (values - self.mean) / own, 1.0 / own


class LoneEndpoint(NamedTuple):
    """What the process of an endpoint by itself predicts of its cells, each left out."""

    mean: np.ndarray  # (n_graphs,)
    variance: np.ndarray  # (n_graphs,) without noise
    noise: np.ndarray  # (n_graphs,) of what it is conditioned on
    share: float  # of its process in the predictions, from 0 to 1


def with_lone(block: LeftOutBlock, cells: Cells, lone: Mapping[int, LoneEndpoint]) -> LeftOutBlock:
    """Return a block in which means and deviations of some endpoints are of their own process, too.

    Correlations between the endpoints stay those of the joint process.
    """
    endpoints = cells.endpoints[block.members]
    graphs = cells.graphs[block.members]
    if not set(endpoints.tolist()) & set(lone):
        return block
    mean = block.mean.copy()
    added = block.noise.copy()
    ratio = np.ones(len(mean))
    quiet = block.covariance - np.diag(added)
    for k, own in lone.items():
        here = endpoints == k
        some = graphs[here]
        before = np.sqrt(np.maximum(np.diagonal(quiet)[here], np.finfo(float).tiny))
        mean[here] += own.share * (own.mean[some] - mean[here])
        ratio[here] += own.share * (np.sqrt(own.variance[some]) / before - 1.0)
        added[here] = blended_variance(added[here], own.noise[some], own.share)
    quiet = quiet * np.outer(ratio, ratio)
    return LeftOutBlock(block.members, mean, quiet + np.diag(added), added)


def blended_variance(joint: np.ndarray, single: np.ndarray, share: float) -> Any:
    """Return the square of the weighted mean of two standard deviations."""
    return ((1.0 - share) * np.sqrt(joint) + share * np.sqrt(single)) ** 2


def given_siblings(
    mean: np.ndarray, covariance: np.ndarray, noise: np.ndarray, measured: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions of graphs of which some endpoints are measured.

    ``mean`` (n, n_endpoints) and ``covariance`` (n, n_endpoints, n_endpoints) are those without,
    ``noise`` variances of measurements, of endpoints or of each graph, ``measured`` (n,
    n_endpoints) is NaN where nothing is known. A measured cell is predicted from the others of its
    graph, without its own measurement, and covaries with no other.
    """
    noise = np.broadcast_to(noise, mean.shape)
    mean, covariance = mean.copy(), covariance.copy()
    for k in np.flatnonzero((~np.isnan(measured)).any(axis=1)):
        known = ~np.isnan(measured[k])
        own = covariance[k].copy()
        off = (measured[k] - mean[k])[known]
        precision = np.linalg.inv(own[np.ix_(known, known)] + np.diag(noise[k, known]))
        gain = precision @ own[known][:, ~known]  # (n_known, n_gaps)
        mean[k, ~known] += off @ gain
        left = own[np.ix_(~known, ~known)] - own[np.ix_(~known, known)] @ gain
        covariance[k] = 0.0
        covariance[k][np.ix_(~known, ~known)] = left
        spread = 1.0 / np.diagonal(precision)  # of each measurement, given the others
        mean[k, known] = measured[k, known] - spread * (precision @ off)
        covariance[k][known, known] = np.maximum(spread - noise[k, known], 0.0)
    return mean, covariance
