"""The paper's whole way from graphs to classes in one estimator."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from treelens._sklearn_compat import BaseEstimator, HasMethods, Interval, StrOptions
from treelens.estimators.base import TellsProbabilities
from treelens.estimators.views import ViewsOfClassifier
from treelens.estimators.weights import PairwiseWeights, linear_learner
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.targets import check_classes
from treelens.kernels.table import KERNELS
from treelens.patterns.features import first_depth_of
from treelens.svm.approximation import APPROXIMATIONS, BY_FEATURES, kernels_for
from treelens.svm.fitting import EXACT, fit_chosen
from treelens.svm.search import SCORES, grid, radii_for
from treelens.svm.search_result import Candidate
from treelens.svm.settings import (
    AUTO_CS,
    AUTO_DEPTHS,
    AUTO_GAMMAS,
    listed,
    listed_kernels,
    resolved_class_weight,
    resolved_scoring,
)
from treelens.svm.task import Task


class GraphSVC(ViewsOfClassifier, TellsProbabilities, BaseEstimator):
    """Weisfeiler-Lehman patterns, learned weights, kernel and C-SVC in one estimator.

    Everything left at ``"auto"`` is chosen by cross-validation on the training graphs: first
    kernel, depth, ``gamma`` and ``C`` with uniform weights, then, at the best depth of each kernel,
    the radius within which the weights may be learned. 0, uniform weights, is always among
    the candidates, and :attr:`learning_gain_` says whether learning beat it.

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
        Whether patterns tell edge labels apart; "auto": where the training graphs have them.
    learner : PairwiseWeights, optional
        How weights are learned; its radius is set by the search.
    cv : int or splitter, default=5
        Folds of the inner cross-validation, repeated for small training sets; or a splitter.
    scoring : {"auto", "accuracy", "balanced_accuracy", "roc_auc"}, default="auto"
        What the inner cross-validation maximises. "auto" is the accuracy, unless a class is rare
        (less than half of an even share: with two classes, below 25 %). Then a model could score
        high without ever naming that class, and "auto" is "roc_auc" for two classes and
        "balanced_accuracy" for more.
    class_weight : "auto", None, "balanced" or dict, default="auto"
        Weight of errors by class. "auto" is "balanced" where a class is rare and ``scoring`` is
        "auto" or "balanced_accuracy", else None: all errors weigh the same.
    approximation : {None, "random-binning", "nystroem", "unary"}, default=None
        Replace the kernel matrix by explicit features and the SVM by a linear model on them: time
        and memory linear in the number of graphs. Settings are then chosen on held-out parts.
        Random binning approximates the kernels "wwl" and "laplacian", Nyström features any kernel;
        unary ones are exact for kernels that are sums over patterns.
    n_components : int, default=2048
        Number of random grids or of landmarks.
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
        What made the training graphs: molecules are read alike, and graphs that were made in
        another way are refused.
    best_params_ : dict
        The chosen kernel, depth, weight_radius, gamma and C, with the inner score; what "auto"
        stood for in ``scoring`` and ``class_weight``, and the ``rare_class`` (or None) that it
        depends on.
    learning_gain_ : dict or None
        Best learned against best uniform candidate in the inner validation: the paired
        difference, its standard error and a p-value. None if no radius above 0 was tried, or if
        none was good enough to be tried on every split.
    weights_ : ndarray, shape (n_patterns,)
    learner_ : PairwiseWeights or None
        The learner fitted to all training graphs; None with uniform weights.
    model_ : FittedSVM
        Patterns, kernel, coefficients, calibration and how they were chosen, frozen: everything
        else here is read from it.
    vocabulary_ : PatternVocabulary
    support_vectors_, landmarks_ : ndarray
        Positions of the training graphs that carry the SVM, or that Nyström features compare with.
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
        "learner": [HasMethods(["fit", "get_params"]), None],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split", "get_n_splits"])],
        "scoring": [StrOptions({"auto", *SCORES})],
        "class_weight": [StrOptions({"auto", "balanced"}), dict, None],
        "approximation": [StrOptions(set(APPROXIMATIONS)), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
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
        learner: Any = None,
        cv: Any = 5,
        scoring: str = "auto",
        class_weight: Any = "auto",
        approximation: str | None = None,
        n_components: int = 2048,
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
        self.learner = learner
        self.cv = cv
        self.scoring = scoring
        self.class_weight = class_weight
        self.approximation = approximation
        self.n_components = n_components
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
        task, candidates = self._task(graphs, y), self._grid(len(graphs))
        scheme = EXACT if self.approximation is None else BY_FEATURES
        self.model_, self.learner_ = fit_chosen(task, candidates, scheme)
        self._train_graphs, self._fragments = graphs, None
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
            approximation=self.approximation,
            n_components=self.n_components,
        )

    def _grid(self, n_graphs: int) -> list[Candidate]:
        depths = listed(self.depth, AUTO_DEPTHS, "depth", Integral, 0)
        first_depth_of(min(depths), self.include_depth_zero)
        return grid(
            self._listed_kernels(),
            depths,
            listed(self.weight_radius, (0.0, *radii_for(n_graphs)), "weight_radius", Real, 0),
            listed(self.gamma, AUTO_GAMMAS, "gamma", Real, 0, positive=True),
            listed(self.C, AUTO_CS, "C", Real, 0, positive=True),
        )

    def _listed_kernels(self) -> list[str]:
        if self.approximation is None:
            return listed_kernels(self.kernel)
        return kernels_for(self.approximation, self.kernel)

    def _seeded_learner(self, seed: int) -> Any:
        """The learner that was given, or the default; without a seed of its own it gets ours."""
        if self.learner is None:
            if self.approximation is not None:
                return linear_learner(seed)
            return PairwiseWeights(n_jobs=self.n_jobs, random_state=seed)
        learner = clone(self.learner)
        if self.approximation is None and learner.get_params().get("random_state", seed) is None:
            learner.set_params(random_state=seed)
        return learner

    def mean_margins(self, X: Any) -> np.ndarray:
        """What :meth:`explain` explains: one value per class that is linear in the kernel.

        Of several classes, each of which a machine tells from each other one, it is the mean of the
        decisions for the class against the others. The class with the most votes, which is the
        predicted one, nearly always has the largest. With an ``approximation`` there is one
        decision per class in the first place, and this is it.

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
