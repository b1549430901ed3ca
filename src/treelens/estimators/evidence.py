"""Gaussian processes on graphs whose evidence decides how much every pattern weighs."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from treelens.estimators.base import (
    DecidesOnGraphs,
    checked_decisions,
    checked_graphs,
)
from treelens.estimators.leave_one_out import (
    density_gain,
    left_out_classes,
    left_out_numbers,
)
from treelens.estimators.pattern_table import number_table, pattern_table
from treelens.estimators.prediction_table import TellsDomain
from treelens.explain.contributions import Explanation, explain_decision
from treelens.explain.gaussian import GaussianDecision
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import as_single_graph
from treelens.models.calibration import calibrated, fit_temperature
from treelens.models.fitting import FittedEvidence, Targets, fit_gaussian_process
from treelens.models.gaussian_process import Predictions
from treelens.models.memory import check_memory
from treelens.models.sampling import draw_by_group, draw_evenly, landmarks_for
from treelens.models.svm import class_weights
from treelens.patterns.forest import TREES, PatternForest, usual_trees
from treelens.selection.progress import progress_ticks
from treelens.selection.settings import (
    checked_classes,
    checked_numbers,
    has_rare_class,
    warn_if_one_class_is_all,
)
from treelens.selection.thresholds import Threshold, parse_threshold


class _GaussianProcessOnGraphs(TellsDomain, BaseEstimator):
    """What the regressor and the classifier share: patterns, evidence, prediction."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "depth": [Interval(Integral, 0, 20, closed="both")],
        "weights": [StrOptions({"uniform", "depths", "branches"})],
        "trees": [StrOptions({"auto"}), list, tuple],
        "prior_strength": [Interval(Real, 0, None, closed="neither")],
        "learning_size": [Interval(Integral, 2, None, closed="left")],
        "exact_size": [Interval(Integral, 2, None, closed="left")],
        "n_landmarks": [Interval(Integral, 2, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
        "device": [str],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "progress": ["boolean", None],
    }

    def __init__(
        self,
        depth: int = 4,
        weights: str = "branches",
        *,
        trees: Any = "auto",
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
        self.depth = depth
        self.weights = weights
        self.trees = trees
        self.prior_strength = prior_strength
        self.learning_size = learning_size
        self.exact_size = exact_size
        self.n_landmarks = n_landmarks
        self.max_steps = max_steps
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def _fit_targets(
        self, graphs: GraphCollection, targets: Targets, groups: np.ndarray
    ) -> FittedEvidence:
        """Learn and condition; ``groups`` (n_graphs,) are what a sample is drawn evenly from."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n_jobs = self._n_jobs()
        draw = draw_evenly if self._has_rare_class(groups) else draw_by_group
        sample = draw(groups, self.learning_size, seed)
        landmarks = landmarks_for(groups, self.exact_size, self.n_landmarks, seed)
        check_memory(len(graphs), len(sample), None if landmarks is None else len(landmarks))
        forest, colors = PatternForest.fit(graphs, self.depth, self._trees(graphs), n_jobs)
        histograms = forest.count(colors, n_jobs)
        with progress_ticks(self.progress, "Learning by evidence") as tick:
            fitted = fit_gaussian_process(
                forest,
                histograms,
                targets,
                learned=self.weights,
                sample=sample,
                landmarks=landmarks,
                strength=self.prior_strength,
                max_steps=self.max_steps,
                n_jobs=n_jobs,
                device=self.device,
                tick=tick,
            )
        self._keep(fitted)
        self.recipe_ = graphs.recipe
        self._train_histograms = histograms
        return fitted

    def _has_rare_class(self, groups: np.ndarray) -> bool:
        """Whether the groups are classes one of which is rare."""
        return False

    def _trees(self, graphs: GraphCollection) -> tuple[str, ...]:
        if isinstance(self.trees, str):
            return usual_trees(graphs)
        unknown = [t for t in self.trees if not isinstance(t, str) or t not in TREES]
        if unknown or not self.trees or len(set(self.trees)) < len(self.trees):
            raise ValueError(
                f"trees must be 'auto' or different ones among {', '.join(TREES)}; got "
                f"{list(self.trees)!r}."
            )
        return tuple(tree for tree in TREES if tree in self.trees)  # coarse before fine

    def _keep(self, fitted: FittedEvidence) -> None:
        """Set the attributes that both kinds of target have."""
        import pandas as pd

        self.model_ = fitted.model
        self.weights_ = fitted.model.weighted.weights
        self.converged_ = fitted.search.converged
        constant = 0.5 * len(fitted.sample) * np.log(2.0 * np.pi)
        self.history_ = pd.DataFrame(
            [
                {
                    "stage": step.stage,
                    "evidence": -step.objective - constant,
                    "gradient_norm": step.gradient_norm,
                    "n_evaluations": step.n_evaluations,
                }
                for step in fitted.search.history
            ]
        )
        self.evidence_ = float(self.history_["evidence"].iloc[-1])

    def _decide(self, X: Any, variance: bool = False) -> Predictions:
        check_is_fitted(self)
        said = self.model_.decide(self._new_graphs(X), variance=variance, n_jobs=self._n_jobs())
        checked_decisions(said.mean)
        if said.variance is not None:
            checked_decisions(said.variance[:, None])
        return said

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved.

        The factor of the covariance matrix, by far its largest part, is left out: a loaded model
        computes it anew when it is first asked for standard deviations.
        """
        from treelens.storage.stored_evidence import save_evidence

        save_evidence(self, path)

    def explain(self, graph: Any, class_label: Any = None, n_neighbors: int = 5) -> Explanation:
        """Why one graph is predicted the way it is: contributions of patterns, nodes and edges.

        Parameters
        ----------
        graph : one graph, of any kind that :func:`treelens.as_graph_collection` takes
        class_label : optional
            The class to explain; by default, with two classes, the second, whose decision values
            are positive, and with more the predicted one. Numbers have none.
        n_neighbors : int, default=5
            How many training graphs that spoke for and against to name.

        Returns
        -------
        Explanation
            ``base`` and ``node_contributions`` (of molecules, ``atom_contributions``) add up to
            ``decision``, the prediction, in the units of the targets.
        """
        check_is_fitted(self)
        explanation = explain_decision(
            as_single_graph(graph, self.recipe_), self._decision, class_label, n_neighbors
        )
        if explanation.warning:
            warnings.warn(explanation.warning, UserWarning, stacklevel=2)
        return explanation

    @property
    def _decision(self) -> GaussianDecision:
        """The fitted model as what the explain room works on."""
        raise NotImplementedError

    def out_of_vocabulary(self, X: Any) -> np.ndarray:
        """Fraction of each graph's patterns that training never saw, shape (n_graphs,)."""
        return self._decide(X).unseen_fraction

    def summary(self, X: Any = None, y: Any = None, *, names: Any = None) -> dict[str, Any]:
        """The content of the report as plain data, ready for JSON.

        Parameters
        ----------
        X, y : graphs and their values or classes, optional
            What to score and to show, not the training graphs: on those the model has the
            leave-one-out scores. Without them the summary is about the model alone.
        names : str, optional
            A data set whose label codes have names: ``"MUTAG"`` shows elements instead of numbers.
        """
        from treelens.report import summarize_evidence

        return summarize_evidence(self, X, y, names=names)

    def report(self, path: Any, X: Any = None, y: Any = None, *, names: Any = None) -> Any:
        """Write the report: one HTML file that needs nothing else; see :meth:`summary`."""
        from treelens.report import write_evidence_report

        return write_evidence_report(self, path, X, y, names=names)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


class GraphRegressor(RegressorMixin, _GaussianProcessOnGraphs):
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
    model_ : FittedModel
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
        graphs = checked_graphs(X)
        values = checked_numbers(y, len(graphs))
        weights = _checked_weights(sample_weight, graphs)
        targets = Targets.standardized(values[:, None], weights, None)
        fitted = self._fit_targets(graphs, targets, _value_groups(values))
        self.train_values_ = values
        self.loo_ = left_out_numbers(fitted.left_out, targets, values)
        self.learning_gain_ = density_gain(fitted, targets, self.weights)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
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

    @property
    def _decision(self) -> GaussianDecision:
        return GaussianDecision(self.model_, self.train_values_[self.model_.basis_indices])

    def _left_out_errors(self) -> np.ndarray:
        return (self.train_values_ - self.loo_.predictions)[:, None]

    @property
    def patterns_(self) -> Any:
        """DataFrame of all patterns: text, depth, weight, support, mean value where it occurs."""
        check_is_fitted(self)
        return number_table(
            self.model_.weighted.forest, self._train_histograms, self.weights_, self.train_values_
        )


class GraphClassifier(DecidesOnGraphs, _GaussianProcessOnGraphs):
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
        **_GaussianProcessOnGraphs._parameter_constraints,
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
        graphs = checked_graphs(X)
        classes, codes = checked_classes(y, len(graphs))
        weights = _checked_weights(sample_weight, graphs)
        weights = weights * class_weights(self.class_weight, classes, codes)
        targets = Targets.standardized(class_columns(codes, len(classes)), weights, 1.0)
        fitted = self._fit_targets(graphs, targets, codes)
        self.classes_ = classes
        self.train_codes_ = codes
        held_out = targets.offset + targets.scale * fitted.left_out.mean
        self._temperature = fit_temperature(held_out, codes, weights)
        self.loo_ = left_out_classes(
            held_out, codes, self.classes_, self._temperature, self.threshold
        )
        warn_if_one_class_is_all(np.searchsorted(classes, self.loo_.predictions), classes)
        self.learning_gain_ = density_gain(fitted, targets, self.weights)
        return self

    def _has_rare_class(self, groups: np.ndarray) -> bool:
        return has_rare_class(groups)

    def _decisions(self, X: Any) -> np.ndarray:
        return self._decide(X).mean

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def threshold_(self) -> Threshold | None:
        check_is_fitted(self)
        return self.loo_.threshold

    def predict(self, X: Any) -> np.ndarray:
        """Classes, shape (n_graphs,): the most probable, or a rare one above its threshold."""
        if self.threshold_ is None:
            return super().predict(X)
        return self.classes_[self.threshold_.name(self.predict_proba(X))]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes).

        The largest is that of ``predict``, unless a threshold lets a rare class be named sooner.
        """
        return calibrated(self._decisions(X), self._temperature)

    @property
    def _decision(self) -> GaussianDecision:
        codes = self.train_codes_[self.model_.basis_indices]
        return GaussianDecision(self.model_, codes, self.classes_)

    def _left_out_errors(self) -> np.ndarray:
        columns = class_columns(self.train_codes_, len(self.classes_))
        return columns - self.loo_.decisions.reshape(columns.shape)

    @property
    def patterns_(self) -> Any:
        """DataFrame of all patterns: text, depth, weight, support, share of mass per class."""
        check_is_fitted(self)
        return pattern_table(
            self.model_.weighted.forest,
            self._train_histograms,
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
    weights = _check_sample_weight(sample_weight, np.empty((len(graphs), 1)), dtype=np.float64)
    if not (weights > 0).all():
        raise ValueError("sample_weight must be above 0 everywhere: drop graphs of no weight.")
    if weights.max() / weights.min() > 1e6:
        warnings.warn("sample_weight spans more than six powers of ten.", UserWarning, stacklevel=3)
    return weights / weights.mean()


def _value_groups(values: np.ndarray) -> np.ndarray:
    """Tenths of the values by rank: a sample drawn from each keeps the spread of the whole."""
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return rank * 10 // len(values)
