"""A fitted panel, and its fit: a search on a sample of the cells, then all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from treelens.array_checks import LARGEST, check_array
from treelens.gp.data import TrainingView
from treelens.gp.panel import (
    Cells,
    PanelEvidence,
    PanelParameters,
    PanelPosterior,
    PanelProblem,
    cell_covariance,
    given_siblings,
)
from treelens.gp.posterior import cholesky_in_place
from treelens.gp.search import EvidenceFit, Stage, Tick
from treelens.gp.views import FittedView, StoredView, shown_by
from treelens.graphs.collection import GraphCollection
from treelens.graphs.recipe import GraphRecipe
from treelens.kernels.base import Kernel
from treelens.patterns.forest import SeenGraphs
from treelens.patterns.histograms import GraphViews

_FINAL_STEPS = 60


class PanelPredictions(NamedTuple):
    """Predictions of new graphs, in the units of the endpoints."""

    mean: np.ndarray  # (n_graphs, n_endpoints)
    covariance: np.ndarray | None  # (n_graphs, n_endpoints, n_endpoints), without noise
    out_of_vocabulary: np.ndarray  # (n_graphs,)


@dataclass(frozen=True, eq=False)
class FittedPanel:
    """One Gaussian process of several endpoints after training."""

    __derived__ = ("factor",)

    endpoints: tuple[str, ...]
    views: tuple[FittedView, ...]
    kernels: tuple[Kernel, ...]  # one for each view
    shared: tuple[np.ndarray, ...]  # (n_endpoints, n_endpoints) B, one for each view
    noise: np.ndarray  # (n_endpoints,) variances, on the scale of the standardised values
    offset: np.ndarray  # (n_endpoints,) values are offset + scale * f
    scale: np.ndarray  # (n_endpoints,)
    coefficients: np.ndarray  # (n_cells,)
    stored: tuple[StoredView, ...]  # what each view keeps of the training graphs
    values: np.ndarray = field(metadata={"nan": True})  # (n_graphs, n_endpoints), NaN in gaps
    recipe: GraphRecipe | None
    left_out: LeftOutPanel
    factor: list[np.ndarray] = field(default_factory=list)  # of the cells, made when it is needed

    def validate(self) -> None:
        """Raise ``ValueError`` where the parts of a stored panel do not fit together."""
        n, n_graphs = len(self.endpoints), len(self.values)
        if n < 2 or len(set(self.endpoints)) < n:
            raise ValueError("a panel has two endpoints or more, of different names")
        parts = self.views, self.kernels, self.shared, self.stored
        if len({len(part) for part in parts}) > 1 or not self.views:
            raise ValueError("each view must have a kernel, what is shared, and training graphs")
        for view, own, between in zip(self.views, self.stored, self.shared, strict=True):
            view.check_stored(own, n_graphs)
            check_array(between, "shared", np.float64, (n, n), -LARGEST, LARGEST)
            if not np.allclose(between, between.T) or np.linalg.eigvalsh(between).min() < -1e-6:
                raise ValueError("what endpoints share must be a covariance")
        for name in ("noise", "scale"):
            check_array(getattr(self, name), name, np.float64, (n,), np.finfo(float).tiny)
        check_array(self.offset, "offset", np.float64, (n,))
        check_array(self.values, "values", np.float64, (n_graphs, n))
        for name in ("new", "new_std", "gap", "gap_std"):
            check_array(getattr(self.left_out, name), name, np.float64, (n_graphs, n))
        n_cells = int((~np.isnan(self.values)).sum())
        check_array(self.coefficients, "coefficients", np.float64, (n_cells,))

    def from_stored(self) -> FittedPanel:
        """Return the panel that a file keeps; the factor is made when variances need it."""
        return replace(self, factor=[])

    @cached_property
    def cells(self) -> Cells:
        """The measured cells, on the scale that is learned."""
        return Cells.of((self.values - self.offset) / self.scale)

    @cached_property
    def training_graphs(self) -> GraphViews:
        """All training graphs, in all views."""
        return shown_by(self.views, self.stored)

    def posterior(self, n_jobs: int = 1) -> PanelPosterior:
        """Return the posterior with all that variances need."""
        if not self.factor:
            graphs = zip(self.kernels, self.training_graphs, strict=True)
            among = [kernel.matrix(own, own, n_jobs) for kernel, own in graphs]
            matrix = cell_covariance(among, self.shared, self.noise, self.cells, n_jobs)
            self.factor.append(cholesky_in_place(matrix, n_jobs))
        return self._posterior(self.factor[0])

    def _posterior(self, factor: np.ndarray) -> PanelPosterior:
        shared = np.array(self.shared)
        return PanelPosterior(self.cells, shared, self.noise, self.coefficients, factor)

    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> SeenGraphs:
        """Return graphs as the views of the panel show them."""
        return SeenGraphs(tuple(view.refine(graphs, n_jobs) for view in self.views))

    def decide(
        self,
        graphs: GraphCollection,
        *,
        covariance: bool = False,
        measured: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> PanelPredictions:
        """Return means and, if asked for, covariances between the endpoints of each graph.

        ``measured`` (n_graphs, n_endpoints), in the units of the endpoints, are known cells.
        """
        seen = self.refine(graphs, n_jobs)
        triples = zip(self.kernels, seen.features, self.training_graphs, strict=True)
        rows = [kernel.matrix(new, old, n_jobs) for kernel, new, old in triples]
        mean, between = self._posterior(np.empty((0, 0))).mean(rows), None
        if covariance or measured is not None:
            between = self.posterior(n_jobs).covariance(rows, n_jobs)
        if measured is not None and between is not None:
            known = (measured - self.offset) / self.scale
            mean, between = given_siblings(mean, between, self.noise, known)
        if between is not None:
            between = between * np.outer(self.scale, self.scale)
        unseen = seen.patterns.histograms.out_of_vocabulary()
        return PanelPredictions(self.offset + self.scale * mean, between, unseen)


@dataclass(frozen=True, eq=False)
class LeftOutPanel:
    """Predictions of each measured cell without it, in the units of the endpoints.

    They answer two questions: ``new`` is for a molecule of which nothing was measured (all its
    cells are left out), ``gap`` for a gap beside other measurements of the same molecule.
    """

    # (n_graphs, n_endpoints), NaN where nothing was measured
    new: np.ndarray = field(metadata={"nan": True})
    new_std: np.ndarray = field(metadata={"nan": True})
    gap: np.ndarray = field(metadata={"nan": True})
    gap_std: np.ndarray = field(metadata={"nan": True})


def fit_panel(
    views: tuple[TrainingView, ...],
    table: np.ndarray,
    endpoints: tuple[str, ...],
    *,
    learning_size: int,
    seed: int,
    recipe: GraphRecipe | None,
    weights: str = "depths",
    max_steps: int = _FINAL_STEPS,
    n_jobs: int = 1,
    tick: Tick = lambda what: None,
) -> FittedPanel:
    """Fit all endpoints of a table (n_graphs, n_endpoints) together.

    Kernels and what endpoints share are searched on a sample that has small endpoints whole; the
    posterior is that of all cells.
    """
    offset, scale = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    standard = (table - offset) / scale
    sample = sampled_cells(standard, learning_size, seed)
    problem, present = _problem(views, sample, n_jobs)
    found: PanelParameters = _searched(problem, problem.start, max_steps, tick).parameters
    if weights == "depths":
        found = _searched(problem, found, max_steps, tick, "depths").parameters
    of_all = _spread(found, present)
    fitted = tuple(view.fitted(own) for view, own in zip(views, of_all, strict=True))
    kernels = tuple(
        view.covariance(own).kernel for view, own in zip(views, found.terms, strict=True)
    )
    stored, cells = tuple(view.stored for view in views), Cells.of(standard)
    shown, shared = shown_by(fitted, stored), tuple(each.matrix for each in found.sharing)
    among = [kernel.matrix(own, own, n_jobs) for kernel, own in zip(kernels, shown, strict=True)]
    posterior = PanelPosterior.fit(among, shared, np.exp(found.log_noise), cells, n_jobs)
    return FittedPanel(
        endpoints,
        fitted,
        kernels,
        shared,
        posterior.noise,
        offset,
        scale,
        posterior.coefficients,
        stored,
        table,
        recipe,
        _left_out(posterior, table.shape, offset, scale, n_jobs),
        [posterior.factor],
    )


def sampled_cells(table: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return the table with NaN in all but so many cells; small endpoints stay whole."""
    known = ~np.isnan(table)
    counts = known.sum(axis=0)
    if counts.sum() <= size:
        return table
    low, high = 1, int(counts.max())
    while low < high:  # the largest number of cells of one endpoint for which all fit
        middle = (low + high + 1) // 2
        fits = np.minimum(counts, middle).sum() <= size
        low, high = (middle, high) if fits else (low, middle - 1)
    order = np.random.default_rng(seed).permutation(len(table))
    rank = np.cumsum(known[order], axis=0)
    kept = np.zeros_like(known)
    kept[order] = known[order] & (rank <= low)  # molecules in one order: cells of a few are kept
    return np.where(kept, table, np.nan)


def _problem(
    views: tuple[TrainingView, ...], table: np.ndarray, n_jobs: int
) -> tuple[PanelProblem, list[np.ndarray]]:
    """Return the problem of the measured graphs of a table, and masks of their patterns."""
    positions = np.flatnonzero((~np.isnan(table)).any(axis=1))
    found = [view.term(positions, None) for view in views]
    problem = PanelProblem(tuple(term for term, _ in found), Cells.of(table[positions]), n_jobs)
    return problem, [present for _, present in found]


def _searched(
    problem: PanelProblem,
    start: PanelParameters,
    max_steps: int,
    tick: Tick,
    stage: str = "uniform",
) -> EvidenceFit:
    return Stage(problem, stage, start, PanelEvidence(problem), tick).run(max_steps)


def _spread(parameters: PanelParameters, present: list[np.ndarray]) -> list[Any]:
    return [own.widened(mask) for own, mask in zip(parameters.terms, present, strict=True)]


def _left_out(
    posterior: PanelPosterior,
    shape: tuple[int, ...],
    offset: np.ndarray,
    scale: np.ndarray,
    n_jobs: int,
) -> LeftOutPanel:
    cells, tables = posterior.cells, []
    for by_graph in (True, False):
        found = posterior.leave_one_out(by_graph, n_jobs)
        mean, std = np.full(shape, np.nan), np.full(shape, np.nan)
        mean[cells.graphs, cells.endpoints] = found.mean[:, 0]
        std[cells.graphs, cells.endpoints] = np.sqrt(found.variance)
        tables += [offset + scale * mean, scale * std]
    return LeftOutPanel(*tables)


def check_panel(table: np.ndarray, endpoints: tuple[str, ...]) -> None:
    """Raise unless every endpoint has values to learn from."""
    counts = (~np.isnan(table)).sum(axis=0)
    few = [k for k, n in enumerate(counts.tolist()) if n < 2]
    if few:
        raise ValueError(
            f"The endpoint {endpoints[few[0]]!r} has {counts[few[0]]} values; 2 are needed."
        )
