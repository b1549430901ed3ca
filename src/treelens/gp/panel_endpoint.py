"""One endpoint of a fitted panel, as a model of one endpoint: explanations know nothing of panels.

The mean of endpoint ``t`` is linear in kernel values. In view ``v`` the coefficient of a training
graph is the sum over its measured cells ``s`` of ``B_v[t, s]`` times the coefficient of the cell:
siblings tell of the endpoint, too. The process that an endpoint has for itself is added with its
share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from treelens.gp.panel_domain import kept_domain
from treelens.gp.views import NumbersTable, WeightedPatterns, select_stored
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import GraphRecipe
from treelens.kernels.base import Term
from treelens.models.domain import Domain
from treelens.models.fitted import FittedModel, HeldOut, Learning, SearchEnd
from treelens.models.predictions import (
    CountedPart,
    KernelExpansion,
    NumbersPart,
    Predictions,
    SharedCells,
    Threshold,
    TrainingGraphs,
)
from treelens.patterns.forest import SeenGraphs
from treelens.patterns.histograms import GraphViews

if TYPE_CHECKING:
    from treelens.gp.panel_model import FittedPanel


@dataclass(frozen=True, eq=False)
class EndpointModel(FittedModel):
    """An endpoint of a panel.

    Its training graphs are those with a measured value of the endpoint, not those with a limit.
    Predictions are sums over all training graphs of the panel.
    """

    method: ClassVar = "gp"
    has_variance: ClassVar = True

    panel: FittedPanel
    column: int  # of the panel

    @property
    def classes(self) -> np.ndarray | None:  # type: ignore[override]
        return self.panel.endpoints[self.column].classes

    @property
    def recipe(self) -> GraphRecipe | None:  # type: ignore[override]
        return self.panel.recipe

    @cached_property
    def training(self) -> TrainingGraphs:  # type: ignore[override]
        """The graphs with a value of this endpoint, and these values."""
        own = self.panel.training
        some = self.training_positions
        values = own.targets[some, self.column]

        def chosen(texts: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if texts is None else tuple(texts[k] for k in some.tolist())

        return TrainingGraphs(
            tuple(select_stored(each, some) for each in own.views),
            values if self.classes is None else (values > 0).astype(np.int64),
            names=chosen(own.names),
            smiles=chosen(own.smiles),
            record=self.panel.endpoints[self.column].record,
        )

    @cached_property
    def training_positions(self) -> np.ndarray:  # type: ignore[override]
        return np.flatnonzero(~np.isnan(self.panel.measured[:, self.column]))

    @cached_property
    def training_graphs(self) -> GraphViews:  # type: ignore[override]
        return self.panel.training_graphs.select(self.training_positions)

    @property
    def training_terms(self) -> tuple[GraphViews, ...]:
        terms = self.expansion.terms
        return tuple(term.basis.select(self.training_positions) for term in terms)

    def measured_among(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of graphs with a value of the endpoint, and what is reported of it.

        ``values`` (n_graphs, n_endpoints) are cells as the panel learns them, NaN in gaps; what is
        reported are numbers in their units, or codes of classes.
        """
        some = np.flatnonzero(~np.isnan(values[:, self.column]))
        found = values[some, self.column]
        hidden = self.training.record.hidden
        if self.classes is not None:
            return some, (found > 0).astype(np.int64)
        return some, found if hidden is None else hidden.inverse(found)

    @property
    def weights(self) -> np.ndarray:
        """Those of the joint process, by which graphs are compared."""
        return self.panel.weights

    # --- predictions ----------------------------------------------------------------------------

    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> SeenGraphs:
        return self.panel.refine(graphs, n_jobs)

    def decide(
        self,
        graphs: GraphCollection,
        *,
        variance: bool = False,
        n_jobs: int = 1,
        device: str = "cpu",
    ) -> Predictions:
        """Return the predictions of this endpoint; nothing of the graphs is taken as measured."""
        found = self.panel.decide(graphs, variance=variance, n_jobs=n_jobs, device=device)
        return self.predictions_of(found)

    def predictions_of(self, found: Predictions) -> Predictions:
        """Return those of this endpoint among predictions of the panel."""
        end = self.panel.endpoints[self.column]
        mean = found.mean[:, [self.column]]
        return Predictions(
            mean,
            found.out_of_vocabulary,
            found.graphs,
            mean,
            None if end.classes is None else end.probabilities(mean[:, 0]),
            None if found.variance is None else found.variance[:, self.column],
            end.threshold,
        )

    @property
    def threshold(self) -> Threshold | None:
        return self.panel.endpoints[self.column].threshold

    def domain(self, n_jobs: int = 1) -> Domain:
        """Return where the endpoint may be believed, the same as in predictions of the panel."""
        found = kept_domain(self.panel, n_jobs).endpoints[self.column]
        return Domain(
            self.training_graphs, found.surprise, found.largest_error, found.least_similarity
        )

    # --- what explanations divide ---------------------------------------------------------------

    @cached_property
    def expansion(self) -> KernelExpansion:  # type: ignore[override]
        """The mean as a sum over the cells of the panel, and those of the process by itself."""
        panel = self.panel
        column = self.column
        places = [k for k, own in enumerate(panel.alone) if column in own.columns.tolist()]
        single = panel.alone[places[0]].share if places else 0.0
        terms = [self._term(k + 1, single) for k in places]
        if single < 1.0:  # else the joint process has no part in the predictions
            terms.insert(0, self._term(0, 1.0 - single))
        first, *added = terms
        intercepts = np.array([panel.offset[column]])
        return replace(first, intercepts=intercepts, added=tuple(added))

    def _term(self, place: int, share: float) -> KernelExpansion:
        """Return what one process adds, times its share; ``place`` 0 is the joint one."""
        panel = self.panel
        process = panel.process(place)
        cells = process.posterior(panel.cells(process)).basis
        own = process.columns.tolist().index(self.column)
        sizes = np.array([between[own][cells.endpoints] for between in process.shared])
        n_graphs = len(panel.training.targets)
        positions = np.full(n_graphs, -1)
        positions[self.training_positions] = np.arange(len(self.training_positions))
        terms = list(enumerate(zip(process.views, process.kernels, strict=True)))
        return KernelExpansion(
            tuple(
                CountedPart(k, view.source, 0, Term(kernel, 1.0), view.weights)
                for k, (view, kernel) in terms
                if isinstance(view, WeightedPatterns)
            ),
            panel.shown(place),
            positions,
            share * panel.scale[self.column] * process.coefficients[None, :],
            np.zeros(1),
            self.classes,
            self.refine,
            lambda n_jobs: panel.completed(n_jobs).process(place).exact_factor,
            tuple(
                NumbersPart(k, Term(kernel, 1.0), view.table)
                for k, (view, kernel) in terms
                if isinstance(view, NumbersTable)
            ),
            SharedCells(cells.graphs, sizes, n_graphs),
            process.seen,
        )

    @property
    def covariate_names(self) -> list[str]:
        return self.panel.covariate_names

    @property
    def keyed_tables(self) -> list[tuple[str, str]]:
        return self.panel.keyed_tables

    @property
    def view_names(self) -> list[str]:
        return self.panel.view_names

    def shares(self, n_jobs: int = 1) -> dict[str, float]:
        """Return the share of each view in the prior variance of the endpoint."""
        parts = self.panel.variances[:, self.column]
        return dict(zip(self.view_names, (parts / parts.sum()).tolist(), strict=True))

    # --- how it was fitted ----------------------------------------------------------------------

    @property
    def held_out(self) -> HeldOut:
        """Predictions of new molecules: all cells of each graph are left out."""
        found, some = self.panel.record.left_out, self.training_positions
        mean, std = found.new[some, self.column], found.new_std[some, self.column]
        every = np.ones(len(some), dtype=bool)
        end = self.panel.endpoints[self.column]
        if end.classes is None:
            return HeldOut("leave-one-out", every, mean, std)
        chances = end.probabilities(mean)
        return HeldOut("leave-one-out", every, end.codes(mean), None, chances, mean[:, None])

    @property
    def learning(self) -> Learning:
        return self.panel.learning

    @property
    def search_end(self) -> SearchEnd:
        return self.panel.search_end

    def settings(self) -> dict[str, Any]:
        (part, *_), *_ = (term.parts for term in self.expansion.terms)
        return {
            **part.kernel.kernel.values,
            "weights": self.panel.record.weights,
            "share_alone": float(self.panel.shares_alone[self.column]),
            "noise": float(np.sqrt(self.panel.noise[self.column])),
        }
