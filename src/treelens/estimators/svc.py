"""GraphSVC: patterns, weights learned from pairs as in the paper, and a support vector machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from treelens._sklearn_compat import HasMethods, Interval, StrOptions
from treelens.estimators.base import FittedClassifier, view
from treelens.estimators.learned_kernel import LearnedKernel
from treelens.graphs.convert import check_graphs
from treelens.kernels.table import KERNELS
from treelens.pairwise.learn import PairwiseWeights
from treelens.patterns.forest import first_depth_of, takes_edge_labels
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm import model
from treelens.svm.search import SCORES, BestParams, SearchResult, grid, radii_for
from treelens.targets import Targets

_AUTO = StrOptions({"auto"})


class GraphSVC(LearnedKernel, FittedClassifier):
    """Weisfeiler-Lehman patterns, learned weights, kernel and C-SVC in one estimator.

    Everything left at ``"auto"`` is chosen by cross-validation on the training graphs: first
    kernel, depth, ``gamma`` and ``C`` with uniform weights, then, at the best depth of each kernel,
    the radius within which the weights may be learned (0: uniform weights).

    Parameters
    ----------
    kernel : str or sequence of str, default="auto"
        Keys of ``treelens.kernels.table.KERNELS``; "auto" tries "wwl" and "tanimoto-rbf".
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
        (less than half of an even share: with two classes, below 25 %): then "roc_auc" for two
        classes and "balanced_accuracy" for more.
    class_weight : "auto", None, "balanced" or dict, default="auto"
        Weight of errors by class. "auto" is "balanced" where a class is rare and ``scoring`` is
        "auto" or "balanced_accuracy", else None: all errors weigh the same.
    n_jobs : int, optional
        Threads; by default all processors, or what ``joblib.parallel_config`` says. The result does
        not depend on it.
    random_state : int, RandomState or None, default=None
        For the splits and the learner.
    progress : bool, optional
        Whether to show a progress bar; by default only on a terminal.

    Attributes
    ----------
    model_ : FittedSVM
        Patterns, kernel, coefficients, calibration, choice; other attributes are views of it.
    learner_ : PairwiseWeights or None
        The learner fitted to all training graphs; None with uniform weights.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphSVC(depth=2, weight_radius=0, gamma=1.0, C=10.0, kernel="wwl")
    >>> model.fit(graphs, y).predict(graphs[:2]).tolist() == y[:2].tolist()
    True
    """

    model_: model.FittedSVM

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"auto", *KERNELS}), list, tuple],
        "depth": [_AUTO, Interval(Integral, 0, None, closed="left"), "array-like"],
        "weight_radius": [_AUTO, Interval(Real, 0, None, closed="left"), "array-like"],
        "gamma": [_AUTO, Interval(Real, 0, None, closed="neither"), "array-like"],
        "C": [_AUTO, Interval(Real, 0, None, closed="neither"), "array-like"],
        "include_depth_zero": ["boolean"],
        "edge_labels": ["boolean", _AUTO],
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
        depth: object = "auto",
        weight_radius: object = "auto",
        gamma: object = "auto",
        C: object = "auto",
        *,
        include_depth_zero: bool = True,
        edge_labels: bool | str = "auto",
        attributes: str = "auto",
        learner: object = None,
        cv: object = 5,
        scoring: str = "auto",
        class_weight: object = "auto",
        n_jobs: int | None = None,
        random_state: object = None,
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

    def fit(self, X: object, y: object, sample_weight: object = None) -> GraphSVC:
        """Choose and fit a model.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
        y : array-like, shape (n_graphs,)
            Classes of any kind.
        sample_weight : array-like, shape (n_graphs,), optional
            Multiplies the cost ``C`` of errors of each graph, as in scikit-learn's ``SVC``. The
            scores of the inner cross-validation and the learner count graphs alike.
        """
        self._validate_params()
        graphs = check_graphs(X)
        targets = Targets.of(y, len(graphs), sample_weight=sample_weight)
        classes, codes = targets.classes()
        depths = model.listed(self.depth, model.AUTO_DEPTHS, "depth", Integral)
        radii = (0.0, *radii_for(len(graphs)))
        candidates = grid(
            model.listed_kernels(self.kernel),
            depths,
            model.listed(self.weight_radius, radii, "weight_radius", Real),
            model.listed(self.gamma, model.AUTO_GAMMAS, "gamma", Real, positive=True),
            model.listed(self.C, model.AUTO_CS, "C", Real, positive=True),
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        learner = PairwiseWeights(n_jobs=self.n_jobs) if self.learner is None else self.learner
        learner = clone(learner)
        if learner.get_params().get("random_state", seed) is None:
            learner.set_params(random_state=seed)
        self.model_, self.learner_ = model.fit_chosen(
            graphs,
            classes,
            codes,
            candidates,
            learner=learner,
            first_depth=first_depth_of(min(depths), self.include_depth_zero),
            edge_labels=takes_edge_labels(self.edge_labels, graphs),
            attributes=self.attributes == "auto",
            scoring=self.scoring,
            class_weight=self.class_weight,
            sample_weight=targets.sample_weight,
            cv=self.cv,
            seed=seed,
            n_jobs=self._n_jobs(),
            progress=self.progress,
        )
        training = replace(self.model_.training, record=targets.record)
        self.model_ = replace(self.model_, training=training)
        self._fitted_graphs = graphs
        self._fragments = None
        return self

    def mean_margins(self, X: object) -> np.ndarray:
        """Values that :meth:`explain` explains, linear in the kernel: (n_graphs, n_classes).

        With several classes the mean of the decisions for the class against each of the others.
        The predicted class, which has the most votes, nearly always has the largest.
        """
        margins = self._collect("margins", X)
        return np.hstack([-margins, margins]) if margins.shape[1] == 1 else margins

    @property
    def vocabulary_(self) -> PatternVocabulary:
        """All patterns that training saw."""
        vocabulary: PatternVocabulary = self._fitted_model.patterns.forest.vocabularies[0]
        return vocabulary

    best_params_: BestParams = view(
        "choice.best_params",
        "The chosen kernel, depth, weight_radius, gamma and C, with the inner score, the resolved "
        "``scoring`` and ``class_weight``, and the ``rare_class`` (or None) that they depend on.",
    )
    cv_results_: SearchResult = view("choice.cv_results", "Scores of every candidate.")
    learning_gain_: dict[str, Any] | None = view(
        "choice.learning_gain",
        "Best learned against best uniform candidate in the inner validation: the difference, its "
        "standard error and a two-sided p-value (both None with a single split); None if not "
        "compared.",
    )
    support_vectors_: np.ndarray = view(
        "decision.basis_indices", "Positions of the support vectors among the training graphs."
    )

    def generalization_bound(self, delta: float = 0.05) -> dict[str, Any]:
        """Bounds on the pair loss of the learned distance over pairs of new graphs.

        The *pair loss* is the mean over pairs of graphs of the smoothed hinges that ask different
        classes to be far apart and equal ones near, not the classification error. With probability
        ``1 - delta`` the loss over new pairs is at most ``loss + gap``, where ``gap`` is the
        smaller of two bounds: ``"stability"``, the paper's, of the stochastic solver and of uniform
        weights, and ``"any_solver"``, which holds for all weights within the radius at once.

        Returns
        -------
        dict
            ``gap``, ``loss`` over the training pairs, ``vacuous`` (whether ``loss + gap`` reaches
            the largest possible loss), ``stability`` and ``any_solver`` with their parts (of the
            former its ``gap`` may be None, for a ``reason``), ``constants``,
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
        return model.model_bound(self._fitted_model, delta)
