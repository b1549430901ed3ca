"""The posterior of a fitted Gaussian process: kernel, neighbours, and more data."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import check_sample_weight
from treelens.estimators.fragments import ExplainingEstimator
from treelens.estimators.prediction_table import (
    DOMAIN_COLUMNS,
    measured_values,
    prediction_table,
)
from treelens.gp.conditioning import condition
from treelens.gp.domain import Domain
from treelens.gp.model import FittedGP, feature_blocks
from treelens.graphs.blocks import holds_blocks
from treelens.graphs.convert import check_graphs
from treelens.kernels.nearest import nearest_graphs

if TYPE_CHECKING:
    from typing_extensions import Self


class PosteriorEstimator(ExplainingEstimator):
    """Base with tables of predictions, domain, kernel, neighbours, and conditioning on more."""

    model_: FittedGP
    _domain: Domain | None = None
    _intervals = "posterior"

    @property
    def domain_(self) -> Domain:
        """The domain of applicability, computed when it is first used."""
        check_is_fitted(self)
        if self._domain is None or self._domain.model is not self.model_:
            self._domain = Domain.of(self.model_, self._left_out_errors(), self._n_jobs())
        return self._domain

    def predict_table(self, X: Any, intervals: str = "posterior") -> pd.DataFrame:
        """Return predictions, their uncertainty and the domain, one row per graph.

        Parameters
        ----------
        X : graphs
        intervals : {"posterior", "scaffold"}, default="posterior"
            Of numbers, ``std`` and the 90 % interval; ``"scaffold"`` widens them for molecules of
            new scaffolds, as in :meth:`GraphRegressor.predict`.

        Returns
        -------
        DataFrame
            Numbers: ``prediction``, ``std``, ``lower_90``, ``upper_90``. Classes: ``class``,
            ``probability`` (of it), ``decision``, and ``probability CLASS`` for each. Where the
            model has covariates, ``from_covariates``: what they add to the prediction or decision.
            Then the columns of :meth:`domain`. Of a model that learned on another scale,
            predictions and bounds are in the units of the table (the prediction is a median);
            ``std_log10``, ``expected_error_log10`` and ``from_covariates_log10`` are on that scale.
        """
        return prediction_table(self, self._new_graphs(X), intervals)

    def domain(self, X: Any) -> pd.DataFrame:
        """Return whether graphs lie in the domain of applicability, and why.

        Parameters
        ----------
        X : graphs

        Returns
        -------
        DataFrame
            ``in_domain``: whether the expected error and the similarity to the nearest training
            graph are both such as 97.5 % of training graphs have when left out; ``expected_error``:
            the standard deviation, corrected by the leave-one-out errors of the nearest training
            graphs, on the scale that was learned; ``similarity``: the learned Tanimoto similarity
            to the nearest training graph, whose position is ``nearest``; ``out_of_vocabulary``: the
            fraction of patterns that do not occur in the training graphs.
        """
        table = self.predict_table(X)
        wanted = [c for c in table.columns if c.startswith(DOMAIN_COLUMNS)]
        return table[wanted]

    def _html_repr(self) -> str:
        """The HTML that a notebook shows: facts and scores of a fitted model."""
        from treelens.estimators.notebook import model_html

        if hasattr(self, "model_"):
            return model_html(self)
        return super()._html_repr()  # type: ignore[misc]

    def _left_out_errors(self) -> np.ndarray:
        """Leave-one-out errors of the training graphs, shape (n_graphs, n_columns)."""
        raise NotImplementedError

    @property
    def noise_(self) -> float:
        """The variance of the noise of a measurement of weight one, in units of the kernel."""
        return self._fitted_model.noise * self._fitted_model.target_scale**2

    def kernel_matrix(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the learned kernel: prior covariances of the values, without noise.

        Parameters
        ----------
        X, Y : graphs
            ``Y=None``: of ``X`` with itself. Patterns that training never saw count, too, with the
            weight of the pattern they refine.

        Returns
        -------
        ndarray, shape (n_x, n_x) or (n_x, n_y)
            In squared units of the targets, on the scale that was learned (``log10`` of a model
            with that transform); of classes, of decision values. Multiplied by any factor it is a
            kernel for scikit-learn's ``kernel="precomputed"``.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphClassifier(depth=2).fit(graphs, y)
        >>> model.kernel_matrix(graphs[:3], graphs).shape
        (3, 40)
        """
        check_is_fitted(self)
        graphs, others = self._new_graphs(X), None if Y is None else self._new_graphs(Y)
        kernel = self.model_.kernel_among(graphs, others, self._n_jobs())
        return self.model_.target_scale**2 * kernel

    def distance_matrix(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return distances ``sqrt(k(x, x) + k(y, y) - 2 k(x, y))`` of the learned kernel.

        They are a metric: the prior standard deviation of the difference of two values, in units of
        the targets. ``X``, ``Y`` and the shape are as in :meth:`kernel_matrix`. Graphs that no
        pattern distinguishes are at distance 0.
        """
        kernel = self.kernel_matrix(X, Y)
        variance = self.model_.target_scale**2 * self.model_.kernel.variance
        squares = np.maximum(variance - kernel, 0.0)
        squares[squares < 1e-14 * variance] = 0.0  # rounding
        return np.sqrt(2.0 * squares)

    def kneighbors(self, X: Any, n_neighbors: int = 5) -> pd.DataFrame:
        """Return the most similar training graphs of each graph, with their measured values.

        Parameters
        ----------
        X : graphs
        n_neighbors : int, default=5
            Or all training graphs, where there are fewer.

        Returns
        -------
        DataFrame
            One row per graph and neighbour, the most similar first: ``graph`` (position in ``X``),
            ``neighbor`` (position among the training graphs), ``name`` and ``smiles`` of the
            neighbour where the model keeps them, ``similarity`` (the learned Tanimoto similarity,
            from 0 to 1, that reports and prediction tables use, too) and ``value``, the measured
            value in the units of the table, or the class.
        """
        check_is_fitted(self)
        if n_neighbors < 1:
            raise ValueError(f"n_neighbors must be 1 or more, got {n_neighbors}.")
        model, n_jobs = self.model_, self._n_jobs()
        graphs = self._new_graphs(X)
        seen = model.refine(graphs, n_jobs).features
        train = model.training_graphs
        parts = [
            nearest_graphs(block, train, model.weights, n_neighbors, n_jobs=n_jobs)
            for block in feature_blocks(seen, len(graphs))
        ]
        near = np.concatenate([part.positions for part in parts])
        positions, training = near.ravel(), model.training
        assert training is not None
        columns: dict[str, Any] = {
            "graph": np.repeat(np.arange(len(graphs)), near.shape[1]),
            "neighbor": positions,
        }
        for name, kept in (("name", training.names), ("smiles", training.smiles)):
            if kept is not None:
                columns[name] = [kept[k] for k in positions.tolist()]
        columns["similarity"] = np.concatenate([part.similarity for part in parts]).ravel()
        columns["value"] = measured_values(model, positions)
        return pd.DataFrame(columns)

    def condition(
        self, X: Any, y: Any, sample_weight: Any = None, *, covariates: Any = None
    ) -> Self:
        """Return a new model given more data, under the same weights, scales and noise.

        Rows are added to the Cholesky factor, so it takes a small part of the time of ``fit`` and
        is exact: the posterior given old and new graphs together. Offset and unit of the targets
        stay as well. Patterns that training never saw join the vocabulary with the weight of the
        pattern they refine. Leave-one-out scores (of classes the calibration of probabilities, too)
        are those of all graphs; limits among the old values keep the approximation found in
        ``fit``; ``evidence_``, ``history_`` and ``learning_gain_`` remain those of
        ``fit``, which learned the weights.

        Parameters
        ----------
        X, y : graphs and their values or classes
            As in ``fit``; no blocks.
        sample_weight : array-like, shape (n_graphs,), optional
            The noise variance of a graph is divided by its weight; 1 is the mean weight in ``fit``.
        covariates : table or array of one row per graph, optional
            As in ``predict``.

        Returns
        -------
        estimator
            A fitted copy; this one does not change.

        Raises
        ------
        ValueError
            Where the model predicts through landmarks.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs = tl.as_graph_collection([(
        ...     [(i, i + 1) for i in range(n)], {i: "C" for i in range(n + 1)})
        ...     for n in range(1, 13)])
        >>> y = [float(n) for n in range(1, 13)]
        >>> model = tl.GraphRegressor(depth=1).fit(graphs[:8], y[:8])
        >>> more = model.condition(graphs[8:], y[8:])
        >>> bool(more.predict(graphs[11:], True)[1][0] < model.predict(graphs[11:], True)[1][0])
        True
        """
        check_is_fitted(self)
        if holds_blocks(X):
            raise TypeError("condition takes graphs, no blocks: they are added all at once.")
        return _conditioned(self, self._beside(X, covariates), y, sample_weight)  # type: ignore[attr-defined]


def _conditioned(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """A fitted copy of an estimator given more data."""
    model, graphs = estimator.model_, estimator._new_graphs(X)
    weights = check_sample_weight(sample_weight, np.empty((len(graphs), 1)), dtype=np.float64)
    if not (weights > 0).all():
        raise ValueError("sample_weight must be above 0 everywhere: drop graphs of no weight.")
    known = estimator._targets_with_more(estimator._on_learned_scale(y, model.recipe), weights)
    training = model.training.extended(graphs, known.given)
    extended, left_out = condition(model, graphs, training, known.targets, estimator._n_jobs())
    other, train = copy(estimator), estimator._fitted_graphs
    scores, slope = other._scored(left_out, known)
    record = replace(model.record, left_out=scores)
    other.model_ = replace(extended, slope=slope, record=record)
    again = train is None or training.smiles is not None  # read when they are needed
    other._fitted_graphs = None if again else check_graphs([*train, *graphs])
    other._fragments = None
    return other
