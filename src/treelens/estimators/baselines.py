"""Baselines on circular fingerprints (ECFP): random forests, Gaussian processes and SVMs.

They take the same graphs as the estimators of this library, tune their settings within the training
part, and choose the threshold of a rare class as :class:`treelens.GraphClassifier` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from treelens._sklearn_compat import BaseEstimator, ClassifierMixin, RegressorMixin
from treelens.estimators.base import TakesGraphs
from treelens.evaluation.metrics import class_scores
from treelens.evaluation.splits import DistinctKFold, Split
from treelens.gp.sampling import draw_by_group, tenths_by_rank
from treelens.gp.tanimoto_process import TanimotoProcess
from treelens.gp.targets import class_columns
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.targets import check_classes
from treelens.kernels.fingerprints import (
    fingerprint_counts,
    folded_counts,
    molecules_behind,
    presence,
    tanimoto_matrix,
)
from treelens.models.calibration import calibrated, fit_slope
from treelens.models.targets import check_numbers, class_weights
from treelens.models.thresholds import choose_threshold
from treelens.svm.settings import resolved_class_weight
from treelens.svm.solver import calibrated_probabilities, fit_calibration, fit_svm_path

_TREES, _INNER_TREES = 500, 50
_LARGE = 3000  # more molecules than this have three inner folds instead of five
_COSTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# (radius, whether counts): ECFP4 bits, ECFP4 counts, ECFP6 counts.
_FINGERPRINTS = ((2, False), (2, True), (3, True))
_COMPARED = 2000  # molecules on which Gaussian processes of different fingerprints are compared


class _Baseline(TakesGraphs, BaseEstimator):
    """Parameters and inner folds of all baselines."""

    best_params_: dict[str, Any]

    def __init__(self, *, n_jobs: int | None = None, random_state: int | None = None) -> None:
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _inner_folds(self, graphs: GraphCollection, y: np.ndarray) -> list[Split]:
        n_splits = 3 if len(graphs) > _LARGE else 5
        if y.dtype.kind in "iu":  # classes: each fold should contain some of the rarest
            n_splits = max(2, min(n_splits, int(np.bincount(y).min())))
        return list(DistinctKFold(n_splits, random_state=self.random_state or 0).split(graphs, y))


class _ClassifierBaseline(ClassifierMixin, _Baseline):
    """Classes from probabilities and a threshold; subclasses have ``_fit_probabilities``."""

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
        self.classes_, codes = check_classes(y, len(graphs))
        held_out = self._fit_probabilities(graphs, codes)
        self._threshold = choose_threshold(self.threshold, held_out, codes)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes, shape (n_graphs,)."""
        found, threshold = self.predict_proba(X), self._threshold
        return self.classes_[found.argmax(axis=1) if threshold is None else threshold.name(found)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        raise NotImplementedError

    def _fit_probabilities(self, graphs: GraphCollection, codes: np.ndarray) -> np.ndarray:
        """Fit, and return probabilities of held-out training graphs."""
        raise NotImplementedError


def _roc_auc(scores: np.ndarray, codes: np.ndarray) -> float:
    """ROC AUC of one column per class; the accuracy where it is undefined."""
    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    found = class_scores(codes, scores.argmax(axis=1), scores)
    return found["roc_auc"] if found["roc_auc"] is not None else found["accuracy"]


# --- forests --------------------------------------------------------------------------------


class _Forest(_Baseline):
    """A random forest of 500 trees on ECFP4 folded to 2,048.

    Inner cross-validation chooses counts or bits, and then the features considered at a split.
    """

    _kind: type

    def _tables(self, graphs: GraphCollection) -> dict[bool, np.ndarray]:
        counts = folded_counts(molecules_behind(graphs)).astype(np.float32)
        return {False: presence(counts), True: counts}

    def _fit_forest(self, graphs: GraphCollection, y: np.ndarray) -> np.ndarray:
        """Choose settings and fit; returns held-out predictions of the chosen settings."""
        tables, folds = self._tables(graphs), self._inner_folds(graphs, y)

        def forest(n_trees: int, features: Any) -> Any:
            return self._kind(
                n_trees, max_features=features, n_jobs=self.n_jobs, random_state=self.random_state
            )

        def held_out(table: np.ndarray, features: Any) -> np.ndarray:
            found: Any = None
            for train, test in folds:
                fitted = forest(_INNER_TREES, features).fit(table[train], y[train])
                part = self._predicted(fitted, table[test])
                found = np.zeros((len(y), *part.shape[1:])) if found is None else found
                found[test] = part
            return found

        tried: dict[tuple[bool, str | float], np.ndarray]
        tried = {(counts, "sqrt"): held_out(tables[counts], "sqrt") for counts in (False, True)}
        better, _ = max(tried, key=lambda setting: self._score(tried[setting], y))
        tried[better, 0.1] = held_out(tables[better], 0.1)
        best = max(tried, key=lambda setting: self._score(tried[setting], y))
        self.best_params_ = {"counts": best[0], "max_features": best[1]}
        self._fitted = forest(_TREES, best[1]).fit(tables[best[0]], y)
        return tried[best]

    def _predicted(self, forest: Any, table: np.ndarray) -> np.ndarray:
        return forest.predict(table)

    def _score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return -float(np.mean((predicted - y) ** 2))

    def _predict(self, X: Any) -> np.ndarray:
        table = self._tables(check_graphs(X))[self.best_params_["counts"]]
        return self._predicted(self._fitted, table)


class EcfpForestRegressor(RegressorMixin, _Forest):
    """Random forest regression on ECFP4.

    Parameters
    ----------
    n_jobs : int, optional
    random_state : int, optional
    """

    _kind = RandomForestRegressor

    def fit(self, X: Any, y: Any) -> EcfpForestRegressor:
        """Choose settings and fit."""
        graphs = check_graphs(X)
        self._fit_forest(graphs, check_numbers(y, len(graphs)))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Values, shape (n_graphs,)."""
        return self._predict(X)


class EcfpForestClassifier(_ClassifierBaseline, _Forest):
    """Random forest classification on ECFP4.

    Parameters
    ----------
    threshold : float or str, default="auto"
        As for :class:`treelens.GraphClassifier`.
    n_jobs : int, optional
    random_state : int, optional
    """

    _kind = RandomForestClassifier

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        return self._predict(X)

    def _fit_probabilities(self, graphs: GraphCollection, codes: np.ndarray) -> np.ndarray:
        return self._fit_forest(graphs, codes)

    def _predicted(self, forest: Any, table: np.ndarray) -> np.ndarray:
        found = np.zeros((len(table), len(self.classes_)))
        found[:, forest.classes_] = forest.predict_proba(table)
        return found

    def _score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return _roc_auc(predicted, y)


# --- Tanimoto kernels -----------------------------------------------------------------------


class _TanimotoBaseline(_Baseline):
    """Keeps the training molecules, with which new ones are compared."""

    def _similarity(
        self, molecules: list[Any], fingerprint: tuple[int, bool], n_train: int | None = None
    ) -> np.ndarray:
        """Similarities among molecules, or of those after the first ``n_train`` with these."""
        radius, counts = fingerprint
        table = fingerprint_counts(molecules, radius)
        table = table if counts else presence(table)
        if n_train is None:
            return tanimoto_matrix(table, n_jobs=self._n_jobs())
        return tanimoto_matrix(table[n_train:], table[:n_train], n_jobs=self._n_jobs())

    def _keep(self, molecules: list[Any], fingerprint: tuple[int, bool]) -> None:
        self._molecules, self._fingerprint = molecules, fingerprint
        self.best_params_ = {"radius": fingerprint[0], "counts": fingerprint[1]}

    def _rows(self, X: Any) -> np.ndarray:
        """Similarities with the training molecules, shape (n_graphs, n_train)."""
        # Columns are numbered as environments are met, so both sides are made together.
        both = [*self._molecules, *molecules_behind(check_graphs(X))]
        return self._similarity(both, self._fingerprint, len(self._molecules))


class _GaussianProcess(_TanimotoBaseline):
    """A Gaussian process on Tanimoto similarities of ECFP.

    Amplitude, noise and the fingerprint maximise the marginal likelihood.
    """

    def _fit_process(
        self, graphs: GraphCollection, targets: np.ndarray, groups: np.ndarray
    ) -> TanimotoProcess:
        molecules = molecules_behind(graphs)
        some = draw_by_group(groups, _COMPARED, self.random_state or 0)
        drawn = [molecules[i] for i in some]
        tried = {
            setting: TanimotoProcess().fit(self._similarity(drawn, setting), targets[some])
            for setting in _FINGERPRINTS
        }
        best = max(_FINGERPRINTS, key=lambda setting: tried[setting].evidence)
        self._keep(molecules, best)
        self._process = tried[best]
        if len(some) < len(molecules):
            self._process = TanimotoProcess().fit(self._similarity(molecules, best), targets)
        return self._process


class EcfpGPRegressor(RegressorMixin, _GaussianProcess):
    """Gaussian process regression on Tanimoto similarities of ECFP.

    Parameters
    ----------
    n_jobs : int, optional
    random_state : int, optional
    """

    def fit(self, X: Any, y: Any) -> EcfpGPRegressor:
        """Choose the fingerprint and the two variances by marginal likelihood."""
        graphs = check_graphs(X)
        values = check_numbers(y, len(graphs))
        self._fit_process(graphs, values[:, None], tenths_by_rank(values))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Values and, with ``return_std``, standard deviations of new measurements."""
        mean, std = self._process.predict(self._rows(X))
        return (mean[:, 0], std) if return_std else mean[:, 0]


class EcfpGPClassifier(_ClassifierBaseline, _GaussianProcess):
    """Classification by Gaussian process regression on labels, Tanimoto similarities of ECFP.

    Probabilities are calibrated on leave-one-out predictions.

    Parameters
    ----------
    threshold : float or str, default="auto"
        As for :class:`treelens.GraphClassifier`.
    n_jobs : int, optional
    random_state : int, optional
    """

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        return calibrated(self._process.predict(self._rows(X))[0], self._slope)

    def _fit_probabilities(self, graphs: GraphCollection, codes: np.ndarray) -> np.ndarray:
        process = self._fit_process(graphs, class_columns(codes, len(self.classes_)), codes)
        self._slope = fit_slope(process.left_out, codes, np.ones(len(codes)))
        return calibrated(process.left_out, self._slope)


class EcfpSVC(_ClassifierBaseline, _TanimotoBaseline):
    """Support vector classification on Tanimoto similarities of ECFP.

    Inner cross-validation chooses the fingerprint and the cost by ROC AUC (its mean over the
    classes where there are several).

    Parameters
    ----------
    threshold : float or str, default="auto"
        As for :class:`treelens.GraphClassifier`.
    n_jobs : int, optional
    random_state : int, optional
    """

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        return calibrated_probabilities(self._svm.decide(self._rows(X)), *self._calibration)

    def _fit_probabilities(self, graphs: GraphCollection, codes: np.ndarray) -> np.ndarray:
        balance = resolved_class_weight("auto", "auto", codes)
        weights, n_classes = class_weights(balance, self.classes_, codes), len(self.classes_)
        molecules, folds = molecules_behind(graphs), self._inner_folds(graphs, codes)
        kernels = {setting: self._similarity(molecules, setting) for setting in _FINGERPRINTS}
        n_columns = 1 if n_classes == 2 else n_classes
        tried = {(s, C): np.zeros((len(codes), n_columns)) for s in _FINGERPRINTS for C in _COSTS}
        for setting, kernel in kernels.items():
            for train, test in folds:
                block = np.ascontiguousarray(kernel[np.ix_(train, train)])
                svms = fit_svm_path(block, codes[train], n_classes, _COSTS, weights[train])
                for C, svm in zip(_COSTS, svms, strict=True):
                    tried[setting, C][test] = svm.decide(kernel[np.ix_(test, train)])
        best, cost = max(tried, key=lambda key: _roc_auc(tried[key], codes))
        self._keep(molecules, best)
        self.best_params_["C"] = cost
        self._calibration = fit_calibration(tried[best, cost], codes)
        (self._svm,) = fit_svm_path(kernels[best], codes, n_classes, [cost], weights)
        return calibrated_probabilities(tried[best, cost], *self._calibration)


# Name on the command line -> (classifier, regressor).
BASELINES: dict[str, tuple[type | None, type | None]] = {
    "ecfp_forest": (EcfpForestClassifier, EcfpForestRegressor),
    "ecfp_gp": (EcfpGPClassifier, EcfpGPRegressor),
    "ecfp_svm": (EcfpSVC, None),
}
