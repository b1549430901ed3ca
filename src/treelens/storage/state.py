"""Objects as JSON and named arrays, and back: one writer and one reader for all models.

:func:`to_state` walks the constructor fields of dataclasses and named tuples; :func:`from_state`
calls the constructors again. Both check every value against the annotation of its field, and know
only the classes that they are given. ``docs/model-format.md`` describes the JSON tree. A class may
define any of these:

``__derived__``
    Names of fields that are not written; the reader passes None for them.
``to_stored(self)``
    Returns the object to write in its place, of a known class.
``validate(self)``
    Raises ``ValueError`` where the fields do not fit together. Called when an object is written
    or read, never in computations.
``from_stored(self)``
    Returns the object to use, with derived fields filled in. Called after ``validate``.

A dataclass field with ``metadata={"nan": True}`` may contain NaN; floats are finite otherwise.
"""

from __future__ import annotations

import collections.abc
import math
import types
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from treelens.array_checks import LARGEST, Columns

Classes: TypeAlias = Mapping[str, type]  # by their names

_PLAIN = (bool, int, str, type(None))
_ARRAY_TYPES = ("int32", "int64", "float32", "float64")
_SCALARS = ("str", *(np.dtype(code).name for code in "?bhiqBHIQefd"))  # bool, int8 ... float64
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_LARGEST_INTEGER = 2**62
_MAX_TEXT_BYTES = 256 * 2**20  # numpy gives every string the room of the longest
_DAMAGE = (ValueError, TypeError, LookupError, OverflowError, AttributeError)


class StateError(ValueError):
    """A state that no object has; the message names the place and what is wrong."""


class UnstorableError(TypeError):
    """A value of a type that cannot be stored."""


def stored_fields(kind: type) -> list[str]:
    """Names of the constructor fields of a class that are written."""
    named: Iterable[str] = getattr(kind, "_fields", ())
    if is_dataclass(kind):
        named = (field.name for field in fields(kind) if field.init)
    return [name for name in named if name not in getattr(kind, "__derived__", ())]


def to_state(value: object, classes: Classes) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a JSON tree and arrays by name, which :func:`from_state` makes the value of again."""
    writer = _Writer(classes)
    return writer.write(value, ""), writer.arrays


def from_state(tree: object, arrays: Mapping[str, np.ndarray], classes: Classes) -> Any:
    """Return the value that :func:`to_state` wrote; anything else is a :class:`StateError`."""
    return _Reader(arrays, classes).read(tree, "")


def _joined(path: str, part: str | int) -> str:
    return f"{path}.{part}" if path else str(part)


def _entries(values: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any, str]]:
    """Keys, values and paths, in letters that any file system and zip reader takes."""
    for position, (key, value) in enumerate(values.items()):
        plain = key.isidentifier() and key.isascii()
        yield key, value, _joined(path, key if plain else position)


class _Fields:
    """The types of the fields of classes, by the names of all classes."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self._hints: dict[type, dict[str, Any]] = {}

    def check(self, kind: type, values: Mapping[str, Any], path: str) -> None:
        """Raise :class:`StateError` unless every stored field has a value of its type."""
        if kind not in self._hints:
            names: Any = ChainMap({"Columns": Columns}, self.classes)  # type: ignore[arg-type]
            self._hints[kind] = get_type_hints(kind, localns=names)
        known = fields(kind) if is_dataclass(kind) else ()
        with_nan = {field.name for field in known if field.metadata.get("nan")}
        for name in stored_fields(kind):
            hint = self._hints[kind][name]
            if not fits(values[name], hint, nan=name in with_nan):
                wanted = getattr(hint, "__name__", str(hint).replace("typing.", ""))
                place = _joined(path, name)
                raise StateError(f"{place} must be {wanted}, not {_shown(values[name])}")


class _Writer:
    def __init__(self, classes: Classes) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._fields = _Fields(classes)
        self._seen: dict[int, tuple[str, Any]] = {}  # by id, which a value in use keeps

    def write(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$float": str(value)}
        if kind is list:
            return self._items(value, path)
        if isinstance(value, np.generic):
            return {"$numpy": [_type_name(value.dtype, path), self.write(value.item(), path)]}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if is_dataclass(value) or hasattr(value, "_fields"):
            return self._object(value, path)
        if kind is tuple:
            return {"$tuple": self._items(value, path)}
        if kind is Columns:
            return {"$table": [[k, self._array(x, _joined(path, k))] for k, x in value.items()]}
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        raise UnstorableError(
            f"{path} is {repr(value)[:80]}, of type {kind.__name__}: expected integers, floats, "
            "booleans, strings, numpy scalars, or tuples of these."
        )

    def _items(self, values: Iterable[Any], path: str) -> list[Any]:
        return [self.write(x, _joined(path, k)) for k, x in enumerate(values)]

    def _mapping(self, value: Mapping[Any, Any], path: str) -> Any:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: self.write(x, at) for key, x, at in _entries(value, path)}
        pairs = enumerate(value.items())
        return {"$map": [self._items(pair, _joined(path, k)) for k, pair in pairs]}

    def _array(self, value: np.ndarray, path: str) -> Any:
        if id(value) in self._seen:
            return {"$array": self._seen[id(value)][0]}
        if value.dtype.name in _ARRAY_TYPES and value.ndim in (1, 2):
            self._seen[id(value)] = path, value
            self.arrays[path] = value
            return {"$array": path}
        if value.ndim != 1:
            raise UnstorableError(f"{path} is an array of {value.dtype}, {value.ndim}-dimensional.")
        name = "object" if value.dtype == object else _type_name(value.dtype, path)
        return {"$list": [name, self._items(value.tolist(), path)]}

    def _object(self, value: Any, path: str) -> Any:
        if id(value) in self._seen:
            return {"$same": self._seen[id(value)][0]}
        self._seen[id(value)] = path, value
        form = value.to_stored() if hasattr(value, "to_stored") else value
        kind, known = type(form), self._fields.classes
        if known.get(kind.__name__) is not kind:
            raise UnstorableError(f"{path} is of the class {kind.__name__}, which is not stored.")
        values = {name: getattr(form, name) for name in stored_fields(kind)}
        written = {name: self.write(x, _joined(path, name)) for name, x in values.items()}
        try:  # or the file could not be read
            self._fields.check(kind, values, path)
            if hasattr(form, "validate"):
                form.validate()
        except ValueError as error:
            raise UnstorableError(f"{path or kind.__name__}: {error}.") from error
        return {"$class": kind.__name__, **written}


def _type_name(dtype: np.dtype[Any], path: str) -> str:
    name = "str" if dtype.kind == "U" else dtype.name
    if name not in _SCALARS:
        raise UnstorableError(f"{path} is of the numpy type {dtype}, which is not stored.")
    return name


class _Reader:
    def __init__(self, arrays: Mapping[str, np.ndarray], classes: Classes) -> None:
        self._arrays = arrays
        self._fields = _Fields(classes)
        self._objects: dict[str, Any] = {}  # by path
        self._tags = {
            "$float": lambda text, path: _FLOATS[text],
            "$tuple": lambda values, path: tuple(self._items(values, path)),
            "$map": self._map,
            "$numpy": lambda parts, path: _scalar_type(parts[0])(self.read(parts[1], path)),
            "$list": self._list,
            "$array": self._array,
            "$same": lambda at, path: self._objects[at],
            "$table": self._table,
        }

    def read(self, tree: object, path: str) -> Any:
        if isinstance(tree, list):
            return self._items(tree, path)
        if not isinstance(tree, dict):
            return tree
        tag = next(iter(tree), "")
        if not tag.startswith("$"):
            return {key: self.read(x, at) for key, x, at in _entries(tree, path)}
        try:
            if tag == "$class":
                return self._object(tree, path)
            if len(tree) == 1 and tag in self._tags:
                return self._tags[tag](tree[tag], path)
        except StateError:
            raise
        except _DAMAGE as error:
            why = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise StateError(f"{path} cannot be read ({why[:200]})") from error
        raise StateError(f"{path} cannot be read ({tag[:40]!r} is unknown)")

    def _items(self, values: object, path: str) -> list[Any]:
        if not isinstance(values, list):
            raise StateError(f"{path} must be a list, not {_shown(values)}")
        return [self.read(x, _joined(path, k)) for k, x in enumerate(values)]

    def _map(self, pairs: Any, path: str) -> dict[Any, Any]:
        found = dict(self._items(pair, _joined(path, k)) for k, pair in enumerate(pairs))
        if len(found) < len(pairs):
            raise StateError(f"{path} has a key twice")
        return found

    def _array(self, name: object, path: str) -> np.ndarray:
        if not isinstance(name, str) or name not in self._arrays:
            raise StateError(f"{path}: the array {_shown(name)} is missing")
        return self._arrays[name]

    def _list(self, parts: Any, path: str) -> np.ndarray:
        name, tree = parts
        values = self._items(tree, path)
        if name == "object":
            return np.fromiter(values, dtype=object, count=len(values))
        if any(isinstance(x, (list, tuple, dict)) for x in values):
            raise StateError(f"{path} has an entry that is not a scalar")
        longest = max((len(str(x)) for x in values), default=0)
        if name == "str" and 4 * longest * len(values) > _MAX_TEXT_BYTES:
            raise StateError(f"{path}: {len(values)} strings of {longest} characters are too many")
        return np.array(values, dtype=_scalar_type(name))

    def _table(self, columns: Any, path: str) -> Any:
        read = {name: self.read(x, _joined(path, name)) for name, x in columns}
        for name, x in read.items():
            if not isinstance(x, np.ndarray) or x.ndim != 1 or not fits(x, np.ndarray, nan=True):
                raise StateError(f"{path}.{name} must be a column of finite numbers or strings")
        if len({len(x) for x in read.values()}) > 1:
            raise StateError(f"{path} has columns of different lengths")
        return Columns(read)

    def _object(self, tree: dict[str, Any], path: str) -> Any:
        name = tree["$class"]
        kind = self._fields.classes.get(name) if isinstance(name, str) else None
        if kind is None:
            raise StateError(f"{path or 'it'} is of an unknown class, {_shown(name)}")
        names = stored_fields(kind)
        if set(names) != set(tree) - {"$class"}:
            raise StateError(f"{path} must have the fields {', '.join(names)}")
        values = dict.fromkeys(getattr(kind, "__derived__", ()))
        values.update({name: self.read(tree[name], _joined(path, name)) for name in names})
        self._fields.check(kind, values, path)
        made = kind(**values)
        if hasattr(made, "validate"):
            made.validate()
        self._objects[path] = made.from_stored() if hasattr(made, "from_stored") else made
        return self._objects[path]


def _scalar_type(name: object) -> Any:
    if name not in _SCALARS:
        raise StateError(f"no numpy scalar is called {_shown(name)}")
    return np.str_ if name == "str" else np.dtype(name).type


def _shown(value: object) -> str:
    return repr(value)[:60]


def fits(value: Any, hint: Any, *, nan: bool = False) -> bool:
    """Whether a value is of the type that an annotation names, numbers in a sensible range."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, arg, nan=nan) for arg in args)
    if hint in (int, float):
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return bool(-_LARGEST_INTEGER <= value <= _LARGEST_INTEGER)
        if hint is int or not isinstance(value, (float, np.floating)):
            return False
        return bool(-LARGEST <= value <= LARGEST or (nan and value != value))
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if hint is np.ndarray:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            return isinstance(value, np.ndarray)
        numbers = value[~np.isnan(value)] if nan else value
        return bool((np.abs(numbers.astype(np.float64, copy=False)) <= LARGEST).all())
    if is_typeddict(hint):
        hints = get_type_hints(hint)
        known = isinstance(value, dict) and set(value) <= set(hints)
        return known and all(fits(x, hints[name], nan=nan) for name, x in value.items())
    if origin is tuple and isinstance(value, tuple):
        wanted = args[:1] * len(value) if args[1:] == (...,) else args
        same = len(wanted) == len(value)
        return same and all(fits(x, a, nan=nan) for x, a in zip(value, wanted, strict=True))
    if origin is list and isinstance(value, list):
        return all(fits(x, args[0], nan=nan) for x in value)
    if origin in (dict, collections.abc.Mapping) and isinstance(value, Mapping):
        return all(fits(k, args[0]) and fits(x, args[1], nan=nan) for k, x in value.items())
    return isinstance(value, origin or hint)
