"""Laplace's approximation against scikit-learn's."""

import numpy as np
import pytest
from reproduction.laplace import best_laplace, laplace_posterior
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(40, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1.0, -1.0)


def test_mode_evidence_and_probabilities_are_those_of_scikit_learn(problem, rng):
    X, signs = problem
    amplitude, kernel = 3.0, RBF(1.3)
    theirs = GaussianProcessClassifier(ConstantKernel(amplitude) * kernel, optimizer=None).fit(
        X, signs
    )
    ours = laplace_posterior(kernel(X), signs, amplitude)
    assert ours.evidence == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)
    new = rng.normal(size=(15, 2))
    probability = ours.probability(kernel(new, X), np.ones(15))
    # Both average a logistic function over the same normal distribution, by other formulas.
    np.testing.assert_allclose(probability, theirs.predict_proba(new)[:, 1], atol=5e-3)


def test_the_mode_is_where_the_gradient_says(problem):
    X, signs = problem
    kernel = RBF(1.0)(X)
    found = laplace_posterior(kernel, signs, 2.0)
    latent = 2.0 * kernel @ found.gradient
    np.testing.assert_allclose(0.5 * (signs + 1) - expit(latent), found.gradient, atol=1e-6)


def test_the_best_amplitude_has_the_largest_evidence(problem):
    X, signs = problem
    kernel = RBF(1.0)(X)
    best = best_laplace(kernel, signs)
    assert all(
        laplace_posterior(kernel, signs, a).evidence <= best.evidence for a in (0.1, 1.0, 10.0)
    )
