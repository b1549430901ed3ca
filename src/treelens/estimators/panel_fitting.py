"""Estimators of several endpoints: how they are fitted, and what they predict."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from treelens.estimators.base import FittedEstimator
from treelens.estimators.panel_answers import (
    cells_for,
    correlation_table,
    covariance_of,
    deviations_of,
    endpoints_to_learn,
    help_table,
    intervals_of,
    learned_deviations,
    left_out_table,
    mean_score,
    noise_series,
    panel_html,
    probabilities_of,
    score_table,
    share_table,
    sharing_table,
    values_of,
    warn_of_slopes,
)
from treelens.estimators.panel_endpoint import EndpointOfPanel, joined_fragments
from treelens.estimators.panel_table import Surroundings, panel_table
from treelens.estimators.profile import Profile, panel_outlooks
from treelens.evaluation.splits import balanced_folds, similar_clusters
from treelens.explain.effects import KnownInverses
from treelens.explain.fragments import FragmentTable
from treelens.gp.data import TrainingView
from treelens.gp.panel_domain import kept_domain
from treelens.gp.panel_fit import PanelSettings, fit_panel
from treelens.gp.panel_model import FittedPanel, PanelPredictions, PanelRecord
from treelens.gp.scales import DEPTH as SCALE_DEPTH
from treelens.gp.scales import choose_scale
from treelens.graphs.collection import GraphCollection
from treelens.graphs.content import draw_keys
from treelens.graphs.kinds import PLAIN, kind_of_facts
from treelens.maps import TargetMap
from treelens.models.predictions import TrainingGraphs
from treelens.parallel import progress_ticks
from treelens.targets import Targets
from treelens.views import ViewSettings, WLPatterns, check_views, descriptors_of, usual_views

_N_PARTS = 4  # of clusters of graphs, which are predicted from each other
_N_WAYS = 3  # to divide them
_DEPTH = 3  # of patterns, where it is not given


def unlike_parts(graphs: GraphCollection, seed: int) -> np.ndarray:
    """Return ways to divide graphs into parts of whole clusters, (n_ways, n_graphs) numbers."""
    clusters, random = similar_clusters(graphs), np.random.default_rng(seed)
    if len(np.unique(clusters)) < _N_PARTS:  # the graphs are all alike
        clusters = np.arange(len(graphs))
    return np.stack([balanced_folds(clusters, _N_PARTS, random) for _ in range(_N_WAYS)])


class PanelEstimator(FittedEstimator):
    """What estimators do with several endpoints."""

    _endpoints: tuple[PanelRecord | None, dict[str, EndpointOfPanel]] = (None, {})
    _helps: tuple[PanelRecord, pd.DataFrame | None] | None = None
    _endpoint_kind: ClassVar[str | None] = None  # "numbers", "classes", or None for both

    depth: Any
    weights: str
    views: Any
    descriptors: Any
    learning_size: int
    exact_size: int
    n_landmarks: int
    max_steps: int
    random_state: Any
    progress: bool | None

    def _fit_panel(self, graphs: GraphCollection, y: Targets) -> None:
        """Learn all endpoints together."""
        if self.weights == "branches":
            raise ValueError(
                "weights='branches' is for one endpoint: use 'auto', 'depths' or 'uniform'."
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        endpoints, known = endpoints_to_learn(
            y, self._endpoint_kind, lambda own, some: self._scale_of(graphs[some], own, seed)
        )
        views = self._panel_views(graphs)
        limits = known.limits if known.limits.any() else None
        stored = tuple(view.stored for view in views)
        training = TrainingGraphs(stored, known.values, limits=limits)
        with progress_ticks(self.progress, "Learning the panel") as tick:
            settings = PanelSettings(
                "uniform" if self.weights == "uniform" else "depths",
                self._n_learning_cells,
                self._n_exact_cells,
                self._n_landmark_cells,
                self.max_steps,
                seed,
                getattr(self, "threshold", "auto"),
                self._n_jobs(),
                tick,
            )
            training = training.with_identity(graphs)
            parts = unlike_parts(graphs, seed)
            found = fit_panel(views, training, known, endpoints, settings, parts)
            found = replace(found, recipe=graphs.recipe)
        if not found.record.converged:
            warnings.warn(
                f"The search for what endpoints share did not converge in {self.max_steps} steps: "
                "raise max_steps.",
                ConvergenceWarning,
                stacklevel=3,
            )
        warn_of_slopes(found)
        self.model_: Any = found
        self._fitted_graphs, self._fragments = graphs, None

    def _scale_of(self, graphs: GraphCollection, y: Targets, seed: int) -> TargetMap | None:
        """Return the scale of one endpoint, by what patterns say of its values left out."""
        settings = ViewSettings(SCALE_DEPTH, n_jobs=self._n_jobs())
        return choose_scale(
            y,
            draw_keys(graphs, y.numbers(), seed, True),
            lambda some: (WLPatterns().fit(graphs[some], settings),),
        )

    def _panel_views(self, graphs: GraphCollection) -> tuple[TrainingView, ...]:
        depth = _DEPTH if isinstance(self.depth, str) else self.depth
        settings = ViewSettings(depth, n_jobs=self._n_jobs())
        usual, chosen = isinstance(self.views, str), self.descriptors
        listed = usual_views(graphs) if usual else check_views(self.views)
        views: list[TrainingView] = [view.fit(graphs, settings) for view in listed]
        if chosen == "auto":
            chosen = usual and kind_of_facts(graphs.graph_data) is not PLAIN
        if chosen is not False:
            views.append(descriptors_of(graphs, "compact" if chosen is True else str(chosen)))
        return tuple(views)

    @property
    def _n_learning_cells(self) -> int:
        """How many cells kernels and sharing are learned on, at most."""
        return self.learning_size

    @property
    def _n_exact_cells(self) -> int:
        """Up to how many cells predictions are exact."""
        return self.exact_size

    @property
    def _n_landmark_cells(self) -> int:
        """How many cells stand for all where these are too many for exact predictions."""
        return self.n_landmarks

    # --- predictions ----------------------------------------------------------------------------

    @property
    def _panel(self) -> FittedPanel:
        check_is_fitted(self)
        model: FittedPanel = self.model_
        return model

    @property
    def _is_panel(self) -> bool:
        """Whether the model has several endpoints."""
        return bool(self._fitted_model.endpoint_names)

    def _decide_panel(
        self, X: object, variance: bool, measured: object = None, tables: object = None
    ) -> PanelPredictions:
        graphs = self._new_graphs(self._with_numbers(X, None, tables))
        n_jobs = self._n_jobs()
        known = None if measured is None else cells_for(self._panel, measured, len(graphs))
        if variance or known is not None:  # kept, so that the next call need not compute it again
            self._complete()
        return self._panel.decide(graphs, variance=variance, measured=known, n_jobs=n_jobs)

    def _predict_panel(
        self,
        X: object,
        return_std: bool,
        return_cov: str | bool,
        include_noise: bool,
        measured: object,
        tables: object,
        point: str = "mean",
    ) -> Any:
        if return_cov not in (False, "endpoints"):
            raise ValueError(
                "return_cov must be False or 'endpoints' with several endpoints, got "
                f"{return_cov!r}."
            )
        if return_std and return_cov:
            raise ValueError("Ask for return_std or return_cov, not for both.")
        model = self._panel
        mapped = point == "mean" and any(each.record.scale for each in model.endpoints)
        found = self._decide_panel(X, bool(return_std or return_cov or mapped), measured, tables)
        std = learned_deviations(found, include_noise) if mapped else None
        values = values_of(model, found.mean, std)
        if return_cov:
            return values, covariance_of(model, found, include_noise)
        return (values, deviations_of(model, found, include_noise)) if return_std else values

    def _decide_from_first(self, graphs: GraphCollection) -> PanelPredictions:
        """Return predictions, with deviations of the differences to the first graph."""
        self._complete()
        return self._panel.decide_from_first(graphs, self._n_jobs())

    def _panel_predictions(
        self,
        X: object,
        measured: object = None,
        tables: object = None,
        profile: Profile | None = None,
        found: PanelPredictions | None = None,
    ) -> pd.DataFrame:
        """Return predictions of all endpoints, their uncertainty and the domain as a table.

        ``found`` are these predictions, where they have been made without measured cells.
        """
        graphs = self._new_graphs(self._with_numbers(X, None, tables))
        known = None if measured is None else cells_for(self._panel, measured, len(graphs))
        if found is None:
            found = self._decide_panel(graphs, True, measured)
        model = self._panel
        table = panel_table(model, found, self._surroundings(found), known)
        if profile is not None:
            columns = profile.columns(*panel_outlooks(model, found, known))
            table = pd.concat([columns.frame(), table], axis=1)
        if graphs.names is not None:
            table.index = pd.Index(list(graphs.names), name="name")
        return table

    def _surroundings(self, found: PanelPredictions) -> Surroundings:
        """Return the training graphs around others, and whether these are in the domain."""
        n_jobs = self._n_jobs()
        return Surroundings.of(found, kept_domain(self._panel, n_jobs), n_jobs)

    def _panel_intervals(
        self, X: object, level: float, measured: object = None, tables: object = None
    ) -> np.ndarray:
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must be a probability between 0 and 1, got {level!r}.")
        found = self._decide_panel(X, True, measured, tables)
        return intervals_of(self._panel, found, float(level))

    def _panel_probabilities(
        self, X: object, measured: object, tables: object
    ) -> dict[str, np.ndarray]:
        found = self._decide_panel(X, False, measured, tables)
        return probabilities_of(self._panel, found.mean)

    # --- one endpoint ---------------------------------------------------------------------------

    def endpoint(self, name: str) -> EndpointOfPanel:
        """Return one endpoint of several, as a model that explains, finds fragments and reports.

        Parameters
        ----------
        name : str
            One of ``endpoints_``.

        Returns
        -------
        EndpointOfPanel
            With ``predict``, ``explain``, ``fragments``, ``fragments_``, ``patterns_`` and
            ``report`` as models of one endpoint have them. The training graphs are those with a
            value of the endpoint.
        """
        model = self._panel.endpoint(name)  # or an error that names the endpoints
        record, kept = self._endpoints
        if record is not self._panel.record:
            self._endpoints = self._panel.record, (kept := {})
        title = self._panel.endpoint_names[model.column]
        return kept.setdefault(title, EndpointOfPanel(self, title))

    def _fragments_of_endpoints(
        self, graphs: GraphCollection, y: object, endpoint: str | None, options: dict[str, Any]
    ) -> FragmentTable:
        self._complete()
        values = None if y is None else cells_for(self._panel, y, len(graphs))
        names = self.endpoints_ if endpoint is None else [self.endpoint(endpoint).name]
        tables = {}
        options["known"] = {}
        for name in names:
            some = np.arange(len(graphs))
            targets = None
            if values is not None:
                some, targets = self._panel.endpoint(name).measured_among(values)
            tables[name] = self.endpoint(name)._fragment_table(graphs[some], targets, **options)
        return joined_fragments(tables) if endpoint is None else tables[names[0]]

    def _training_fragments_of_endpoints(self) -> FragmentTable:
        self._complete()
        known: KnownInverses = {}
        tables = {name: self.endpoint(name).kept_fragments(known) for name in self.endpoints_}
        return joined_fragments(tables)

    def _complete(self) -> None:
        """Compute what variances need and a file does not keep, once for all that follows."""
        self.model_ = self._panel.completed(self._n_jobs())

    def scores(
        self, X: object, y: object, *, measured: object = None, tables: object = None
    ) -> pd.DataFrame:
        """Return scores of each endpoint where it was measured; for several endpoints only.

        Parameters
        ----------
        X, y : graphs and their values, NaN in gaps, as in ``fit``
        measured : DataFrame or array, optional
            Known cells, as in ``predict``: ``measured=y`` scores gaps, each cell given the others
            of its molecule.
        tables :
            As in ``predict``.

        Returns
        -------
        DataFrame
            A row for each endpoint: ``n`` cells; of numbers ``rmse``, ``mae``, ``r2`` and
            ``coverage`` of 90 % intervals, in the units of y (where logarithms were asked for, on
            that scale); of classes ``roc_auc``, ``pr_auc``, ``mcc`` and ``accuracy``.
        """
        if not self._is_panel:
            raise ValueError("scores is for several endpoints: use score for one.")
        found = self._decide_panel(X, True, measured, tables)
        assert found.variance is not None
        truth = cells_for(self._panel, y, len(found.mean))
        return score_table(self._panel, truth, found.mean, np.sqrt(found.variance))

    def _panel_score(self, X: object, y: object) -> float:
        return mean_score(self._panel, self.scores(X, y))

    def _html_repr(self) -> str:
        """Return the HTML that a notebook shows: of several endpoints, scores and correlations."""
        if not hasattr(self, "model_") or not self._is_panel:
            return super()._html_repr()  # type: ignore[misc,no-any-return]
        return panel_html(self._panel, type(self).__name__)

    # --- what was learned -----------------------------------------------------------------------

    @property
    def endpoints_(self) -> list[str]:
        """The endpoints, in the order of the columns; of one endpoint its name, if known."""
        name = self._fitted_model.training.record.name
        return list(self._fitted_model.endpoint_names) or ([] if name is None else [name])

    @property
    def correlations_(self) -> pd.DataFrame:
        """Correlations of the endpoints without noise, a priori, over all views."""
        if not self._is_panel:
            raise AttributeError("correlations_ is for several endpoints, and the model has one.")
        return correlation_table(self._panel)

    @property
    def helps_(self) -> pd.DataFrame:
        """By how much a measured endpoint (columns) lowers squared errors of another one (rows).

        Each training graph is left out, with all of its cells; of those with both endpoints, 0.4
        means that knowing the one takes 40 % off the squared error of the other. NaN where fewer
        than ten graphs have both. It takes as long as a fit without search, and is kept.
        """
        found = self._known_helps("helps_")
        if found is None:
            raise AttributeError("helps_ has no closed form through landmarks: see exact_size.")
        return found

    @property
    def sharing_(self) -> pd.DataFrame:
        """What each endpoint gains from the others, a row for each.

        ``n`` values; the ``score`` that follows (``r2``, of classes ``roc_auc``), left out: of a
        ``single`` process of the endpoint, of all together for ``new`` graphs, and for a ``gap``
        next to other measurements; ``gain``, new over single; ``alone`` as in ``alone_``;
        ``helped_by``, the endpoint whose measurement lowers its squared error most, and by how much
        (``error_taken_off``, from ``helps_``; empty through landmarks).
        """
        return sharing_table(self._panel, self._known_helps("sharing_"))

    def _known_helps(self, what: str) -> pd.DataFrame | None:
        if not self._is_panel:
            raise AttributeError(f"{what} is for several endpoints, and the model has one.")
        if self._helps is None or self._helps[0] is not self._panel.record:
            self._complete()
            self._helps = self._panel.record, help_table(self._panel, self._n_jobs())
        found = self._helps[1]
        return None if found is None else found.copy()

    @property
    def alone_(self) -> pd.Series:
        """How much of the predictions of an endpoint comes from a process of its own, 0 to 1."""
        if not self._is_panel:
            raise AttributeError("alone_ is for several endpoints, and the model has one.")
        names = list(self._panel.endpoint_names)
        return pd.Series(self._panel.shares_alone, index=names, name="alone")

    def _panel_shares(self) -> pd.DataFrame:
        return share_table(self._panel)

    def _panel_noise(self) -> pd.Series:
        return noise_series(self._panel)

    def _panel_left_out(self) -> pd.DataFrame:
        return left_out_table(self._panel)
