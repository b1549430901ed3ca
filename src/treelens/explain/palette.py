"""Colours for signed numbers: blue against, orange for, told apart by every kind of eye."""

from __future__ import annotations

import numpy as np

# Blue and vermilion of the palette of Okabe and Ito, over a neutral middle.
AGAINST = (0, 114, 178)
NEUTRAL = (246, 246, 246)
FOR = (213, 94, 0)
HIGHLIGHT = "#009e73"
INK = "#222"


def color_limit(*contributions: np.ndarray | None) -> float:
    """The absolute value that gets the full colour: the largest that occurs."""
    sizes = [float(np.abs(x).max(initial=0.0)) for x in contributions if x is not None]
    return max(sizes, default=0.0)


def diverging_rgb(value: float, limit: float) -> tuple[float, float, float]:
    """Red, green and blue, each 0 to 1, of a contribution; ``limit`` gets the full colour.

    Examples
    --------
    >>> diverging_rgb(0.0, 1.0) == tuple(c / 255 for c in NEUTRAL)
    True
    """
    share = 0.0 if limit == 0 else float(np.clip(value / limit, -1.0, 1.0))
    end = FOR if share > 0 else AGAINST
    red, green, blue = ((n + abs(share) * (e - n)) / 255 for n, e in zip(NEUTRAL, end, strict=True))
    return red, green, blue


def to_hex(rgb: tuple[float, float, float]) -> str:
    """``#rrggbb`` of a colour.

    Examples
    --------
    >>> to_hex((1.0, 0.5, 0.0))
    '#ff8000'
    """
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in rgb)


def ink_on(rgb: tuple[float, float, float]) -> str:
    """A colour for text that can be read on ``rgb``."""
    luminance = 0.2126 * rgb[0] ** 2.2 + 0.7152 * rgb[1] ** 2.2 + 0.0722 * rgb[2] ** 2.2
    return INK if luminance > 0.25 else "#fff"
