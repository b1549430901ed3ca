"""Values as JSON data: numpy scalars and arrays as plain numbers and lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any


def _refused(value: object) -> Any:
    raise TypeError(
        f"{value!r}, of type {type(value).__name__}, cannot be written as JSON: expected numbers, "
        "strings, None, lists, dictionaries, or numpy scalars and arrays."
    )


def plain(
    value: object, *, text: Callable[[str], str] = str, other: Callable[[Any], str] = _refused
) -> Any:
    """Return JSON data with string keys, in which numbers that are not finite are None.

    ``text`` is applied to every string and key; ``other`` returns a string for a value that JSON
    cannot represent, which is an error by default.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.array([1.5, np.nan]), 2: (np.int64(3), None)})
    {'a': [1.5, None], '2': [3, None]}
    """

    def of(value: Any) -> Any:
        kind = type(value)
        if kind is int or (kind is float and math.isfinite(value)):  # most values
            return value
        if hasattr(kind, "tolist"):  # of numpy, which need not be imported here
            value = value.tolist()
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
