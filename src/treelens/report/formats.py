"""Values as JSON holds them, and numbers as the page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from treelens.json_values import plain

_MINUS = "\N{MINUS SIGN}"
_MOST_DECIMALS = 6
_LARGEST_PLAIN = 1e9


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
