"""Values of a summary as JSON, and numbers of the page."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pytest

from treelens.report.formats import Units, number, percent, plain_summary


def test_a_summary_can_be_encoded() -> None:
    found = plain_summary({"a\ud800": ["ü\udc80", "ü"], "y": np.array([1.0, np.inf])})
    assert found == {"a\\ud800": ["ü\\udc80", "ü"], "y": [1.0, None]}
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8")
    classes = [datetime.date(2020, 2, 29), ("a", 1)]
    assert plain_summary({"classes": classes}) == {"classes": ["2020-02-29", ["a", 1]]}


def test_numbers_and_per_cent() -> None:
    space = "\N{NARROW NO-BREAK SPACE}"
    assert percent(0.8934) == f"89.3{space}%"
    assert percent(1.0, digits=0) == f"100{space}%"
    assert percent(None) == number(None) == "–"
    assert (number(1234567), number(0.012345), number(-3)) == ("1,234,567", "0.0123", "−3")


@pytest.mark.parametrize(
    ("std", "value", "text"),
    [
        (2.0, -3.14159, "−3.14"), (0.02, 0.5, "0.5000"), (300.0, 12345.6, "12,346"),
        (1e-9, 2.5e-9, "2.5e−09"), (0.0, 1.0, "1.00"), (2.0, -0.001, "0.00"),
        (9.99, 1.0, "1.00"), (10.0, 1.0, "1.0"), (1000.0, 1e9, "1e+09"),
    ],
)  # fmt: skip
def test_decimals_follow_the_spread_of_the_values(std, value, text):
    assert Units.of({"std": std})(value) == text


def test_signs():
    units = Units(1)
    assert (units.signed(2.04), units.signed(-2.06), units.signed(2.04, more=1)) == (
        "+2.0", "−2.1", "+2.04",
    )  # fmt: skip
    assert units.signed(-0.01) == "+0.0"  # no minus before a zero
    assert units(None) == units.signed(None) == "–"
    assert Units.of(None) == Units.of({"std": float("nan")}) == Units(2)
