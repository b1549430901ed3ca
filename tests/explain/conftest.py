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
<<<<<<< HEAD
    model = estimator.fit(graphs, y).model_
    if not random_weights:
        return model
    weights = np.random.default_rng(7).uniform(0, 2, len(model.weights))
    decision = replace(model.decision, kernel=replace(model.kernel, weights=weights))
    return replace(model, decision=decision).from_stored()
=======
    classes, codes = np.unique(y, return_inverse=True)
    targets = [1] if len(classes) == 2 else range(len(classes))
    coefficients, intercepts = np.zeros((len(targets), len(y))), np.zeros(len(targets))
    for row, target in enumerate(targets):
        svc = SVC(kernel="precomputed", C=C).fit(matrix, codes == target)
        coefficients[row, svc.support_] = svc.dual_coef_[0]
        intercepts[row] = svc.intercept_[0]
    extractor = PatternExtractor(
        PatternForest.of_vocabulary(vocabulary), first_depth, KERNELS[kernel].pair_feature
    )
    return KernelExpansion(
        PatternForest.of_vocabulary(vocabulary), first_depth,
        WeightedKernel(kernel, weights, gamma, offset), weights,
        Features(pairs, diagonal), np.arange(len(y)), coefficients, intercepts, classes,
        TrainingGraphs(histograms, codes), partial(extractor.refine, weights=weights),
    )  # fmt: skip
>>>>>>> 74e2181 (Count cells of attributes in one place; number patterns in one compiled loop)


@pytest.fixture(scope="session")
def fit_model():
    return _fit_model


@pytest.fixture(scope="module")
def nitrobenzene():
    return tl.as_graph_collection(["O=[N+]([O-])c1ccccc1"])
