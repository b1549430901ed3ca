"""Where the marks of a chart lie: on the sheet, in the right order, at round numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelens.report.charts import Spot, bar_chart, line_chart, scatter_chart, ticks

ends = st.floats(-1e6, 1e6)


@given(ends, st.floats(1e-3, 1e6))
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
        ((0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ((-0.3, 0.3), ["-0.2", "0", "0.2"]),
        ((3.0, 17.0), ["5", "10", "15"]),
        ((0.0, 12_000.0), ["0", "2500", "5000", "7500", "10000"]),
    ],
)
def test_texts_of_ticks(values, texts) -> None:
    assert [text for _, text in ticks(values)] == texts


def test_an_empty_range_has_a_tick_and_no_division_by_zero() -> None:
    assert [text for _, text in ticks((2.0, 2.0))] == ["2"]
    assert line_chart([([2.0], [2.0])], (2.0, 2.0), (2.0, 2.0)).lines == ["M58.0 262.0"]


def test_up_is_up_and_right_is_right() -> None:
    chart = line_chart([([0.0, 2.0], [5.0, 10.0])], (0.0, 4.0), (0.0, 10.0))
    left, top, right, bottom = chart.box
    assert chart.lines == [f"M{left} {(top + bottom) / 2}L{(left + right) / 2} {top}"]
    x = [place for place, _ in chart.x_ticks]
    y = [place for place, _ in chart.y_ticks]
    assert (x[0], x[-1]) == (left, right)
    assert (y[0], y[-1]) == (bottom, top)


def test_lines_need_as_many_heights_as_places() -> None:
    with pytest.raises(ValueError, match="zip"):
        line_chart([([0.0, 1.0], [0.0])], (0.0, 1.0), (0.0, 1.0))


def test_bars_stand_on_the_ground_and_empty_ones_are_left_out() -> None:
    chart = bar_chart([0.0, 0.5, 1.0, 1.5], [1, 0, 100])
    first, last = chart.bars
    assert first[4] == "0 to 0.5: 1"
    assert last[4] == "1 to 1.5: 100"
    for _, top, width, height, _ in chart.bars:
        assert top + height == pytest.approx(chart.box[3], abs=0.1)
        assert width > 0
    # Heights are logarithms of one more than the counts: log 101 is to log 2 as these heights.
    assert last[3] / first[3] == pytest.approx(np.log(101) / np.log(2), rel=0.01)
    assert [text for _, text in chart.y_ticks] == ["1", "10", "100"]


def test_neighbouring_bars_are_a_pixel_apart() -> None:
    first, second = bar_chart([0.0, 0.5, 1.0], [1, 2]).bars
    assert first[0] + first[2] == pytest.approx(second[0] - 1.0, abs=0.11)


def test_a_histogram_of_nothing() -> None:
    chart = bar_chart([0.0, 1.0], [0])
    assert chart.bars == []
    assert [text for _, text in chart.y_ticks] == ["1"]


def test_spans_are_cut_where_the_range_ends_and_equals_lie_on_the_diagonal() -> None:
    spots = [Spot(1.0, 1.0, -5.0, 5.0, "a", "wrong"), Spot(0.5, 0.0, 0.0, 0.25, "b")]
    chart = scatter_chart(spots, (0.0, 1.0), radius=4.0)
    left, top, right, bottom = chart.box
    assert chart.dots[0] == (right, top, top, bottom, "wrong", "a")
    x, y, highest, lowest, kind, text = chart.dots[1]
    assert (x, y) == ((left + right) / 2, bottom)
    assert (highest, lowest) == (bottom - (bottom - top) / 4, bottom)
    assert (kind, text, chart.radius) == ("", "b", 4.0)
    assert chart.lines == [f"M{left} {bottom}L{right} {top}"]
