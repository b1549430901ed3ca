"""Python values as JSON and back, exactly: labels, classes and settings in a model file.

``None``, booleans, integers, finite floats, strings, lists, and dictionaries with string keys stand
for themselves. All else is an object with one key that starts with ``$``:

=====================================  ==========================================================
``{"$float": "nan"}``                  a float that JSON has no number for: nan, inf, -inf
``{"$tuple": [...]}``                  a tuple
``{"$map": [[key, value], ...]}``      a dictionary with other keys, or with one that starts with $
``{"$numpy": ["float32", value]}``     a numpy scalar of that type
``{"$array": ["int64", [...]]}``       a one-dimensional numpy array of that type ("object": any)
=====================================  ==========================================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_SCALARS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "str",
)  # fmt: skip
_MOST_TEXT_BYTES = 256 * 2**20  # numpy gives every text the room of the longest
_KNOWN = "integers, floats, booleans, strings, numpy scalars, or tuples of these"


class UnknownKindError(TypeError):
    """A value of a kind that has no plain form."""


def to_plain(value: Any) -> Any:
    """A value as what ``json.dumps`` writes; :func:`from_plain` gives it back.

    Examples
    --------
    >>> to_plain(("C", 1, 0.5)), from_plain(to_plain(("C", 1, 0.5)))
    ({'$tuple': ['C', 1, 0.5]}, ('C', 1, 0.5))
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if kind is list:
        return [to_plain(x) for x in value]
    if kind is tuple:
        return {"$tuple": [to_plain(x) for x in value]}
    if kind is dict:
        return _plain_dict(value)
    if isinstance(value, np.generic):
        return {"$numpy": [_scalar_name(value.dtype), to_plain(value.item())]}
    if isinstance(value, np.ndarray) and value.ndim == 1:
        name = "object" if value.dtype == object else _scalar_name(value.dtype)
        return {"$array": [name, [to_plain(x) for x in value.tolist()]]}
    raise UnknownKindError(f"{value!r} is of the kind {kind.__name__}: expected {_KNOWN}.")


def from_plain(value: Any) -> Any:
    """The value that :func:`to_plain` turned into this; a ``ValueError`` if there is none."""
    if isinstance(value, list):
        return [from_plain(x) for x in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if not tag.startswith("$"):
        return {key: from_plain(x) for key, x in value.items()}
    if len(value) != 1 or tag not in _READERS:
        raise ValueError(f"{_shown(value)} has no meaning here")
    try:
        return _READERS[tag](value[tag])
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise ValueError(f"{_shown(value)} cannot be read ({error})") from error


def _plain_dict(value: dict[Any, Any]) -> dict[str, Any]:
    if all(type(key) is str and not key.startswith("$") for key in value):
        return {key: to_plain(x) for key, x in value.items()}
    return {"$map": [[to_plain(key), to_plain(x)] for key, x in value.items()]}


def _scalar_name(dtype: np.dtype[Any]) -> str:
    name = "str" if dtype.kind == "U" else dtype.name
    if name not in _SCALARS:
        raise UnknownKindError(
            f"numpy values of the kind {dtype} cannot be kept: expected {_KNOWN}."
        )
    return name


def _scalar_type(name: Any) -> Any:
    if name not in _SCALARS:
        raise ValueError(f"no numpy scalar is called {name!r}")
    return np.str_ if name == "str" else np.dtype(name).type


def _read_float(text: Any) -> float:
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text]


def _read_map(pairs: Any) -> dict[Any, Any]:
    return {from_plain(key): from_plain(x) for key, x in pairs}


def _read_scalar(parts: Any) -> Any:
    name, value = parts
    return _scalar_type(name)(from_plain(value))


def _read_array(parts: Any) -> np.ndarray:
    name, values = parts
    values = [from_plain(x) for x in values]
    if name == "object":
        return np.fromiter(values, dtype=object, count=len(values))
    if any(isinstance(x, (list, tuple, dict)) for x in values):
        raise ValueError("an array holds something that is not a scalar")
    if name == "str":
        longest = max((len(str(x)) for x in values), default=0)
        if 4 * longest * len(values) > _MOST_TEXT_BYTES:
            raise ValueError(f"{len(values)} texts of up to {longest} letters are too many")
    return np.array(values, dtype=_scalar_type(name))


_READERS = {
    "$float": _read_float,
    "$tuple": lambda values: tuple(from_plain(x) for x in values),
    "$map": _read_map,
    "$numpy": _read_scalar,
    "$array": _read_array,
}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
