"""Rivals that a user brings: scikit-learn's estimators on counts, and predictions in a file."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from treelens._sklearn_compat import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    TransformerMixin,
)
from treelens.chem.descriptors import COMPACT_DESCRIPTORS, rdkit_descriptors
from treelens.chem.ecfp import folded_counts
from treelens.chem.molecule_table import MoleculeTable
from treelens.chem.parsing import molecules_behind
from treelens.errors import GraphDataError, IgnoredDataWarning, first_few
from treelens.estimators.base import GraphEstimator
from treelens.evaluation.splits import Split
from treelens.graphs.convert import check_graphs
from treelens.graphs.tables import Table, read_text_table
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

_MOST_PATTERNS = 2048  # as many as the folded fingerprint has
POSITION = "position among all graphs"  # column of graph_data that predictions in a file go by


class GraphCounts(TransformerMixin, BaseEstimator):
    """Tables of numbers of graphs, for estimators that take no graphs.

    Of molecules: ECFP4 counts folded to 2,048, and 21 descriptors. Of other graphs: counts of the
    2,048 Weisfeiler-Lehman patterns that the most training graphs have.

    Parameters
    ----------
    depth : int, default=3
        Of the patterns of graphs that are not molecules.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> import treelens as tl
    >>> from treelens.chem.rivals import GraphCounts
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> forest = make_pipeline(GraphCounts(), RandomForestClassifier(random_state=0))
    >>> forest.fit(graphs, y).predict(graphs[:2]).shape
    (2,)
    """

    def __init__(self, depth: int = 3) -> None:
        self.depth = depth

    def fit(self, X: object, y: object = None) -> GraphCounts:
        """Find the patterns of the training graphs; of molecules nothing is learned."""
        graphs = check_graphs(X)
        self.of_molecules_ = bool({"smiles", "mol"} & set(graphs.graph_data))
        if not self.of_molecules_:
            self.vocabulary_, colors = PatternVocabulary.fit(graphs, self.depth)
            histograms = PatternHistograms.from_colors(self.vocabulary_, colors)
            order = np.argsort(-histograms.support, kind="stable")
            self.patterns_ = np.sort(order[:_MOST_PATTERNS])
            if graphs.node_attributes is not None or graphs.edge_attributes is not None:
                warnings.warn(
                    "GraphCounts counts patterns of labels: continuous attributes are not used.",
                    IgnoredDataWarning,
                    stacklevel=2,
                )
        return self

    def transform(self, X: object) -> np.ndarray:
        """Numbers of each graph, shape (n_graphs, n_columns)."""
        graphs = check_graphs(X)
        if not self.of_molecules_:
            colors = self.vocabulary_.transform(graphs)
            histograms = PatternHistograms.from_colors(self.vocabulary_, colors)
            return histograms.to_sparse(dtype=np.float32)[:, self.patterns_].toarray()
        molecules = molecules_behind(graphs)
        descriptors = rdkit_descriptors(molecules, COMPACT_DESCRIPTORS, graphs)
        return np.hstack([folded_counts(molecules), descriptors]).astype(np.float32)


# --- an estimator by its name ---------------------------------------------------------------------


def rival_estimator(name: str, task: str, n_jobs: int, seed: int) -> tuple[str, Any]:
    """Return what to call it and the estimator of ``"module:Name"``, ready for graphs.

    ``Name`` is a class, a function that returns an estimator, or an estimator.
    """
    module, _, attribute = name.rpartition(":")
    if not module or not attribute.isidentifier():
        raise ValueError(
            f"--rival {name}: expected an estimator, MODULE:NAME, such as "
            "sklearn.ensemble:RandomForestRegressor, or a file with predictions that exists."
        )
    try:
        made = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ValueError(
            f"--rival {name}: Python cannot import {module} ({error}). Install it, or name its "
            "folder in PYTHONPATH."
        ) from error
    except AttributeError as error:
        raise ValueError(f"--rival {name}: {module} has no {attribute}.") from error
    if isinstance(made, type) or not hasattr(made, "fit"):
        try:
            made = made()
        except TypeError as error:
            raise ValueError(
                f"--rival {name}: cannot be made without arguments ({error}). Write a function "
                "that returns the estimator, and name that."
            ) from error
    _check_estimator(made, name, task)
    known = made.get_params()
    given = {"random_state": seed, "n_jobs": n_jobs}
    made = clone(made).set_params(
        **{key: x for key, x in given.items() if key in known and known[key] is None}
    )
    if not isinstance(made, GraphEstimator):
        made = make_pipeline(GraphCounts(), SimpleImputer(keep_empty_features=True), made)
    return attribute, made


def _check_estimator(made: Any, name: str, task: str) -> None:
    """Raise unless it is a scikit-learn estimator for numbers, or for classes."""
    needed = ["fit", "predict", "get_params"]
    fits = is_regressor(made) if task == "regression" else is_classifier(made)
    if not fits or not all(hasattr(made, method) for method in needed):
        wanted = "numbers and needs a regressor"
        wanted = wanted if task == "regression" else "classes and needs a classifier"
        raise ValueError(f"--rival {name}: this target has {wanted} of scikit-learn.")
    if task == "classification" and not hasattr(made, "predict_proba"):
        raise ValueError(f"--rival {name}: a classifier needs probabilities (predict_proba).")


# --- predictions in a file ------------------------------------------------------------------------


class FilePredictor(BaseEstimator):
    """Predictions that another program made, looked up instead of learned.

    ``parts`` has a row for each fold of the file, NaN where it predicts nothing.
    """

    def __init__(self, name: str, parts: list[np.ndarray]) -> None:
        self.name = name
        self.parts = parts

    def fit(self, X: object, y: object) -> Any:
        """Learn nothing."""
        return self

    def _found(self, X: object) -> np.ndarray:
        positions = check_graphs(X).graph_data[POSITION].astype(np.int64)
        missing = [positions[~_known(part)[positions]] for part in self.parts]
        best = int(np.argmin([len(each) for each in missing]))
        if len(missing[best]):
            raise GraphDataError(
                f"{self.name} has no prediction of {len(missing[best])} of {len(positions)} graphs "
                f"of a test part, the first at position {missing[best][0]}."
            )
        return self.parts[best][positions]


def _known(part: np.ndarray) -> np.ndarray:
    """Which graphs there are predictions of."""
    return np.isfinite(part.reshape(len(part), -1)).all(axis=1)


class FileRegressor(RegressorMixin, FilePredictor):
    """Numbers that another program predicted."""

    def predict(self, X: object) -> np.ndarray:
        """Numbers, shape (n_graphs,)."""
        return self._found(X)


class FileClassifier(ClassifierMixin, FilePredictor):
    """Classes that another program predicted, by their probabilities."""

    def __init__(self, name: str, parts: list[np.ndarray], classes: Sequence[Any]) -> None:
        super().__init__(name, parts)
        self.classes = classes

    @property
    def classes_(self) -> np.ndarray:
        """Classes, in the order of the probabilities."""
        return np.asarray(self.classes)

    def predict_proba(self, X: object) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        return self._found(X)

    def predict(self, X: object) -> np.ndarray:
        """Classes, shape (n_graphs,)."""
        return self.classes_[self._found(X).argmax(axis=1)]


def read_rival(
    path: Path, table: MoleculeTable, notes: list[str]
) -> tuple[FilePredictor, list[Split] | None]:
    """Return the predictions of a file, and the splits by its column ``fold``, if it has one.

    Rows go by the column ``row`` (from 1), or by one that names the rows of the data.
    """
    found = read_text_table(path)
    at = _positions(found, table)
    folds = np.zeros(len(found.rows), dtype=np.int64)
    if "fold" in found.columns:
        _, folds = np.unique(np.array(found.column("fold", "rival")), return_inverse=True)
    n_folds, n = int(folds.max(initial=0)) + 1, len(table.graphs)
    values, classes = _predicted(found, table, notes)
    parts = [np.full((n, *values.shape[1:]), np.nan) for _ in range(n_folds)]
    for k, (position, fold) in enumerate(zip(at.tolist(), folds.tolist(), strict=True)):
        if position < 0:
            continue
        if np.isfinite(parts[fold][position]).all():
            raise GraphDataError(f"{path}, {found.place(k)}: predicted before, in the same fold.")
        parts[fold][position] = values[k]
    if (at < 0).all():
        raise GraphDataError(f"{path}: none of its rows is one of {table.source}.")
    if n_others := int((at < 0).sum()):
        notes.append(f"{n_others} rows of {path} are none of those that are compared.")
    splits = None
    if "fold" in found.columns:
        splits = [(np.flatnonzero(~_known(p)), np.flatnonzero(_known(p))) for p in parts]
        notes.append(f"the {n_folds} test parts are the folds of {path}.")
    else:
        notes.append(f"nothing shows that {path} predicts rows that its model had not seen.")
    if classes is None:
        return FileRegressor(str(path), parts), splits
    return FileClassifier(str(path), parts, classes), splits


def _positions(found: Table, table: MoleculeTable) -> np.ndarray:
    """The graph that each row of a file is about; -1 for none."""
    names = [name for name in table.ids if name in found.columns]
    keys: dict[Any, int] = {}
    if names:
        rows = table.rows.tolist()
        for k, row in enumerate(rows):
            key = tuple(str(table.ids[name][row]) for name in names)
            if keys.setdefault(key, k) != k:
                raise GraphDataError(
                    f"{found.source}: {' and '.join(names)} name several rows of {table.source} "
                    f"{key}. Name rows by a column 'row', from 1."
                )
        columns = [found.column(name, "rival") for name in names]
        return np.array([keys.get(key, -1) for key in zip(*columns, strict=True)], dtype=np.int64)
    if "row" not in found.columns:
        known = first_few([*table.ids, "row"])
        raise GraphDataError(
            f"{found.source}: no column says which rows its predictions are of. Add one of {known}."
        )
    keys = {str(row + 1): k for k, row in enumerate(table.rows.tolist())}
    given = found.column("row", "rival")
    return np.array([keys.get(text.strip(), -1) for text in given], dtype=np.int64)


def _predicted(
    found: Table, table: MoleculeTable, notes: list[str]
) -> tuple[np.ndarray, list[Any] | None]:
    """Numbers, shape (n_rows,), or probabilities, shape (n_rows, n_classes), and the classes."""
    assert table.targets is not None
    if table.task == "regression":
        values, scale = _numbers(found, "prediction"), table.targets.record.reported
        if scale is not None:  # scores are on the scale that was asked for
            values = scale.forward(scale.checked(values, found.place))
        return values, None
    classes = np.unique(table.targets.values).tolist()
    names = [f"probability_{label}" for label in classes]
    if set(names) <= set(found.columns):
        return np.stack([_numbers(found, name) for name in names], axis=1), classes
    column = next((name for name in ("class", "prediction") if name in found.columns), None)
    if column is None:
        raise GraphDataError(
            f"{found.source}: expected the columns {first_few(names)}, or 'class'."
        )
    texts, known = found.column(column, "rival"), [str(label) for label in classes]
    if strange := sorted(set(texts) - set(known)):
        raise GraphDataError(f"{found.source}: {first_few(strange)} in {column!r} are no classes.")
    notes.append(f"{found.source} has classes without probabilities: its AUC is that of classes.")
    return np.eye(len(classes))[[known.index(text) for text in texts]], classes


def _numbers(found: Table, name: str) -> np.ndarray:
    """A column of numbers; anything else is an error that names its place."""
    values = np.empty(len(found.rows))
    for k, text in enumerate(found.column(name, "rival")):
        try:
            values[k] = float(text)
        except ValueError:
            values[k] = np.nan
        if not np.isfinite(values[k]):
            raise GraphDataError(f"{found.place(k)}: {text!r} in {name!r} is not a number.")
    return values
