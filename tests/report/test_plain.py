"""What a page's data may hold, and how its numbers are shown."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pytest

from treelens.report.plain import percent, plain_summary, short


def test_a_summary_can_be_written_as_a_file_of_text() -> None:
    found = plain_summary({"a\ud800": ["ü\udc80", "ü"], "y": np.array([1.0, np.inf])})
    assert found == {"a\\ud800": ["ü\\udc80", "ü"], "y": [1.0, None]}
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8")


def test_classes_of_any_kind_are_shown_as_their_texts() -> None:
    assert plain_summary({"classes": [datetime.date(2020, 2, 29), ("a", 1)]}) == {
        "classes": ["2020-02-29", ["a", 1]]
    }


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [(0.123456, 4, 0.1235), (123456.0, 3, 123000.0), (-1e-9 / 3, 2, -3.3e-10), (0.0, 4, 0.0)],
)
def test_short_numbers_keep_their_leading_digits(value, digits, expected) -> None:
    assert short(value, digits) == expected


def test_shares_as_per_cent() -> None:
    space = "\N{NARROW NO-BREAK SPACE}"
    assert percent(0.8934) == f"89.3{space}%"
    assert percent(1.0, digits=0) == f"100{space}%"
    assert percent(None) == "–"
