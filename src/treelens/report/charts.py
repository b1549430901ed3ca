"""The charts of a report: pixel coordinates that the templates draw as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from treelens.report.formats import Units

Range = tuple[float, float]
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 10.0, 38.0
_SQUARE = (360.0, 340.0)
_PARITY = (540.0, 500.0)


class Chart:
    """Lines, and dots with vertical intervals, on two axes of the same range; in pixels."""

    def __init__(
        self, values: Range = (0.0, 1.0), size: Range = _SQUARE, radius: float = 4.0
    ) -> None:
        self.size, self.radius, self._range = size, radius, values
        # Left, top, right and bottom of the plotting area.
        self.box = _LEFT, _TOP, size[0] - _RIGHT, size[1] - _BOTTOM
        self.x_ticks = [(self.x(value), text) for value, text in ticks(values)]
        self.y_ticks = [(self.y(value), text) for value, text in ticks(values)]
        self.lines: list[str] = []  # path data
        # x, y, top and bottom of the interval, kind, text
        self.dots: list[tuple[float, float, float, float, str, str]] = []

    def x(self, value: float) -> float:
        return round(self.box[0] + (self.box[2] - self.box[0]) * self._share(value), 1)

    def y(self, value: float) -> float:
        return round(self.box[3] - (self.box[3] - self.box[1]) * self._share(value), 1)

    def _share(self, value: float) -> float:
        low, high = self._range
        return (value - low) / max(high - low, 1e-12)

    def add_line(self, xs: Iterable[float], ys: Iterable[float]) -> None:
        points = (f"{self.x(x)} {self.y(y)}" for x, y in zip(xs, ys, strict=True))
        self.lines.append("M" + "L".join(points))

    def add_dot(self, x: float, y: float, interval: Range, text: str, kind: str = "") -> None:
        """Add a dot; its interval is cut where the range ends."""
        low, high = max(interval[0], self._range[0]), min(interval[1], self._range[1])
        self.dots.append((self.x(x), self.y(y), self.y(high), self.y(low), kind, text))


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
        calibration = Chart()
        for x, y in zip(*(scores["calibration"][k] for k in ("nominal", "observed")), strict=True):
            calibration.add_dot(x, y, (y, y), f"{x:.0%} intervals contain {y:.1%}")
        return {"parity": _parity(scores["points"], units, noun), "calibration": calibration}
    roc, reliability = Chart(radius=2.5), Chart()
    for curve in scores["roc"]:
        roc.add_line(curve["false_positive_rate"], curve["true_positive_rate"])
    for part in scores["reliability"] or []:
        text = (
            f"{part['n']} {noun}s with a probability of {part['low']:.0%} to {part['high']:.0%}: "
            f"{part['observed']:.0%} observed"
        )
        reliability.add_dot(part["predicted"], part["observed"], part["observed_interval"], text)
    return {
        "roc": roc if roc.lines else None,
        "reliability": None if scores["reliability"] is None else reliability,
    }


def _parity(points: Mapping[str, Any], units: Units, noun: str) -> Chart:
    """Return predicted against measured values with their 90 % intervals."""
    ends = [*points["measured"], *points["predicted"]]
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low) or 1.0
    chart = Chart((low - room, high + room), _PARITY, radius=2.5)
    columns = (points[name] for name in ("index", "measured", "predicted", "half_width"))
    for index, measured, predicted, half in zip(*columns, strict=True):
        text = f"{noun} {index}: measured {units(measured)}, predicted {units(predicted)}"
        kind = "" if abs(predicted - measured) <= half else "outside"
        interval = (predicted - half, predicted + half)
        chart.add_dot(measured, predicted, interval, f"{text} ± {units(half)}", kind)
    return chart
