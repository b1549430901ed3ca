"""Fitted models to be explained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import treelens as tl
from treelens.svm.model import FittedSVM


def _fit_model(graphs, y, kernel="wwl", depth=2, first_depth=0, random_weights=False) -> FittedSVM:
    """An SVM of any kernel; with random weights it is another model, not the best one."""
    estimator = tl.GraphSVC(
        kernel, depth, 0, 1.0, 10.0, include_depth_zero=first_depth == 0, cv=2, random_state=0
    )
    model = estimator.fit(graphs, y).model_
    if not random_weights:
        return model
    weights = np.random.default_rng(7).uniform(0, 2, len(model.weights))
    decision = replace(model.decision, kernel=replace(model.kernel, weights=weights))
    return replace(model, decision=decision)


@pytest.fixture(scope="session")
def fit_model():
    return _fit_model
