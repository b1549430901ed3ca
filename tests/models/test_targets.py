"""Checks of targets and weights."""

import warnings

import numpy as np
import pytest

from treelens.models.targets import check_numbers, class_weights, first_no_number, warn_if_one_class


def test_numbers_of_any_kind_become_floats() -> None:
    found = check_numbers(["1", 2, np.float32(0.5)], 3)
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0, 0.5]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "^A regressor needs values"),
        (["a", "b"], "not numbers.*GraphClassifier"),
        ([[1.0], [2.0]], r"one-dimensional; got shape \(2, 1\)"),
        ([1.0], "There are 2 graphs but 1 values"),
        ([1.0, np.nan], "for 1 graphs, the first at position 1"),
        ([-np.inf, np.nan], "for 2 graphs, the first at position 0"),
        ([1e101, 0.0], "rescale them"),
        ([0.0, 1e-101], "rescale them"),
    ],
)
def test_what_are_no_numbers_to_learn(y, message) -> None:
    with pytest.raises(ValueError, match=message):
        check_numbers(y, 2)


@pytest.mark.parametrize("y", [["a", "b"], np.array(["a", None], object)])
def test_classes_instead_of_numbers(y) -> None:
    with pytest.raises(ValueError, match=r"not numbers.*GraphClassifier"):
        first_no_number(np.asarray(y))


@pytest.mark.parametrize(
    ("y", "first"),
    [(["1.5", "< 2"], 1), ([1.0, np.nan], 1), (["", " "], 0), ([None, None], 0), ([2, 3], None)],
)
def test_what_may_be_numbers_but_for_some(y, first) -> None:
    found = first_no_number(np.asarray(y))
    assert found == first if found is None else found[0] == first


def test_equal_numbers_are_no_reason_to_rescale() -> None:
    assert check_numbers([3.0, 3.0], 2).tolist() == [3.0, 3.0]


def test_one_predicted_class_warns() -> None:
    with pytest.warns(UserWarning, match="the class 'b' for every held-out"):
        warn_if_one_class(np.ones(4, dtype=int), np.array(["a", "b"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_one_class(np.array([0, 1]), np.array(["a", "b"]))


def test_class_weights():
    classes, codes = np.array(["no", "yes"]), np.array([0, 0, 0, 1])
    np.testing.assert_array_equal(class_weights(None, classes, codes), 1.0)
    np.testing.assert_allclose(
        class_weights("balanced", classes, codes), [2 / 3, 2 / 3, 2 / 3, 2.0]
    )
    np.testing.assert_array_equal(class_weights({"yes": 3}, classes, codes), [1, 1, 1, 3])
    with pytest.raises(ValueError, match="not in y: 'maybe'"):
        class_weights({"maybe": 1}, classes, codes)
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="finite numbers above 0"):
            class_weights({"yes": bad}, classes, codes)
