"""Rivals: Gaussian processes, tuned forests and boosting on ECFP, published kernels that learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import make_pipeline

from treelens._sklearn_compat import BaseEstimator, ClassifierMixin, RegressorMixin
from treelens.chem.descriptors import COMPACT_DESCRIPTORS, rdkit_descriptors
from treelens.chem.ecfp import folded_counts
from treelens.chem.parsing import molecules_behind
from treelens.chem.views import Ecfp
from treelens.estimators.base import GraphEstimator
from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.estimators.svc import GraphSVC
from treelens.evaluation.metrics import class_scores
from treelens.evaluation.splits import DistinctKFold
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.models.predictions import choose_threshold
from treelens.pairwise.learn import PairwiseWeights
from treelens.parallel import openmp_threads
from treelens.svm.search import radii_for
from treelens.targets import Targets

_N_TREES = (50, 500)  # of a forest, in inner folds and in the end
_MANY = 300  # more molecules than this have three inner folds instead of five
_LARGE = 3000  # more molecules than this have threads
_LEARNED_IN_ALL = 20.0  # learning rate times number of trees of boosting


class _TunedTrees(GraphEstimator):
    """Trees on a table of numbers, tuned by inner cross-validation unless settings are given."""

    _kind: ClassVar[str]  # a class of sklearn.ensemble
    # What is tuned, in this order, with neighbouring values, and where the search begins.
    _axes: ClassVar[dict[str, tuple[Any, ...]]]
    _start: ClassVar[dict[str, Any]]

    def __init__(
        self,
        *,
        settings: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _table(self, graphs: GraphCollection, columns: str) -> np.ndarray:
        molecules = molecules_behind(graphs)
        table = folded_counts(molecules).astype(np.float32)
        if columns.startswith("bits"):
            table = (table > 0).astype(np.float32)
        if columns.endswith("and descriptors"):
            return np.hstack([table, rdkit_descriptors(molecules, COMPACT_DESCRIPTORS, graphs)])
        return table

    def _fitted_trees(
        self, table: np.ndarray, y: np.ndarray, n_trees: int, settings: dict[str, Any]
    ) -> Any:
        from sklearn import ensemble

        settings = {name: value for name, value in settings.items() if name != "columns"}
        forest = self._kind.startswith("RandomForest")
        if forest:
            settings |= {"n_estimators": n_trees, "n_jobs": self.n_jobs}
        else:
            settings["max_iter"] = round(_LEARNED_IN_ALL / settings["learning_rate"])
        trees = getattr(ensemble, self._kind)(random_state=self.random_state, **settings)
        if not forest:
            trees = make_pipeline(_SplittableColumns(trees.min_samples_leaf), trees)
        # More threads wait for each other longer than they work where molecules are few.
        with openmp_threads(self._n_jobs() if len(table) > _LARGE else 1):
            return trees.fit(table, y)

    def _fit_tuned(self, graphs: GraphCollection, y: np.ndarray) -> np.ndarray:
        """Choose settings and fit; return held-out predictions of the chosen settings."""
        n_splits, classes = 3 if len(graphs) > _MANY else 5, hasattr(self, "classes_")
        if classes:  # each fold should have some of the rarest
            n_splits = max(2, min(n_splits, int(np.bincount(y).min())))
        splitter = DistinctKFold(n_splits, random_state=self.random_state or 0)
        folds = list(splitter.split(graphs, y if classes else None))
        order = np.argsort(np.concatenate([test for _, test in folds]))
        table_of = cache(partial(self._table, graphs))

        def held_out(settings: dict[str, Any]) -> np.ndarray:
            table, parts = table_of(settings["columns"]), []
            for train, test in folds:
                trees = self._fitted_trees(table[train], y[train], _N_TREES[0], settings)
                parts.append(self._predicted(trees, table[test]))
            return np.concatenate(parts)[order]

        if self.settings is None:
            best, found = climb(self._axes, self._start, held_out, lambda x: self._score(x, y))
        else:  # held-out predictions are for thresholds of classes
            best = dict(self.settings)
            found = held_out(best) if classes else np.empty(0)
        self.best_params_ = best
        self._fitted = self._fitted_trees(table_of(best["columns"]), y, _N_TREES[1], best)
        return found

    def _predicted(self, trees: Any, table: np.ndarray) -> np.ndarray:
        return trees.predict(table)

    def _score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return -float(np.mean((predicted - y) ** 2))

    def _predict(self, X: object) -> np.ndarray:
        table = self._table(check_graphs(X), self.best_params_["columns"])
        return self._predicted(self._fitted, table)


def climb(
    axes: dict[str, tuple[Any, ...]],
    start: dict[str, Any],
    held_out: Callable[[dict[str, Any]], np.ndarray],
    score: Callable[[np.ndarray], float],
) -> tuple[dict[str, Any], np.ndarray]:
    """Return the settings that score best, and their held-out predictions.

    One setting after the other moves to neighbouring values for as long as the score rises, so
    that a choice is at the end of an axis only where a longer axis has nothing to offer.
    """
    best, predicted = dict(start), held_out(start)
    highest = score(predicted)
    for name, values in axes.items():
        at = values.index(best[name])
        for way in (values[at + 1 :], values[:at][::-1]):
            before = highest
            for value in way:
                there = {**best, name: value}
                tried = held_out(there)
                if (reached := score(tried)) <= highest:
                    break
                best, predicted, highest = there, tried, reached
            if highest > before:  # the other way leads down
                break
    return best, predicted


class _SplittableColumns(SelectorMixin, BaseEstimator):
    """Drop columns that no split can use, as too few rows differ from the rest: most rare bits."""

    def __init__(self, least: int) -> None:
        self.least = least

    def fit(self, X: np.ndarray, y: object = None) -> _SplittableColumns:
        kept = (np.median(X, axis=0) != X).sum(axis=0) >= self.least
        self.kept_ = kept if kept.any() else ~kept
        return self

    def _get_support_mask(self) -> np.ndarray:
        return self.kept_


class _TreeRegressor(RegressorMixin, _TunedTrees):
    def fit(self, X: object, y: object) -> Any:
        """Choose settings and fit."""
        graphs = check_graphs(X)
        alone = Targets.of(y, len(graphs)).values_alone(type(self).__name__)
        self._fit_tuned(graphs, Targets(alone).numbers())
        return self

    def predict(self, X: object) -> np.ndarray:
        """Values, shape (n_graphs,)."""
        return self._predict(X)


class _TreeClassifier(ClassifierMixin, _TunedTrees):
    classes_: np.ndarray

    def __init__(
        self,
        *,
        threshold: float | str = "auto",
        settings: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(settings=settings, n_jobs=n_jobs, random_state=random_state)
        self.threshold = threshold

    def fit(self, X: object, y: object) -> Any:
        """Choose settings and the threshold by held-out predictions, and fit."""
        graphs = check_graphs(X)
        self.classes_, codes = Targets.of(y, len(graphs)).classes()
        held_out = self._fit_tuned(graphs, codes)
        self._threshold = choose_threshold(self.threshold, held_out, codes)
        return self

    def predict(self, X: object) -> np.ndarray:
        """Classes, shape (n_graphs,)."""
        found, threshold = self.predict_proba(X), self._threshold
        return self.classes_[found.argmax(axis=1) if threshold is None else threshold.name(found)]

    def predict_proba(self, X: object) -> np.ndarray:
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
    """Forest of 500 trees on ECFP4 folded to 2,048, with or without descriptors.

    Counts or bits, descriptors, the share of features at a split and the size of leaves are tuned.
    """

    _kind = "RandomForestRegressor"
    _axes: ClassVar = {
        "columns": ("bits", "counts", "counts and descriptors", "bits and descriptors"),
        "max_features": ("sqrt", 0.1, 0.3, 1.0),
        "min_samples_leaf": (1, 2, 5, 10),
    }
    _start: ClassVar = {"columns": "counts", "max_features": 0.1, "min_samples_leaf": 1}


class EcfpForestClassifier(_TreeClassifier):
    """Random forest classification on ECFP4; see :class:`EcfpForestRegressor`."""

    _kind = "RandomForestClassifier"
    _axes, _start = EcfpForestRegressor._axes, EcfpForestRegressor._start


class BoostingRegressor(_TreeRegressor):
    """Gradient boosting on ECFP4 counts and descriptors.

    The learning rate (with a number of trees that is inversely proportional to it), the size of
    leaves and their number are tuned.
    """

    _kind = "HistGradientBoostingRegressor"
    _axes: ClassVar = {
        "learning_rate": (0.4, 0.2, 0.1, 0.05, 0.025, 0.0125),
        "min_samples_leaf": (1, 2, 5, 10, 20, 40, 80),
        "max_leaf_nodes": (4, 8, 15, 31, 63, 127),
    }
    _start: ClassVar = {
        "columns": "counts and descriptors",
        "learning_rate": 0.1,
        "min_samples_leaf": 10,
        "max_leaf_nodes": 31,
    }


class BoostingClassifier(_TreeClassifier):
    """Gradient boosting on ECFP4 counts and descriptors; see :class:`BoostingRegressor`."""

    _kind = "HistGradientBoostingClassifier"
    _axes, _start = BoostingRegressor._axes, BoostingRegressor._start


_ECFP_GP: dict[str, Any] = {"weights": "depths", "views": [Ecfp(3)]}
# Name on the command line -> what makes a classifier, a regressor.
BASELINES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "ecfp_gp": (partial(GraphClassifier, **_ECFP_GP), partial(GraphRegressor, **_ECFP_GP)),
    "ecfp_forest": (EcfpForestClassifier, EcfpForestRegressor),
    "boosting": (BoostingClassifier, BoostingRegressor),
}


class LearnedKernelSVC(ClassifierMixin, BaseEstimator):
    """A published kernel with learned weights, at the kernel and depth chosen with uniform ones."""

    def __init__(self, model: GraphSVC, learner: PairwiseWeights) -> None:
        self.model = model
        self.learner = learner

    def fit(self, graphs: GraphCollection, y: object) -> LearnedKernelSVC:
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

    def predict(self, graphs: object) -> np.ndarray:
        """Classes, shape (n_graphs,)."""
        return self.fitted_.predict(graphs)

    def predict_proba(self, graphs: object) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        return self.fitted_.predict_proba(graphs)
