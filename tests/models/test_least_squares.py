"""Least squares from sums of products, held against the whole."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.models.least_squares import ProductSums, solve


def test_the_linear_model_is_least_squares(rng):
    features, codes = rng.normal(size=(50, 4)), rng.integers(0, 2, 50)
    weight = rng.uniform(0.5, 2.0, 50)
    sums = ProductSums.of(features, codes, 1, weight, np.zeros(50, dtype=bool))
    coefficients, intercepts, _ = solve(sums, [0.01])
    from sklearn.linear_model import Ridge

    ridge = Ridge(alpha=0.01 * weight.sum()).fit(features, 2.0 * codes - 1, weight)
    np.testing.assert_allclose(coefficients[0], ridge.coef_, rtol=1e-8)
    assert intercepts[0] == pytest.approx(ridge.intercept_)
