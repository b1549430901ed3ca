"""A fitted panel: one Gaussian process of several endpoints, and single ones beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from treelens.array_checks import (
    LARGEST,
    Columns,
    check_array,
    check_classes_ascend,
    check_positions,
    check_positive,
)
from treelens.errors import first_few
from treelens.gp.evidence import with_enough_digits
from treelens.gp.panel import Cells, CellTable, cell_covariance
from treelens.gp.panel_endpoint import EndpointModel
from treelens.gp.panel_landmarks import CellKernel, CellsThroughLandmarks
from treelens.gp.panel_posterior import (
    AmongCells,
    ExactPanel,
    LandmarkPanel,
    Observed,
    PanelPosterior,
    blended_variance,
    digits_for,
    given_siblings,
)
from treelens.gp.panel_spread import LocalSpread
from treelens.gp.posterior import cholesky_in_place, packed_triangle, unpacked_triangle
from treelens.gp.views import FittedView, NumbersTable, StoredView, WeightedPatterns, shown_by
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import GraphRecipe
from treelens.kernels.base import Kernel
from treelens.kernels.gram import mirrored
from treelens.kernels.weighted import similarities
from treelens.models.fitted import FittedModel, HeldOut, Learning, SearchEnd, not_of_panels
from treelens.models.predictions import (
    KernelExpansion,
    Predictions,
    Threshold,
    TrainingGraphs,
    calibrated,
)
from treelens.patterns.forest import PatternForest, RefinedGraphs, SeenGraphs
from treelens.patterns.histograms import GraphViews
from treelens.targets import TargetRecord

_LEAST = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class PanelEndpoint:
    """One endpoint of a panel: numbers, or two classes.

    Numbers are learned on the scale of their record, classes as -1 and 1.
    """

    record: TargetRecord
    offset: float  # learned values are offset + scale * f
    scale: float
    classes: np.ndarray | None = None  # (2,) ascending; None where numbers are predicted
    slope: float | None = None  # of the logistic map from decision values to probabilities
    threshold: Threshold | None = None  # what a rare class is predicted by

    def validate(self) -> None:
        """Raise ``ValueError`` where a stored endpoint makes no sense."""
        check_positive(self.scale, "scale")
        if self.record.name is None:
            raise ValueError("an endpoint must have a name")
        if self.classes is not None:
            check_classes_ascend(self.classes)
            check_positive(self.slope or 0.0, "slope")
            if len(self.classes) != 2:
                raise ValueError("an endpoint of classes has two of them")

    @property
    def name(self) -> str:
        return str(self.record.name)

    def probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """Return probabilities of both classes, (n, 2), from decision values (n,)."""
        return calibrated(decisions[:, None], float(self.slope or 1.0))

    def codes(self, decisions: np.ndarray) -> np.ndarray:
        """Return the predicted classes as 0 and 1, (n,), from decision values (n,)."""
        if self.threshold is None:
            return (decisions > 0).astype(int)
        return self.threshold.name(self.probabilities(decisions))


@dataclass(frozen=True, eq=False)
class PanelProcess:
    """A Gaussian process of some of the endpoints, given their cells."""

    __derived__ = ("factor",)

    columns: np.ndarray  # (n_own,) positions of its endpoints in the panel
    views: tuple[FittedView, ...]
    kernels: tuple[Kernel, ...]  # one for each view
    shared: tuple[np.ndarray, ...]  # (n_own, n_own) B, one for each view
    noise: np.ndarray  # (n_own,) variances of measurements, on the scale of standardised values
    values: np.ndarray  # (n_cells,) that it is conditioned on: measured, or sites of limits
    spreads: np.ndarray  # (n_cells,) noise variances of these
    coefficients: np.ndarray  # (n_basis,)
    basis: np.ndarray | None = None  # positions of landmarks among the cells; None: all cells
    share: float = 1.0  # of a single process in the predictions of its endpoint
    # The factor of the covariance of the cells or, through landmarks, LandmarkPosterior's gain;
    # None where it must be computed.
    factor: np.ndarray | None = None
    # The upper triangle of the factor, row by row, where a file keeps it: in float32, of landmarks
    # in float64, as their gain is not rounded without harm.
    packed: np.ndarray | None = None

    def check(self, n_endpoints: int, n_cells: int) -> None:
        """Raise ``ValueError`` where the parts of a stored process do not fit together."""
        check_positions(self.columns, "columns", n_endpoints)
        if not len(self.views) == len(self.kernels) == len(self.shared) > 0:
            raise ValueError("each view must have a kernel, and what endpoints share of it")
        n = len(self.columns)
        for between in self.shared:
            check_array(between, "shared", np.float64, (n, n), -LARGEST, LARGEST)
            if not np.allclose(between, between.T) or np.linalg.eigvalsh(between).min() < -1e-6:
                raise ValueError("what endpoints share must be a covariance")
        check_positive(self.share, "share", 1.0)
        check_array(self.noise, "noise", np.float64, (n,), _LEAST)
        check_array(self.values, "values", np.float64, (n_cells,), -LARGEST, LARGEST)
        check_array(self.spreads, "spreads", np.float64, (n_cells,), _LEAST)
        n_basis = n_cells
        if self.basis is not None:
            check_positions(self.basis, "basis", n_cells)
            n_basis = len(self.basis)
        check_array(self.coefficients, "coefficients", np.float64, (n_basis,))

    def with_packed_factor(self) -> PanelProcess:
        """Return the process, completed, with what a file needs to keep its factor."""
        assert self.factor is not None
        dtype = np.float32 if self.basis is None else np.float64
        return replace(self, packed=packed_triangle(self.factor, dtype))

    def from_stored(self) -> PanelProcess:
        """Return the process with the factor that its file has kept, if it has."""
        if self.packed is None:
            return self
        n = len(self.coefficients)
        dtype = np.float32 if self.basis is None else np.float64
        check_array(self.packed, "packed", dtype, (n * (n + 1) // 2,))
        if self.basis is not None:
            return replace(self, factor=mirrored(unpacked_triangle(self.packed, n)), packed=None)
        return replace(self, factor=unpacked_triangle(self.packed, n, digits_for(n)), packed=None)

    def completed(self, cells: Cells, graphs: GraphViews, n_jobs: int) -> PanelProcess:
        """Return the process with what variances need; ``graphs`` are those of training."""
        if self.basis is not None:
            kernel = CellKernel(self.kernels, np.array(self.shared))
            given = Observed(self.values, self.spreads)
            found = CellsThroughLandmarks.given_observed(
                kernel, graphs, cells, given, self.basis, n_jobs
            )
            return replace(self, factor=found.posterior.gain)
        among = AmongCells.of(self.kernels, self.shared, graphs, cells, n_jobs)

        def factored_in(dtype: type) -> np.ndarray:
            values = among.rounded(dtype)
            matrix = cell_covariance(values, among.shared, self.spreads, among.cells, n_jobs)
            return cholesky_in_place(matrix, n_jobs)

        factor = with_enough_digits(factored_in, digits_for(len(cells.values)))
        return replace(self, factor=factor)

    def posterior(self, cells: Cells) -> PanelPosterior:
        """Return the posterior; without a factor it is good for means."""
        factor = np.empty((0, 0)) if self.factor is None else self.factor
        shared = np.array(self.shared)
        if self.basis is not None:
            return LandmarkPanel(cells.select(self.basis), shared, self.coefficients, factor)
        given = Observed(self.values, self.spreads)
        return ExactPanel(cells, shared, self.coefficients, factor, given)

    def rows(self, new: GraphViews, old: GraphViews, n_jobs: int) -> list[np.ndarray]:
        """Return kernel values of new graphs with the training graphs, view by view."""
        triples = zip(self.kernels, new, old, strict=True)
        return [kernel.matrix(ours, theirs, n_jobs) for kernel, ours, theirs in triples]

    def seen(self, shown: SeenGraphs) -> SeenGraphs:
        """Return new graphs as this process compares them; ``shown`` as another one does."""
        found = list(shown.views)
        for k, (view, own) in enumerate(zip(self.views, shown.views, strict=True)):
            if isinstance(own, RefinedGraphs) and isinstance(view, WeightedPatterns):
                found[k] = own._replace(features=view.weighed(own))
        return SeenGraphs(tuple(found))

    @property
    def exact_factor(self) -> np.ndarray | None:
        """The factor of the covariance of all cells; None through landmarks."""
        return None if self.basis is not None else self.factor

    @property
    def variances(self) -> np.ndarray:
        """What each view explains of each endpoint a priori, (n_views, n_own)."""
        return np.array([np.diagonal(each) for each in self.shared])


@dataclass(frozen=True, eq=False)
class LeftOutPanel:
    """Predictions of each measured cell without it, on the scales that are learned.

    They answer two questions: ``new`` is for a molecule of which nothing was measured (all its
    cells are left out), ``gap`` for a gap beside other measurements of the same molecule.
    """

    # (n_graphs, n_endpoints), NaN where nothing was measured
    new: np.ndarray = field(metadata={"nan": True})
    new_std: np.ndarray = field(metadata={"nan": True})
    gap: np.ndarray = field(metadata={"nan": True})
    gap_std: np.ndarray = field(metadata={"nan": True})
    # What a single process of the endpoint, with weights of its own, predicts without the molecule.
    single: np.ndarray = field(metadata={"nan": True})


@dataclass(frozen=True, eq=False)
class PanelRecord:
    """How a panel was fitted, and its predictions of its own training cells."""

    weights: str  # "uniform" or "depths"
    history: Columns  # stage, objective, gradient_norm and n_evaluations after every step
    converged: bool
    n_learning: int  # cells that kernels and sharing were learned from
    left_out: LeftOutPanel


@dataclass(frozen=True, eq=False)
class PanelPredictions(Predictions):
    """Predictions of all endpoints, on the scales that are learned: (n_graphs, n_endpoints) each.

    ``variance`` is that of new measurements.
    """

    covariance: np.ndarray | None = None  # (n_graphs, n_endpoints, n_endpoints), without noise
    # (n_graphs, n_endpoints) standard deviations of differences to the first graph, without noise
    from_first: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class FittedPanel(FittedModel):
    """Several endpoints after training: what they share, and those that stand alone."""

    method: ClassVar = "gp"
    has_variance: ClassVar = True

    endpoints: tuple[PanelEndpoint, ...]
    joint: PanelProcess  # of all endpoints
    # Of single endpoints: predictions are means of the joint one's and theirs, by their share.
    alone: tuple[PanelProcess, ...]
    training: TrainingGraphs
    record: PanelRecord
    recipe: GraphRecipe | None = None
    classes: np.ndarray | None = None  # each endpoint has its own
    spread: tuple[LocalSpread, ...] = ()  # of the variances of each endpoint

    def validate(self) -> None:
        """Raise ``ValueError`` where the parts of a stored panel do not fit together."""
        n, values, stored = len(self.endpoints), self.training.targets, self.training.views
        if n < 2 or len(set(self.endpoint_names)) < n:
            raise ValueError("a panel has two endpoints or more, of different names")
        check_array(values, "targets", np.float64, (len(values), n))
        if self.training.limits is not None:
            check_array(self.training.limits, "limits", np.int64, values.shape, -1, 2)
        counts = (~np.isnan(values)).sum(axis=0)
        self.joint.check(n, int(counts.sum()))
        if len(self.joint.columns) < n:
            raise ValueError("the joint process is one of all endpoints")
        for each in self.alone:
            each.check(n, int(counts[each.columns].sum()))
        if len({int(k) for each in self.alone for k in each.columns}) < len(self.alone):
            raise ValueError("an endpoint stands alone once")
        for process in (self.joint, *self.alone):
            if len(process.views) != len(stored):
                raise ValueError("each view must have training graphs")
            for view, own in zip(process.views, stored, strict=True):
                view.check_stored(own, len(values))
        if len(self.spread) not in (0, n):
            raise ValueError("each endpoint has factors of its variances, or none has")
        for k, own_spread in enumerate(self.spread):
            if len(own_spread.surprise) != int((~np.isnan(self.measured[:, k])).sum()):
                raise ValueError("each measured graph has a surprise")
        for name in ("new", "new_std", "gap", "gap_std", "single"):
            own = getattr(self.record.left_out, name)
            check_array(own, name, np.float64, (len(values), n))

    # --- what it is about -----------------------------------------------------------------------

    @property
    def endpoint_names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.endpoints)

    @property
    def offset(self) -> np.ndarray:
        """Of all endpoints, (n_endpoints,)."""
        return np.array([each.offset for each in self.endpoints])

    @property
    def measured(self) -> np.ndarray:
        """Learned values that were measured, NaN in gaps and where only a limit is known."""
        values, limits = self.training.targets, self.training.limits
        return values if limits is None else np.where(limits == 0, values, np.nan)

    @property
    def scale(self) -> np.ndarray:
        return np.array([each.scale for each in self.endpoints])

    @cached_property
    def noise(self) -> np.ndarray:
        """Variances of measurements, on the scales that are learned: (n_endpoints,)."""
        noise = self.joint.noise.copy()
        for each in self.alone:
            column = each.columns
            noise[column] = blended_variance(noise[column], each.noise, each.share)
        return noise * self.scale**2

    @property
    def variances(self) -> np.ndarray:
        """What each view explains of each standardised endpoint a priori, (n_views, n)."""
        found = self.joint.variances
        for each in self.alone:
            column = each.columns
            found[:, column] += each.share * (each.variances - found[:, column])
        return found

    @property
    def shares_alone(self) -> np.ndarray:
        """How much of the predictions comes from processes of single endpoints, (n_endpoints,)."""
        shares = np.zeros(len(self.endpoints))
        for each in self.alone:
            shares[each.columns] = each.share
        return shares

    @property
    def correlations(self) -> np.ndarray:
        """Of the endpoints without noise, a priori, over all views: (n_endpoints, n_endpoints)."""
        total = np.sum(self.joint.shared, axis=0)
        size = np.sqrt(np.diagonal(total))
        return total / np.outer(size, size)

    def standardised(self, values: np.ndarray) -> np.ndarray:
        """Return values on the scales that are learned, (n, n_endpoints), with unit size."""
        return (values - self.offset) / self.scale

    def cells(self, process: PanelProcess) -> Cells:
        """Return the measured cells of a process, standardised."""
        values = self.standardised(self.training.targets)
        return Cells.of(CellTable.plain(values[:, process.columns]))

    def process(self, place: int) -> PanelProcess:
        """Return the joint process, 0, or one of those of single endpoints."""
        return (self.joint, *self.alone)[place]

    def shown(self, place: int) -> GraphViews:
        """Return all training graphs as a process compares them."""
        return self._shown[place]

    @cached_property
    def _shown(self) -> tuple[GraphViews, ...]:
        """All training graphs as each process compares them, the joint one first."""
        stored: tuple[StoredView, ...] = self.training.views
        return tuple(shown_by(each.views, stored) for each in (self.joint, *self.alone))

    # --- predictions ----------------------------------------------------------------------------

    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> SeenGraphs:
        """Return graphs as the views of the joint process show them."""
        return SeenGraphs(tuple(view.refine(graphs, n_jobs) for view in self.joint.views))

    def completed(self, n_jobs: int = 1) -> FittedPanel:
        """Return the panel with all that variances need, which a file does not keep."""
        if all(each.factor is not None for each in (self.joint, *self.alone)):
            return self
        done = []
        for process, graphs in zip((self.joint, *self.alone), self._shown, strict=True):
            kept = process.factor is not None
            cells = self.cells(process)
            done.append(process if kept else process.completed(cells, graphs, n_jobs))
        return replace(self, joint=done[0], alone=tuple(done[1:]))

    def decide(
        self,
        graphs: GraphCollection,
        *,
        variance: bool = False,
        n_jobs: int = 1,
        device: str = "cpu",
        measured: np.ndarray | None = None,
    ) -> PanelPredictions:
        """Return means and, if asked for, variances and covariances between the endpoints.

        ``measured`` (n_graphs, n_endpoints), on the scales that are learned, are known cells.
        """
        model = self.completed(n_jobs) if variance or measured is not None else self
        seen = model.refine(graphs, n_jobs)
        mean, between = model._joined(seen, variance or measured is not None, n_jobs)
        factors = self._factors(seen, n_jobs) if between is not None else np.ones(1)
        if between is not None:
            between *= np.sqrt(factors[:, :, None] * factors[:, None])
        if measured is not None and between is not None:
            noise = factors * self.noise / self.scale**2
            mean, between = given_siblings(mean, between, noise, self.standardised(measured))
        spread = None
        if between is not None:
            between = between * np.outer(self.scale, self.scale)
            spread = np.diagonal(between, axis1=1, axis2=2) + factors * self.noise
        mean = self.offset + self.scale * mean
        unseen = seen.patterns.histograms.out_of_vocabulary()
        found = PanelPredictions(
            mean, unseen, seen, mean, variance=spread, covariance=between
        ).checked()
        assert isinstance(found, PanelPredictions)
        return found

    def decide_from_first(self, graphs: GraphCollection, n_jobs: int = 1) -> PanelPredictions:
        """Return predictions, with deviations of the differences to the first of the graphs.

        What is uncertain about two similar graphs is mostly common to both, and cancels.
        """
        model = self.completed(n_jobs)
        found = model.decide(graphs, variance=True, n_jobs=n_jobs)
        assert found.covariance is not None
        off = model._deviations_from_first(0, model.joint, graphs, found.graphs, n_jobs)
        for k, process in enumerate(model.alone, start=1):
            seen = process.seen(found.graphs)
            own = model._deviations_from_first(k, process, graphs, seen, n_jobs)[:, 0]
            (column,) = process.columns.tolist()
            off[:, column] += process.share * (own - off[:, column])
        factors = model._factors(found.graphs, n_jobs)
        scaled = np.diagonal(found.covariance, axis1=1, axis2=2) / self.scale**2
        plain = scaled / factors
        common = 0.5 * (plain + plain[0] - off**2)  # covariances with the first graph
        variance = scaled + scaled[0] - 2.0 * np.sqrt(factors * factors[0]) * common
        return replace(found, from_first=self.scale * np.sqrt(np.maximum(variance, 0.0)))

    def _deviations_from_first(
        self, k: int, process: PanelProcess, graphs: GraphCollection, seen: SeenGraphs, n_jobs: int
    ) -> np.ndarray:
        """Return deviations of differences of standardised values, (n_graphs, n_own)."""
        rows = process.rows(seen.features, self._shown[k], n_jobs)
        posterior = process.posterior(self.cells(process))
        taken = posterior.reduction([row - row[:1] for row in rows], n_jobs)
        left = -np.diagonal(taken, axis1=1, axis2=2)
        for view, kernel, variances in zip(
            process.views, process.kernels, process.variances, strict=True
        ):
            wider, stored = view.extended(graphs, n_jobs)  # with patterns that training never saw
            shown = GraphViews((wider.data(stored),))
            alike = kernel.matrix(shown.select(np.zeros(1, dtype=np.int64))[0], shown[0], n_jobs)
            left = left + 2.0 * (1.0 - alike[0])[:, None] * variances
        left[0] = 0.0
        return np.sqrt(np.maximum(left, 0.0))

    def _factors(self, seen: SeenGraphs, n_jobs: int) -> np.ndarray:
        """Return factors of the variances of new graphs, (n_graphs, n_endpoints)."""
        measured = ~np.isnan(self.measured)
        patterns = seen.features.patterns
        if all(own.is_none for own in self.spread):
            return np.ones((patterns.pairs.n_graphs, len(self.endpoints)))
        parts = []
        for block in GraphViews((patterns,)).blocks():
            similarity = similarities(block.patterns, self.training_graphs.patterns, n_jobs)
            factors = np.ones((len(similarity), len(self.endpoints)))
            for k, own in enumerate(self.spread):
                if not own.is_none:
                    factors[:, k] = own.factors(similarity[:, measured[:, k]])
            parts.append(factors)
        return np.concatenate(parts)

    def _joined(
        self, seen: SeenGraphs, variance: bool, n_jobs: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return standardised means and covariances.

        Means and deviations of endpoints that have a process of their own are weighted by its
        share; correlations are those of the joint process, so that siblings tell of each other.
        """
        mean, between = self._of_process(0, self.joint, seen.features, variance, n_jobs)
        for k, process in enumerate(self.alone, start=1):
            own = self._of_process(k, process, process.seen(seen).features, variance, n_jobs)
            (column,) = process.columns.tolist()
            mean[:, column] += process.share * (own[0][:, 0] - mean[:, column])
            if between is not None and own[1] is not None:
                before = np.sqrt(np.maximum(between[:, column, column], _LEAST))
                ratio = 1.0 + process.share * (np.sqrt(own[1][:, 0, 0]) / before - 1.0)
                between[:, column] *= ratio[:, None]
                between[:, :, column] *= ratio[:, None]
        return mean, between

    def _of_process(
        self, k: int, process: PanelProcess, new: GraphViews, variance: bool, n_jobs: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        posterior = process.posterior(self.cells(process))
        means = []
        between = []
        for block in new.blocks():  # of few graphs: training graphs may be many
            rows = process.rows(block, self._shown[k], n_jobs)
            means.append(posterior.mean(rows))
            between += [posterior.covariance(rows, n_jobs)] if variance else []
        return np.concatenate(means), np.concatenate(between) if variance else None

    # --- as a fitted model ----------------------------------------------------------------------

    @property
    def training_graphs(self) -> GraphViews:
        return self._shown[0]

    @property
    def weights(self) -> np.ndarray:
        """One weight per pattern of the joint process."""
        first = self.joint.views[0]
        assert isinstance(first, WeightedPatterns)
        return first.weights

    @property
    def forest(self) -> PatternForest | None:
        first = self.joint.views[0]
        source = first.source if isinstance(first, WeightedPatterns) else None
        return source if isinstance(source, PatternForest) else None

    @property
    def expansion(self) -> KernelExpansion:
        raise not_of_panels("Dividing predictions among patterns", self.endpoint_names)

    def endpoint(self, which: object = None) -> EndpointModel:
        names = self.endpoint_names
        if which is None:
            raise ValueError(
                f"The model has {len(names)} endpoints ({first_few(names)}): name one of them, "
                f"such as endpoint={names[0]!r}."
            )
        if which in names:
            return EndpointModel(self, names.index(which))
        if not isinstance(which, (int, np.integer)) or which not in range(len(names)):
            raise ValueError(f"endpoint must be one of {', '.join(names)}; got {which!r}.")
        return EndpointModel(self, int(which))

    @property
    def view_names(self) -> list[str]:
        return [view.name for view in self.joint.views]

    @property
    def covariate_names(self) -> list[str]:
        tables = [view.table for view in self.joint.views if isinstance(view, NumbersTable)]
        return [name for table in tables for name in table.names]

    @property
    def numbers(self) -> dict[str, np.ndarray]:
        """Columns of the tables of numbers, (n_graphs,) each, for the training graphs."""
        columns: dict[str, np.ndarray] = {}
        for view, stored in zip(self.joint.views, self.training.views, strict=True):
            if isinstance(view, NumbersTable):
                columns |= view.table.decode(np.asarray(stored))
        return columns

    @property
    def keyed_tables(self) -> list[tuple[str, str]]:
        views = [view for view in self.joint.views if isinstance(view, NumbersTable)]
        return [(view.title, view.on) for view in views if view.on]

    def shares(self, n_jobs: int = 1) -> dict[str, float]:
        """Return the share of each view in the prior variance, the mean over endpoints."""
        parts = self.variances
        means = (parts / parts.sum(axis=0)).mean(axis=1)
        return dict(zip(self.view_names, means.tolist(), strict=True))

    @property
    def held_out(self) -> HeldOut:
        """Predictions of new molecules; arrays are (n_graphs, n_endpoints), NaN in gaps."""
        found = self.record.left_out
        known = ~np.isnan(self.measured)
        return HeldOut("leave-one-out", known, found.new, found.new_std)

    @property
    def learning(self) -> Learning:
        sentence = {
            "uniform": "All patterns of a view weigh the same.",
            "depths": "Each level of patterns has a weight, the same for all that is shared.",
        }[self.record.weights]
        return Learning(self.record.weights, sentence, "squared error left out", (), {})

    @property
    def search_end(self) -> SearchEnd:
        return SearchEnd(self.record.converged, self.record.history.n_rows, True, "max_steps")

    def settings(self) -> dict[str, Any]:
        alone = zip(self.endpoint_names, self.shares_alone.tolist(), strict=True)
        return {"weights": self.record.weights, "shares_alone": dict(alone)}

    def with_rounded_factor(self, n_jobs: int = 1) -> FittedPanel:
        model = self.completed(n_jobs)
        joint, *alone = (each.with_packed_factor() for each in (model.joint, *model.alone))
        return replace(model, joint=joint, alone=tuple(alone))
