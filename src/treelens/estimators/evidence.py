"""Gaussian processes on graphs whose evidence decides how much every pattern weighs."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import (
    Interval,
    RegressorMixin,
    StrOptions,
    check_sample_weight,
)
from treelens.estimators.base import DecidesOnGraphs
from treelens.estimators.process import GaussianProcessOnGraphs
from treelens.explain.pattern_table import number_table, pattern_table
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.models.calibration import fit_slope
from treelens.models.fitting import (
    Targets,
)
from treelens.models.leave_one_out import (
    LeftOutClasses,
    LeftOutNumbers,
    left_out_classes,
    left_out_numbers,
)
from treelens.models.svm import class_weights
from treelens.models.thresholds import Threshold, has_rare_class, parse_threshold
from treelens.models.training import TrainingGraphs
from treelens.selection.settings import check_classes, check_numbers, warn_if_one_class_is_all

if TYPE_CHECKING:
    import pandas as pd


class GraphRegressor(RegressorMixin, GaussianProcessOnGraphs):
    """Numbers from graphs: a Gaussian process whose pattern weights are learned by evidence.

    Graphs are compared by how often each Weisfeiler-Lehman pattern occurs in them. How much a
    pattern weighs is learned under a prior: one weight for each depth, and for each *branch* of the
    tree of patterns, so that a rare pattern borrows from the more common ones that it refines. The
    marginal likelihood ("evidence") decides, which charges for every freedom it uses; there is
    nothing to cross-validate.

    Parameters
    ----------
    depth : int, default=4
        The number of Weisfeiler-Lehman iterations: how many bonds a pattern reaches.
    weights : {"branches", "depths", "uniform"}, default="branches"
        What is learned: every branch, one weight per depth, or nothing.
    trees : "auto" or sequence of str, default="auto"
        Ways of looking at the graphs whose patterns stand side by side: ``"structure"``,
        ``"labels"``, ``"labels+edges"``, ``"fine"``, ``"fine+edges"``. By default molecules are
        seen by element and by atoms with their charge, hydrogens and rings; other graphs by node
        labels and, where there are any, by edge labels as well.
    prior_strength : float, default=30
        How firmly the prior holds each branch to the weight of the pattern that it refines.
    learning_size : int, default=3000
        Weights are learned on at most so many training graphs, drawn evenly over the targets.
    exact_size : int, default=12000
        Up to so many training graphs predictions are exact, with 24 bytes of memory for every pair
        of graphs (3.5 GB at most by default); beyond, they go through landmarks. A fit that the
        free memory cannot hold is refused before it begins.
    n_landmarks : int, default=3000
        How many graphs predictions then go through.
    max_steps : int, default=100
        Steps of each stage of the search.
    device : str, default="cpu"
        Where weights are learned: ``"cuda"`` is a GPU, through PyTorch.
    n_jobs : int, optional
        Threads; -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the samples; with fewer than ``learning_size`` graphs nothing is random.
    progress : bool, optional
        Whether to show a progress bar; by default only on a terminal.

    Attributes
    ----------
    model_ : FittedGaussianProcess
        Patterns, weights, kernel and posterior, frozen.
    weights_ : ndarray, shape (n_patterns,)
        One on average over depths where nothing was learned.
    evidence_ : float
        Log of the marginal likelihood (numbers standardised; of several classes the mean over their
        columns) times the priors, of the graphs that weights were learned on. The priors' own
        constants are left out, so it compares models of the same patterns.
    history_ : DataFrame
        ``stage``, ``evidence``, ``gradient_norm`` and ``n_evaluations`` after every step.
    converged_ : bool
    loo_ : LeftOutNumbers
        What the model says of each training graph from all the others, and the scores of that.
    learning_gain_ : LearningGain
        Learned against uniform weights by leave-one-out predictive density.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs = tl.as_graph_collection([(
    ...     [(i, i + 1) for i in range(n)], {i: "C" for i in range(n + 1)}) for n in range(1, 13)])
    >>> model = tl.GraphRegressor(depth=1).fit(graphs, [float(n) for n in range(1, 13)])
    >>> mean, std = model.predict(graphs[5:6], return_std=True)
    >>> bool(abs(mean[0] - 6.0) < 0.5), bool(std[0] > 0)
    (True, True)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GraphRegressor:
        """Learn the weights and condition on the values.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
        y : array-like of float, shape (n_graphs,)
        sample_weight : array-like, shape (n_graphs,), optional
            The noise variance of a graph is divided by its weight.
        """
        self._validate_params()
        graphs = check_graphs(X)
        values = check_numbers(y, len(graphs))
        weights = _checked_weights(sample_weight, graphs)
        targets = Targets.standardized(values[:, None], weights, None)
        fitted, histograms = self._condition(graphs, targets, _value_groups(values))
        left_out = left_out_numbers(fitted.left_out, targets, values)
        self.model_ = replace(
            fitted.model,
            training=TrainingGraphs(histograms, values),
            recipe=graphs.recipe,
            record=self._record(fitted, targets, left_out),
        )
        return self

    @property
    def loo_(self) -> LeftOutNumbers:
        """What the model says of each training graph from all the others."""
        return self._fitted_model.record.left_out

    @property
    def train_values_(self) -> np.ndarray:
        """Values of the training graphs."""
        return self._fitted_model.training.targets

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> np.ndarray: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...
    def predict(
        self, X: Any, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Values, and if asked for the standard deviations of new measurements (noise included).

        Parameters
        ----------
        X : graphs
        return_std : bool, default=False

        Returns
        -------
        mean : ndarray, shape (n_graphs,)
        std : ndarray, shape (n_graphs,)
            Only with ``return_std``. ``mean ± 1.645 std`` should hold nine of ten measurements.
        """
        said = self._decide(X, variance=return_std)
        mean = said.mean[:, 0]
        return (mean, np.sqrt(said.variance)) if said.variance is not None else mean

    def _left_out_errors(self) -> np.ndarray:
        return (self.train_values_ - self.loo_.predictions)[:, None]

    @property
    def patterns_(self) -> pd.DataFrame:
        """DataFrame of all patterns: text, depth, weight, support, mean value where it occurs."""
        check_is_fitted(self)
        return number_table(
            self.model_.weighted.forest,
            self._fitted_model.training.histograms,
            self.weights_,
            self.train_values_,
        )


class GraphClassifier(DecidesOnGraphs, GaussianProcessOnGraphs):
    """Classes of graphs: a Gaussian process whose pattern weights are learned by evidence.

    As :class:`GraphRegressor`, with the classes coded as numbers: +1 and -1 for two, one column
    each for more, all with the same kernel. Decision values are posterior means, and probabilities
    are a logistic map of these that leave-one-out predictions were calibrated by.

    Parameters
    ----------
    depth, weights, trees, prior_strength, learning_size, exact_size, n_landmarks, max_steps :
        As for :class:`GraphRegressor`. Where a class is rare (of two, below 25 %), weights are
        learned from as many graphs of each class; predictions are made from all of them.
    device, n_jobs, random_state, progress :
        As for :class:`GraphRegressor`.
    class_weight : None, "balanced" or dict, default=None
        How much the graphs of each class count: the noise of a graph is divided by it.
    threshold : float or str, default="auto"
        How probable the rarer of two classes must be to be named. ``"auto"``: where it is rare
        (below 25 %), the threshold with the largest Matthews correlation, else 0.5;
        ``"recall=0.9"``: the highest that finds nine tenths of it; ``"precision=0.8"``;
        ``"cost=10"``: missing one costs as much as ten false alarms. All of these are chosen on
        leave-one-out predictions. Probabilities and decision values do not depend on it.

    Attributes
    ----------
    classes_ : ndarray
    threshold_ : Threshold or None
        What ``predict`` names the rarer class by; None: the most probable class is named.
    loo_ : LeftOutClasses
    model_, weights_, evidence_, history_, converged_, learning_gain_ :
        As for :class:`GraphRegressor`.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphClassifier(depth=2).fit(graphs, y)
    >>> model.predict(graphs[:2]).tolist() == y[:2].tolist()
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GaussianProcessOnGraphs._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "threshold": [Interval(Real, 0, 1, closed="neither"), str],
    }

    def __init__(
        self,
        depth: int = 4,
        weights: str = "branches",
        *,
        trees: Any = "auto",
        class_weight: Any = None,
        threshold: Any = "auto",
        prior_strength: float = 30.0,
        learning_size: int = 3000,
        exact_size: int = 12_000,
        n_landmarks: int = 3000,
        max_steps: int = 100,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        super().__init__(
            depth,
            weights,
            trees=trees,
            prior_strength=prior_strength,
            learning_size=learning_size,
            exact_size=exact_size,
            n_landmarks=n_landmarks,
            max_steps=max_steps,
            device=device,
            n_jobs=n_jobs,
            random_state=random_state,
            progress=progress,
        )
        self.class_weight = class_weight
        self.threshold = threshold

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GraphClassifier:
        """Learn the weights and condition on the classes.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
        y : array-like, shape (n_graphs,)
            Classes of any kind.
        sample_weight : array-like, shape (n_graphs,), optional
        """
        self._validate_params()
        parse_threshold(self.threshold)
        graphs = check_graphs(X)
        classes, codes = check_classes(y, len(graphs))
        weights = _checked_weights(sample_weight, graphs)
        weights = weights * class_weights(self.class_weight, classes, codes)
        targets = Targets.standardized(class_columns(codes, len(classes)), weights, 1.0)
        fitted, histograms = self._condition(graphs, targets, codes)
        held_out = targets.offset + targets.scale * fitted.left_out.mean
        slope = fit_slope(held_out, codes, weights)
        left_out = left_out_classes(held_out, codes, classes, slope, self.threshold)
        warn_if_one_class_is_all(np.searchsorted(classes, left_out.predictions), classes)
        self.model_ = replace(
            fitted.model,
            classes=classes,
            slope=slope,
            training=TrainingGraphs(histograms, codes),
            recipe=graphs.recipe,
            record=self._record(fitted, targets, left_out),
        )
        return self

    def _has_rare_class(self, groups: np.ndarray) -> bool:
        return has_rare_class(groups)

    @property
    def loo_(self) -> LeftOutClasses:
        """What the model says of each training graph from all the others."""
        return self._fitted_model.record.left_out

    @property
    def train_codes_(self) -> np.ndarray:
        """Classes of the training graphs, as positions in ``classes_``."""
        return self._fitted_model.training.targets

    @property
    def threshold_(self) -> Threshold | None:
        """What a rare class is named by; None: the most probable class is named."""
        return self._fitted_model.threshold

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes).

        The largest is that of ``predict``, unless a threshold lets a rare class be named sooner.
        """
        probabilities = self._decide(X).probabilities
        assert probabilities is not None
        return probabilities

    def _left_out_errors(self) -> np.ndarray:
        columns = class_columns(self.train_codes_, len(self.classes_))
        return columns - self.loo_.decisions.reshape(columns.shape)

    @property
    def patterns_(self) -> pd.DataFrame:
        """DataFrame of all patterns: text, depth, weight, support, relative frequency per class."""
        check_is_fitted(self)
        return pattern_table(
            self.model_.weighted.forest,
            self._fitted_model.training.histograms,
            self.weights_,
            self.train_codes_,
            self.classes_,
        )


def class_columns(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes as numbers: ±1 for two, else +1 against -1 / (n_classes - 1) in each column."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    columns = np.full((len(codes), n_classes), -1.0 / (n_classes - 1))
    columns[np.arange(len(codes)), codes] = 1.0
    return columns


def _checked_weights(sample_weight: Any, graphs: GraphCollection) -> np.ndarray:
    if len(graphs) < 2:
        raise ValueError("There is 1 graph: a Gaussian process needs at least 2 to learn from.")
    weights = check_sample_weight(sample_weight, np.empty((len(graphs), 1)), dtype=np.float64)
    if not (weights > 0).all():
        raise ValueError("sample_weight must be above 0 everywhere: drop graphs of no weight.")
    if weights.max() / weights.min() > 1e6:
        warnings.warn("sample_weight spans more than six powers of ten.", UserWarning, stacklevel=3)
    return weights / weights.mean()


def _value_groups(values: np.ndarray) -> np.ndarray:
    """Tenths of the values by rank: a sample drawn from each keeps the spread of the whole."""
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return rank * 10 // len(values)
