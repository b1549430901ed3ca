"""Rivals on circular fingerprints (ECFP): Gaussian processes, random forests and boosting.

They take the same graphs as the estimators of this library. The Gaussian processes are
:class:`treelens.GraphRegressor` and :class:`treelens.GraphClassifier` with ECFP counts in place of
Weisfeiler-Lehman patterns: the same kernel, one weight per radius. Forests and boosting are
scikit-learn's, tuned by inner cross-validation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import make_pipeline

from treelens._sklearn_compat import ClassifierMixin, RegressorMixin
from treelens.estimators.base import GraphEstimator
from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.evaluation.metrics import class_scores
from treelens.evaluation.splits import DistinctKFold
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.descriptors import COMPACT_DESCRIPTORS, rdkit_descriptors
from treelens.graphs.targets import check_classes
from treelens.kernels.fingerprints import FingerprintForest, folded_counts, molecules_behind
from treelens.models.targets import check_numbers
from treelens.models.thresholds import choose_threshold
from treelens.parallel import openmp_threads

Settings = tuple[tuple[str, dict[str, Any]], ...]  # names of columns, parameters of the trees
_LARGE = 3000  # more molecules than this have three inner folds instead of five


class _FingerprintMixin:
    """Counts of circular environments in place of Weisfeiler-Lehman patterns."""

    def _fit_patterns(self, graphs: GraphCollection, depth: int, n_jobs: int) -> Any:
        return FingerprintForest.fit(graphs, depth)


class EcfpGPRegressor(_FingerprintMixin, GraphRegressor):
    """Gaussian process regression on ECFP counts.

    Parameters
    ----------
    depth : int, default=3
        The largest radius: 2 is ECFP4, 3 is ECFP6.
    weights : {"depths", "uniform"}, default="depths"
        Whether every radius has a weight of its own.
    descriptors, n_jobs, random_state, ... :
        As for :class:`treelens.GraphRegressor`.
    """

    def __init__(
        self, depth: int | str = 3, weights: str = "depths", *, descriptors: bool | str = False,
        n_jobs: int | None = None, random_state: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            depth, weights, descriptors=descriptors, n_jobs=n_jobs, random_state=random_state
        )


class EcfpGPClassifier(_FingerprintMixin, GraphClassifier):
    """Classification by a Gaussian process on ECFP counts; see :class:`EcfpGPRegressor`.

    ``threshold`` is that of :class:`treelens.GraphClassifier`.
    """

    def __init__(
        self, depth: int | str = 3, weights: str = "depths", *, descriptors: bool | str = False,
        threshold: Any = "auto", n_jobs: int | None = None, random_state: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            depth, weights, descriptors=descriptors, threshold=threshold, n_jobs=n_jobs,
            random_state=random_state,
        )  # fmt: skip


class _TunedTrees(GraphEstimator):
    """Trees on a table of numbers, with the settings that do best in inner cross-validation."""

    def __init__(self, *, n_jobs: int | None = None, random_state: int | None = None) -> None:
        self.n_jobs = n_jobs
        self.random_state = random_state

    _settings: Settings  # to try

    def _table(self, graphs: GraphCollection, columns: str) -> np.ndarray:
        molecules = molecules_behind(graphs)
        table = folded_counts(molecules).astype(np.float32)
        if columns == "bits":
            return (table > 0).astype(np.float32)
        if columns == "counts and descriptors":
            return np.hstack([table, rdkit_descriptors(molecules, COMPACT_DESCRIPTORS, graphs)])
        return table

    def _trees(self, final: bool, **settings: Any) -> Any:
        raise NotImplementedError

    def _fit_tuned(self, graphs: GraphCollection, y: np.ndarray, classes: bool) -> np.ndarray:
        """Choose settings and fit; returns held-out predictions of the chosen settings."""
        n_splits = 3 if len(graphs) > _LARGE else 5
        if classes:  # each fold should contain some of the rarest
            n_splits = max(2, min(n_splits, int(np.bincount(y).min())))
        splitter = DistinctKFold(n_splits, random_state=self.random_state or 0)
        folds = list(splitter.split(graphs, y if classes else None))
        tables = {name: self._table(graphs, name) for name, _ in self._settings}
        best, held_out, self.best_params_ = -np.inf, np.empty(0), {}
        for columns, settings in self._settings:
            table, parts = tables[columns], []
            for train, test in folds:
                with openmp_threads(self._n_jobs()):
                    trees = self._trees(False, **settings).fit(table[train], y[train])
                    parts.append(self._predicted(trees, table[test]))
            predicted = np.zeros((len(y), *parts[0].shape[1:]))
            for (_, test), part in zip(folds, parts, strict=True):
                predicted[test] = part
            if (score := self._score(predicted, y)) > best:
                best, held_out = score, predicted
                self.best_params_ = {"columns": columns, **settings}
        settings = {k: v for k, v in self.best_params_.items() if k != "columns"}
        with openmp_threads(self._n_jobs()):
            final = self._trees(True, **settings)
            self._fitted = final.fit(tables[self.best_params_["columns"]], y)
        return held_out

    def _predicted(self, trees: Any, table: np.ndarray) -> np.ndarray:
        return trees.predict(table)

    def _score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return -float(np.mean((predicted - y) ** 2))

    def _predict(self, X: Any) -> np.ndarray:
        table = self._table(check_graphs(X), self.best_params_["columns"])
        with openmp_threads(self._n_jobs()):
            return self._predicted(self._fitted, table)


class _TreeRegressor(RegressorMixin, _TunedTrees):
    def fit(self, X: Any, y: Any) -> Any:
        """Choose settings and fit."""
        graphs = check_graphs(X)
        self._fit_tuned(graphs, check_numbers(y, len(graphs)), classes=False)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Values, shape (n_graphs,)."""
        return self._predict(X)


class _TreeClassifier(ClassifierMixin, _TunedTrees):
    classes_: np.ndarray

    def __init__(
        self, *, threshold: Any = "auto", n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(n_jobs=n_jobs, random_state=random_state)
        self.threshold = threshold

    def fit(self, X: Any, y: Any) -> Any:
        """Choose settings and the threshold by held-out predictions, and fit."""
        graphs = check_graphs(X)
        self.classes_, codes = check_classes(y, len(graphs))
        held_out = self._fit_tuned(graphs, codes, classes=True)
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
        found[:, trees.classes_] = trees.predict_proba(table)
        return found

    def _score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        found = class_scores(y, predicted.argmax(axis=1), predicted)
        return found["accuracy"] if found["roc_auc"] is None else found["roc_auc"]


class _ForestMixin:
    """A random forest of 500 trees on ECFP4 folded to 2,048, counts or bits."""

    n_jobs: int | None
    random_state: int | None
    _kind: str
    _settings: Settings = (
        ("bits", {"max_features": "sqrt"}),
        ("counts", {"max_features": "sqrt"}),
        ("counts", {"max_features": 0.1}),
    )

    def _trees(self, final: bool, **settings: Any) -> Any:
        from sklearn import ensemble

        return getattr(ensemble, f"RandomForest{self._kind}")(
            500 if final else 50, n_jobs=self.n_jobs, random_state=self.random_state, **settings
        )


class _BoostingMixin:
    """Histogram-based gradient boosting on ECFP4 counts and descriptors."""

    random_state: int | None
    _kind: str
    _settings: Settings = (
        ("counts and descriptors", {"learning_rate": 0.1, "max_iter": 200}),
        ("counts and descriptors", {"learning_rate": 0.03, "max_iter": 500}),
        ("counts and descriptors", {"learning_rate": 0.1, "max_iter": 200, "min_samples_leaf": 5}),
    )

    def _trees(self, final: bool, **settings: Any) -> Any:
        from sklearn import ensemble

        boosting = getattr(ensemble, f"HistGradientBoosting{self._kind}")(
            random_state=self.random_state, **settings
        )
        return make_pipeline(_SplittableColumns(boosting.min_samples_leaf), boosting)


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


class EcfpForestRegressor(_ForestMixin, _TreeRegressor):
    """Random forest regression on ECFP4; counts or bits and features per split are tuned."""

    _kind = "Regressor"


class EcfpForestClassifier(_ForestMixin, _TreeClassifier):
    """Random forest classification on ECFP4; see :class:`EcfpForestRegressor`."""

    _kind = "Classifier"


class BoostingRegressor(_BoostingMixin, _TreeRegressor):
    """Gradient boosting on ECFP4 counts and descriptors; the learning rate is tuned."""

    _kind = "Regressor"


class BoostingClassifier(_BoostingMixin, _TreeClassifier):
    """Gradient boosting on ECFP4 counts and descriptors; see :class:`BoostingRegressor`."""

    _kind = "Classifier"


# Name on the command line -> (classifier, regressor).
BASELINES: dict[str, tuple[type, type]] = {
    "ecfp_gp": (EcfpGPClassifier, EcfpGPRegressor),
    "ecfp_forest": (EcfpForestClassifier, EcfpForestRegressor),
    "boosting": (BoostingClassifier, BoostingRegressor),
}
