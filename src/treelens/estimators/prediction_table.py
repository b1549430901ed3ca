"""All that a Gaussian process says of new graphs, as one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from treelens.estimators.base import checked_decisions
from treelens.graphs.collection import GraphCollection
from treelens.models.calibration import calibrated
from treelens.models.domain import expected_error
from treelens.models.gaussian_process import Predictions
from treelens.models.svm import predicted_codes
from treelens.selection.metrics import NINETY

DOMAIN_COLUMNS = ("in_domain", "expected_error", "similarity", "nearest", "out_of_vocabulary")


def prediction_table(model: Any, graphs: GraphCollection) -> pd.DataFrame:
    """Predictions, error bars and domain of a fitted regressor or classifier, in one pass.

    The index holds the names of the graphs, where they have any.
    """
    domain, n_jobs = model.domain_, model._n_jobs()
    said = model.model_.decide(
        graphs, variance=True, n_jobs=n_jobs, look=lambda weighed: domain.around(weighed, n_jobs)
    )
    checked_decisions(said.mean)
    assert said.variance is not None
    std = np.sqrt(said.variance)
    expected = expected_error(std, said.around)
    told = _classes(model, said) if hasattr(model, "classes_") else _numbers(said, std)
    found = {
        "in_domain": domain.holds(expected, said.around),
        "expected_error": expected,
        "similarity": said.around.similarity,
        "nearest": said.around.nearest,
        "out_of_vocabulary": said.unseen_fraction,
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
    chances = calibrated(said.mean, model._temperature)  # (n_graphs, n_classes)
    threshold = model.threshold_
    codes = predicted_codes(said.mean) if threshold is None else threshold.name(chances)
    everyone = np.arange(len(codes))
    two = said.mean.shape[1] == 1
    return {
        "class": model.classes_[codes],
        "probability": chances[everyone, codes],
        "decision": said.mean[:, 0] if two else said.mean[everyone, codes],
        **{f"probability {c}": chances[:, k] for k, c in enumerate(model.classes_.tolist())},
    }
