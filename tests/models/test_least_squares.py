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


def test_sums_of_parts_are_those_of_the_whole(rng):
    features, codes = rng.normal(size=(20, 3)), rng.integers(0, 3, 20)
    weight, held_out = rng.uniform(0.5, 2.0, 20), rng.random(20) < 0.3
    given = features, codes, weight, held_out

    def sums(rows: slice) -> ProductSums:
        x, y, w, h = (part[rows] for part in given)
        return ProductSums.of(x, y, 3, w, h)

    parts = sums(slice(0, 7)).plus(sums(slice(7, 20))).plus(ProductSums.zeros(3, 3))
    for ours, whole in zip(parts, sums(slice(None)), strict=True):
        np.testing.assert_allclose(ours, whole, atol=1e-12)
    assert parts.squares.tolist() == pytest.approx(
        [weight[~held_out].sum(), weight[held_out].sum()]
    )


def test_the_penalty_is_the_one_that_errs_least_on_what_was_held_out(rng):
    """Noise alone asks for the largest, a clear line for the smallest."""
    x = rng.normal(size=(60, 5))
    held_out = np.arange(60) % 3 == 0
    for codes, expected in (
        ((x[:, 0] > 0).astype(int), 1e-3),
        (rng.integers(0, 2, 60), 1e3),
    ):
        sums = ProductSums.of(x, codes, 1, np.ones(60), held_out)
        assert solve(sums, [1e-3, 1e3])[2] == expected


def test_without_anything_held_out_the_middle_one_is_taken(rng):
    sums = ProductSums.of(
        rng.normal(size=(9, 2)), np.arange(9) % 2, 1, np.ones(9), np.zeros(9, dtype=bool)
    )
    assert solve(sums, [0.1, 1.0, 10.0])[2] == 1.0


def test_several_classes_are_each_against_the_rest(rng):
    x, codes = rng.normal(size=(30, 4)), np.arange(30) % 3
    none = np.zeros(30, dtype=bool)
    together = solve(ProductSums.of(x, codes, 3, np.ones(30), none), [0.1])
    for output in range(3):
        alone = solve(ProductSums.of(x, (codes == output).astype(int), 1, np.ones(30), none), [0.1])
        np.testing.assert_allclose(together[0][output], alone[0][0], rtol=1e-10)
        assert together[1][output] == pytest.approx(alone[1][0])
