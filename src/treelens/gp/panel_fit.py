"""The fit of a panel: single processes, a joint search that begins with them, and who stands alone.

Kernels, and what endpoints share, are searched on a sample that has small endpoints whole; the
posterior is that of all cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from treelens.array_checks import Columns
from treelens.gp.censoring import most_likely_noise
from treelens.gp.data import TrainingView
from treelens.gp.evidence import (
    USUAL_NOISE,
    EvidenceParameters,
    EvidenceProblem,
    RoundedEvidence,
    with_enough_digits,
)
from treelens.gp.panel import (
    RANK,
    Cells,
    CellTable,
    PanelEvidence,
    PanelParameters,
    PanelProblem,
    Sharing,
)
from treelens.gp.panel_landmarks import (
    CellKernel,
    CellsThroughLandmarks,
    chosen_landmarks,
    through_landmarks,
)
from treelens.gp.panel_model import (
    FittedPanel,
    LeftOutPanel,
    PanelEndpoint,
    PanelProcess,
    PanelRecord,
)
from treelens.gp.panel_posterior import (
    AmongCells,
    ExactPanel,
    LeftOutBlock,
    LoneEndpoint,
    blended_variance,
    digits_for,
    with_lone,
)
from treelens.gp.panel_spread import FEWEST, LocalSpread, local_surprise, most_likely_factors
from treelens.gp.posterior import inverse_in_place
from treelens.gp.search import EvidenceFit, Stage, Tick, maximise_evidence
from treelens.gp.terms import TermParameters
from treelens.gp.views import shown_by
from treelens.kernels.gram import mirrored
from treelens.kernels.weighted import similarities
from treelens.models.predictions import TrainingGraphs, choose_threshold, fit_slope
from treelens.patterns.histograms import replicate_numbers

_SHARED = 0.5  # of what a view explains of an endpoint alone, where the joint search begins
_LEAST_AMPLITUDE = 1e-3
_LEAST_NOISE = 0.02
_CELLS_OF_SINGLES = 3  # a single endpoint is searched on this part of the cells of the joint search
_BY_CHANCE = 4  # one landmark of so many is drawn, the others are chosen by what those leave open
_MOST_FOR_SPREAD = 1000  # graphs that local factors of variances are learned from
_FEWEST_PAIRS = 10  # of values of two endpoints that tell how they go together
# Shares of a single process in the predictions that are nearer to none or all of it than this.
_SMALL_SHARE = 0.1
# Cells that say of an endpoint, before any is looked at, that it is best to share.
_PRIOR_CELLS = 50


class PanelSettings(NamedTuple):
    """How to fit a panel."""

    weights: str = "depths"  # or "uniform"
    learning_size: int = 3000  # cells
    exact_size: int = 12_000  # cells, from which on predictions go through landmarks
    n_landmarks: int = 3000
    max_steps: int = 100
    seed: int = 0
    threshold: Any = "auto"  # of classes
    n_jobs: int = 1
    tick: Tick = lambda what: None

    @property
    def stages(self) -> tuple[str, ...]:
        return ("uniform",) if self.weights == "uniform" else ("uniform", "depths")


class _Conditioned(NamedTuple):
    """A process given its cells, and what tells of cells that are left out."""

    process: PanelProcess
    cells: Cells
    noise: np.ndarray  # (n_cells,) variances of measurements
    given: ExactPanel | CellsThroughLandmarks

    @property
    def in_double(self) -> bool:
        """Whether the factor is in float64: of many cells, there is no room for a copy of it."""
        return not isinstance(self.given, ExactPanel) or self.given.factor.dtype == np.float64


@dataclass(frozen=True, eq=False)
class _Panel:
    """Training graphs in all views, and their standardised values."""

    views: tuple[TrainingView, ...]
    table: CellTable
    copies: np.ndarray  # (n_graphs,) numbers that equal graphs share
    parts: np.ndarray  # (n_ways, n_graphs) numbers of parts that are unlike each other
    settings: PanelSettings

    def process(
        self,
        columns: Sequence[int],
        terms: Sequence[TermParameters],
        shared: Sequence[np.ndarray],
        noise: np.ndarray,
    ) -> _Conditioned:
        """Return a process of some endpoints, given all their cells."""
        fitted = tuple(view.fitted(own) for view, own in zip(self.views, terms, strict=True))
        kernels = tuple(
            view.covariance(own).kernel for view, own in zip(self.views, terms, strict=True)
        )
        shown = shown_by(fitted, tuple(view.stored for view in self.views))
        n_jobs = self.settings.n_jobs
        cells = self.cells(columns)
        of_cells = cells.noise(noise)
        landmarks = self._landmarks(columns)
        given: ExactPanel | CellsThroughLandmarks
        if landmarks is None:
            among = AmongCells.of(kernels, shared, shown, cells, n_jobs)

            def fitted_in(dtype: type) -> ExactPanel:
                values = among.rounded(dtype)
                return ExactPanel.fit(values, among.shared, of_cells, among.cells, n_jobs)

            exact: ExactPanel = with_enough_digits(fitted_in, digits_for(len(cells.values)))
            given = exact
            coefficients = exact.coefficients
            matrix = exact.factor
        else:
            kernel = CellKernel(kernels, np.array(shared))
            n = min(self.settings.n_landmarks, len(of_cells))
            landmarks = chosen_landmarks(kernel, shown, cells, of_cells, landmarks, n)
            given = through_landmarks(kernel, shown, cells, of_cells, landmarks, n_jobs)
            coefficients = given.posterior.coefficients
            matrix = given.posterior.gain
        process = PanelProcess(
            np.array(columns, dtype=np.int64),
            fitted,
            kernels,
            tuple(shared),
            noise + known_noise(cells),
            *given.given,
            coefficients,
            landmarks,
            factor=matrix,
        )
        return _Conditioned(process, cells, of_cells, given)

    def cells(self, columns: Sequence[int]) -> Cells:
        return Cells.of(self.table.columns(columns))

    def _landmarks(self, columns: Sequence[int]) -> np.ndarray | None:
        """Return some of the cells that stand for all; None where predictions are exact."""
        settings = self.settings
        table = self.table.columns(columns)
        known = ~np.isnan(table.values)
        size = max(settings.n_landmarks // _BY_CHANCE, 1)
        if known.sum() <= settings.exact_size:
            return None
        chosen = sampled_cells(table.values, size, settings.seed)
        return np.flatnonzero(~np.isnan(chosen[known]))

    def small(self) -> _Panel:
        """Return the same with so few cells that they are conditioned on exactly."""
        settings = self.settings
        size = min(settings.exact_size, 2 * settings.learning_size)
        values = sampled_cells(self.table.values, size, settings.seed)
        return replace(self, table=self.table._replace(values=values))


def known_noise(cells: Cells) -> np.ndarray:
    """Return the medians of the variances that are known of cells, (n_endpoints,)."""
    every = range(cells.n_endpoints)
    return np.array([np.median(cells.known[cells.endpoints == k]) for k in every])


def fit_panel(
    views: tuple[TrainingView, ...],
    training: TrainingGraphs,
    known: CellTable,
    endpoints: Sequence[PanelEndpoint],
    settings: PanelSettings,
    parts: np.ndarray,
) -> FittedPanel:
    """Fit all endpoints together.

    ``training`` are the graphs, ``known`` what is learned of them, values on the scales of the
    endpoints, whose offsets, sizes and probabilities are filled in. ``parts`` (n_ways, n_graphs)
    divide the graphs into parts that are unlike each other: what predicts one from the others is
    trusted.
    """
    values = known.values
    scaled = [_scaled(each, values[:, k]) for k, each in enumerate(endpoints)]
    offset = np.array([each.offset for each in scaled])
    scale = np.array([each.scale for each in scaled])
    copies = replicate_numbers(view.data for view in views)
    copies = np.arange(len(values)) if copies is None else copies
    known = known._replace(values=(values - offset) / scale, known=known.known / scale**2)
    panel = _Panel(views, known, copies, parts, settings)
    singles = [_single(panel, k) for k in range(len(scaled))]
    learned = _joint(panel, singles)
    joint, alone, left_out, far = _chosen(panel, learned, singles)
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
    history = Columns.of_rows([vars(step) for step in learned.search.history])
    converged = learned.search.converged
    n_cells = learned.n_cells
    record = PanelRecord(settings.weights, history, converged, n_cells, left_out)
    model = FittedPanel(done, joint, alone, training, record)
    return with_spread(model, far, panel)


def with_spread(model: FittedPanel, far: Far, panel: _Panel) -> FittedPanel:
    """Return the model with variances that depend on how well similar graphs were predicted."""
    left_out = model.record.left_out
    new_std = left_out.new_std.copy()
    gap_std = left_out.gap_std.copy()
    found = []
    for k, endpoint in enumerate(model.endpoints):
        measured = np.flatnonzero(~np.isnan(model.measured[:, k]))
        off = model.measured[measured, k] - left_out.new[measured, k]
        own = LocalSpread(0.0, 0.0, (off / left_out.new_std[measured, k]) ** 2)
        if len(measured) >= FEWEST and endpoint.classes is None:
            own = _learned_spread(model, own, measured, far.column(k), panel)
            factors = np.sqrt(_own_factors(model, own, measured, panel))
            new_std[measured, k] *= factors
            gap_std[measured, k] *= factors
        found.append(own)
    stds = replace(left_out, new_std=new_std, gap_std=gap_std)
    return replace(model, record=replace(model.record, left_out=stds), spread=tuple(found))


def _learned_spread(
    model: FittedPanel, own: LocalSpread, measured: np.ndarray, far: Far, panel: _Panel
) -> LocalSpread:
    """Return the most likely factors of the variances of an endpoint."""
    patterns = model.training_graphs.patterns
    known = np.flatnonzero(~np.isnan(far.truth[measured]))
    some = np.random.default_rng(panel.settings.seed).permutation(known)[:_MOST_FOR_SPREAD]
    graphs = measured[some]
    similarity = similarities(
        patterns.select(graphs), patterns.select(measured), panel.settings.n_jobs
    )
    surprise = []
    for parts in panel.parts:
        others = np.where(parts[graphs][:, None] == parts[measured], 0.0, similarity)
        surprise.append(local_surprise(others, own.surprise))
    errors = far.truth[graphs] - far.mean[:, graphs]
    given = errors.ravel(), far.variance[:, graphs].ravel(), np.concatenate(surprise)
    level, slope = most_likely_factors(*given, len(panel.parts))
    return replace(own, level=level, slope=slope)


def _own_factors(
    model: FittedPanel, own: LocalSpread, measured: np.ndarray, panel: _Panel
) -> np.ndarray:
    """Return factors of the variances of training graphs, without them and their copies."""
    patterns = model.training_graphs.patterns
    every = patterns.select(measured)
    copies = panel.copies[measured]
    found = []
    for rows in gen_batches(len(measured), _MOST_FOR_SPREAD):
        block = patterns.select(measured[rows])
        similarity = similarities(block, every, panel.settings.n_jobs)
        similarity[copies[rows][:, None] == copies] = 0.0
        found.append(own.factors(similarity))
    return np.concatenate(found)


def _scaled(endpoint: PanelEndpoint, values: np.ndarray) -> PanelEndpoint:
    """Return the endpoint with the mean and the deviation of its values."""
    scale = float(np.nanstd(values))
    return replace(endpoint, offset=float(np.nanmean(values)), scale=scale if scale > 0 else 1.0)


def _with_probabilities(
    endpoint: PanelEndpoint, values: np.ndarray, left_out: np.ndarray, threshold: float | str
) -> PanelEndpoint:
    """Return the endpoint with what makes classes of decision values left out."""
    if endpoint.classes is None:
        return endpoint
    known = ~np.isnan(values)
    codes = (values[known] > 0).astype(int)
    decisions = left_out[known]
    slope = fit_slope(decisions[:, None], codes, np.ones(len(codes)))
    calibrated = replace(endpoint, slope=slope)
    chosen = choose_threshold(threshold, calibrated.probabilities(decisions), codes)
    return replace(calibrated, threshold=chosen)


# --- what endpoints are alone ---------------------------------------------------------------------


class Single(NamedTuple):
    """What the search of one endpoint by itself has found."""

    terms: tuple[TermParameters, ...]  # with amplitudes of one, of all patterns
    amplitudes: np.ndarray  # (n_views,)
    noise: float

    def given(self, panel: _Panel, column: int) -> _Conditioned:
        """Return the process of all cells of the endpoint."""
        shared = [np.array([[amplitude]]) for amplitude in self.amplitudes]
        return panel.process([column], self.terms, shared, np.array([self.noise]))


def _single(panel: _Panel, column: int) -> Single:
    """Search the process of one endpoint by itself, on a sample of its values."""
    settings = panel.settings
    own = panel.table.columns([column])
    size = max(settings.learning_size // _CELLS_OF_SINGLES, _FEWEST_PAIRS)
    sample = sampled_cells(own.values, size, settings.seed)[:, 0]
    positions = np.flatnonzero(~np.isnan(sample))
    some = own.select(positions)
    limits = own.limits[positions, 0]
    found = [view.term(positions, None) for view in panel.views]
    problem = EvidenceProblem(
        tuple(term for term, _ in found),
        some.values,
        (some.factors + some.known / USUAL_NOISE)[:, 0],
        settings.n_jobs,
        limits if limits.any() else None,
    )
    at: EvidenceParameters | None = None
    for stage in settings.stages:
        more = {"max_steps": settings.max_steps, "tick": settings.tick}
        at = maximise_evidence(problem, stage, at, **more).parameters  # type: ignore[arg-type]
    assert at is not None
    noise = at.noise
    if some.known.any():  # which was taken to be proportional to that of the endpoint
        exact = np.flatnonzero(limits == 0)
        kernel = problem.kernel_matrix(at)[np.ix_(exact, exact)]
        given = some.known[exact, 0], some.values[exact]
        noise = most_likely_noise(kernel, *given, settings.n_jobs)
    pairs = zip(panel.views, at.terms, strict=True)
    amplitudes = [view.covariance(own).amplitude for view, own in pairs]
    masks = [mask for _, mask in found]
    terms = (own.widened(mask) for own, mask in zip(at.terms, masks, strict=True))
    return Single(tuple(terms), np.array(amplitudes), noise)


# --- what they share ------------------------------------------------------------------------------


class _Learned(NamedTuple):
    """What the joint search has found."""

    terms: tuple[TermParameters, ...]  # of all patterns
    shared: tuple[np.ndarray, ...]
    noise: np.ndarray
    search: EvidenceFit
    n_cells: int  # that it saw

    def given(self, panel: _Panel) -> _Conditioned:
        """Return the process of all cells."""
        columns = range(len(self.noise))
        return panel.process(columns, self.terms, self.shared, self.noise)


def _joint(panel: _Panel, singles: Sequence[Single]) -> _Learned:
    """Search for what the endpoints share."""
    settings = panel.settings
    sample = sampled_cells(panel.table.values, settings.learning_size, settings.seed)
    positions = np.flatnonzero((~np.isnan(sample)).any(axis=1))
    found = [view.term(positions, None) for view in panel.views]
    some = panel.table._replace(values=sample).select(positions)
    cells = Cells.of(some)
    masks = [mask for _, mask in found]
    usual = joined(panel.table.exact, singles, masks)
    problem = PanelProblem(tuple(term for term, _ in found), cells, usual, settings.n_jobs)
    stage = settings.stages[-1]
    evaluate = RoundedEvidence(problem, PanelEvidence)
    search = Stage(problem, stage, usual, evaluate, settings.tick).run(settings.max_steps)
    at: PanelParameters = search.parameters
    terms = [own.widened(mask) for own, mask in zip(at.terms, masks, strict=True)]
    return _Learned(tuple(terms), at.shared, np.exp(at.log_noise), search, len(cells.values))


def joined(
    table: np.ndarray, singles: Sequence[Single], masks: Sequence[np.ndarray]
) -> PanelParameters:
    """Return where the joint search begins, and the middle of its priors: single processes.

    Kernels are means over the endpoints, weighted by their values; endpoints go together as their
    values do. ``masks`` are the patterns, by view, that the search is about.
    """
    counts = (~np.isnan(table)).sum(axis=0)
    loadings = loadings_to_begin_with(table, min(RANK, table.shape[1]))
    terms = []
    sharing = []
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
    low = 1
    high = int(counts.max())
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


class Far(NamedTuple):
    """Cells without the graphs of their part, which are unlike those of the others."""

    mean: np.ndarray  # (n_ways, n_graphs, n_endpoints)
    variance: np.ndarray  # of measurements
    truth: np.ndarray  # (n_graphs, n_endpoints), NaN in gaps

    @classmethod
    def nothing(cls) -> Far:
        return cls(np.empty(0), np.empty(0), np.empty(0))

    def column(self, endpoint: int) -> Far:
        """Return what is about one endpoint."""
        return Far(*(part[..., endpoint] for part in self))

    def blend(self, single: Far, column: int, share: float) -> None:
        """Take in the predictions of an endpoint by itself."""
        mean = self.mean[:, :, column]
        mean += share * (single.mean[:, :, 0] - mean)
        joint = self.variance[:, :, column]
        joint[:] = blended_variance(joint, single.variance[:, :, 0], share)


def _chosen(
    panel: _Panel, learned: _Learned, singles: Sequence[Single]
) -> tuple[PanelProcess, tuple[PanelProcess, ...], LeftOutPanel, Far]:
    """Return the joint process, those that have a share in predictions, and cells left out.

    The last are those without their parts of the graphs.
    """
    table = panel.table.values
    joint = learned.given(panel)
    exact_joint = isinstance(joint.given, ExactPanel)
    small = panel if exact_joint and joint.in_double else panel.small()
    blocks, far = _left_out(panel, joint, far=small is panel)
    far = far if small is panel else _left_out(small, learned.given(small))[1]
    alone = []
    lone = {}
    single = np.full(table.shape, np.nan)
    for k, found in enumerate(singles):
        own = found.given(panel, k)
        its_blocks, its_far = _left_out(panel, own, far=small is panel)
        its_far = its_far if small is panel else _left_out(small, found.given(small, k))[1]
        parts = (
            [(each.members, getattr(each, name)) for each in its_blocks]
            for name in ("mean", "quiet", "noise")
        )
        mean, variance, noise = (_tabled(table[:, [k]], own.cells, part) for part in parts)
        single[:, [k]] = mean
        exact = small.table.exact[:, k]
        if (share := share_alone(exact, far.mean[:, :, k], its_far.mean[:, :, 0])) > 0:
            far.blend(its_far, k, share)
            process = replace(own.process, share=share)
            # of so many cells there is no room for the factors of all endpoints
            alone.append(process if exact_joint else replace(process, factor=None))
            lone[k] = LoneEndpoint(mean[:, 0], variance[:, 0], noise[:, 0], share)
    blocks = [with_lone(each, joint.cells, lone) for each in blocks]
    tables = _left_out_tables(table, joint, blocks)
    left_out = LeftOutPanel(**tables, single=single)
    return joint.process, tuple(alone), left_out, far


def _left_out(
    panel: _Panel, found: _Conditioned, far: bool = True
) -> tuple[list[LeftOutBlock], Far]:
    """Return the cells of each graph without it and, if asked for, without its part of them."""
    cells = found.cells
    given = found.given
    n_jobs = panel.settings.n_jobs
    copies = panel.copies[cells.graphs]
    if not isinstance(given, ExactPanel):
        return given.left_out_blocks(copies), Far.nothing()
    factor = given.factor
    diagonal = factor.diagonal().copy()
    inverse = inverse_in_place(factor.copy() if found.in_double else mirrored(factor), n_jobs)
    blocks = given.left_out_blocks(copies, n_jobs, inverse)
    tables = []
    for parts in panel.parts if far else ():
        members = given.left_out_blocks(parts[cells.graphs], n_jobs, inverse)
        empty = np.empty((len(panel.table.values), cells.n_endpoints))
        pairs = (
            [(own.members, own.mean) for own in members],
            [(own.members, np.diagonal(own.covariance)) for own in members],
        )
        tables.append([_tabled(empty, cells, pair) for pair in pairs])
    if not found.in_double:  # the inverse took the place of the factor, whose copy is below it
        mirrored(factor.T)
        np.fill_diagonal(factor, diagonal)
    if not tables:
        return blocks, Far.nothing()
    mean, variance = np.moveaxis(np.array(tables), 1, 0)
    return blocks, Far(mean, variance, panel.table.columns(found.process.columns.tolist()).exact)


def _left_out_tables(
    table: np.ndarray, joint: _Conditioned, blocks: Sequence[LeftOutBlock]
) -> dict[str, np.ndarray]:
    """Return means and deviations of all cells, each without its graph, and without itself."""
    parts: dict[str, list[Any]] = {name: [] for name in ("new", "new_std", "gap", "gap_std")}
    limited = joint.cells.limits != 0
    values = joint.given.given.values
    for own in blocks:
        gap, variance = own.each_given_others(values[own.members])
        # deviations are those of measurements, also where only a limit is known
        more = np.where(limited[own.members], joint.noise[own.members] - own.noise, 0.0)
        spreads = np.sqrt(own.quiet + own.noise + more), np.sqrt(variance + more)
        for name, found in zip(parts, (own.mean, spreads[0], gap, spreads[1]), strict=True):
            parts[name].append((own.members, found))
    return {name: _tabled(table, joint.cells, found) for name, found in parts.items()}


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


def _tabled(
    table: np.ndarray, cells: Cells, parts: Iterable[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Return values of cells as a table, NaN in gaps; ``parts`` are pairs of cells and values."""
    found = np.full(table.shape, np.nan)
    for members, values in parts:
        found[cells.graphs[members], cells.endpoints[members]] = values
    return found
