"""Classes that were given with graphs: numbered, or refused with the place of what is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from treelens.graphs.errors import GraphDataError
from treelens.graphs.targets import check_classes
from treelens.models.targets import check_numbers


@pytest.mark.parametrize(
    "y",
    [["b", "a", "b"], np.array([7, -1, 7]), (True, False, True), pd.Series([2.0, 1.0, 2.0])],
    ids=["texts", "integers", "booleans", "a series"],
)
def test_codes_are_positions_among_the_classes_in_order(y):
    classes, codes = check_classes(y, 3)
    assert codes.tolist() == [1, 0, 1]
    assert classes[codes].tolist() == list(y)
    assert (classes[:-1] < classes[1:]).all()


@pytest.mark.parametrize(
    "nothing", [None, np.nan, float("nan"), pd.NA, pd.NaT], ids=lambda x: type(x).__name__
)
def test_a_class_that_is_missing_is_named_by_its_place(nothing):
    with pytest.raises(GraphDataError, match=r"no class .* 2 graphs, the first at position 1"):
        check_classes(["a", nothing, "b", nothing], 4)


def test_nan_among_texts_is_no_class_called_nan():
    """An array of texts would make it one."""
    assert np.asarray(["a", np.nan]).tolist() == ["a", "nan"]
    with pytest.raises(GraphDataError, match="position 1"):
        check_classes(["a", np.nan], 2)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, r"needs classes: call fit\(graphs, y\)"),
        ([[0, 1]], "one-dimensional"),
        ([0, 1, 0], "for each of 2 graphs"),
        ([5, 5], r"one class only \(5\)"),
        ([0.25, 0.5], "GraphRegressor"),
    ],
    ids=["none", "table", "length", "one class", "numbers"],
)
def test_what_cannot_be_classes(y, message):
    with pytest.raises(ValueError, match=message):
        check_classes(y, 2)


@pytest.mark.parametrize(
    ("y", "words"),
    [({"a", "b"}, "is a set"), ({"a": 1, "b": 2}, "is a dict"),
     (np.array([1j, 2]), "complex"), ([1j, 2.0], "complex"),
     (np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"), "dates"),
     (pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])), "dates"),
     (np.ma.array([1.0, 2.0], mask=[0, 1]), "masked for 1 graphs"),
     ([1, "1"], "a number and a text")],
    ids=["set", "dict", "complex array", "complex list", "dates", "series", "masked", "1 and '1'"],
)  # fmt: skip
def test_kinds_that_would_be_converted_in_silence(y, words):
    with pytest.raises(GraphDataError, match=words):
        check_classes(y, 2)
    if words != "a number and a text":
        with pytest.raises(GraphDataError, match=words):
            check_numbers(y, 2)


def test_a_masked_array_without_a_mask_is_an_array():
    assert check_classes(np.ma.array([1, 2]), 2)[1].tolist() == [0, 1]


@pytest.mark.parametrize("names", [("active", "Active"), ("a", "a ")])
def test_classes_that_differ_in_capitals_or_blanks_are_pointed_out(names):
    with pytest.warns(UserWarning, match="differ in capitals or blanks"):
        check_classes([*names, "other"], 3)
