"""Drawings as lists of marks, written as SVG or PNG; colours for signed numbers.

The SVG is written compactly, since a report has hundreds of drawings, and all text is escaped. The
PNG is drawn by matplotlib's Figure object: no display, no global state.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

# Blue and vermilion of the palette of Okabe and Ito, over a neutral middle.
AGAINST = (0, 114, 178)
NEUTRAL = (246, 246, 246)
FOR = (213, 94, 0)
HIGHLIGHT = "#009e73"
INK = "#222"
LEGEND_HEIGHT = 34
_LEGEND_STEPS = 11
_LONGEST_TEXT = 16
_PIXELS_PER_INCH = 100


@dataclass(frozen=True)
class Lines:
    """Straight lines of one style; ``segments`` has shape (n, 2, 2)."""

    segments: np.ndarray
    width: float
    color: str | None = None  # None: the colour of the page's text
    dashed: bool = False

    def svg(self) -> str:
        ends = ((*map(_short, a), *map(_short, b)) for a, b in self.segments)
        path = "".join("M{} {}L{} {}".format(*end) for end in ends)
        return f'<path d="{path}"/>'

    def shared_svg(self) -> str:
        dashes = ' stroke-dasharray="2 2"' if self.dashed else ""
        color = "currentColor" if self.color is None else self.color
        return f'stroke="{color}" stroke-width="{_short(self.width)}"{dashes}'

    def png(self, axes: Any) -> None:
        from matplotlib.collections import LineCollection

        style = (0, (2, 2)) if self.dashed else "solid"
        axes.add_collection(LineCollection(
            list(self.segments), colors=self.color or INK, linewidths=_points(self.width),
            linestyles=[style],
        ))  # fmt: skip


@dataclass(frozen=True)
class Disc:
    """A filled circle, with or without a rim."""

    center: tuple[float, float]
    radius: float
    fill: str
    rim: str | None = None
    rim_width: float = 1.0

    def svg(self) -> str:
        x, y, r = map(_short, (*self.center, self.radius))
        return f'<circle cx="{x}" cy="{y}" r="{r}" fill="{self.fill}"/>'

    def shared_svg(self) -> str:
        rim = f'stroke="{self.rim}" stroke-width="{_short(self.rim_width)}"'
        return rim if self.rim else ""

    def png(self, axes: Any) -> None:
        from matplotlib.patches import Circle

        axes.add_patch(Circle(
            self.center, self.radius, facecolor=self.fill, edgecolor=self.rim or "none",
            linewidth=_points(self.rim_width), zorder=2,
        ))  # fmt: skip


@dataclass(frozen=True)
class Words:
    """A centred text, truncated where it is too long for a drawing."""

    center: tuple[float, float]
    size: float
    text: str
    color: str | None = None

    @property
    def shown(self) -> str:
        long = len(self.text) > _LONGEST_TEXT
        return self.text[: _LONGEST_TEXT - 1] + "…" if long else self.text

    def svg(self) -> str:
        x, y = self.center
        # Not every viewer knows dominant-baseline: the shift centres capitals everywhere.
        place = f'x="{_short(x)}" y="{_short(y + 0.35 * self.size)}"'
        return f"<text {place}>{escape(self.shown)}</text>"

    def shared_svg(self) -> str:
        color = "currentColor" if self.color is None else self.color
        return f'font-size="{_short(self.size)}" fill="{color}"'

    def png(self, axes: Any) -> None:
        axes.text(
            *self.center, self.shown, fontsize=_points(self.size), color=self.color or INK,
            ha="center", va="center_baseline", zorder=3, parse_math=False,
        )  # fmt: skip


Mark = Lines | Disc | Words


@dataclass(frozen=True)
class Scene:
    """Marks on a sheet, drawn one over the other."""

    width: float
    height: float
    title: str
    marks: tuple[Mark, ...]

    def to_svg(self) -> str:
        """The text of an ``<svg>`` element; lines and letters have the text colour of the page."""
        width, height = _short(self.width), _short(self.height)
        groups = groupby(self.marks, key=lambda mark: mark.shared_svg())  # a style is written once
        drawn = ((style, "".join(mark.svg() for mark in marks)) for style, marks in groups)
        body = "".join(f"<g {style}>{inside}</g>" if style else inside for style, inside in drawn)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" '
            f'text-anchor="middle" fill="none"><title>{escape(self.title)}</title>'
            f"{body}</svg>"
        )

    def to_png(self) -> bytes:
        """The bytes of a PNG file on white ground."""
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError(
                "PNG drawings need matplotlib: pip install 'treelens[draw]', or draw SVG."
            ) from error
        size = (self.width / _PIXELS_PER_INCH, self.height / _PIXELS_PER_INCH)
        figure = Figure(figsize=size, dpi=2 * _PIXELS_PER_INCH)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        for mark in self.marks:
            mark.png(axes)
        buffer = io.BytesIO()
        FigureCanvasAgg(figure).print_png(buffer)
        return buffer.getvalue()


def legend_marks(width: float, top: float, limit: float, ends: tuple[str, str]) -> list[Mark]:
    """A bar of colours from against to for, with numbers below and words at its two ends."""
    left, step, middle = 0.28 * width, 0.44 * width / _LEGEND_STEPS, top + 10.0
    marks: list[Mark] = []
    for k in range(_LEGEND_STEPS):
        color = to_hex(diverging_rgb(2 * k / (_LEGEND_STEPS - 1) - 1, 1.0))
        start = left + k * step
        marks.append(Lines(np.array([[(start, middle), (start + step + 0.3, middle)]]), 9, color))
    for place, value in ((left, -limit), (0.5 * width, 0.0), (left + 0.44 * width, limit)):
        marks.append(Words((place, top + 24), 9, f"{value:+.2g}" if value else "0"))
    for place, words in zip((0.14, 0.86), ends, strict=True):
        marks.append(Words((place * width, middle), 10, words))
    return marks


def _short(value: float) -> str:
    """A number with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def _points(pixels: float) -> float:
    """matplotlib measures lines and letters in points, 72 to the inch."""
    return pixels * 72 / _PIXELS_PER_INCH


# --- colours ----------------------------------------------------------------------------------


def diverging_rgb(value: float, limit: float) -> tuple[float, float, float]:
    """Red, green and blue, each 0 to 1, of a contribution; ``limit`` gets the full colour."""
    share = 0.0 if limit == 0 else float(np.clip(value / limit, -1.0, 1.0))
    end = FOR if share > 0 else AGAINST
    red, green, blue = ((n + abs(share) * (e - n)) / 255 for n, e in zip(NEUTRAL, end, strict=True))
    return red, green, blue


def to_hex(rgb: tuple[float, float, float]) -> str:
    """``#rrggbb`` of a colour."""
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in rgb)


def ink_on(rgb: tuple[float, float, float]) -> str:
    """A colour for text that can be read on ``rgb``."""
    luminance = 0.2126 * rgb[0] ** 2.2 + 0.7152 * rgb[1] ** 2.2 + 0.0722 * rgb[2] ** 2.2
    return INK if luminance > 0.25 else "#fff"
