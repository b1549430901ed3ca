"""One model of many endpoints with gaps."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import Interval, StrOptions
from treelens.errors import GraphDataError
from treelens.estimators.base import GraphEstimator, write_model
from treelens.evaluation.metrics import number_scores
from treelens.gp.data import TrainingView
from treelens.gp.panel_model import FittedPanel, PanelPredictions, check_panel, fit_panel
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.kinds import PLAIN, kind_of_facts
from treelens.parallel import progress_ticks
from treelens.targets import Targets
from treelens.views import ViewSettings, check_views, descriptors_of, usual_views

if TYPE_CHECKING:
    from typing_extensions import Self


class GraphPanel(GraphEstimator):
    """One Gaussian process of several endpoints, of which most cells may be empty.

    Every endpoint has its own noise; what a view of the graphs explains, endpoints share as far as
    the marginal likelihood says. A molecule of which some endpoints are measured helps to predict
    the others, in training (gaps) and for new molecules (``measured=``).

    Parameters
    ----------
    depth : int, default=3
        The number of Weisfeiler-Lehman iterations.
    weights : {"uniform", "depths"}, default="depths"
        Whether all patterns of a view weigh the same, or each level (depth, distance) has a weight.
    views : "auto" or list of views, default="auto"
        What is seen of graphs, such as ``[tl.WLPatterns(), tl.Paths()]``, which are the usual ones
        (of large graphs without paths).
    descriptors : bool or "auto", default="auto"
        Whether 21 descriptors of molecules are a view as well; ``"auto"``: where there are any
        molecules.
    learning_size : int, default=2000
        Kernels, and what endpoints share, are learned on at most so many cells, small endpoints
        whole.
    exact_size : int, default=12000
        The largest number of cells, as predictions are exact.
    max_steps : int, default=60
        Iterations of the search.
    n_jobs : int, optional
        Threads; -1 means all processors.
    random_state : int, RandomState or None, default=0
        Draws the cells that are learned from.
    progress : bool, optional
        Whether to show a progress bar; by default only on a terminal.

    Attributes
    ----------
    endpoints_ : list of str
    correlations_ : DataFrame, shape (n_endpoints, n_endpoints)
        Correlations of the endpoints, without their noise, over all views.
    shares_ : DataFrame, shape (n_views, n_endpoints)
        How much of the variance of an endpoint each view explains a priori; columns sum to one.
    noise_ : Series
        Standard deviation of the measurements of each endpoint.
    loo_ : DataFrame
        Scores of each endpoint by leave-one-out: ``kind`` is ``"new"`` where all cells of the
        molecule are left out, ``"gap"`` where only the cell is.

    Examples
    --------
    >>> import numpy as np
    >>> import treelens as tl
    >>> graphs = tl.as_graph_collection([(
    ...     [(i, i + 1) for i in range(n)], {i: "C" for i in range(n + 1)}) for n in range(1, 25)])
    >>> n = np.arange(1.0, 25.0)
    >>> Y = np.stack([n, -n], axis=1)
    >>> Y[::3, 0], Y[1::3, 1] = np.nan, np.nan
    >>> panel = tl.GraphPanel(depth=1).fit(graphs, Y)
    >>> panel.predict(graphs[3:5]).shape
    (2, 2)
    >>> bool(panel.correlations_.iloc[0, 1] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "depth": [Interval(Integral, 0, 20, closed="both")],
        "weights": [StrOptions({"uniform", "depths"})],
        "views": [StrOptions({"auto"}), list, tuple],
        "descriptors": [StrOptions({"auto"}), "boolean"],
        "learning_size": [Interval(Integral, 2, None, closed="left")],
        "exact_size": [Interval(Integral, 2, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "progress": ["boolean", None],
    }

    model_: FittedPanel

    def __init__(
        self,
        depth: int = 3,
        weights: str = "depths",
        *,
        views: Any = "auto",
        descriptors: bool | str = "auto",
        learning_size: int = 2000,
        exact_size: int = 12_000,
        max_steps: int = 60,
        n_jobs: int | None = None,
        random_state: Any = 0,
        progress: bool | None = None,
    ) -> None:
        self.depth = depth
        self.weights = weights
        self.views = views
        self.descriptors = descriptors
        self.learning_size = learning_size
        self.exact_size = exact_size
        self.max_steps = max_steps
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any) -> Self:
        """Learn all endpoints together.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
        y : DataFrame, array or Targets, shape (n_graphs, n_endpoints)
            Numbers, NaN where an endpoint was not measured.
        """
        self._validate_params()
        graphs = check_graphs(X)
        targets = Targets.of(y, len(graphs), several=True)
        if targets.endpoints is None:
            raise GraphDataError("y has one column: learn it with GraphRegressor.")
        check_panel(targets.values, targets.endpoints)
        n_cells = int((~np.isnan(targets.values)).sum())
        if n_cells > self.exact_size:
            raise GraphDataError(
                f"There are {n_cells:,} measured cells, more than exact_size={self.exact_size:,}: "
                "raise it (memory grows with its square), or give fewer molecules."
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with progress_ticks(self.progress, "Learning the panel") as tick:
            self.model_ = fit_panel(
                self._fit_views(graphs),
                targets.values,
                targets.endpoints,
                learning_size=self.learning_size,
                seed=seed,
                recipe=graphs.recipe,
                weights=self.weights,
                max_steps=self.max_steps,
                n_jobs=self._n_jobs(),
                tick=tick,
            )
        return self

    def _fit_views(self, graphs: GraphCollection) -> tuple[TrainingView, ...]:
        settings = ViewSettings(self.depth, n_jobs=self._n_jobs())
        chosen = usual_views(graphs) if isinstance(self.views, str) else check_views(self.views)
        views: list[TrainingView] = [view.fit(graphs, settings) for view in chosen]
        molecules = kind_of_facts(graphs.graph_data) is not PLAIN
        if self.descriptors is True and not molecules:
            raise ValueError("descriptors=True needs molecules: use descriptors='auto'.")
        if molecules and self.descriptors is not False:
            views.append(descriptors_of(graphs, "compact"))
        return tuple(views)

    # --- predictions ----------------------------------------------------------------------------

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: str | bool = False,
        include_noise: bool = True,
        *,
        measured: Any = None,
    ) -> Any:
        """Return values of all endpoints.

        Parameters
        ----------
        X : graphs
        return_std : bool, default=False
        return_cov : {"endpoints"} or False, default=False
            Instead of standard deviations, the covariance between the endpoints of each graph.
        include_noise : bool, default=True
            Whether deviations are those of new measurements, or of values without noise.
        measured : DataFrame or array, shape (n_graphs, n_endpoints), optional
            Known cells of these graphs, NaN where nothing was measured: the other cells are
            predicted with them. A measured cell shows the prediction made without it.

        Returns
        -------
        mean : ndarray, shape (n_graphs, n_endpoints)
        std : ndarray, shape (n_graphs, n_endpoints)
            Or the covariance, shape (n_graphs, n_endpoints, n_endpoints).
        """
        if return_cov not in (False, "endpoints"):
            raise ValueError(f"return_cov must be False or 'endpoints', got {return_cov!r}.")
        if return_std and return_cov:
            raise ValueError("Ask for return_std or return_cov, not for both.")
        found = self._decide(X, bool(return_std or return_cov), measured)
        if found.covariance is None or not (return_std or return_cov):
            return found.mean
        covariance, own = found.covariance, np.arange(found.mean.shape[1])
        if include_noise:
            covariance[:, own, own] += self.noise_.to_numpy() ** 2
        if return_cov:
            return found.mean, covariance
        return found.mean, np.sqrt(covariance[:, own, own])

    def _decide(self, X: Any, covariance: bool, measured: Any = None) -> PanelPredictions:
        check_is_fitted(self)
        graphs = check_graphs(X, self.model_.recipe)
        known = None
        if measured is not None:
            known = self._columns_of(measured, len(graphs))
        return self.model_.decide(
            graphs, covariance=covariance, measured=known, n_jobs=self._n_jobs()
        )

    def _columns_of(self, y: Any, n_graphs: int) -> np.ndarray:
        """Return values by endpoint, in the order of the model; missing columns are NaN."""
        endpoints = self.model_.endpoints
        if hasattr(y, "columns"):
            unknown = [str(name) for name in y.columns if str(name) not in endpoints]
            if unknown:
                raise GraphDataError(
                    f"{unknown[0]!r} is none of the endpoints of this model, "
                    f"{', '.join(endpoints)}: leave the column out."
                )
            y = y.rename(columns=str).reindex(columns=list(endpoints))
        targets = Targets.of(y, n_graphs, several=True)
        if targets.endpoints is None or len(targets.endpoints) != len(endpoints):
            raise GraphDataError(f"Give one column for each endpoint: {', '.join(endpoints)}.")
        return targets.values

    def score(self, X: Any, y: Any) -> float:
        """Return the mean over endpoints of R2; :meth:`scores` has each."""
        return float(self.scores(X, y)["r2"].mean())

    def scores(self, X: Any, y: Any) -> pd.DataFrame:
        """Return scores of each endpoint: number of cells, RMSE, MAE, R2, coverage of intervals."""
        mean, std = self.predict(X, return_std=True)
        return _score_table(self._columns_of(y, len(mean)), mean, std, self.model_.endpoints)

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved."""
        check_is_fitted(self)
        write_model(self, self.model_, path)

    # --- what was learned -----------------------------------------------------------------------

    @property
    def endpoints_(self) -> list[str]:
        """The endpoints, in the order of the columns."""
        check_is_fitted(self)
        return list(self.model_.endpoints)

    @property
    def correlations_(self) -> pd.DataFrame:
        """Correlations of the endpoints without noise, a priori, over all views."""
        total, names = np.sum(self.model_.shared, axis=0), self.endpoints_
        size = np.sqrt(np.diagonal(total))
        return pd.DataFrame(total / np.outer(size, size), index=names, columns=names)

    @property
    def shares_(self) -> pd.DataFrame:
        """The share of each view in the variance of each endpoint, a priori."""
        parts = np.array([np.diagonal(each) for each in self.model_.shared])
        names = [view.name for view in self.model_.views]
        return pd.DataFrame(parts / parts.sum(axis=0), index=names, columns=self.endpoints_)

    @property
    def noise_(self) -> pd.Series:
        """Standard deviation of a measurement of each endpoint, in its units."""
        values = self.model_.scale * np.sqrt(self.model_.noise)
        return pd.Series(values, index=self.endpoints_, name="noise")

    @property
    def loo_(self) -> pd.DataFrame:
        """Scores by leave-one-out, of new molecules and of gaps."""
        left_out, endpoints = self.model_.left_out, self.model_.endpoints
        table = self.model_.values
        found = {
            "new": _score_table(table, left_out.new, left_out.new_std, endpoints),
            "gap": _score_table(table, left_out.gap, left_out.gap_std, endpoints),
        }
        return pd.concat(found, names=["kind", "endpoint"])


def _score_table(
    truth: np.ndarray, mean: np.ndarray, std: np.ndarray, endpoints: tuple[str, ...]
) -> pd.DataFrame:
    rows = []
    for k in range(len(endpoints)):
        known = ~np.isnan(truth[:, k])
        scores = (
            number_scores(truth[known, k], mean[known, k], std[known, k]) if known.any() else {}
        )
        names = ("rmse", "mae", "r2", "coverage")
        rows.append({"n": int(known.sum()), **{name: scores.get(name) for name in names}})
    index = pd.Index(endpoints, name="endpoint")
    return pd.DataFrame(rows, index=index).astype({"n": int})
