"""What a chemist would run instead: forests and Tanimoto kernels on circular fingerprints.

They take the same graphs, are tuned within the training part as far as there is something to tune
(counts or bits, radius, cost, features a split), and choose the threshold of a rare class as our
own classifier does. None of them is meant to be weak.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from treelens._sklearn_compat import BaseEstimator, ClassifierMixin, RegressorMixin
from treelens.estimators.base import TakesGraphs
from treelens.evaluation.metrics import class_scores
from treelens.evaluation.splits import DistinctKFold, Split
from treelens.gp.fitting import class_columns
from treelens.gp.sampling import draw_by_group, tenths_by_rank
from treelens.gp.tanimoto_process import TanimotoProcess
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
from treelens.models.thresholds import choose_threshold
from treelens.svm.settings import check_numbers, resolved_class_weight
from treelens.svm.solver import (
    calibrated_probabilities,
    class_weights,
    fit_calibration,
    fit_svm_path,
)

_INNER_TREES = 50
_LARGE = 3000  # beyond, the inner validation has three folds instead of five
_COSTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# (radius, whether counts): ECFP4 bits, ECFP4 counts, ECFP6 counts.
_PRINTS = ((2, False), (2, True), (3, True))


class _OnFingerprints(TakesGraphs, BaseEstimator):
    """What the baselines share: parameters, and inner folds."""

    def __init__(self, *, n_jobs: int | None = None, random_state: int | None = None) -> None:
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _inner_folds(self, graphs: GraphCollection, y: np.ndarray) -> list[Split]:
        n_splits = 3 if len(graphs) > _LARGE else 5
        if y.dtype.kind in "iu":  # classes: each fold should hold some of the rarest
            n_splits = max(2, min(n_splits, int(np.bincount(y).min())))
        return list(DistinctKFold(n_splits, random_state=self.random_state or 0).split(graphs, y))


class _NamesClasses(ClassifierMixin, _OnFingerprints):
    """Classes from calibrated probabilities, ``_probabilities(graphs)``, and a threshold."""

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

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        return self._probabilities(check_graphs(X))

    def predict(self, X: Any) -> np.ndarray:
        """Classes, shape (n_graphs,)."""
        said = self.predict_proba(X)
        at = self._threshold
        return self.classes_[said.argmax(axis=1) if at is None else at.name(said)]

    def _settle(self, held_out: np.ndarray, codes: np.ndarray) -> None:
        """Choose the threshold from held-out probabilities."""
        self._threshold = choose_threshold(self.threshold, held_out, codes)

    def _probabilities(self, graphs: GraphCollection) -> np.ndarray:
        raise NotImplementedError


# --- forests --------------------------------------------------------------------------------


class _Forest(_OnFingerprints):
    """A random forest of 500 trees on ECFP4 folded to 2,048.

    Counts or bits, and then whether a split looks at more features than usual, by inner
    cross-validation.
    """

    _kind: type
    best_params_: dict[str, Any]

    def _tables(self, graphs: GraphCollection) -> dict[bool, np.ndarray]:
        counts = folded_counts(molecules_behind(graphs)).astype(np.float32)
        return {False: presence(counts), True: counts}

    def _forest(self, n_trees: int, features: Any) -> Any:
        return self._kind(
            n_trees, max_features=features, n_jobs=self.n_jobs, random_state=self.random_state
        )

    def _fit_forest(self, graphs: GraphCollection, y: np.ndarray) -> np.ndarray:
        """Choose and fit; what the chosen setting said of graphs held out."""
        tables, folds = self._tables(graphs), self._inner_folds(graphs, y)
        tried: dict[tuple[bool, str | float], np.ndarray]
        tried = {(c, "sqrt"): self._held_out(tables[c], y, "sqrt", folds) for c in (False, True)}
        better, _ = min(tried, key=lambda setting: self._surprise(tried[setting], y))
        tried[better, 0.1] = self._held_out(tables[better], y, 0.1, folds)
        best = min(tried, key=lambda setting: self._surprise(tried[setting], y))
        self.best_params_ = {"counts": best[0], "max_features": best[1]}
        self._fitted = self._forest(500, best[1]).fit(tables[best[0]], y)
        return tried[best]

    def _held_out(
        self, table: np.ndarray, y: np.ndarray, features: Any, folds: list[Split]
    ) -> np.ndarray:
        parts = [
            (test, self._say(self._forest(_INNER_TREES, features).fit(table[a], y[a]), table[test]))
            for a, test in folds
        ]
        said = np.zeros((len(y), *parts[0][1].shape[1:]))
        for test, part in parts:
            said[test] = part
        return said

    def _say(self, forest: Any, table: np.ndarray) -> np.ndarray:
        return forest.predict(table)

    def _surprise(self, said: np.ndarray, y: np.ndarray) -> float:
        return float(np.mean((said - y) ** 2))

    def _chosen_table(self, graphs: GraphCollection) -> np.ndarray:
        return self._tables(graphs)[self.best_params_["counts"]]


class EcfpForestRegressor(RegressorMixin, _Forest):
    """Numbers by a random forest on ECFP4.

    Parameters
    ----------
    n_jobs : int, optional
    random_state : int, optional
    """

    _kind = RandomForestRegressor

    def fit(self, X: Any, y: Any) -> EcfpForestRegressor:
        """Choose counts or bits and the features a split looks at, and fit."""
        graphs = check_graphs(X)
        self._fit_forest(graphs, check_numbers(y, len(graphs)))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Values, shape (n_graphs,)."""
        return self._fitted.predict(self._chosen_table(check_graphs(X)))


class EcfpForestClassifier(_NamesClasses, _Forest):
    """Classes by a random forest on ECFP4.

    Parameters
    ----------
    threshold : float or str, default="auto"
        As for :class:`treelens.GraphClassifier`.
    n_jobs : int, optional
    random_state : int, optional
    """

    _kind = RandomForestClassifier

    def fit(self, X: Any, y: Any) -> EcfpForestClassifier:
        """Choose counts or bits, the features a split looks at and the threshold, and fit."""
        graphs = check_graphs(X)
        self.classes_, codes = check_classes(y, len(graphs))
        self._settle(self._fit_forest(graphs, codes), codes)
        return self

    def _say(self, forest: Any, table: np.ndarray) -> np.ndarray:
        said = np.zeros((len(table), len(self.classes_)))
        said[:, forest.classes_] = forest.predict_proba(table)
        return said

    def _surprise(self, said: np.ndarray, y: np.ndarray) -> float:
        """Which inner score to choose by: the area under the ROC curve, as the machine does."""
        return -_ranking(said, y)

    def _probabilities(self, graphs: GraphCollection) -> np.ndarray:
        return self._say(self._fitted, self._chosen_table(graphs))


def _ranking(said: np.ndarray, codes: np.ndarray) -> float:
    scores = class_scores(codes, said.argmax(axis=1), said)
    return scores["roc_auc"] if scores["roc_auc"] is not None else scores["accuracy"]


# --- Tanimoto kernels -----------------------------------------------------------------------


class _OnTanimoto(_OnFingerprints):
    """Keeps the training molecules, which new ones are compared with."""

    best_params_: dict[str, Any]

    def _print(self, molecules: list[Any], radius: int, counts: bool) -> Any:
        found = fingerprint_counts(molecules, radius)
        return found if counts else presence(found)

    def _among(self, molecules: list[Any], setting: tuple[int, bool]) -> np.ndarray:
        return tanimoto_matrix(self._print(molecules, *setting), n_jobs=self._n_jobs())

    def _remember(self, molecules: list[Any], setting: tuple[int, bool]) -> None:
        self._molecules, self._setting = molecules, setting
        self.best_params_ = {"radius": setting[0], "counts": setting[1]}

    def _rows(self, graphs: GraphCollection) -> np.ndarray:
        """Similarities with the training molecules, shape (n_graphs, n_train)."""
        new = molecules_behind(graphs)
        # Columns are numbered as environments are met, so both sides are made in one go.
        table = self._print([*self._molecules, *new], *self._setting)
        n = len(self._molecules)
        return tanimoto_matrix(table[n:], table[:n], n_jobs=self._n_jobs())


class _Process(_OnTanimoto):
    """A Gaussian process on Tanimoto similarities of ECFP.

    Amplitude and noise by marginal likelihood, and so the fingerprint: ECFP4 bits, ECFP4 counts or
    ECFP6 counts (compared on at most 2,000 molecules).
    """

    def _fit_process(
        self, graphs: GraphCollection, targets: np.ndarray, groups: np.ndarray
    ) -> TanimotoProcess:
        molecules = molecules_behind(graphs)
        some = draw_by_group(groups, 2000, self.random_state or 0)
        drawn = [molecules[i] for i in some]
        tried = {
            setting: TanimotoProcess().fit(self._among(drawn, setting), targets[some])
            for setting in _PRINTS
        }
        best = max(_PRINTS, key=lambda setting: tried[setting].evidence)
        self._remember(molecules, best)
        whole = len(some) == len(molecules)
        self._process = (
            tried[best] if whole else TanimotoProcess().fit(self._among(molecules, best), targets)
        )
        return self._process


class EcfpProcessRegressor(RegressorMixin, _Process):
    """Numbers by a Gaussian process on Tanimoto similarities of ECFP.

    Parameters
    ----------
    n_jobs : int, optional
    random_state : int, optional
    """

    def fit(self, X: Any, y: Any) -> EcfpProcessRegressor:
        """Choose the fingerprint and the two variances by marginal likelihood."""
        graphs = check_graphs(X)
        values = check_numbers(y, len(graphs))
        self._fit_process(graphs, values[:, None], tenths_by_rank(values))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Values, and if asked for the standard deviations of new measurements."""
        mean, std = self._process.predict(self._rows(check_graphs(X)))
        return (mean[:, 0], std) if return_std else mean[:, 0]


class EcfpProcessClassifier(_NamesClasses, _Process):
    """Classes by a Gaussian process on Tanimoto similarities of ECFP, coded as our own.

    Parameters
    ----------
    threshold : float or str, default="auto"
        As for :class:`treelens.GraphClassifier`.
    n_jobs : int, optional
    random_state : int, optional
    """

    def fit(self, X: Any, y: Any) -> EcfpProcessClassifier:
        """Choose the fingerprint and the two variances; calibrate on leave-one-out predictions."""
        graphs = check_graphs(X)
        self.classes_, codes = check_classes(y, len(graphs))
        process = self._fit_process(graphs, class_columns(codes, len(self.classes_)), codes)
        self._slope = fit_slope(process.left_out, codes, np.ones(len(codes)))
        self._settle(calibrated(process.left_out, self._slope), codes)
        return self

    def _probabilities(self, graphs: GraphCollection) -> np.ndarray:
        return calibrated(self._process.predict(self._rows(graphs))[0], self._slope)


class EcfpMachineClassifier(_NamesClasses, _OnTanimoto):
    """Classes by a support vector machine on Tanimoto similarities of ECFP.

    Cost, and counts or bits, by ROC AUC (of several classes its mean) in inner cross-validation.

    Parameters
    ----------
    threshold : float or str, default="auto"
        As for :class:`treelens.GraphClassifier`.
    n_jobs : int, optional
    random_state : int, optional
    """

    def fit(self, X: Any, y: Any) -> EcfpMachineClassifier:
        """Choose fingerprint, cost and threshold; calibrate on what was held out."""
        graphs = check_graphs(X)
        self.classes_, codes = check_classes(y, len(graphs))
        balance = resolved_class_weight("auto", "auto", codes)
        self._weights = class_weights(balance, self.classes_, codes)
        molecules, folds = molecules_behind(graphs), self._inner_folds(graphs, codes)
        kernels = {setting: self._among(molecules, setting) for setting in _PRINTS}
        tried = {
            (setting, cost): said
            for setting in _PRINTS
            for cost, said in self._held_out(kernels[setting], codes, folds).items()
        }
        best, cost = max(tried, key=lambda key: _ranking(_shares(tried[key]), codes))
        self._remember(molecules, best)
        self.best_params_["C"] = cost
        held_out = tried[best, cost]
        self._calibration = fit_calibration(held_out, codes)
        self._settle(calibrated_probabilities(held_out, *self._calibration), codes)
        n_classes = len(self.classes_)
        (self._machine,) = fit_svm_path(kernels[best], codes, n_classes, [cost], self._weights)
        return self

    def _held_out(
        self, kernel: np.ndarray, codes: np.ndarray, folds: list[Split]
    ) -> dict[float, np.ndarray]:
        """Decision values of held-out molecules for each cost."""
        n_classes = len(self.classes_)
        said = {C: np.zeros((len(codes), 1 if n_classes == 2 else n_classes)) for C in _COSTS}
        for train, test in folds:
            block = np.ascontiguousarray(kernel[np.ix_(train, train)])
            machines = fit_svm_path(block, codes[train], n_classes, _COSTS, self._weights[train])
            for C, machine in zip(_COSTS, machines, strict=True):
                said[C][test] = machine.decide(kernel[np.ix_(test, train)])
        return said

    def _probabilities(self, graphs: GraphCollection) -> np.ndarray:
        decisions = self._machine.decide(self._rows(graphs))
        return calibrated_probabilities(decisions, *self._calibration)


def _shares(decisions: np.ndarray) -> np.ndarray:
    """Decision values as columns that rank alike, one for each class."""
    return np.hstack([-decisions, decisions]) if decisions.shape[1] == 1 else decisions


# Name on the command line -> (of classes, of numbers).
BASELINES: dict[str, tuple[type | None, type | None]] = {
    "ecfp_forest": (EcfpForestClassifier, EcfpForestRegressor),
    "ecfp_gp": (EcfpProcessClassifier, EcfpProcessRegressor),
    "ecfp_svm": (EcfpMachineClassifier, None),
}
