"""Anything a summary may hold, as JSON can hold it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries with text keys; what is not finite becomes None.

    Lone surrogates, which no file of text can hold, become their visible code.

    Examples
    --------
    >>> plain({"a": np.array([1.5, np.nan]), 2: np.int64(3), "name": ("x", object)})["a"]
    [1.5, None]
    """
    kind = type(value)
    if kind is int or (kind is float and math.isfinite(value)):  # most of what a summary holds
        return value
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {_text(str(key)): plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [x if type(x) is int else plain(x) for x in value]
    return _text(str(value))


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
