"""Values as JSON has them: numpy's unpacked, containers plain. Files, pages and commands use it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any


def unpacked(value: Any) -> Any:
    """A numpy scalar or array as a plain number or nested lists: ``default`` of ``json.dumps``.

    NaN and infinities stay what they are.

    Examples
    --------
    >>> import json, numpy as np
    >>> json.dumps({"scores": np.array([0.5, 1.0]), "n": np.int64(3)}, default=unpacked)
    '{"scores": [0.5, 1.0], "n": 3}'
    """
    inside = _inside(value)
    return _refused(value) if type(inside) is type(value) else inside


def _refused(value: Any) -> Any:
    raise TypeError(
        f"{value!r} is of the kind {type(value).__name__}, which JSON has nothing for: expected "
        "numbers, texts, None, lists, dictionaries, or numpy's scalars and arrays."
    )


def plain(
    value: Any, *, text: Callable[[str], str] = str, other: Callable[[Any], str] = _refused
) -> Any:
    """Numbers, texts, lists and dictionaries with text keys; what is not finite becomes None.

    Parameters
    ----------
    value : object
    text : callable
        What is made of every text and of every key.
    other : callable
        The text of a value that JSON has nothing for; unless given, such a value is an error.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.array([1.5, np.nan]), 2: (np.int64(3), None)})
    {'a': [1.5, None], '2': [3, None]}
    """

    def of(value: Any) -> Any:
        kind = type(value)
        if kind is int or (kind is float and math.isfinite(value)):  # most of what there is
            return value
        value = _inside(value)
        if value is None or isinstance(value, int):
            return value
        if isinstance(value, str):
            return text(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, Mapping):
            return {text(str(key)): of(x) for key, x in value.items()}
        if isinstance(value, (list, tuple, range)):
            return [x if type(x) is int else of(x) for x in value]
        return text(other(value))

    return of(value)


def _inside(value: Any) -> Any:
    """What numpy packed, or the value itself. numpy is told by what it has, not imported."""
    return value.tolist() if hasattr(type(value), "tolist") else value
