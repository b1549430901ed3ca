"""Published kernels with learned weights, for comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from treelens._sklearn_compat import BaseEstimator, ClassifierMixin
from treelens.estimators.svc import GraphSVC
from treelens.svm.search import radii_for


class LearnedKernelSVC(ClassifierMixin, BaseEstimator):
    """A published kernel with learned weights, at the kernel and depth chosen with uniform ones.

    It always learns: a radius of 0 is not among the candidates.

    Parameters
    ----------
    model : GraphSVC
        The kernels and depths to choose from, with a weight radius of 0.
    learner : PairwiseWeights
    """

    def __init__(self, model: GraphSVC, learner: Any) -> None:
        self.model = model
        self.learner = learner

    def fit(self, graphs: Any, y: Any) -> LearnedKernelSVC:
        """Choose kernel and depth with uniform weights, then learn."""
        uniform = clone(self.model).fit(graphs, y)
        self.fitted_ = clone(self.model).set_params(
            kernel=uniform.best_params_["kernel"], depth=uniform.best_params_["depth"],
            weight_radius=list(radii_for(len(graphs))), learner=self.learner,
        ).fit(graphs, y)  # fmt: skip
        self.classes_ = self.fitted_.classes_
        return self

    def predict(self, graphs: Any) -> np.ndarray:
        """Classes, shape (n_graphs,)."""
        return self.fitted_.predict(graphs)

    def predict_proba(self, graphs: Any) -> np.ndarray:
        """Class probabilities, shape (n_graphs, n_classes)."""
        return self.fitted_.predict_proba(graphs)
