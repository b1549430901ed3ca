"""Linear models on features: of two classes nearly the SVM, of several each class is named."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from treelens.svm.linear_models import fit_linear
from treelens.svm.svm import fit_svm_path


@pytest.fixture
def data(rng):
    features = rng.normal(size=(120, 8))
    return features, (features[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)


def svm_objective(features, codes, cost, coefficients, intercept):
    """The primal, whose cost is relative to the mean squared length of the rows."""
    margins = (2 * codes - 1) * (features @ coefficients + intercept)
    cost = cost / (features**2).sum(axis=1).mean()
    return 0.5 * coefficients @ coefficients + cost * np.maximum(0.0, 1.0 - margins).sum()


def test_with_the_hinge_loss_it_is_the_svm_on_the_products(data):
    """It stops early and holds the intercept a little: within a hundredth of the least objective.

    At three times the cost it would be farther off, so this sees what the cost is relative to.
    """
    features, codes = data
    ones, costs = np.ones(len(codes)), [0.1, 1.0]
    svms = fit_svm_path(features @ features.T, codes, 2, costs, ones)
    models = fit_linear("unary", features, codes, costs, ones)
    dearer = fit_linear("unary", features, codes, [3 * cost for cost in costs], ones)
    for cost, model, other, svm in zip(costs, models, dearer, svms, strict=True):
        given = (svm.coefficients @ features)[0], svm.intercepts[0]
        least = svm_objective(features, codes, cost, *given)
        ours, theirs = (
            svm_objective(features, codes, cost, w[0], b[0]) / least for w, b in (model, other)
        )
        assert 0.999 < ours < 1.01
        assert theirs > 1.01


@pytest.mark.parametrize("approximation", ["unary", "random-binning", "nystroem"])
def test_the_cost_is_relative_to_the_length_of_the_rows(data, approximation):
    """Features twice as long give half the coefficients, and the same decisions."""
    features, codes = data
    ones = np.ones(len(codes))
    (once,), (twice,) = (
        fit_linear(approximation, factor * features, codes, [1.0], ones) for factor in (1.0, 2.0)
    )
    np.testing.assert_allclose(2.0 * twice[0], once[0], rtol=0.05, atol=0.02)


def test_sparse_and_dense_features_are_the_same(data):
    features, codes = data
    table = np.where(features > 0, features, 0.0)
    (dense,), (rows,) = (
        fit_linear("unary", mapped, codes, [1.0], np.ones(len(codes)))
        for mapped in (table, sparse.csr_array(table))
    )
    np.testing.assert_allclose(dense[0], rows[0], atol=0.05)


@pytest.mark.parametrize("approximation", ["unary", "random-binning", "nystroem"])
def test_of_several_classes_none_of_which_has_the_majority_each_is_named(rng, approximation):
    codes = np.arange(150) % 3
    features = np.eye(3)[codes] + 0.4 * rng.normal(size=(150, 3))
    ((coefficients, intercepts),) = fit_linear(approximation, features, codes, [1.0], np.ones(150))
    decisions = features @ coefficients.T + intercepts
    assert decisions.shape == (150, 3)
    assert np.mean(decisions.argmax(axis=1) == codes) > 0.8


def test_weights_move_the_border(data):
    features, codes = data
    named = [
        np.mean(features @ w.T + b > 0)
        for weights in (np.ones(120), np.where(codes == 1, 20.0, 1.0))
        for w, b in fit_linear("unary", features, codes, [1.0], weights)
    ]
    assert named[1] > named[0] + 0.05
