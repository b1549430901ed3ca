"""Colours between against and for, and ink that can be read on them."""

from __future__ import annotations

import numpy as np

from treelens.explain.palette import diverging_rgb, ink_on


def test_letters_can_be_read_on_every_colour():
    for share in np.linspace(-1, 1, 21):
        fill = diverging_rgb(share, 1.0)
        light, dark = sorted(map(_luminance, (fill, _rgb(ink_on(fill)))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 3.4


def _rgb(short_hex: str) -> tuple[float, ...]:
    return tuple(int(digit, 16) / 15 for digit in short_hex[1:])


def _luminance(rgb: tuple[float, ...]) -> float:
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return float(np.dot([0.2126, 0.7152, 0.0722], channels))
