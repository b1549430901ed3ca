"""Drawings as lists of marks, written as SVG or PNG; colours for signed numbers.

The SVG is written compactly, since a report has hundreds of drawings, and all text is escaped. The
PNG is drawn by matplotlib's Figure object: no display, no global state.
"""

from __future__ import annotations

import io
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Blue and vermilion of the palette of Okabe and Ito, over a neutral middle.
AGAINST = (0, 114, 178)
NEUTRAL = (246, 246, 246)
FOR = (213, 94, 0)
HIGHLIGHT = "#009e73"
INK = "#222"
_RIM, _RIM_WIDTH = "#777", 0.8
_LONGEST_TEXT = 16
_PIXELS_PER_INCH = 100
PNG_SCALE = 2  # pixels of a PNG per unit of a scene, for sharp letters

Color = tuple[float, float, float]


class Lines(NamedTuple):
    """Straight lines of one style."""

    segments: np.ndarray  # (n, 2, 2)
    width: float
    color: str | None = None  # None: the colour of the page's text
    dashed: bool = False


class Disc(NamedTuple):
    """A filled circle, with or without a rim, and perhaps a text that the pointer shows."""

    center: tuple[float, float]
    radius: float
    fill: str
    rim: bool = False
    hint: str | None = None


class Words(NamedTuple):
    """A centred text, truncated where it is too long for a drawing."""

    center: tuple[float, float]
    size: float
    text: str
    color: str | None = None
    longest: int = _LONGEST_TEXT  # characters


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
    drawing: Any = None  # of RDKit, at the top: SVG text, or PNG bytes

    def to_svg(self) -> str:
        """The text of an ``<svg>`` element; lines and letters have the text colour of the page."""
        width, height = _short(self.width), _short(self.height)
        body = color = ""
        if self.drawing is not None:  # its bonds are black
            color = f' color="{INK}"'
            body = '<rect width="100%" height="100%" fill="#fff"/>'
            body += self.drawing[self.drawing.index("<svg") :].rstrip()
        for style, marks in groupby(map(_styled, self.marks), key=itemgetter(0)):
            inside = "".join(element for _, element in marks)  # a style is written once
            body += f"<g {style}>{inside}</g>" if style else inside
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" '
            f'text-anchor="middle" fill="none"{color}><title>{escape(self.title)}</title>'
            f"{body}</svg>"
        )

    def to_png(self) -> bytes:
        """The bytes of a PNG file on white ground."""
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
            from matplotlib.image import imread
        except ImportError as error:
            raise ImportError(
                "PNG drawings need matplotlib: pip install matplotlib, or draw SVG."
            ) from error
        size = (self.width / _PIXELS_PER_INCH, self.height / _PIXELS_PER_INCH)
        figure = Figure(figsize=size, dpi=PNG_SCALE * _PIXELS_PER_INCH)
        if self.drawing is not None:
            pixels = imread(io.BytesIO(self.drawing))
            figure.figimage(pixels, 0, round(PNG_SCALE * self.height) - len(pixels))
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


def _styled(mark: Mark) -> tuple[str, str]:
    """The attributes that neighbouring marks of one style share, and the element."""
    if isinstance(mark, Disc):
        (x, y), rim = map(_short, mark.center), f'stroke="{_RIM}" stroke-width="{_RIM_WIDTH}"'
        circle = f'<circle cx="{x}" cy="{y}" r="{_short(mark.radius)}" fill="{mark.fill}"'
        inside = "/>" if mark.hint is None else f"><title>{escape(mark.hint)}</title></circle>"
        return rim if mark.rim else "", circle + inside
    color = "currentColor" if mark.color is None else mark.color
    if isinstance(mark, Words):
        # Not every viewer knows dominant-baseline: the shift centres capitals everywhere.
        x, y = _short(mark.center[0]), _short(mark.center[1] + 0.35 * mark.size)
        text = escape(shortened(mark.text, mark.longest))
        style = f'font-size="{_short(mark.size)}" fill="{color}"'
        return style, f'<text x="{x}" y="{y}">{text}</text>'
    ends = ((*map(_short, a), *map(_short, b)) for a, b in mark.segments)
    path = "".join("M{} {}L{} {}".format(*end) for end in ends)
    dashes = ' stroke-dasharray="2 2"' if mark.dashed else ""
    style = f'stroke="{color}" stroke-width="{_short(mark.width)}"{dashes}'
    return style, f'<path d="{path}"/>'


def _paint(axes: Axes, mark: Mark) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    points = 72 / _PIXELS_PER_INCH  # the unit of lines and letters
    if isinstance(mark, Lines):
        style = (0, (2, 2)) if mark.dashed else "solid"
        axes.add_collection(
            LineCollection(
                list(mark.segments),
                colors=mark.color or INK,
                linewidths=points * mark.width,
                linestyles=[style],
            )
        )
    elif isinstance(mark, Disc):
        axes.add_patch(
            Circle(
                mark.center,
                mark.radius,
                facecolor=mark.fill,
                zorder=2,
                edgecolor=_RIM if mark.rim else "none",
                linewidth=points * _RIM_WIDTH,
            )
        )
    else:
        axes.text(
            *mark.center,
            shortened(mark.text, mark.longest),
            fontsize=points * mark.size,
            color=mark.color or INK,
            ha="center",
            va="center_baseline",
            zorder=3,
            parse_math=False,
        )


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
