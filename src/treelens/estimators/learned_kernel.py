"""The learned kernel of a fitted model as matrices, distances and neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from treelens.errors import check_whole
from treelens.estimators.base import FittedEstimator
from treelens.estimators.prediction_table import measured_values
from treelens.kernels.weighted import nearest_graphs


class LearnedKernel(FittedEstimator):
    """Estimators whose model has a kernel among any graphs."""

    def kernel_matrix(self, X: object, Y: object = None) -> np.ndarray:
        """Return the learned kernel among graphs, shape (n_x, n_x), or (n_x, n_y) with ``Y``.

        It is a kernel for scikit-learn's ``kernel="precomputed"``. Of a Gaussian process it has the
        prior covariances of values, without noise, in squared units of the targets, on the scale
        that was learned (of classes, of decision values). Patterns that training never saw count,
        too: with the weight of the pattern they refine, and in a support vector machine with one.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
        >>> model = tl.GraphClassifier(depth=2).fit(graphs, y)
        >>> model.kernel_matrix(graphs[:3], graphs).shape
        (3, 40)
        """
        model = self._of_one_endpoint("kernel_matrix")
        graphs, others = self._new_graphs(X), None if Y is None else self._new_graphs(Y)
        kernel = model.kernel_among(graphs, others, self._n_jobs())
        scaled: np.ndarray = kernel * model.kernel_scale
        return scaled

    def distance_matrix(self, X: object, Y: object = None) -> np.ndarray:
        """Return distances ``sqrt(k(x, x) + k(y, y) - 2 k(x, y))`` of the learned kernel.

        They are a metric where the kernel is positive definite; of a Gaussian process, the prior
        standard deviation of the difference of two values. ``X``, ``Y`` and the shape are as in
        :meth:`kernel_matrix`.
        """
        model, n_jobs = self._of_one_endpoint("distance_matrix"), self._n_jobs()
        graphs = self._new_graphs(X)
        others = graphs if Y is None else self._new_graphs(Y)
        own, of_others = (model.kernel_of_each(some, n_jobs) for some in (graphs, others))
        kernel = model.kernel_among(graphs, None if Y is None else others, n_jobs)
        halves = 0.5 * (own[:, None] + of_others)
        squares = np.maximum(halves - kernel, 0.0)
        squares[squares < 1e-14 * halves] = 0.0  # rounding
        distances: np.ndarray = np.sqrt(2.0 * squares * model.kernel_scale)
        return distances

    def kneighbors(self, X: object, n_neighbors: int = 5) -> pd.DataFrame:
        """Return the most similar training graphs of each graph, with their measured values.

        Returns
        -------
        DataFrame
            One row per graph and neighbour, the most similar first: ``graph`` (position in ``X``),
            ``neighbor`` (position among the training graphs), ``name`` and ``smiles`` of the
            neighbour where the model keeps them, ``similarity`` (learned Tanimoto, from 0 to 1) and
            ``value``, the measured value in the units of the table, or the class. Where some
            training values are limits, ``limit``: ``">"``, ``"<"`` or empty.
        """
        check_whole("n_neighbors", n_neighbors, 1)
        model = self._of_one_endpoint("kneighbors")
        graphs, n_jobs, training = self._new_graphs(X), self._n_jobs(), model.training
        trained = model.training_graphs.patterns
        parts = [
            nearest_graphs(block.patterns, trained, n_neighbors, n_jobs=n_jobs)
            for block in model.refine(graphs, n_jobs).features.blocks()
        ]
        near = np.concatenate([part.positions for part in parts])  # (n_graphs, n_neighbors)
        positions = near.ravel()
        columns: dict[str, Any] = {
            "graph": np.repeat(np.arange(len(graphs)), near.shape[1]),
            "neighbor": positions,
        }
        for name, kept in (("name", training.names), ("smiles", training.smiles)):
            if kept is not None:
                columns[name] = [kept[k] for k in positions.tolist()]
        columns["similarity"] = np.concatenate([part.similarity for part in parts]).ravel()
        return pd.DataFrame(columns | measured_values(model, positions))
