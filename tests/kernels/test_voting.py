"""Several classes, one against one: votes and margins, counted one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

from treelens.kernels.voting import (
    class_pairs,
    class_values,
    margin_signs,
    mean_margins,
    n_classes_of,
)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7, 30, 200])
def test_pairs_are_in_order_and_tell_the_number_of_classes(n_classes):
    first, second = class_pairs(n_classes)
    assert list(zip(first, second, strict=True)) == list(combinations(range(n_classes), 2))
    assert n_classes_of(len(first)) == n_classes


@pytest.mark.parametrize("n_classes", [3, 5])
def test_margins_and_votes_are_those_counted_one_by_one(n_classes, rng):
    pairs = list(combinations(range(n_classes), 2))
    outputs = rng.normal(size=(20, len(pairs)))
    sums, votes = np.zeros((2, 20, n_classes))
    for graph, row in enumerate(outputs):
        for (first, second), value in zip(pairs, row, strict=True):
            sums[graph, first] -= value
            sums[graph, second] += value
            votes[graph, second if value > 0 else first] += 1
    np.testing.assert_allclose(mean_margins(outputs.T).T, sums / (n_classes - 1))
    values = class_values(outputs)
    np.testing.assert_array_equal(np.rint(values), votes)
    np.testing.assert_array_less(np.abs(values - votes), 1 / 3)
    assert set(margin_signs(n_classes).ravel()) == {-1.0, 0.0, 1.0}


def test_values_are_those_of_scikit_learn(rng):
    outputs = rng.normal(size=(30, 10))
    expected = _ovr_decision_function(outputs > 0, outputs, 5)
    np.testing.assert_allclose(class_values(outputs), expected)


def test_margins_decide_between_equal_votes():
    """Each class wins once: the one that won by most, and lost by least, is named."""
    outputs = np.array([[1.0, -2.0, 3.0]])  # 1 beats 0, 0 beats 2, 2 beats 1
    values = class_values(outputs)
    np.testing.assert_array_equal(np.rint(values), [[1, 1, 1]])
    np.testing.assert_allclose(mean_margins(outputs[0]), [0.5, -1.0, 0.5])
    outputs = np.array([[1.0, -5.0, 3.0]])
    assert class_values(outputs).argmax() == 0
