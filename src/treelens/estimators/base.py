"""Base classes of the estimators: kernels, classifiers and regressors on graphs."""

from __future__ import annotations

import os
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    StrOptions,
    TransformerMixin,
)
from treelens.graphs.blocks import holds_blocks, loaded
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.errors import GraphDataError
from treelens.graphs.recipe import GraphRecipe
from treelens.kernels.gram import normalize_kernel, pair_sums
from treelens.models.predictions import FittedModel, Predictions
from treelens.patterns.features import Features

if TYPE_CHECKING:
    from typing_extensions import Self


class GraphEstimator(BaseEstimator):
    """Base of all estimators: input checks and scikit-learn tags."""

    n_jobs: int | None

    def _new_graphs(self, X: Any) -> GraphCollection:
        """Return graphs that are read as the training graphs were."""
        return check_graphs(X, self.recipe_)  # type: ignore[attr-defined]

    def _n_jobs(self) -> int:
        """Threads to use: no more than four for each processor."""
        return min(effective_n_jobs(self.n_jobs), 4 * (os.cpu_count() or 1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


class FittedEstimator(GraphEstimator):
    """Base of the estimators with one fitted model, ``model_``: its predictions."""

    model_: FittedModel

    @property
    def recipe_(self) -> GraphRecipe | None:  # type: ignore[override]
        """How the training graphs were read; None if unknown."""
        return self._fitted_model.recipe

    @property
    def weights_(self) -> np.ndarray:
        """One weight per pattern in use, shape (n_patterns,)."""
        return self._fitted_model.weights

    @property
    def _fitted_model(self) -> Any:
        check_is_fitted(self)
        return self.model_

    def _decide(self, X: Any, **options: Any) -> Predictions:
        """Return the predictions of graphs, each refined once."""
        check_is_fitted(self)
        return self.model_.decide(self._new_graphs(X), n_jobs=self._n_jobs(), **options)

    def _each(self, X: Any, **options: Any) -> Iterator[Predictions]:
        """Yield the predictions of graphs, or of blocks of them one after the other."""
        check_is_fitted(self)
        if not holds_blocks(X):
            yield self._decide(X, **options)
            return
        none_yet = True
        for block in loaded(X, self.recipe_):
            none_yet = False
            yield self._decide(block.graphs, **options)
        if none_yet:
            raise GraphDataError("The blocks contain no graph; at least one is needed.")

    def out_of_vocabulary(self, X: Any) -> np.ndarray:
        """Fraction of each graph's patterns that training never saw, shape (n_graphs,)."""
        return np.concatenate([found.out_of_vocabulary for found in self._each(X)])

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)


class GraphRegressorMixin(RegressorMixin, FittedEstimator):
    """Regression with a fitted model."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R2 of the predictions.

        Parameters
        ----------
        X : graphs, or blocks of them
            As for ``predict``.
        y : array-like, shape (n_graphs,)
            The true values of all graphs, also with blocks.
        sample_weight : array-like, shape (n_graphs,), optional
        """
        return super().score(X, _checked_truth(y), sample_weight)


class GraphClassifierMixin(ClassifierMixin, FittedEstimator):
    """Classification with a fitted model."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The accuracy of the predictions.

        Parameters
        ----------
        X : graphs, or blocks of them
            As for ``predict``.
        y : array-like, shape (n_graphs,)
            The true classes of all graphs, also with blocks.
        sample_weight : array-like, shape (n_graphs,), optional
        """
        return super().score(X, _checked_truth(y), sample_weight)

    @property
    def classes_(self) -> np.ndarray:
        """The classes, ascending."""
        return self._fitted_model.classes

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: (n_graphs,) for two classes, else (n_graphs, n_classes).

        Parameters
        ----------
        X : graphs, or blocks of them
            As for ``predict``.
        """
        decisions = np.concatenate([found.decisions for found in self._each(X)])
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def predict(self, X: Any) -> np.ndarray:
        """Classes, shape (n_graphs,).

        Parameters
        ----------
        X : graphs, or blocks of them
            Blocks (such as ``SmilesBlocks(path, target=None)``) are read one at a time, and need no
            targets. What ``on_invalid="skip"`` leaves out has no entry; the warning names it.
        """
        return self.classes_[np.concatenate([found.predicted_codes for found in self._each(X)])]

    @property
    def train_codes_(self) -> np.ndarray:
        """Classes of the training graphs, as positions in ``classes_``."""
        return self._fitted_model.training.targets

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes); ``X`` as for ``predict``.

        A logistic function of decision values that is calibrated on held-out training graphs.
        ``predict`` takes the largest, unless a lower threshold applies to a rare class; with
        several classes :class:`GraphSVC` calibrates its ``mean_margins``.
        """
        found = [found.probabilities for found in self._each(X) if found.probabilities is not None]
        return np.concatenate(found)


def _checked_truth(y: Any) -> Any:
    if y is None:
        raise TypeError(
            "score needs the true classes or values: score(graphs, y). With blocks, take them from "
            "part.load().y."
        )
    return y


class GraphKernel(TransformerMixin, GraphEstimator, metaclass=ABCMeta):
    """Base of the kernels: ``fit`` learns the features, ``transform`` gives kernel values.

    ``transform`` returns an array (n_new, n_fit), ready for ``SVC(kernel="precomputed")``; its
    columns are training graphs, and :meth:`get_feature_names_out` names them. The columns of
    :meth:`feature_map` are patterns, which ``feature_map_names`` gives.
    """

    normalize: str | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "normalize": [StrOptions({"cosine", "tanimoto"}), None],
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _fit_features(self, graphs: GraphCollection, y: Any) -> Features:
        """Learn the vocabulary (and weights); features of the training graphs."""

    @abstractmethod
    def _new_features(self, graphs: GraphCollection) -> Features:
        """Features of graphs in terms of what ``fit`` saw."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the features of the training graphs.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
        y : array-like, optional
            Class labels; only learned weights need them.
        """
        self._validate_params()
        graphs = check_graphs(X)
        self.n_graphs_, self.recipe_ = len(graphs), graphs.recipe
        self._fitted = self._fit_features(graphs, y)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Kernel values of graphs with the training graphs, shape (n_new, n_fit)."""
        check_is_fitted(self)
        features = self._new_features(self._new_graphs(X))
        return self._kernel(features, self._fitted)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Kernel values of the training graphs with each other, shape (n_fit, n_fit).

        Equal to ``fit(X, y).transform(X)``, at half the cost.
        """
        self.fit(X, y)
        return self._kernel(self._fitted, None)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of :meth:`transform`: the kernel's, and the training graph's number.

        Parameters
        ----------
        input_features : None
            Not used: what comes in are graphs.
        """
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(self.n_graphs_)], dtype=object)

    def feature_map(self, X: Any) -> sparse.csr_array:
        """Explicit features, shape (n_graphs, n_features); see ``feature_map_names``.

        Where the kernel is a sum of products, it is ``feature_map(X) @ feature_map(X_fit).T``
        (before any normalisation); where it is a sum of minima, it is the sum of the minima.
        """
        check_is_fitted(self)
        pairs = self._new_features(self._new_graphs(X)).pairs
        rows, weights = pairs.rows, self._weights()
        if weights is None:
            values = rows.values
        else:
            factors = weights if pairs.minimum else np.sqrt(weights)
            values = rows.values * factors[rows.indices]
        shape = (pairs.n_graphs, pairs.n_patterns)
        return sparse.csr_array((values, rows.indices, rows.offsets), shape=shape)

    def _kernel(self, left: Features, right: Features | None) -> np.ndarray:
        target = left if right is None else right
        other = None if right is None else right.pairs
        kernel = pair_sums(left.pairs, other, self._weights(), n_jobs=self._n_jobs())
        return normalize_kernel(kernel, left.diagonal, target.diagonal, self.normalize)

    def _weights(self) -> np.ndarray | None:
        """Weights of the patterns; None means all ones."""
        return None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")
