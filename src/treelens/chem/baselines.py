"""Rivals: Gaussian processes, tuned forests and boosting on ECFP, published kernels that learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import make_pipeline

from treelens._sklearn_compat import BaseEstimator, ClassifierMixin, RegressorMixin
from treelens.chem.descriptors import COMPACT_DESCRIPTORS, rdkit_descriptors
from treelens.chem.ecfp import folded_counts, molecules_behind
from treelens.chem.views import Ecfp
from treelens.estimators.base import GraphEstimator
from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.estimators.svc import GraphSVC
from treelens.evaluation.metrics import class_scores
from treelens.evaluation.splits import DistinctKFold
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.models.predictions import choose_threshold
from treelens.parallel import openmp_threads
from treelens.svm.search import radii_for
from treelens.targets import Targets

_N_TREES = (50, 500)  # of a forest, in inner folds and in the end
_LARGE = 3000  # more molecules than this have three inner folds instead of five, and threads


class _TunedTrees(GraphEstimator):
    """Trees on a table of numbers, with the settings that do best in inner cross-validation."""

    _kind: str  # a class of sklearn.ensemble
    _settings: tuple[tuple[str, dict[str, Any]], ...]  # names of columns, parameters of the trees

    def __init__(self, *, n_jobs: int | None = None, random_state: int | None = None) -> None:
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _table(self, graphs: GraphCollection, columns: str) -> np.ndarray:
        molecules = molecules_behind(graphs)
        table = folded_counts(molecules).astype(np.float32)
        if columns == "bits":
            return (table > 0).astype(np.float32)
        if columns == "counts and descriptors":
            return np.hstack([table, rdkit_descriptors(molecules, COMPACT_DESCRIPTORS, graphs)])
        return table

    def _fitted_trees(
        self, table: np.ndarray, y: np.ndarray, n_trees: int, settings: dict[str, Any]
    ) -> Any:
        from sklearn import ensemble

        forest = self._kind.startswith("RandomForest")
        if forest:
            settings = {**settings, "n_estimators": n_trees, "n_jobs": self.n_jobs}
        trees = getattr(ensemble, self._kind)(random_state=self.random_state, **settings)
        if not forest:
            trees = make_pipeline(_SplittableColumns(trees.min_samples_leaf), trees)
        # More threads wait for each other longer than they work where molecules are few.
        with openmp_threads(self._n_jobs() if len(table) > _LARGE else 1):
            return trees.fit(table, y)

    def _fit_tuned(self, graphs: GraphCollection, y: np.ndarray) -> np.ndarray:
        """Choose settings and fit; return held-out predictions of the chosen settings."""
        n_splits, classes = 3 if len(graphs) > _LARGE else 5, hasattr(self, "classes_")
        if classes:  # each fold should have some of the rarest
            n_splits = max(2, min(n_splits, int(np.bincount(y).min())))
        splitter = DistinctKFold(n_splits, random_state=self.random_state or 0)
        folds = list(splitter.split(graphs, y if classes else None))
        tables = {name: self._table(graphs, name) for name, _ in self._settings}
        best, held_out = -np.inf, np.empty(0)
        for columns, settings in self._settings:
            table, parts = tables[columns], []
            for train, test in folds:
                trees = self._fitted_trees(table[train], y[train], _N_TREES[0], settings)
                parts.append(self._predicted(trees, table[test]))
            order = np.argsort(np.concatenate([test for _, test in folds]))
            predicted = np.concatenate(parts)[order]
            if (score := self._score(predicted, y)) > best:
                best, held_out, chosen = score, predicted, (columns, settings)
        self.best_params_ = {"columns": chosen[0], **chosen[1]}
        self._fitted = self._fitted_trees(tables[chosen[0]], y, _N_TREES[1], chosen[1])
        return held_out

    def _predicted(self, trees: Any, table: np.ndarray) -> np.ndarray:
        return trees.predict(table)

    def _score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return -float(np.mean((predicted - y) ** 2))

    def _predict(self, X: Any) -> np.ndarray:
        table = self._table(check_graphs(X), self.best_params_["columns"])
        return self._predicted(self._fitted, table)


class _SplittableColumns(SelectorMixin, BaseEstimator):
    """Drop columns that no split can use, as too few rows differ from the rest: most rare bits."""

    def __init__(self, least: int) -> None:
        self.least = least

    def fit(self, X: np.ndarray, y: Any = None) -> _SplittableColumns:
        kept = (np.median(X, axis=0) != X).sum(axis=0) >= self.least
        self.kept_ = kept if kept.any() else ~kept
        return self

    def _get_support_mask(self) -> np.ndarray:
        return self.kept_


class _TreeRegressor(RegressorMixin, _TunedTrees):
    def fit(self, X: Any, y: Any) -> Any:
        """Choose settings and fit."""
        graphs = check_graphs(X)
        alone = Targets.of(y, len(graphs)).values_alone(type(self).__name__)
        self._fit_tuned(graphs, Targets(alone).numbers())
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Values, shape (n_graphs,)."""
        return self._predict(X)


class _TreeClassifier(ClassifierMixin, _TunedTrees):
    classes_: np.ndarray

    def __init__(
        self,
        *,
        threshold: Any = "auto",
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_jobs=n_jobs, random_state=random_state)
        self.threshold = threshold

    def fit(self, X: Any, y: Any) -> Any:
        """Choose settings and the threshold by held-out predictions, and fit."""
        graphs = check_graphs(X)
        self.classes_, codes = Targets.of(y, len(graphs)).classes()
        held_out = self._fit_tuned(graphs, codes)
        self._threshold = choose_threshold(self.threshold, held_out, codes)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes, shape (n_graphs,)."""
        found, threshold = self.predict_proba(X), self._threshold
        return self.classes_[found.argmax(axis=1) if threshold is None else threshold.name(found)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        return self._predict(X)

    def _predicted(self, trees: Any, table: np.ndarray) -> np.ndarray:
        found = np.zeros((len(table), len(self.classes_)))
        # boosting of a single class returns two columns, the second nearly zero
        found[:, trees.classes_] = trees.predict_proba(table)[:, : len(trees.classes_)]
        return found

    def _score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        found = class_scores(y, predicted.argmax(axis=1), predicted)
        return found["accuracy"] if found["roc_auc"] is None else found["roc_auc"]


class EcfpForestRegressor(_TreeRegressor):
    """Forest of 500 trees on ECFP4 folded to 2,048; counts or bits and features are tuned."""

    _kind = "RandomForestRegressor"
    _settings = (
        ("bits", {"max_features": "sqrt"}),
        ("counts", {"max_features": "sqrt"}),
        ("counts", {"max_features": 0.1}),
    )


class EcfpForestClassifier(_TreeClassifier):
    """Random forest classification on ECFP4; see :class:`EcfpForestRegressor`."""

    _kind, _settings = "RandomForestClassifier", EcfpForestRegressor._settings


class BoostingRegressor(_TreeRegressor):
    """Gradient boosting on ECFP4 counts and descriptors; the learning rate is tuned."""

    _kind = "HistGradientBoostingRegressor"
    _settings = (
        ("counts and descriptors", {"learning_rate": 0.1, "max_iter": 200}),
        ("counts and descriptors", {"learning_rate": 0.03, "max_iter": 500}),
        ("counts and descriptors", {"learning_rate": 0.1, "max_iter": 200, "min_samples_leaf": 5}),
    )


class BoostingClassifier(_TreeClassifier):
    """Gradient boosting on ECFP4 counts and descriptors; see :class:`BoostingRegressor`."""

    _kind, _settings = "HistGradientBoostingClassifier", BoostingRegressor._settings


_ECFP_GP: dict[str, Any] = {"weights": "depths", "views": [Ecfp(3)]}
# Name on the command line -> what makes a classifier, a regressor.
BASELINES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "ecfp_gp": (partial(GraphClassifier, **_ECFP_GP), partial(GraphRegressor, **_ECFP_GP)),
    "ecfp_forest": (EcfpForestClassifier, EcfpForestRegressor),
    "boosting": (BoostingClassifier, BoostingRegressor),
}


class LearnedKernelSVC(ClassifierMixin, BaseEstimator):
    """A published kernel with learned weights, at the kernel and depth chosen with uniform ones."""

    def __init__(self, model: GraphSVC, learner: Any) -> None:
        self.model = model
        self.learner = learner

    def fit(self, graphs: Any, y: Any) -> LearnedKernelSVC:
        """Choose kernel and depth with uniform weights, then learn."""
        uniform = clone(self.model).fit(graphs, y)
        self.fitted_ = (
            clone(self.model)
            .set_params(
                kernel=uniform.best_params_["kernel"],
                depth=uniform.best_params_["depth"],
                weight_radius=list(radii_for(len(graphs))),
                learner=self.learner,
            )
            .fit(graphs, y)
        )
        self.classes_ = self.fitted_.classes_
        return self

    def predict(self, graphs: Any) -> np.ndarray:
        """Classes, shape (n_graphs,)."""
        return self.fitted_.predict(graphs)

    def predict_proba(self, graphs: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        return self.fitted_.predict_proba(graphs)
