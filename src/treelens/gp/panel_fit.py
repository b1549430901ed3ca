"""The fit of a panel: single processes, a joint search that begins with them, and who stands alone.

Kernels, and what endpoints share, are searched on a sample that has small endpoints whole; the
posterior is that of all cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from treelens.gp.data import TrainingView
from treelens.gp.evidence import EvidenceParameters, EvidenceProblem
from treelens.gp.panel import (
    RANK,
    Cells,
    LeftOutBlock,
    LoneEndpoint,
    PanelEvidence,
    PanelParameters,
    PanelPosterior,
    PanelProblem,
    Sharing,
    with_lone,
)
from treelens.gp.panel_model import (
    FittedPanel,
    LeftOutPanel,
    PanelEndpoint,
    PanelProcess,
    PanelRecord,
)
from treelens.gp.posterior import inverse_in_place
from treelens.gp.search import EvidenceFit, Stage, Tick, maximise_evidence
from treelens.gp.terms import TermParameters
from treelens.gp.views import shown_by
from treelens.graphs.recipe import GraphRecipe
from treelens.models.predictions import TrainingGraphs, choose_threshold, fit_slope
from treelens.patterns.histograms import replicate_numbers

_SHARED = 0.5  # of what a view explains of an endpoint alone, where the joint search begins
_LEAST_AMPLITUDE = 1e-3
_LEAST_NOISE = 0.02
_FEWEST_PAIRS = 10  # of values of two endpoints that tell how they go together
# Shares of a single process in the predictions that are nearer to none or all of it than this.
_SMALL_SHARE = 0.1
# Cells that say of an endpoint, before any is looked at, that it is best to share.
_PRIOR_CELLS = 50


class PanelSettings(NamedTuple):
    """How to fit a panel."""

    weights: str = "depths"  # or "uniform"
    learning_size: int = 3000  # cells
    max_steps: int = 100
    seed: int = 0
    threshold: Any = "auto"  # of classes
    n_jobs: int = 1
    tick: Tick = lambda what: None

    @property
    def stages(self) -> tuple[str, ...]:
        return ("uniform",) if self.weights == "uniform" else ("uniform", "depths")


class Single(NamedTuple):
    """What the search of one endpoint by itself has found."""

    terms: tuple[TermParameters, ...]  # with amplitudes of one, of all patterns
    amplitudes: np.ndarray  # (n_views,)
    noise: float


@dataclass(frozen=True, eq=False)
class _Panel:
    """Training graphs in all views, and their standardised values."""

    views: tuple[TrainingView, ...]
    table: np.ndarray  # (n_graphs, n_endpoints), NaN in gaps
    copies: np.ndarray  # (n_graphs,) numbers that equal graphs share
    parts: np.ndarray  # (n_ways, n_graphs) numbers of parts that are unlike each other
    settings: PanelSettings

    def process(
        self,
        columns: Sequence[int],
        terms: Sequence[TermParameters],
        shared: Sequence[np.ndarray],
        noise: np.ndarray,
    ) -> PanelProcess:
        """Return a process of some endpoints, given all their cells."""
        fitted = tuple(view.fitted(own) for view, own in zip(self.views, terms, strict=True))
        kernels = tuple(
            view.covariance(own).kernel for view, own in zip(self.views, terms, strict=True)
        )
        shown = shown_by(fitted, tuple(view.stored for view in self.views))
        n_jobs, cells = self.settings.n_jobs, self.cells(columns)
        among = [
            kernel.matrix(own, own, n_jobs) for kernel, own in zip(kernels, shown, strict=True)
        ]
        found = PanelPosterior.fit(among, shared, noise, cells, n_jobs)
        return PanelProcess(
            np.array(columns, dtype=np.int64),
            fitted,
            kernels,
            tuple(shared),
            noise,
            found.coefficients,
            factor=found.factor,
        )

    def cells(self, columns: Sequence[int]) -> Cells:
        return Cells.of(self.table[:, list(columns)])


def fit_panel(
    views: tuple[TrainingView, ...],
    training: TrainingGraphs,
    endpoints: Sequence[PanelEndpoint],
    settings: PanelSettings,
    parts: np.ndarray,
    recipe: GraphRecipe | None = None,
) -> FittedPanel:
    """Fit all endpoints together.

    ``training`` has the learned values (n_graphs, n_endpoints), NaN in gaps; offsets, scales and
    probabilities of the endpoints are filled in. ``parts`` (n_ways, n_graphs) divide the
    graphs into parts that are unlike each other: what predicts one from the others is trusted.
    """
    values = training.targets
    scaled = [_scaled(each, values[:, k]) for k, each in enumerate(endpoints)]
    offset = np.array([each.offset for each in scaled])
    scale = np.array([each.scale for each in scaled])
    copies = replicate_numbers(view.data for view in views)
    copies = np.arange(len(values)) if copies is None else copies
    panel = _Panel(views, (values - offset) / scale, copies, parts, settings)
    singles = [_single(panel, k) for k in range(len(scaled))]
    joint, search, n_learning = _joint(panel, singles)
    alone, left_out = _chosen(panel, joint, singles)
    left_out = LeftOutPanel(
        offset + scale * left_out.new,
        scale * left_out.new_std,
        offset + scale * left_out.gap,
        scale * left_out.gap_std,
        offset + scale * left_out.single,
    )
    done = tuple(
        _with_probabilities(each, values[:, k], left_out.new[:, k], settings.threshold)
        for k, each in enumerate(scaled)
    )
    history = pd.DataFrame([vars(step) for step in search.history])
    record = PanelRecord(settings.weights, history, search.converged, n_learning, left_out)
    return FittedPanel(done, joint, alone, training, record, recipe)


def _scaled(endpoint: PanelEndpoint, values: np.ndarray) -> PanelEndpoint:
    """Return the endpoint with the mean and the deviation of its values."""
    scale = float(np.nanstd(values))
    return replace(endpoint, offset=float(np.nanmean(values)), scale=scale if scale > 0 else 1.0)


def _with_probabilities(
    endpoint: PanelEndpoint, values: np.ndarray, left_out: np.ndarray, threshold: Any
) -> PanelEndpoint:
    """Return the endpoint with what makes classes of decision values left out."""
    if endpoint.classes is None:
        return endpoint
    known = ~np.isnan(values)
    codes, decisions = (values[known] > 0).astype(int), left_out[known]
    slope = fit_slope(decisions[:, None], codes, np.ones(len(codes)))
    calibrated = replace(endpoint, slope=slope)
    chosen = choose_threshold(threshold, calibrated.probabilities(decisions), codes)
    return replace(calibrated, threshold=chosen)


# --- what endpoints are alone ---------------------------------------------------------------------


def _single(panel: _Panel, column: int) -> Single:
    """Search the process of one endpoint by itself, on a sample of its values."""
    settings, own = panel.settings, panel.table[:, [column]]
    sample = sampled_cells(own, settings.learning_size, settings.seed)[:, 0]
    positions = np.flatnonzero(~np.isnan(sample))
    found = [view.term(positions, None) for view in panel.views]
    problem = EvidenceProblem(
        tuple(term for term, _ in found),
        sample[positions][:, None],
        np.ones(len(positions)),
        settings.n_jobs,
    )
    at: EvidenceParameters | None = None
    for stage in settings.stages:
        more = {"max_steps": settings.max_steps, "tick": settings.tick}
        at = maximise_evidence(problem, stage, at, **more).parameters  # type: ignore[arg-type]
    assert at is not None
    pairs = zip(panel.views, at.terms, strict=True)
    amplitudes = [view.covariance(own).amplitude for view, own in pairs]
    masks = [mask for _, mask in found]
    terms = (own.widened(mask) for own, mask in zip(at.terms, masks, strict=True))
    return Single(tuple(terms), np.array(amplitudes), at.noise)


# --- what they share ------------------------------------------------------------------------------


def _joint(panel: _Panel, singles: Sequence[Single]) -> tuple[PanelProcess, EvidenceFit, int]:
    """Return the joint process of all cells, the end of its search, and the cells it saw."""
    settings = panel.settings
    sample = sampled_cells(panel.table, settings.learning_size, settings.seed)
    positions = np.flatnonzero((~np.isnan(sample)).any(axis=1))
    found = [view.term(positions, None) for view in panel.views]
    cells, masks = Cells.of(sample[positions]), [mask for _, mask in found]
    usual = joined(panel.table, singles, masks)
    problem = PanelProblem(tuple(term for term, _ in found), cells, usual, settings.n_jobs)
    stage = settings.stages[-1]
    evaluate = PanelEvidence(problem)
    search = Stage(problem, stage, usual, evaluate, settings.tick).run(settings.max_steps)
    at: PanelParameters = search.parameters
    terms = [own.widened(mask) for own, mask in zip(at.terms, masks, strict=True)]
    columns = range(panel.table.shape[1])
    process = panel.process(columns, terms, at.shared, np.exp(at.log_noise))
    return process, search, len(cells.values)


def joined(
    table: np.ndarray, singles: Sequence[Single], masks: Sequence[np.ndarray]
) -> PanelParameters:
    """Return where the joint search begins, and the middle of its priors: single processes.

    Kernels are means over the endpoints, weighted by their values; endpoints go together as their
    values do. ``masks`` are the patterns, by view, that the search is about.
    """
    counts = (~np.isnan(table)).sum(axis=0)
    loadings = loadings_to_begin_with(table, min(RANK, table.shape[1]))
    terms, sharing = [], []
    for view, mask in enumerate(masks):
        own = [each.terms[view] for each in singles]
        amplitude = np.maximum([each.amplitudes[view] for each in singles], _LEAST_AMPLITUDE)
        amplitude = 0.5 * (amplitude + np.average(amplitude, weights=counts))
        scales = np.average([each.scales for each in own], axis=0, weights=counts)
        logits = np.average([each.level_logits for each in own], axis=0, weights=counts)
        scales[-1] = 0.0  # the logarithm of an amplitude of one
        terms.append(TermParameters(scales, logits, own[0].deviations[mask]))
        shared = np.sqrt(_SHARED * amplitude)[:, None] * loadings
        sharing.append(Sharing(shared, np.log((1.0 - _SHARED) * amplitude)))
    noise = np.log([max(each.noise, _LEAST_NOISE) for each in singles])
    return PanelParameters(tuple(terms), tuple(sharing), noise)


def loadings_to_begin_with(table: np.ndarray, rank: int) -> np.ndarray:
    """Return rows of unit length whose products are about the correlations of the values."""
    known = ~np.isnan(table)
    filled = np.where(known, table, 0.0)
    pairs = known.T.astype(float) @ known
    sizes = np.sqrt((filled.T**2 @ known) * (known.T @ filled**2))
    correlation = np.divide(filled.T @ filled, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    correlation = np.where(pairs >= _FEWEST_PAIRS, correlation, 0.0)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    found = vectors[:, ::-1][:, :rank] * np.sqrt(np.maximum(values[::-1][:rank], _LEAST_AMPLITUDE))
    found += _LEAST_AMPLITUDE  # no row is nothing
    return found / np.linalg.norm(found, axis=1, keepdims=True)


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


# --- what is left to single processes -------------------------------------------------------------


def _chosen(
    panel: _Panel, joint: PanelProcess, singles: Sequence[Single]
) -> tuple[tuple[PanelProcess, ...], LeftOutPanel]:
    """Return processes of endpoints that have a share in predictions, and predictions left out."""
    table, columns = panel.table, joint.columns.tolist()
    cells, posterior = panel.cells(columns), joint.posterior(panel.cells(columns))
    blocks, far = _left_out(panel, posterior, cells)
    alone, lone, single = [], {}, np.full(table.shape, np.nan)
    for k, found in enumerate(singles):
        shared = [np.array([[amplitude]]) for amplitude in found.amplitudes]
        process = panel.process([k], found.terms, shared, np.array([found.noise]))
        own = panel.cells([k])
        its_blocks, its_far = _left_out(panel, process.posterior(own), own)
        means = [(each.members, each.mean) for each in its_blocks]
        spreads = [(each.members, np.diagonal(each.covariance)) for each in its_blocks]
        mean, variance = (_tabled(table[:, [k]], own, some)[:, 0] for some in (means, spreads))
        single[:, k] = mean
        if (share := share_alone(table[:, k], far[:, :, k], its_far[:, :, 0])) > 0:
            alone.append(replace(process, share=share))
            lone[k] = LoneEndpoint(mean, variance, found.noise, share)
    blocks = [with_lone(each, cells, posterior.noise, lone) for each in blocks]
    tables = _left_out_tables(table, cells, blocks)
    return tuple(alone), LeftOutPanel(**tables, single=single)


def _left_out(
    panel: _Panel, posterior: PanelPosterior, cells: Cells
) -> tuple[list[LeftOutBlock], np.ndarray]:
    """Return the cells of each graph without it, and means without its part of the graphs.

    The means are (n_ways, n_graphs, n_endpoints).
    """
    n_jobs, shape = panel.settings.n_jobs, (len(panel.table), cells.n_endpoints)
    inverse = inverse_in_place(posterior.factor.copy(), n_jobs)
    blocks = posterior.left_out_blocks(panel.copies[cells.graphs], n_jobs, inverse)
    far = []
    for parts in panel.parts:
        found = posterior.left_out_blocks(parts[cells.graphs], n_jobs, inverse)
        far.append(_tabled(np.empty(shape), cells, [(own.members, own.mean) for own in found]))
    return blocks, np.array(far)


def _left_out_tables(
    table: np.ndarray, cells: Cells, blocks: Sequence[LeftOutBlock]
) -> dict[str, np.ndarray]:
    """Return means and deviations of all cells, each without its graph, and without itself."""
    parts: dict[str, list[Any]] = {name: [] for name in ("new", "new_std", "gap", "gap_std")}
    for own in blocks:
        gap, variance = own.each_given_others(cells.values[own.members])
        spreads = np.sqrt(np.diagonal(own.covariance)), np.sqrt(variance)
        for name, values in zip(parts, (own.mean, spreads[0], gap, spreads[1]), strict=True):
            parts[name].append((own.members, values))
    return {name: _tabled(table, cells, found) for name, found in parts.items()}


def share_alone(truth: np.ndarray, joint: np.ndarray, single: np.ndarray) -> float:
    """Return the share of single predictions in the mean of both with the least squared error.

    ``truth`` is (n_graphs,), NaN in gaps, the predictions (n_ways, n_graphs). With few cells the
    share is smaller: small endpoints gain most from others, and tell least about it.
    """
    known = ~np.isnan(truth)
    if known.sum() < _FEWEST_PAIRS:
        return 0.0
    difference = (single - joint)[:, known]
    size = float((difference**2).sum()) * (1.0 + _PRIOR_CELLS / known.sum())
    share = float(((truth - joint)[:, known] * difference).sum()) / size if size > 0 else 0.0
    share = float(np.clip(share, 0.0, 1.0))
    if share < _SMALL_SHARE:
        return 0.0
    return 1.0 if share > 1.0 - _SMALL_SHARE else share


def _tabled(table: np.ndarray, cells: Cells, parts: Any) -> np.ndarray:
    """Return values of cells as a table, NaN in gaps; ``parts`` are pairs of cells and values."""
    found = np.full(table.shape, np.nan)
    for members, values in parts:
        found[cells.graphs[members], cells.endpoints[members]] = values
    return found
