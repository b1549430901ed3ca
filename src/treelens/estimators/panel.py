"""One model of many endpoints with gaps."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from treelens._sklearn_compat import Interval, StrOptions
from treelens.errors import GraphDataError, check_choice
from treelens.estimators.panel_fitting import PanelEstimator
from treelens.gp.panel_model import FittedPanel
from treelens.graphs.convert import check_graphs
from treelens.models.predictions import parse_threshold
from treelens.targets import Targets

if TYPE_CHECKING:
    from typing_extensions import Self

    from treelens.views import View


class GraphPanel(PanelEstimator):
    """One Gaussian process of several endpoints, of which most cells may be empty.

    Endpoints may be numbers, two classes, or some of each: a column of texts, booleans or
    categories holds classes. Every endpoint has its own noise; what a view of the graphs explains,
    endpoints share as far as the marginal likelihood says. A molecule of which some endpoints are
    measured helps to predict the others, in training (gaps) and for new molecules (``measured=``).

    Parameters
    ----------
    depth : int or "auto", default="auto"
        The number of Weisfeiler-Lehman iterations; ``"auto"`` is 3.
    weights : {"auto", "uniform", "depths"}, default="auto"
        Whether all patterns of a view weigh the same, or each level (depth, distance) has a weight;
        ``"auto"`` is the latter.
    views : "auto" or list of views, default="auto"
        What is seen of graphs, such as ``[tl.WLPatterns(), tl.Paths()]``, which are the usual ones
        (of large graphs without paths).
    descriptors : {"auto", "compact", "fast", "all"} or bool, default="auto"
        Which descriptors of molecules are a view as well; ``"auto"``: 21 (``"compact"``), where
        there are molecules and ``views`` is ``"auto"``, too.
    threshold : float or str, default="auto"
        From which probability on the rarer of two classes is predicted, as in
        :class:`GraphClassifier`.
    learning_size : int, default=3600
        Kernels, and what endpoints share, are learned on at most so many cells, small endpoints
        whole.
    exact_size : int, default=30000
        Up to so many cells predictions are exact, with 8 bytes of memory for every pair of them
        and, beyond 12,000, 4 bytes (3.6 GB at most by default), which the model keeps for standard
        deviations; of more, some stand for all.
    n_landmarks : int, default=5000
        How many cells stand for all. Time is proportional to ``n_landmarks**2`` for every cell.
    max_steps : int, default=100
        Iterations of each stage of the search.
    n_jobs : int, optional
        Threads, as in :class:`GraphRegressor`.
    random_state : int, RandomState or None, default=0
        Draws the cells that are learned from.
    progress : bool, optional
        Whether to show a progress bar; by default only on a terminal.

    Attributes
    ----------
    endpoints_ : list of str
    alone_ : Series
        How much of the predictions of each endpoint comes from a process of its own, from 0 to 1:
        as much as predicts clusters of training graphs best from other clusters. Where sharing
        would hurt, it is all; such endpoints and their siblings still tell of each other
        (``measured=``).
    correlations_ : DataFrame, shape (n_endpoints, n_endpoints)
        Correlations of the endpoints, without their noise, over all views.
    shares_ : DataFrame, shape (n_views, n_endpoints)
        How much of the variance of an endpoint each view explains a priori; columns sum to one.
    noise_ : Series
        Standard deviation of the measurements of each endpoint.
    sharing_ : DataFrame
        What each endpoint gains from the others: scores left out by itself and together, and whose
        measurement helps it most.
    helps_ : DataFrame, shape (n_endpoints, n_endpoints)
        By how much a measured endpoint (columns) lowers the squared error of another one (rows).
    loo_ : DataFrame
        Scores of each endpoint by leave-one-out: ``kind`` is ``"new"`` where all cells of the
        molecule are left out, ``"gap"`` where only the cell is, and ``"single"`` for a process of
        the endpoint by itself.
    converged_ : bool
        Whether the search converged.

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
        "depth": [StrOptions({"auto"}), Interval(Integral, 0, 20, closed="both")],
        "weights": [StrOptions({"auto", "uniform", "depths"})],
        "views": [StrOptions({"auto"}), list, tuple],
        "descriptors": [StrOptions({"auto", "compact", "fast", "all"}), "boolean"],
        "threshold": [Real, str],
        "learning_size": [Interval(Integral, 2, None, closed="left")],
        "exact_size": [Interval(Integral, 2, None, closed="left")],
        "n_landmarks": [Interval(Integral, 2, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "progress": ["boolean", None],
    }

    model_: FittedPanel

    def __init__(
        self,
        depth: int | str = "auto",
        weights: str = "auto",
        *,
        views: str | Sequence[View] = "auto",
        descriptors: bool | str = "auto",
        threshold: float | str = "auto",
        learning_size: int = 3600,
        exact_size: int = 30_000,
        n_landmarks: int = 5000,
        max_steps: int = 100,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        progress: bool | None = None,
    ) -> None:
        self.depth = depth
        self.weights = weights
        self.views = views
        self.descriptors = descriptors
        self.threshold = threshold
        self.learning_size = learning_size
        self.exact_size = exact_size
        self.n_landmarks = n_landmarks
        self.max_steps = max_steps
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def _validate_params(self) -> None:
        super()._validate_params()
        parse_threshold(self.threshold)

    def fit(self, X: object, y: object) -> Self:
        """Learn all endpoints together.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
        y : DataFrame, array or Targets, shape (n_graphs, n_endpoints)
            Numbers, NaN where an endpoint was not measured; texts, booleans and categories are
            classes, of which there must be two.
        """
        self._validate_params()
        graphs = check_graphs(X)
        targets = Targets.of(y, len(graphs), several=True)
        if targets.endpoints is None:
            raise GraphDataError("y has one column: learn it with GraphRegressor.")
        self._fit_panel(graphs, targets)
        return self

    # --- predictions ----------------------------------------------------------------------------

    def predict(
        self,
        X: object,
        return_std: bool = False,
        return_cov: str | bool = False,
        include_noise: bool = True,
        *,
        measured: object = None,
        tables: object = None,
        point: str = "mean",
    ) -> Any:
        """Return values of all endpoints.

        Parameters
        ----------
        X : graphs
        return_std : bool, default=False
        return_cov : {"endpoints"} or False, default=False
            Instead of standard deviations, the covariance between the endpoints of each graph, on
            the scales that were learned.
        include_noise : bool, default=True
            Whether deviations are those of new measurements, or of values without noise.
        measured : DataFrame or array, shape (n_graphs, n_endpoints), optional
            Known cells of these graphs, NaN where nothing was measured: the other cells are
            predicted with them. A measured cell shows the prediction made without it.
        tables : DataFrame, path of a file, or dict of these by name, optional
            Rows for the ids of ``X``, where a :class:`treelens.Table` is among the views.
        point : {"mean", "median"}, default="mean"
            Of endpoints that are learned on another scale, which the two are the same on.

        Returns
        -------
        mean : ndarray, shape (n_graphs, n_endpoints)
            Numbers and, where endpoints have classes, these: the array then holds objects.
        std : ndarray, shape (n_graphs, n_endpoints)
            Of classes that of the decision value; or the covariance, shape (n_graphs, n_endpoints,
            n_endpoints).
        """
        check_choice("point", point, ("mean", "median"))
        return self._predict_panel(
            X, return_std, return_cov, include_noise, measured, tables, point
        )

    def predict_interval(
        self, X: object, level: float = 0.9, *, measured: object = None, tables: object = None
    ) -> np.ndarray:
        """Return the bounds between which measurements lie with a probability.

        They are quantiles: where an endpoint is learned on another scale, they are not symmetric
        about the mean. Of classes they are those of the decision value.

        Returns
        -------
        ndarray, shape (n_graphs, n_endpoints, 2)
        """
        return self._panel_intervals(X, level, measured, tables)

    def predict_proba(
        self, X: object, *, measured: object = None, tables: object = None
    ) -> dict[str, np.ndarray]:
        """Return probabilities of both classes, (n_graphs, 2), for each endpoint of classes.

        They are calibrated on training molecules, each left out; a dict by names of endpoints.
        """
        return self._panel_probabilities(X, measured, tables)

    def predict_table(
        self, X: object, *, measured: object = None, tables: object = None
    ) -> pd.DataFrame:
        """Return predictions of all endpoints, their uncertainty and the domain, a row per graph.

        The parameters are those of :meth:`predict`.

        Returns
        -------
        DataFrame
            For each endpoint, with its name and ``_`` in front: of numbers ``prediction``, ``std``,
            ``lower_90`` and ``upper_90``; of classes ``class``, ``probability`` (of it),
            ``decision`` and ``probability_CLASS`` for each; of both ``in_domain``,
            ``expected_error`` and, where ``measured`` is given, ``measured``. Then ``similarity``
            to the nearest training graph, ``nearest``, its position, and ``out_of_vocabulary``.
        """
        return self._panel_predictions(X, measured, tables)

    @property
    def classes_by_endpoint_(self) -> dict[str, np.ndarray]:
        """The two classes of each endpoint that has classes."""
        ends = self._panel.endpoints
        return {each.name: each.classes for each in ends if each.classes is not None}

    def score(self, X: object, y: object) -> float:
        """Return the mean over endpoints of R2 (of classes the accuracy); `scores` has each."""
        return self._panel_score(X, y)

    # --- what was learned -----------------------------------------------------------------------

    @property
    def shares_(self) -> pd.DataFrame:
        """The share of each view in the variance of each endpoint, a priori."""
        return self._panel_shares()

    @property
    def noise_(self) -> pd.Series:
        """Standard deviation of a measurement of each endpoint, on the scale that is learned."""
        return self._panel_noise()

    @property
    def loo_(self) -> pd.DataFrame:
        """Scores by leave-one-out, of new molecules, of gaps and of single processes."""
        return self._panel_left_out()

    @property
    def converged_(self) -> bool:
        """Whether the search converged."""
        return self._panel.record.converged
