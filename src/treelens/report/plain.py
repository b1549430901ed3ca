"""Anything a summary may hold, as JSON can hold it, and numbers as a page shows them."""

from __future__ import annotations

from typing import Any

from treelens.json_values import plain


def plain_summary(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries with text keys; what is not finite becomes None.

    Lone surrogates, which no file of text can hold, become their visible code; what JSON has
    nothing for, such as a class that is a date, becomes its text.

    Examples
    --------
    >>> plain_summary({"share": float("nan"), "classes": (1, "a\\ud800")})
    {'share': None, 'classes': [1, 'a\\\\ud800']}
    """
    return plain(value, text=_text, other=str)


def _text(value: str) -> str:
    if value.isascii():
        return value
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def short(value: float, digits: int = 4) -> float:
    """A number with few significant digits, for files that hold thousands of them.

    Examples
    --------
    >>> short(0.123456)
    0.1235
    """
    return float(f"{value:.{digits}g}")


def percent(value: float | None, digits: int = 1) -> str:
    """A share as per cent.

    Examples
    --------
    >>> percent(0.8934).split(), percent(None)
    (['89.3', '%'], '–')
    """
    return "–" if value is None else f"{100 * value:.{digits}f}\N{NARROW NO-BREAK SPACE}%"
