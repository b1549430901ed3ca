"""Values of a summary as JSON, numbers of the page, and coordinates of its charts."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelens.report.render import Chart, Units, number, percent, plain_summary, ticks


def test_a_summary_can_be_encoded():
    found = plain_summary({"a\ud800": ["ü\udc80", "ü"], "y": np.array([1.0, np.inf])})
    assert found == {"a\\ud800": ["ü\\udc80", "ü"], "y": [1.0, None]}
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8")
    classes = [datetime.date(2020, 2, 29), ("a", 1)]
    assert plain_summary({"classes": classes}) == {"classes": ["2020-02-29", ["a", 1]]}


def test_numbers_and_per_cent():
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


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_even_and_within_the_range(low, span):
    places = [place for place, _ in ticks((low, low + span))]
    slack = 1e-6 * max(span, abs(low) * 1e-3)
    assert all(low - slack <= place <= low + span + slack for place in places)
    assert 2 <= len(places) <= 6
    steps = np.diff(places)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((-0.3, 0.3), ["-0.2", "0", "0.2"]),
        ((3.0, 17.0), ["5", "10", "15"]),
        ((0.0, 12_000.0), ["0", "2500", "5000", "7500", "10000"]),
        ((2.0, 2.0), ["2"]),
    ],
)
def test_texts_of_ticks(values, texts):
    assert [text for _, text in ticks(values)] == texts
    chart = Chart((2.0, 2.0))
    chart.add_line([2.0], [2.0])  # no division by zero


def test_axes_point_right_and_up():
    chart = Chart((0.0, 10.0))
    chart.add_line([0.0, 5.0], [5.0, 10.0])
    left, top, right, bottom = chart.box
    assert chart.lines == [f"M{left} {(top + bottom) / 2}L{(left + right) / 2} {top}"]
    x = [place for place, _ in chart.x_ticks]
    y = [place for place, _ in chart.y_ticks]
    assert (x[0], x[-1]) == (left, right)
    assert (y[0], y[-1]) == (bottom, top)


def test_intervals_are_cut_where_the_range_ends():
    chart = Chart()
    chart.add_dot(1.0, 1.0, (-5.0, 5.0), "a", "wrong")
    chart.add_dot(0.5, 0.0, (0.0, 0.25), "b")
    left, top, right, bottom = chart.box
    middle, quarter = (left + right) / 2, bottom - (bottom - top) / 4
    assert chart.dots[0] == (right, top, top, bottom, "wrong", "a")
    assert chart.dots[1] == (middle, bottom, quarter, bottom, "", "b")
