"""All that a Gaussian process says of new graphs, as one table: predictions and domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from treelens.estimators.base import HoldsModel
from treelens.evaluation.metrics import NINETY
from treelens.gp.domain import Domain, expected_error
from treelens.gp.model import FittedGP
from treelens.graphs.collection import GraphCollection
from treelens.models.predictions import Predictions

DOMAIN_COLUMNS = ("in_domain", "expected_error", "similarity", "nearest", "out_of_vocabulary")


class TellsDomain(HoldsModel):
    """What models of graphs by a Gaussian process tell beside their predictions."""

    model_: FittedGP
    _domain: Domain | None = None

    @property
    def domain_(self) -> Domain:
        """Where the model may be believed: made when it is first asked for."""
        check_is_fitted(self)
        if self._domain is None or self._domain.model is not self.model_:
            model, errors = self.model_, self._left_out_errors()
            self._domain = Domain.of(model, model.training_graphs, errors, self._n_jobs())
        return self._domain

    def predict_table(self, X: Any) -> pd.DataFrame:
        """All that is said of graphs, one line each.

        Parameters
        ----------
        X : graphs

        Returns
        -------
        DataFrame
            Numbers: ``prediction``, ``std``, ``lower_90``, ``upper_90``. Classes: ``class``,
            ``probability`` (of it), ``decision``, and ``probability CLASS`` for each. Where the
            model has covariates, ``from_covariates``: what they add to the prediction or decision.
            Then what :meth:`domain` tells.
        """
        return prediction_table(self, self._new_graphs(X))

    def domain(self, X: Any) -> pd.DataFrame:
        """Whether graphs lie where the model may be believed, and why.

        Parameters
        ----------
        X : graphs

        Returns
        -------
        DataFrame
            ``in_domain``: whether the error to expect and the similarity to the nearest training
            graph are both such as 97.5 % of training graphs have when left out; ``expected_error``:
            the standard deviation, corrected by how hard the nearest training graphs were to
            predict when left out, in the units of the targets; ``similarity``: the learned
            Tanimoto similarity to the nearest training graph, whose position is ``nearest``;
            ``out_of_vocabulary``: the fraction of patterns that training never saw.
        """
        return self.predict_table(X)[list(DOMAIN_COLUMNS)]

    def _html_repr(self) -> str:
        """What a notebook shows: facts and scores once it is fitted."""
        from treelens.estimators.notebook import model_html

        if hasattr(self, "model_"):
            return model_html(self)
        return super()._html_repr()  # type: ignore[misc]

    def _left_out_errors(self) -> np.ndarray:
        """Of each training graph, shape (n_graphs, n_columns)."""
        raise NotImplementedError


def prediction_table(model: Any, graphs: GraphCollection) -> pd.DataFrame:
    """Predictions, error bars and domain of a fitted regressor or classifier, in one pass.

    The index holds the names of the graphs, where they have any.
    """
    domain, n_jobs = model.domain_, model._n_jobs()
    said = model.model_.decide(graphs, variance=True, n_jobs=n_jobs)
    around = domain.around(said.graphs.features, n_jobs)
    assert said.variance is not None
    std = np.sqrt(said.variance)
    expected = expected_error(std, around)
    told = _classes(model, said) if hasattr(model, "classes_") else _numbers(said, std)
    if said.from_covariates is not None and said.from_covariates.shape[1] == 1:
        told["from_covariates"] = said.from_covariates[:, 0]
    found = {
        "in_domain": domain.holds(expected, around),
        "expected_error": expected,
        "similarity": around.similarity,
        "nearest": around.nearest,
        "out_of_vocabulary": said.out_of_vocabulary,
    }
    index = None if graphs.names is None else pd.Index(list(graphs.names), name="name")
    return pd.DataFrame({**told, **found}, index=index)


def _numbers(said: Predictions, std: np.ndarray) -> dict[str, Any]:
    mean = said.mean[:, 0]
    return {
        "prediction": mean,
        "std": std,
        "lower_90": mean - NINETY * std,
        "upper_90": mean + NINETY * std,
    }


def _classes(model: Any, said: Predictions) -> dict[str, Any]:
    chances, codes = said.probabilities, said.predicted_codes
    assert chances is not None
    everyone = np.arange(len(codes))
    two = said.mean.shape[1] == 1
    return {
        "class": model.classes_[codes],
        "probability": chances[everyone, codes],
        "decision": said.mean[:, 0] if two else said.mean[everyone, codes],
        **{f"probability {c}": chances[:, k] for k, c in enumerate(model.classes_.tolist())},
    }
