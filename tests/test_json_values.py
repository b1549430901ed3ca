"""Values as JSON has them: what a file gets is what was meant, or an error says why not."""

from __future__ import annotations

import datetime
import json
import math
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from treelens.json_values import plain

LONG = np.longdouble("0.5")  # numpy has nothing plainer for it


def exactly(value: Any) -> tuple[type, Any]:
    return type(value), value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.float16, np.array])
def test_what_is_not_finite_is_nothing(value: float, kind: Any) -> None:
    assert plain(kind(value)) is None
    assert plain({"a": [kind(value), (1.0,)]}) == {"a": [None, [1.0]]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float64(0.1), 0.1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.bool_(True), True),
        (np.str_("C"), "C"),
        (np.array(7), 7),
        (np.array(["a", None], dtype=object), ["a", None]),
        (np.array([[1.5, np.nan], [2.0, np.inf]]), [[1.5, None], [2.0, None]]),
        (np.zeros((0, 3)), []),
        (range(3), [0, 1, 2]),
        (True, True),
        (None, None),
        (-0.0, -0.0),
    ],
)
def test_values_and_their_kinds(value: Any, expected: Any) -> None:
    assert exactly(plain(value)) == exactly(expected)


def test_containers_within_containers_are_plain_all_the_way() -> None:
    value = {
        1: np.float64("nan"),
        "a": [np.int8(3), (np.bool_(True), None)],
        np.int64(2): MappingProxyType({(0, 1): {"deep": np.arange(2)}}),
    }
    found = plain(value)
    assert type(value["a"][0]) is np.int8  # what is given stays as it was
    assert found == {"1": None, "a": [3, [True, None]], "2": {"(0, 1)": {"deep": [0, 1]}}}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert type(found["a"][1]) is list


@pytest.mark.parametrize("value", [{1, 2}, Path("x"), Fraction(1, 3), 1j, b"C", object, LONG])
def test_what_json_has_nothing_for_is_an_error_or_a_text(value: Any) -> None:
    with pytest.raises(TypeError, match=f"{type(value).__name__}, cannot be written as JSON"):
        plain({"deep": [value]})
    assert plain({"deep": [value]}, other=str) == {"deep": [str(value)]}


def test_texts_and_keys_and_texts_of_others_go_through_the_same_hands() -> None:
    found = plain({"a": "b", 1: [Path("c")]}, text=str.upper, other=str)
    assert found == {"A": "B", "1": ["C"]}
    day = np.array([datetime.date(2020, 2, 29)], dtype="datetime64[D]")
    assert plain(day, other=str) == ["2020-02-29"]
