"""Drawings as lists of marks, written as SVG or PNG; colours for signed numbers.

The SVG is written compactly, since a report has hundreds of drawings, and all text is escaped. The
PNG is drawn by matplotlib's Figure object: no display, no global state.
"""

from __future__ import annotations

import io
from itertools import groupby
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np

# Blue and vermilion of the palette of Okabe and Ito, over a neutral middle.
AGAINST = (0, 114, 178)
NEUTRAL = (246, 246, 246)
FOR = (213, 94, 0)
HIGHLIGHT = "#009e73"
INK = "#222"
LEGEND_HEIGHT = 34
_RIM, _RIM_WIDTH = "#777", 0.8
_LEGEND_STEPS = 11
_LONGEST_TEXT = 16
_PIXELS_PER_INCH = 100

Color = tuple[float, float, float]


class Lines(NamedTuple):
    """Straight lines of one style."""

    segments: np.ndarray  # (n, 2, 2)
    width: float
    color: str | None = None  # None: the colour of the page's text
    dashed: bool = False


class Disc(NamedTuple):
    """A filled circle, with or without a rim."""

    center: tuple[float, float]
    radius: float
    fill: str
    rim: bool = False


class Words(NamedTuple):
    """A centred text, truncated where it is too long for a drawing."""

    center: tuple[float, float]
    size: float
    text: str
    color: str | None = None

    @property
    def shown(self) -> str:
        return shortened(self.text, _LONGEST_TEXT)


Mark = Lines | Disc | Words


def shortened(text: str, longest: int) -> str:
    """A text, its end replaced by dots where it is too long."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


class Scene(NamedTuple):
    """Marks on a sheet, drawn one over the other."""

    width: float
    height: float
    title: str
    marks: list[Mark]

    def to_svg(self) -> str:
        """The text of an ``<svg>`` element; lines and letters have the text colour of the page."""
        width, height = _short(self.width), _short(self.height)
        body = ""
        for style, marks in groupby(self.marks, key=_style):  # a style is written once
            inside = "".join(map(_element, marks))
            body += f"<g {style}>{inside}</g>" if style else inside
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
                "PNG drawings need matplotlib: pip install matplotlib, or draw SVG."
            ) from error
        size = (self.width / _PIXELS_PER_INCH, self.height / _PIXELS_PER_INCH)
        figure = Figure(figsize=size, dpi=2 * _PIXELS_PER_INCH)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        for mark in self.marks:
            _paint(axes, mark)
        buffer = io.BytesIO()
        FigureCanvasAgg(figure).print_png(buffer)
        return buffer.getvalue()


def _short(value: float) -> str:
    """A number with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def _style(mark: Mark) -> str:
    """The attributes that neighbouring marks of one style share."""
    if isinstance(mark, Disc):
        return f'stroke="{_RIM}" stroke-width="{_short(_RIM_WIDTH)}"' if mark.rim else ""
    color = "currentColor" if mark.color is None else mark.color
    if isinstance(mark, Words):
        return f'font-size="{_short(mark.size)}" fill="{color}"'
    dashes = ' stroke-dasharray="2 2"' if mark.dashed else ""
    return f'stroke="{color}" stroke-width="{_short(mark.width)}"{dashes}'


def _element(mark: Mark) -> str:
    if isinstance(mark, Lines):
        ends = ((*map(_short, a), *map(_short, b)) for a, b in mark.segments)
        path = "".join("M{} {}L{} {}".format(*end) for end in ends)
        return f'<path d="{path}"/>'
    x, y = mark.center
    if isinstance(mark, Disc):
        place = f'cx="{_short(x)}" cy="{_short(y)}" r="{_short(mark.radius)}"'
        return f'<circle {place} fill="{mark.fill}"/>'
    # Not every viewer knows dominant-baseline: the shift centres capitals everywhere.
    place = f'x="{_short(x)}" y="{_short(y + 0.35 * mark.size)}"'
    return f"<text {place}>{escape(mark.shown)}</text>"


def _paint(axes: Any, mark: Mark) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    points = 72 / _PIXELS_PER_INCH  # the unit of lines and letters
    if isinstance(mark, Lines):
        style = (0, (2, 2)) if mark.dashed else "solid"
        axes.add_collection(LineCollection(
            list(mark.segments), colors=mark.color or INK, linewidths=points * mark.width,
            linestyles=[style],
        ))  # fmt: skip
    elif isinstance(mark, Disc):
        axes.add_patch(Circle(
            mark.center, mark.radius, facecolor=mark.fill, zorder=2,
            edgecolor=_RIM if mark.rim else "none", linewidth=points * _RIM_WIDTH,
        ))  # fmt: skip
    else:
        axes.text(
            *mark.center, mark.shown, fontsize=points * mark.size, color=mark.color or INK,
            ha="center", va="center_baseline", zorder=3, parse_math=False,
        )  # fmt: skip


# --- colours ----------------------------------------------------------------------------------


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


def diverging_rgb(value: float, limit: float) -> Color:
    """Red, green and blue, each 0 to 1, of a contribution; ``limit`` gets the full colour."""
    share = 0.0 if limit == 0 else float(np.clip(value / limit, -1.0, 1.0))
    end = FOR if share > 0 else AGAINST
    red, green, blue = ((n + abs(share) * (e - n)) / 255 for n, e in zip(NEUTRAL, end, strict=True))
    return red, green, blue


def to_hex(rgb: Color) -> str:
    """``#rrggbb`` of a colour."""
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in rgb)


def ink_on(rgb: Color) -> str:
    """A colour for text that can be read on ``rgb``."""
    luminance = 0.2126 * rgb[0] ** 2.2 + 0.7152 * rgb[1] ** 2.2 + 0.0722 * rgb[2] ** 2.2
    return INK if luminance > 0.25 else "#fff"
