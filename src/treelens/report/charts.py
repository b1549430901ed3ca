"""The charts of a report: pixel coordinates that the templates draw as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from treelens.report.formats import Units

Range = tuple[float, float]
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 10.0, 38.0
_SQUARE = (360.0, 340.0)
_PARITY = (820.0, 760.0)


class Point(NamedTuple):
    """A point of a scatter chart with a vertical interval."""

    x: float
    y: float
    low: float
    high: float
    text: str
    kind: str = ""


@dataclass
class Chart:
    """A chart in pixels."""

    size: tuple[float, float]
    x_range: Range
    y_range: Range
    radius: float = 2.5  # of the dots
    lines: list[str] = field(default_factory=list)  # path data
    # x, y, top and bottom of the interval, kind, text
    dots: list[tuple[float, float, float, float, str, str]] = field(default_factory=list)

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the plotting area."""
        return _LEFT, _TOP, self.size[0] - _RIGHT, self.size[1] - _BOTTOM

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        return [(self.x(value), text) for value, text in ticks(self.x_range)]

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        return [(self.y(value), text) for value, text in ticks(self.y_range)]

    def x(self, value: float) -> float:
        left, _, right, _ = self.box
        low, high = self.x_range
        return round(left + (right - left) * (value - low) / max(high - low, 1e-12), 1)

    def y(self, value: float) -> float:
        _, top, _, bottom = self.box
        low, high = self.y_range
        return round(bottom - (bottom - top) * (value - low) / max(high - low, 1e-12), 1)


def line_chart(
    lines: Sequence[tuple[Sequence[float], Sequence[float]]],
    x_range: Range = (0.0, 1.0),
    y_range: Range = (0.0, 1.0),
    size: tuple[float, float] = _SQUARE,
) -> Chart:
    """Return lines through points, each given by its x and its y values."""
    chart = Chart(size, x_range, y_range)
    for xs, ys in lines:
        points = (f"{chart.x(x)} {chart.y(y)}" for x, y in zip(xs, ys, strict=True))
        chart.lines.append("M" + "L".join(points))
    return chart


def scatter_chart(
    points: Sequence[Point],
    values: Range = (0.0, 1.0),
    size: tuple[float, float] = _SQUARE,
    radius: float = 4.0,
) -> Chart:
    """Return points on two axes of the same range; intervals are cut where the range ends."""
    chart = Chart(size, values, values, radius)
    for point in points:
        top, bottom = chart.y(min(point.high, values[1])), chart.y(max(point.low, values[0]))
        dot = (chart.x(point.x), chart.y(point.y), top, bottom, point.kind, point.text)
        chart.dots.append(dot)
    return chart


def ticks(values: Range, most: int = 5) -> list[tuple[float, str]]:
    """Return round numbers within a range, with their texts."""
    low, high = values
    span = max(high - low, 1e-12)
    power = 10.0 ** np.floor(np.log10(span / most))
    step = next(f * power for f in (1, 2, 2.5, 5, 10, 20) if span / (f * power) <= most)
    first = np.ceil(low / step - 1e-9)
    count = int(np.floor(high / step + 1e-9) - first) + 1
    places = [float((first + k) * step) for k in range(count)]
    return [(place, f"{place + 0.0:.6g}") for place in places]


def charts_of(scores: Mapping[str, Any] | None, units: Units, noun: str) -> dict[str, Any] | None:
    """Return the charts of the scores of one set of graphs."""
    if scores is None:
        return None
    if "points" in scores:
        return {
            "parity": _parity(scores["points"], units, noun),
            "calibration": _calibration(scores["calibration"]),
        }
    lines = [(c["false_positive_rate"], c["true_positive_rate"]) for c in scores["roc"]]
    return {
        "roc": line_chart(lines) if lines else None,
        "reliability": _reliability(scores["reliability"], noun),
    }


def _parity(points: Mapping[str, Any], units: Units, noun: str) -> Chart:
    """Return predicted against measured values with their 90 % intervals."""
    columns = (points[name] for name in ("index", "measured", "predicted", "half_width"))
    spots = [
        Point(
            measured, predicted, predicted - half, predicted + half,
            f"{noun} {index}: measured {units(measured)}, predicted {units(predicted)} "
            f"± {units(half)}",
            "" if abs(predicted - measured) <= half else "outside",
        )
        for index, measured, predicted, half in zip(*columns, strict=True)
    ]  # fmt: skip
    ends = [*points["measured"], *points["predicted"]]
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low) or 1.0
    return scatter_chart(spots, (low - room, high + room), _PARITY, radius=3.0)


def _calibration(found: Mapping[str, Any]) -> Chart:
    """Return observed against nominal coverage of intervals."""
    pairs = zip(found["nominal"], found["observed"], strict=True)
    texts = "{:.0%} intervals contain {:.1%}"
    return scatter_chart([Point(x, y, y, y, texts.format(x, y)) for x, y in pairs])


def _reliability(bins: list[dict[str, Any]] | None, noun: str) -> Chart | None:
    """Return observed frequencies against predicted probabilities."""
    if bins is None:
        return None
    points = [
        Point(
            part["predicted"],
            part["observed"],
            low,
            high,
            f"{part['n']} {noun}s with a probability of {part['low']:.0%} to {part['high']:.0%}: "
            f"{part['observed']:.0%} observed",
        )
        for part in bins
        for low, high in [part["observed_interval"]]
    ]
    return scatter_chart(points)
