"""Coordinates of charts: on the sheet, in the right order, ticks at round numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelens.report.charts import Chart, ticks


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_even_and_within_the_range(low: float, span: float) -> None:
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
def test_texts_of_ticks(values, texts) -> None:
    assert [text for _, text in ticks(values)] == texts
    chart = Chart((2.0, 2.0))
    chart.add_line([2.0], [2.0])  # no division by zero


def test_axes_point_right_and_up() -> None:
    chart = Chart((0.0, 10.0))
    chart.add_line([0.0, 5.0], [5.0, 10.0])
    left, top, right, bottom = chart.box
    assert chart.lines == [f"M{left} {(top + bottom) / 2}L{(left + right) / 2} {top}"]
    x = [place for place, _ in chart.x_ticks]
    y = [place for place, _ in chart.y_ticks]
    assert (x[0], x[-1]) == (left, right)
    assert (y[0], y[-1]) == (bottom, top)


def test_intervals_are_cut_where_the_range_ends() -> None:
    chart = Chart()
    chart.add_dot(1.0, 1.0, (-5.0, 5.0), "a", "wrong")
    chart.add_dot(0.5, 0.0, (0.0, 0.25), "b")
    left, top, right, bottom = chart.box
    middle, quarter = (left + right) / 2, bottom - (bottom - top) / 4
    assert chart.dots[0] == (right, top, top, bottom, "wrong", "a")
    assert chart.dots[1] == (middle, bottom, quarter, bottom, "", "b")
