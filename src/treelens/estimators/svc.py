"""GraphSVC: the paper's method, from graphs to classes, in one estimator."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import HasMethods, Interval, StrOptions
from treelens.estimators.base import GraphClassifierMixin
from treelens.estimators.fragments import ExplainingEstimator
from treelens.estimators.weights import PairwiseWeights
from treelens.explain.decode import pattern_table
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.targets import check_classes
from treelens.kernels.table import KERNELS
from treelens.patterns.features import first_depth_of
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.fitting import (
    AUTO_CS,
    AUTO_DEPTHS,
    AUTO_GAMMAS,
    Task,
    fit_chosen,
    listed,
    listed_kernels,
    resolved_class_weight,
    resolved_scoring,
)
from treelens.svm.model import FittedSVM, model_bound
from treelens.svm.search import SCORES, BestParams, Candidate, SearchResult, grid, radii_for


class GraphSVC(GraphClassifierMixin, ExplainingEstimator):
    """Weisfeiler-Lehman patterns, learned weights, kernel and C-SVC in one estimator.

    Everything left at ``"auto"`` is chosen by cross-validation on the training graphs: first
    kernel, depth, ``gamma`` and ``C`` with uniform weights, then, at the best depth of each kernel,
    the radius within which the weights may be learned. 0, uniform weights, is always among the
    candidates, and :attr:`learning_gain_` compares it with the best learned weights.

    Parameters
    ----------
    kernel : str or sequence of str, default="auto"
        Keys of ``treelens.kernels.table.KERNELS``; "auto" tries "wwl" and
        "tanimoto-rbf".
    depth : int or sequence of int, default="auto"
        Largest pattern depth; "auto" tries 1 to 6.
    weight_radius : float or sequence of float, default="auto"
        How far, per depth, the weights may move from one (Euclidean); 0 means uniform. "auto"
        tries 0 and three radii that depend on the number of graphs.
    gamma : float or sequence of float, default="auto"
        Scale of the kernels that have one; "auto" tries 0.1, 1, 3 and 10.
    C : float or sequence of float, default="auto"
        Cost of the support vector machine, relative to the kernel's mean diagonal; "auto" tries
        0.1, 1, 3, 10 and 100.
    include_depth_zero : bool, default=True
        Whether the node labels themselves count as patterns.
    edge_labels : bool or "auto", default="auto"
        Whether patterns include edge labels; "auto": where the training graphs have them.
    attributes : {"auto", "ignore"}, default="auto"
        Whether continuous attributes of nodes and edges, where there are any, are divided into
        cells that count as patterns.
    learner : PairwiseWeights, optional
        How weights are learned; its radius is set by the search.
    cv : int or splitter, default=5
        Folds of the inner cross-validation, repeated for small training sets; or a splitter.
    scoring : {"auto", "accuracy", "balanced_accuracy", "roc_auc"}, default="auto"
        What the inner cross-validation maximises. "auto" is the accuracy, unless a class is rare
        (less than half of an even share: with two classes, below 25 %). Then a model could score
        high without ever predicting that class, and "auto" is "roc_auc" for two classes and
        "balanced_accuracy" for more.
    class_weight : "auto", None, "balanced" or dict, default="auto"
        Weight of errors by class. "auto" is "balanced" where a class is rare and ``scoring`` is
        "auto" or "balanced_accuracy", else None: all errors weigh the same.
    n_jobs : int, optional
        Threads; -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the splits and the learner.
    progress : bool, optional
        Whether to show a progress bar; by default only on a terminal.

    Attributes
    ----------
    classes_ : ndarray
    recipe_ : GraphRecipe or None
        How the training graphs were made: molecules to predict are read in the same way, and
        graphs made in another way are refused.
    best_params_ : dict
        The chosen kernel, depth, weight_radius, gamma and C, with the inner score; the resolved
        ``scoring`` and ``class_weight``, and the ``rare_class`` (or None) they depend on.
    learning_gain_ : dict or None
        Best learned against best uniform candidate in the inner validation: the paired
        difference, its standard error and a p-value (both None with a single split). None if no
        radius above 0 was tried, or if none was tried on every split.
    weights_ : ndarray, shape (n_patterns,)
    learner_ : PairwiseWeights or None
        The learner fitted to all training graphs; None with uniform weights.
    model_ : FittedSVM
        Patterns, kernel, coefficients, calibration and how they were chosen.
    vocabulary_ : PatternVocabulary
    support_vectors_ : ndarray
        Positions of the support vectors among the training graphs.
    cv_results_ : SearchResult or None
        Scores of every candidate.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphSVC(depth=2, weight_radius=0, gamma=1.0, C=10.0, kernel="wwl")
    >>> model.fit(graphs, y).predict(graphs[:2]).tolist() == y[:2].tolist()
    True
    """

    model_: FittedSVM

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"auto", *KERNELS}), list, tuple],
        "depth": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left"), "array-like"],
        "weight_radius": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="left"),
            "array-like",
        ],
        "gamma": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "C": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "include_depth_zero": ["boolean"],
        "edge_labels": ["boolean", StrOptions({"auto"})],
        "attributes": [StrOptions({"auto", "ignore"})],
        "learner": [HasMethods(["fit", "get_params"]), None],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split", "get_n_splits"])],
        "scoring": [StrOptions({"auto", *SCORES})],
        "class_weight": [StrOptions({"auto", "balanced"}), dict, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "progress": ["boolean", None],
    }

    def __init__(
        self,
        kernel: str | Sequence[str] = "auto",
        depth: Any = "auto",
        weight_radius: Any = "auto",
        gamma: Any = "auto",
        C: Any = "auto",
        *,
        include_depth_zero: bool = True,
        edge_labels: bool | str = "auto",
        attributes: str = "auto",
        learner: Any = None,
        cv: Any = 5,
        scoring: str = "auto",
        class_weight: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.kernel = kernel
        self.depth = depth
        self.weight_radius = weight_radius
        self.gamma = gamma
        self.C = C
        self.include_depth_zero = include_depth_zero
        self.edge_labels = edge_labels
        self.attributes = attributes
        self.learner = learner
        self.cv = cv
        self.scoring = scoring
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any) -> GraphSVC:
        """Choose and fit a model.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
        y : array-like, shape (n_graphs,)
            Classes of any kind.
        """
        self._validate_params()
        graphs = check_graphs(X)
        self.model_, self.learner_ = fit_chosen(self._task(graphs, y), self._grid(len(graphs)))
        self._fitted_graphs, self._fragments = graphs, None
        return self

    def _task(self, graphs: GraphCollection, y: Any) -> Task:
        classes, codes = check_classes(y, len(graphs))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        edge_labels = self.edge_labels
        if edge_labels == "auto":
            edge_labels = graphs.edge_codes is not None
        return Task(
            graphs,
            classes,
            codes,
            edge_labels=bool(edge_labels),
            first_depth=0 if self.include_depth_zero else 1,
            learner=self._seeded_learner(seed),
            scoring=resolved_scoring(self.scoring, codes),
            class_weight=resolved_class_weight(self.class_weight, self.scoring, codes),
            cv=self.cv,
            seed=seed,
            n_jobs=self._n_jobs(),
            progress=self.progress,
            attributes=self.attributes == "auto",
        )

    def _grid(self, n_graphs: int) -> list[Candidate]:
        depths = listed(self.depth, AUTO_DEPTHS, "depth", Integral, 0)
        first_depth_of(min(depths), self.include_depth_zero)
        return grid(
            listed_kernels(self.kernel),
            depths,
            listed(self.weight_radius, (0.0, *radii_for(n_graphs)), "weight_radius", Real, 0),
            listed(self.gamma, AUTO_GAMMAS, "gamma", Real, 0, positive=True),
            listed(self.C, AUTO_CS, "C", Real, 0, positive=True),
        )

    def _seeded_learner(self, seed: int) -> Any:
        """The learner, with a random state where the user gave it none."""
        if self.learner is None:
            return PairwiseWeights(n_jobs=self.n_jobs, random_state=seed)
        learner = clone(self.learner)
        if learner.get_params().get("random_state", seed) is None:
            learner.set_params(random_state=seed)
        return learner

    def mean_margins(self, X: Any) -> np.ndarray:
        """Values that :meth:`explain` explains: one per class, linear in the kernel.

        With several classes it is the mean of the decisions for the class against each of the
        others. The predicted class, which has the most votes, nearly always has the largest.

        Returns
        -------
        ndarray, shape (n_graphs, n_classes)

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphSVC("wwl", 2, 0, gamma=1.0, C=10.0).fit(graphs, y)
        >>> bool((model.mean_margins(graphs)[:, 1] == model.decision_function(graphs)).all())
        True
        """
        margins = self._decide(X).margins
        return np.hstack([-margins, margins]) if margins.shape[1] == 1 else margins

    @property
    def vocabulary_(self) -> PatternVocabulary:
        """All patterns that training saw."""
        return self._fitted_model.patterns.vocabulary

    @property
    def best_params_(self) -> BestParams:
        """The chosen settings, with "auto" resolved."""
        return self._fitted_model.choice.best_params

    @property
    def cv_results_(self) -> SearchResult:
        """Scores of every candidate."""
        return self._fitted_model.choice.cv_results

    @property
    def learning_gain_(self) -> dict[str, Any] | None:
        """Best learned against best uniform candidate."""
        return self._fitted_model.choice.learning_gain

    @property
    def train_histograms_(self) -> Any:
        """Pattern counts of the training graphs at the depths in use."""
        return self._fitted_model.training.histograms

    @property
    def offset_(self) -> float:
        """The constant ``b`` of the kernel."""
        return self._fitted_model.kernel.offset

    @property
    def support_vectors_(self) -> np.ndarray:
        """Positions of the support vectors among the training graphs."""
        return self._fitted_model.decision.basis_indices

    @property
    def patterns_(self) -> Any:
        """DataFrame of all patterns: text, depth, weight, support, relative frequency per class."""
        return pattern_table(
            self._fitted_model.patterns.forest, self.train_histograms_, self.weights_,
            self.train_codes_, self.classes_,
        )  # fmt: skip

    def generalization_bound(self, delta: float = 0.05) -> dict[str, Any]:
        """Bounds on the pair loss of the learned distance over pairs of new graphs.

        The *pair loss* is the mean over pairs of graphs of the smoothed hinges that ask different
        classes to be far apart and equal ones near. The bounds say nothing about the classification
        error, the kernel or the support vector machine. With probability ``1 - delta`` the loss
        over new pairs is at most ``loss + gap``, where ``gap`` is the smaller of the bounds that
        apply to these weights:

        - ``"stability"``, the paper's: for T single-pair steps of size mu, with
          ``k_n = 4 mu T L² / n``, it is ``2 k_n + (n k_n + M) sqrt((2 / n) log(2 / delta))``. It
          applies to weights of the stochastic solver, and to uniform weights with ``k_n = 0``. For
          other solvers the figure is that of a stochastic run with nine tenths of the solver's gain
          (``"assumed"``), and ``gap`` leaves it out;
        - ``"any_solver"`` holds for all weights within the radius at once.

        Parameters
        ----------
        delta : float, default=0.05
            Probability with which a bound may fail.

        Returns
        -------
        dict
            ``gap`` (None where neither bound applies), ``loss`` over the training pairs,
            ``vacuous`` (whether ``loss + gap`` reaches the largest possible loss), ``stability``
            and ``any_solver`` with their parts or the reason why there is none, ``constants``,
            ``caveats`` (what the theorems assume fixed and this model took from the data),
            ``meaning``, ``n_graphs`` and ``delta``.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphSVC("wwl", 2, 0, gamma=1.0, C=10.0).fit(graphs, y)
        >>> bound = model.generalization_bound()
        >>> bound["stability"]["k_n"]  # uniform weights
        0.0
        """
        check_is_fitted(self)
        return model_bound(self.model_, delta)

    def summary(self, X: Any = None, y: Any = None, *, names: Any = None) -> dict[str, Any]:
        """The content of the report as plain data, ready for JSON.

        Parameters
        ----------
        X, y : graphs and their classes, optional
            Test graphs to score; without them the summary is about the model alone.
        names : str, optional
            A data set whose label codes have names: ``"MUTAG"`` shows elements instead of numbers.
        """
        from treelens.report import summarize

        check_is_fitted(self)
        return summarize(self, X, y, names=names)

    def report(self, path: Any, X: Any = None, y: Any = None, *, names: Any = None) -> Any:
        """Write the report as one self-contained HTML file; see :meth:`summary`."""
        from treelens.report import write_report

        check_is_fitted(self)
        return write_report(self, path, X, y, names=names)

    def save(self, path: Any, training_data: bool = True) -> None:
        """Write the model to a file that :func:`treelens.load` reads, without pickle.

        Parameters
        ----------
        path : str or Path
        training_data : bool, default=True
            Whether to keep names and SMILES of the training molecules; see
            :meth:`GraphRegressor.save`.
        """
        from treelens.estimators.files import save_model

        save_model(self, path, training_data)
