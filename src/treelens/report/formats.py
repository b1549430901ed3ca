"""Values as JSON holds them, numbers as the page shows them, and coordinates of its charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from treelens.json_values import plain

_MINUS = "\N{MINUS SIGN}"
_MOST_DECIMALS = 6
_LARGEST_PLAIN = 1e9
Range = tuple[float, float]
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 10.0, 38.0
_SQUARE = (360.0, 340.0)
_PARITY = (540.0, 500.0)


def plain_summary(value: Any) -> Any:
    """Return numbers, texts, lists and dictionaries with text keys; NaN and infinity become None.

    Lone surrogates, which cannot be encoded as UTF-8, become their visible code; values that JSON
    has no type for, such as a class that is a date, become their text.
    """
    return plain(value, text=_encodable, other=str)


def _encodable(value: str) -> str:
    if value.isascii():
        return value
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction as per cent."""
    return "–" if value is None else f"{100 * value:.{digits}f}\N{NARROW NO-BREAK SPACE}%"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with few significant digits and separated thousands."""
    if value is None:
        return "–"
    if float(value).is_integer() and abs(value) < 1e15:
        text = f"{int(value):,}"
    else:
        text = f"{value:,.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"
    return text.replace("-", _MINUS)


def counted(n: int, noun: str) -> str:
    """Return a number of things: "1 molecule", "2,000 molecules"."""
    return f"{number(n)} {noun}" if n == 1 else f"{number(n)} {noun}s"


@dataclass(frozen=True)
class Units:
    """Writes numbers in the units of the target with a fixed number of decimals.

    Beyond six decimals, numbers are written with powers of ten.
    """

    decimals: int = 2

    @classmethod
    def of(cls, spread: Mapping[str, float] | None) -> Units:
        """Three digits of the standard deviation of the training values, or two decimals."""
        if spread is None or not spread["std"] > 0:
            return cls()
        return cls(2 - int(np.floor(np.log10(spread["std"]))))

    def __call__(self, value: float | None, more: int = 0) -> str:
        """Return the text of a number, with ``more`` decimals than usual."""
        if value is None:
            return "–"
        plain = self.decimals <= _MOST_DECIMALS and abs(value) < _LARGEST_PLAIN
        text = f"{value:,.{max(self.decimals + more, 0)}f}" if plain else f"{value:.{3 + more}g}"
        if not float(text.replace(",", "")):
            text = text.lstrip("-")
        return text.replace("-", _MINUS)

    def signed(self, value: float | None, more: int = 0) -> str:
        """Return the text of a number with its sign."""
        text = self(value, more)
        return text if value is None or text.startswith(_MINUS) else "+" + text

    def rest(self, whole: float, *parts: float) -> str:
        """Return the whole without some parts, all as they are written, so that sums come out."""
        decimals = max(self.decimals, 0)
        return self.signed(round(whole, decimals) - sum(round(x, decimals) for x in parts))


# --- charts -----------------------------------------------------------------------------------


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
