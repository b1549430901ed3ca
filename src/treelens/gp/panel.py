"""One Gaussian process of several endpoints with gaps: its evidence, posterior and predictions.

An observation is a *cell*: a graph and an endpoint. With ``k_v`` the kernel of view ``v``,

    cov(f_t(G), f_s(G')) = sum over v of B_v[t, s] k_v(G, G'),     B_v = L_v L_v' + diag(kappa_v),

and every endpoint has a noise of its own. ``B_v`` says how much of an endpoint the view explains,
and how much of that it shares with others. Matrices are computed among graphs, and gathered to the
cells. With one endpoint this is the process of :mod:`treelens.gp.evidence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from treelens.gp.censoring import Limits, Sites, fit_sites, given_exact
from treelens.gp.evidence import FEWEST_ROUNDED, LEAST_ROUNDED, NOISE, pull_of
from treelens.gp.posterior import (
    JITTER,
    cholesky_in_place,
    inverse_in_place,
    solve_factored,
)
from treelens.gp.terms import SearchedTerm, TermParameters
from treelens.kernels.gram import mirrored
from treelens.kernels.mixture import row_blocks
from treelens.parallel import in_threads

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

RANK = 2  # columns of L
_LOGIT_SPREAD = 2.0  # that of one endpoint is narrower: siblings say more about weights
# Standard deviations of the priors, on the entries of L relative to the size that is usual for the
# endpoint, and on log kappa. They are wide: an endpoint that a view explains well needs an
# amplitude far above the usual one.
_LOADING_SPREAD = 3.0
_OWN_SPREAD = 2.5


class CellTable(NamedTuple):
    """What is known of graphs (rows) and endpoints (columns)."""

    values: np.ndarray  # (n_graphs, n_endpoints) of about unit size, NaN in gaps
    factors: np.ndarray  # of the noise variance of an endpoint: 1 / sample weight
    known: np.ndarray  # variances of noise that is known, on top of that of the endpoint
    limits: np.ndarray  # 1 where the value is a lower limit, -1 where it is an upper one, else 0

    @classmethod
    def plain(cls, values: np.ndarray) -> CellTable:
        """Return values of which nothing more is known."""
        zeros = np.zeros(values.shape)
        return cls(values, np.ones(values.shape), zeros, zeros.astype(np.int64))

    def select(self, graphs: np.ndarray) -> CellTable:
        """Return the rows of some graphs."""
        return CellTable(*(part[graphs] for part in self))

    def columns(self, endpoints: Sequence[int]) -> CellTable:
        """Return the columns of some endpoints."""
        return CellTable(*(part[:, list(endpoints)] for part in self))

    @property
    def exact(self) -> np.ndarray:
        """The values that were measured, NaN in gaps and where only a limit is known."""
        return np.where(self.limits == 0, self.values, np.nan)


class Cells(NamedTuple):
    """Measured cells, ordered by graph."""

    graphs: np.ndarray  # (n_cells,) ascending
    endpoints: np.ndarray  # (n_cells,)
    values: np.ndarray  # (n_cells,)
    factors: np.ndarray  # (n_cells,) as in CellTable, and so the next two
    known: np.ndarray  # (n_cells,)
    limits: np.ndarray  # (n_cells,)
    n_endpoints: int

    @classmethod
    def of(cls, table: CellTable) -> Cells:
        """Return the cells of a table that are not NaN."""
        graphs, endpoints = np.nonzero(~np.isnan(table.values))
        values, factors, known, limits = (part[graphs, endpoints] for part in table)
        n_endpoints = table.values.shape[1]
        return cls(graphs, endpoints, values, factors, known, limits, n_endpoints)

    def select(self, positions: np.ndarray) -> Cells:
        """Return the cells at some positions."""
        parts = zip(self._fields[:-1], self[:-1], strict=True)
        return self._replace(**{name: part[positions] for name, part in parts})

    def noise(self, of_endpoints: np.ndarray) -> np.ndarray:
        """Return noise variances of the cells, from those of their endpoints."""
        return of_endpoints[self.endpoints] * self.factors + self.known

    @property
    def one_hot(self) -> np.ndarray:
        """Which endpoint each cell is of, shape (n_cells, n_endpoints)."""
        return np.eye(self.n_endpoints)[self.endpoints]

    def sums_by_endpoint(self, values: np.ndarray) -> np.ndarray:
        """Return sums over the cells of each endpoint, shape (n_endpoints,)."""
        return np.bincount(self.endpoints, values, self.n_endpoints)


class Sharing(NamedTuple):
    """How the endpoints share what one view explains."""

    loadings: np.ndarray  # (n_endpoints, rank) L
    log_own: np.ndarray  # (n_endpoints,) log kappa

    @property
    def matrix(self) -> np.ndarray:
        """``B``, shape (n_endpoints, n_endpoints)."""
        return self.loadings @ self.loadings.T + np.diag(np.exp(self.log_own))

    def slopes(self, pairs: np.ndarray, own: np.ndarray) -> Sharing:
        """Return slopes from those in ``B``.

        ``pairs`` (n_endpoints, n_endpoints) are sums over ordered pairs of cells, ``own``
        (n_endpoints,) over cells with themselves.
        """
        both = pairs + pairs.T + 2.0 * np.diag(own)
        own_slopes = np.exp(self.log_own) * (np.diagonal(pairs) + own)
        return Sharing(both @ self.loadings, own_slopes)


class PanelParameters(NamedTuple):
    """Everything that the evidence of a panel decides."""

    terms: tuple[TermParameters, ...]  # with amplitudes of one
    sharing: tuple[Sharing, ...]
    log_noise: np.ndarray  # (n_endpoints,)

    @property
    def shared(self) -> tuple[np.ndarray, ...]:
        """``B`` of each view."""
        return tuple(each.matrix for each in self.sharing)


@dataclass(frozen=True, eq=False)
class PanelProblem:
    """Graphs in all views, and the cells that are measured."""

    views: tuple[SearchedTerm, ...]
    cells: Cells
    usual: PanelParameters  # where a search begins, and the middle of the priors
    n_jobs: int = 1

    @property
    def n_graphs(self) -> int:
        """The size of the problem, for tolerances: its cells."""
        return len(self.cells.values)

    @cached_property
    def scale_bounds(self) -> np.ndarray:
        """The lowest and the highest of the numbers that are searched, shape (n, 2)."""
        kernels = [each.bounds for view in self.views for each in view.KERNEL.PARAMETERS]
        n = self.cells.n_endpoints
        sharing = [(-30.0, 30.0)] * (n * min(RANK, n)) + [(np.log(1e-6), np.log(1e3))] * n
        return np.array([*kernels, *(sharing * len(self.views)), *([NOISE.bounds] * n)])

    @property
    def n_scales(self) -> int:
        return len(self.scale_bounds)

    def dtype_for(self, parameters: PanelParameters) -> type:
        """float32 where its rounding changes no result, else float64; as of one endpoint."""
        if self.cells.limits.any():
            return np.float64
        noise = self.cells.noise(np.exp(parameters.log_noise))
        variance = np.diagonal(np.sum(parameters.shared, axis=0)).max()
        enough = noise.min() >= LEAST_ROUNDED * variance
        return np.float32 if enough and self.n_graphs >= FEWEST_ROUNDED else np.float64

    def vector(self, parameters: PanelParameters, learned: str) -> np.ndarray:
        """Return the numbers that are searched: scales, and with "depths" weights of levels."""
        logits = [own.level_logits for own in parameters.terms] if learned == "depths" else []
        return np.concatenate(
            [
                *(own.scales[:-1] for own in parameters.terms),
                *(np.append(each.loadings, each.log_own) for each in parameters.sharing),
                parameters.log_noise,
                *logits,
            ]
        )

    def replaced(
        self, parameters: PanelParameters, vector: np.ndarray, learned: str
    ) -> PanelParameters:
        """Return parameters with the numbers that are searched taken from ``vector``."""
        n = self.cells.n_endpoints
        sizes = [len(view.KERNEL.PARAMETERS) for view in self.views]
        n_loadings = parameters.sharing[0].loadings.size
        n_views = len(self.views)
        sizes += [n_loadings + n] * n_views + [n]
        sizes += [view.n_groups for view in self.views] if learned == "depths" else []
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        terms = [
            own._replace(scales=np.append(part, own.scales[-1]))
            for own, part in zip(parameters.terms, parts[:n_views], strict=True)
        ]
        if learned == "depths":
            logits = zip(terms, parts[2 * n_views + 1 :], strict=True)
            terms = [own._replace(level_logits=part) for own, part in logits]
        sharing = tuple(
            Sharing(part[:n_loadings].reshape(n, -1), part[n_loadings:])
            for part in parts[n_views : 2 * n_views]
        )
        return PanelParameters(tuple(terms), sharing, parts[2 * n_views])

    def prior(self, parameters: PanelParameters, learned: str) -> tuple[float, np.ndarray]:
        """Return minus the log of the Gaussian priors, up to a constant, and its slopes."""
        spreads = []
        middle = []
        for view in self.views:
            spreads += [each.spread for each in view.KERNEL.PARAMETERS]
            middle += view.usual_scales[:-1].tolist()
        total = np.sum([np.diagonal(each) for each in self.usual.shared], axis=0)
        for usual in self.usual.sharing:
            size = np.repeat(np.sqrt(total), usual.loadings.shape[1])
            spreads += (_LOADING_SPREAD * size).tolist()
            spreads += [_OWN_SPREAD] * len(usual.log_own)
            middle += [0.0] * usual.loadings.size + usual.log_own.tolist()
        spreads += [NOISE.spread] * self.cells.n_endpoints
        middle += self.usual.log_noise.tolist()
        vector = self.vector(parameters, learned)
        n_logits = len(vector) - len(middle)
        spreads += [_LOGIT_SPREAD] * n_logits
        off = (vector - np.append(middle, np.zeros(n_logits))) / np.array(spreads)
        return 0.5 * float(off @ off), off / np.array(spreads)


class PanelEvidence:
    """Objective and gradient of a panel, as a function of its parameters."""

    def __init__(self, problem: PanelProblem, dtype: DTypeLike = np.float64) -> None:
        self.problem, self.dtype = problem, dtype
        self._pairs = [view.pairs(problem.n_jobs, dtype) for view in problem.views]
        self._limited = np.flatnonzero(problem.cells.limits)
        self._sites: Sites | None = None  # in the place of limits

    def kernels(self, parameters: PanelParameters, learned: str = "uniform") -> list[np.ndarray]:
        """Return kernel values among the graphs, view by view."""
        n_graphs = int(self.problem.cells.graphs[-1]) + 1
        found = []
        for pairs, own in zip(self._pairs, parameters.terms, strict=True):
            matrix = np.zeros((n_graphs, n_graphs), self.dtype)
            pairs.add_to(matrix, own, learned)
            np.fill_diagonal(matrix, 1.0)
            found.append(mirrored(matrix, self.problem.n_jobs))
        return found

    def __call__(self, parameters: PanelParameters, learned: str) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient in the numbers that are searched."""
        problem = self.problem
        cells = problem.cells
        n_jobs = problem.n_jobs
        kernels = self.kernels(parameters, learned)
        shared = parameters.shared
        noise = np.exp(parameters.log_noise)
        variances = np.where(cells.limits == 0, cells.noise(noise), 0.0)
        matrix = cell_covariance(kernels, shared, variances, cells, n_jobs)
        values, log_ratio = self._with_sites(matrix, noise)
        factor = cholesky_in_place(matrix, n_jobs)
        half_log_determinant = float(np.log(np.diagonal(factor).astype(float)).sum())
        alpha = solve_factored(factor, values[:, None]).astype(float)  # (n_cells, 1)
        prior, prior_slopes = problem.prior(parameters, learned)
        value = 0.5 * float(values @ alpha[:, 0]) + half_log_determinant + prior - log_ratio
        inverse = inverse_in_place(factor, n_jobs)
        on_diagonal = 0.5 * (np.diagonal(inverse).astype(float) - alpha[:, 0] ** 2)
        pull = pull_of(inverse, alpha, n_jobs)
        own = cells.sums_by_endpoint(on_diagonal)
        in_kernels = []
        in_sharing = []
        in_logits = []
        for k, kernel in enumerate(kernels):
            by_pair = in_pairs_of_endpoints(pull, kernel, cells, n_jobs)
            slopes = parameters.sharing[k].slopes(by_pair, own * (1.0 + JITTER))
            in_sharing.append(np.append(slopes.loadings, slopes.log_own))
            of_graphs = in_pairs_of_graphs(pull, shared[k], cells, n_jobs)
            found = self._pairs[k].slopes(parameters.terms[k], of_graphs, learned, True)
            in_kernels.append(found.scales[:-1])
            in_logits.append(found.level_logits)
        in_noise = noise * cells.sums_by_endpoint(on_diagonal * cells.factors * (cells.limits == 0))
        in_noise += self._noise_of_limits(noise)
        slopes_of_all = np.concatenate([*in_kernels, *in_sharing, in_noise, *in_logits])
        return value, slopes_of_all + prior_slopes

    def _with_sites(self, matrix: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, float]:
        """Return values with sites in the place of limits, and :class:`Sites`' ratio.

        Variances of sites are added to the diagonal of ``matrix``, the covariance of the cells.
        """
        cells = self.problem.cells
        some = self._limited
        if not len(some):
            return cells.values, 0.0
        n_jobs = self.problem.n_jobs
        limits = self._limits(noise)
        prior = given_exact(mirrored(matrix.copy()), cells.values, cells.limits != 0, n_jobs)
        self._sites = sites = fit_sites(limits, *prior, self._sites, n_jobs)
        matrix[some, some] += sites.variance
        values = cells.values.copy()
        values[some] = sites.mean
        return values, sites.log_ratio(limits)

    def _limits(self, noise: np.ndarray) -> Limits:
        cells = self.problem.cells.select(self._limited)
        return Limits(cells.values, cells.limits, cells.noise(noise))

    def _noise_of_limits(self, noise: np.ndarray) -> np.ndarray:
        """Return slopes in the log noise of endpoints, of the probabilities that limits hold."""
        if self._sites is None:
            return np.zeros(len(noise))
        cells = self.problem.cells.select(self._limited)
        slopes = self._sites.noise_slopes(self._limits(noise))
        return cells.sums_by_endpoint(slopes * noise[cells.endpoints] * cells.factors)


def cell_covariance(
    kernels: list[np.ndarray],
    shared: Sequence[np.ndarray],
    noise: np.ndarray,
    cells: Cells,
    n_jobs: int = 1,
) -> np.ndarray:
    """Return the covariance of cells, with ``noise`` (n_cells,) on its diagonal.

    What lies below the diagonal has no meaning.
    """
    graphs = cells.graphs
    endpoints = cells.endpoints
    matrix = np.zeros((len(graphs), len(graphs)), kernels[0].dtype)

    def fill(rows: slice) -> None:
        later = slice(rows.start, None)
        block = matrix[rows, later]
        block[:] = 0.0
        for kernel, between in zip(kernels, shared, strict=True):
            part = kernel[graphs[rows]][:, graphs[later]]
            part *= between.astype(part.dtype)[endpoints[rows]][:, endpoints[later]]
            block += part

    in_threads(fill, row_blocks(*matrix.shape), n_jobs)
    own = np.arange(len(graphs))
    matrix[own, own] *= 1.0 + JITTER
    matrix[own, own] += noise
    return matrix


def in_pairs_of_endpoints(
    pull: np.ndarray, kernel: np.ndarray, cells: Cells, n_jobs: int = 1
) -> np.ndarray:
    """Return ``sum of pull * kernel`` over pairs of cells, by their endpoints.

    ``pull`` is that of :func:`pull_of`, and so in :func:`in_pairs_of_graphs`.
    """
    one_hot = cells.one_hot.astype(pull.dtype)

    def part(rows: slice) -> np.ndarray:
        later = slice(rows.start, None)
        block = pull[rows, later] * kernel[cells.graphs[rows]][:, cells.graphs[later]]
        return one_hot[rows].T @ (block @ one_hot[later])

    parts = in_threads(part, row_blocks(*pull.shape), n_jobs)
    return np.sum(parts, axis=0, dtype=float)


def in_pairs_of_graphs(
    pull: np.ndarray, shared: np.ndarray, cells: Cells, n_jobs: int = 1
) -> np.ndarray:
    """Return slopes in the kernel of pairs of graphs, above the diagonal, from those in cells."""
    endpoints = cells.endpoints
    n_graphs = int(cells.graphs[-1]) + 1
    present, starts = np.unique(cells.graphs, return_index=True)
    ends = np.append(starts[1:], len(endpoints))
    sums = np.zeros((n_graphs, n_graphs), pull.dtype)
    weights = shared.astype(pull.dtype)

    def part(rows: slice) -> None:
        first = int(starts[rows.start])
        last = int(ends[rows.stop - 1])
        block = pull[first:last, first:] * weights[endpoints[first:last]][:, endpoints[first:]]
        block[:, : last - first] = np.triu(block[:, : last - first], 1)
        by_graph = np.add.reduceat(block, starts[rows] - first, axis=0)
        own = np.ix_(present[rows], present[rows.start :])
        sums[own] = np.add.reduceat(by_graph, starts[rows.start :] - first, axis=1)

    in_threads(part, row_blocks(len(present), 4 * pull.shape[1]), n_jobs)
    return np.triu(sums, 1)  # cells are ordered by graph, so nothing is below the diagonal
