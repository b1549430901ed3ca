"""Where the lines, bars and ticks of a chart lie; the templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

Range = tuple[float, float]
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 10.0, 38.0


@dataclass(frozen=True)
class Chart:
    """A drawn chart in pixels.

    Attributes
    ----------
    width, height : float
    box : tuple of float
        Left, top, right and bottom of the plotting area.
    x_ticks, y_ticks : list of (place, text)
    lines : list of str
        Path data.
    bars : list of (left, top, width, height, text)
    dots : list of (x, y, top, bottom, kind, text)
        Points with the span that each may lie in.
    radius : float
        Of the dots.
    """

    width: float
    height: float
    box: tuple[float, float, float, float]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    lines: list[str] = field(default_factory=list)
    bars: list[tuple[float, float, float, float, str]] = field(default_factory=list)
    dots: list[tuple[float, float, float, float, str, str]] = field(default_factory=list)
    radius: float = 2.5


@dataclass(frozen=True)
class _Sheet:
    """The way from data to pixels."""

    width: float
    height: float
    x_range: Range
    y_range: Range

    @property
    def box(self) -> tuple[float, float, float, float]:
        return _LEFT, _TOP, self.width - _RIGHT, self.height - _BOTTOM

    def x(self, value: float) -> float:
        left, _, right, _ = self.box
        return left + (right - left) * _share(value, self.x_range)

    def y(self, value: float) -> float:
        _, top, _, bottom = self.box
        return bottom - (bottom - top) * _share(value, self.y_range)

    def chart(self, **marks: Any) -> Chart:
        x_ticks = [(round(self.x(v), 1), text) for v, text in ticks(self.x_range)]
        y_ticks = [(round(self.y(v), 1), text) for v, text in ticks(self.y_range)]
        return Chart(self.width, self.height, self.box, x_ticks, y_ticks, **marks)


def line_chart(
    lines: Sequence[tuple[Sequence[float], Sequence[float]]],
    x_range: Range,
    y_range: Range,
    size: tuple[float, float] = (360.0, 300.0),
) -> Chart:
    """Lines through points, each given as its x and its y values.

    Examples
    --------
    >>> line_chart([([0, 1], [0, 1])], (0, 1), (0, 1)).lines
    ['M58.0 262.0L350.0 10.0']
    """
    sheet = _Sheet(*size, x_range, y_range)
    paths = [
        "M" + "L".join(f"{sheet.x(x):.1f} {sheet.y(y):.1f}" for x, y in zip(xs, ys, strict=True))
        for xs, ys in lines
    ]
    return sheet.chart(lines=paths)


def bar_chart(
    edges: Sequence[float],
    counts: Sequence[int],
    size: tuple[float, float] = (360.0, 190.0),
) -> Chart:
    """A histogram, its heights on a logarithmic scale so that single ones are seen.

    A bar's text says what it counts.
    """
    heights = np.log10(1.0 + np.asarray(counts, dtype=float))
    sheet = _Sheet(*size, (edges[0], edges[-1]), (0.0, float(heights.max(initial=0.3))))
    bottom = sheet.box[3]
    bars = []
    for (low, high), count, height in zip(pairwise(edges), counts, heights, strict=True):
        if count:
            left, top = sheet.x(low), sheet.y(height)
            corners = (left, top, sheet.x(high) - left - 1.0, bottom - top)
            text = f"{low:.3g} to {high:.3g}: {count}"
            bars.append((*(round(float(c), 1) for c in corners), text))
    powers = [10**k for k in range(int(sheet.y_range[1]) + 1)]
    y_ticks = [(round(sheet.y(np.log10(1.0 + n)), 1), f"{n:,}") for n in powers]
    return replace(sheet.chart(bars=bars), y_ticks=y_ticks)


@dataclass(frozen=True)
class Spot:
    """A point of a scatter, with the span on the vertical axis that it may lie in."""

    x: float
    y: float
    low: float
    high: float
    text: str
    kind: str = ""


def scatter_chart(
    spots: Sequence[Spot],
    values: Range,
    size: tuple[float, float] = (380.0, 380.0),
    radius: float = 2.5,
) -> Chart:
    """Points whose two axes have the same range, and the diagonal where both are equal.

    Spans are cut where the range ends.

    Examples
    --------
    >>> chart = scatter_chart([Spot(0.5, 0.5, 0.0, 2.0, "half")], (0.0, 1.0))
    >>> chart.dots
    [(214.0, 176.0, 10.0, 342.0, '', 'half')]
    """
    sheet = _Sheet(*size, values, values)
    low, high = values
    dots = [
        (
            round(sheet.x(spot.x), 1),
            round(sheet.y(spot.y), 1),
            round(sheet.y(min(spot.high, high)), 1),
            round(sheet.y(max(spot.low, low)), 1),
            spot.kind,
            spot.text,
        )
        for spot in spots
    ]
    left, top, right, bottom = sheet.box
    return replace(sheet.chart(dots=dots, lines=[f"M{left} {bottom}L{right} {top}"]), radius=radius)


def ticks(values: Range, most: int = 5) -> list[tuple[float, str]]:
    """Round numbers within a range, with their texts.

    Examples
    --------
    >>> [text for _, text in ticks((0.0, 1.0))]
    ['0', '0.2', '0.4', '0.6', '0.8', '1']
    """
    low, high = values
    span = max(high - low, 1e-12)
    power = 10.0 ** np.floor(np.log10(span / most))
    step = next(f * power for f in (1, 2, 2.5, 5, 10, 20) if span / (f * power) <= most)
    first = np.ceil(low / step - 1e-9)
    count = int(np.floor(high / step + 1e-9) - first) + 1
    places = [float((first + k) * step) for k in range(count)]
    return [(place, f"{place + 0.0:.6g}") for place in places]


def _share(value: float, values: Range) -> float:
    low, high = values
    return (value - low) / max(high - low, 1e-12)
