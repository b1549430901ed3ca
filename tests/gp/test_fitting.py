"""Targets of a Gaussian process: brought to one scale, with the way back; classes as numbers."""

import numpy as np
import pytest

from treelens.gp.posterior import Targets, class_columns


def test_numbers_come_to_mean_zero_and_unit_size_and_back(rng):
    raw, weights = rng.normal(5.0, 3.0, size=(40, 1)), rng.uniform(0.5, 2.0, 40)
    targets = Targets.standardized(raw, weights, None)
    assert np.average(targets.values[:, 0], weights=weights) == pytest.approx(0.0, abs=1e-12)
    assert np.average(targets.values[:, 0] ** 2, weights=weights) == pytest.approx(1.0)
    np.testing.assert_allclose(targets.offset + targets.scale * targets.values, raw)


def test_classes_keep_their_scale():
    targets = Targets.standardized(np.array([[1.0], [1.0], [-1.0]]), np.ones(3), 1.0)
    assert targets.scale == 1.0
    np.testing.assert_allclose(targets.values[:, 0], [2 / 3, 2 / 3, -4 / 3])


@pytest.mark.parametrize("value", [0.0, 7.5, 1e12])
def test_constant_targets_have_no_spread_that_rounding_could_make(value):
    raw = np.full((3, 1), value) * (1 + np.array([[0.0], [1e-16], [-1e-16]]))
    targets = Targets.standardized(raw, np.array([0.1, 0.2, 0.7]), None)
    assert targets.scale == 1.0
    assert not targets.values.any()


def test_a_selection_keeps_the_way_back():
    targets = Targets.standardized(np.arange(6.0)[:, None], np.arange(1.0, 7.0), None)
    some = targets.select(np.array([4, 1]))
    np.testing.assert_allclose(some.offset + some.scale * some.values[:, 0], [4.0, 1.0])
    assert some.weights.tolist() == [5.0, 2.0]


def test_others_come_to_the_scale_of_these():
    targets = Targets.standardized(np.arange(6.0)[:, None], np.ones(6), None)
    others = targets.alike(np.array([[2.5], [100.0]]), np.array([1.0, 3.0]))
    assert others.values[0, 0] == 0.0
    np.testing.assert_allclose(others.offset + others.scale * others.values[:, 0], [2.5, 100.0])
    assert others.weights.tolist() == [1.0, 3.0]


def test_two_classes_are_plus_and_minus_one():
    assert class_columns(np.array([0, 1, 0]), 2).tolist() == [[-1.0], [1.0], [-1.0]]


@pytest.mark.parametrize("n_classes", [3, 5])
def test_several_classes_are_corners_of_a_simplex(n_classes):
    """Columns of a graph sum to zero, and any two classes are equally far apart."""
    columns = class_columns(np.arange(n_classes), n_classes)
    np.testing.assert_allclose(columns.sum(axis=1), 0.0, atol=1e-12)
    distances = np.linalg.norm(columns[:, None] - columns, axis=2)
    apart = distances[~np.eye(n_classes, dtype=bool)]
    np.testing.assert_allclose(apart, apart[0])
    assert (columns.argmax(axis=1) == np.arange(n_classes)).all()
