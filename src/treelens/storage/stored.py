"""What was read from a model file, handed out only after it has been checked."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeVar, get_type_hints

import numpy as np

from treelens.storage.archive import Contents, ModelFileError
from treelens.storage.older import in_new_words
from treelens.storage.plain_data import from_plain

Record = TypeVar("Record")
# No number of a fitted model comes near this; products of two or three stay far from overflow.
LARGEST = 1e100
_LARGEST_WHOLE = 2**62
FIRST_IN_THESE_WORDS = 3  # versions of the format before it had other names


class Stored:
    """Checked access to the contents of a model file.

    Parameters
    ----------
    contents : Contents
    place : str
        The file, for messages.
    """

    def __init__(self, contents: Contents, place: str) -> None:
        if contents.version < FIRST_IN_THESE_WORDS:
            contents = in_new_words(contents)
        self._data, self._arrays = contents.data, contents.arrays
        self.place = place

    def error(self, what: str) -> ModelFileError:
        return ModelFileError(
            f"{self.place}: {what}. The file was altered, or written by something else; save the "
            "model again."
        )

    def value(self, name: str, *kinds: type) -> Any:
        """An entry of the JSON text, which must be of one of the kinds."""
        if name not in self._data:
            raise self.error(f"{name!r} is missing")
        try:
            value = from_plain(self._data[name])
        except (ValueError, RecursionError) as error:
            raise self.error(f"{name!r}: {error}") from error
        if type(value) not in kinds:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise self.error(f"{name!r} should be {wanted}, not {type(value).__name__}")
        return value

    def has_value(self, name: str) -> bool:
        return name in self._data

    def has_array(self, name: str) -> bool:
        return name in self._arrays

    def array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> np.ndarray:
        """An array of exactly this type and shape; None is any length."""
        if name not in self._arrays:
            raise self.error(f"the array {name!r} is missing")
        array = self._arrays[name]
        if array.dtype != np.dtype(dtype):
            raise self.error(
                f"the array {name!r} should be of type {np.dtype(dtype)}, not {array.dtype}"
            )
        fits = len(array.shape) == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
        )
        if not fits:
            wanted = tuple("any" if n is None else n for n in shape)
            raise self.error(f"the array {name!r} should have shape {wanted}, not {array.shape}")
        return array

    def floats(
        self,
        name: str,
        shape: tuple[int | None, ...],
        low: float = -LARGEST,
        *,
        nan: bool = False,
    ) -> np.ndarray:
        """Finite numbers of a size that models have; with ``nan``, also none."""
        array = self.array(name, np.float64, shape)
        self.check_floats(array[~np.isnan(array)] if nan else array, f"the array {name!r}", low)
        return array

    def check_floats(self, array: np.ndarray, what: str, low: float = -LARGEST) -> None:
        if not np.isfinite(array).all():
            raise self.error(f"{what} holds infinities or NaN")
        if array.size and (array.min() < low or array.max() > LARGEST):
            raise self.error(f"{what} should hold numbers from {low:g} to {LARGEST:g}")

    def number(self, value: Any, what: str, low: float = -LARGEST, *, above: bool = False) -> float:
        """A finite number from ``low`` on, or above it; ``what`` names the entry."""
        is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
        if not is_number or not low <= value <= LARGEST or (above and value == low):
            least = f"above {low:g}" if above else f"of at least {low:g}"
            raise self.error(
                f"{what} should be a number {least} and at most {LARGEST:g}, not "
                f"{str(value)[:40]!r}"
            )
        return float(value)

    def whole(self, value: Any, what: str, low: int, below: int) -> int:
        """An integer from ``low`` to ``below - 1``."""
        is_whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
        if not is_whole or not low <= value < below:
            raise self.error(
                f"{what} should be a whole number from {low} to {below - 1}, not "
                f"{str(value)[:40]!r}"
            )
        return int(value)

    def record(
        self, kind: type[Record], entries: Any, where: str, low: float = -LARGEST, **ready: Any
    ) -> Record:
        """A dataclass or named tuple from entries, each of the kind that its field is.

        Numbers are those from ``low`` on; fields in ``ready`` are not looked for.
        """
        for name, hint in get_type_hints(kind).items():
            if name not in ready and isinstance(entries, Mapping) and name in entries:
                ready[name] = self._entry(entries[name], hint, f"{name!r} in {where}", low)
        try:
            return kind(**ready)
        except TypeError as error:
            raise self.error(f"{where} is not complete ({error})") from error

    def _entry(self, value: Any, hint: Any, what: str, low: float) -> Any:
        """A number, truth value, text or array of numbers, whichever ``hint`` asks for."""
        if hint is float or hint == float | None:
            return None if value is None and hint is not float else self.number(value, what, low)
        if hint is int:
            return self.whole(value, what, 0, _LARGEST_WHOLE)
        kinds: Any = (bool, np.bool_) if hint is bool else hint
        if not isinstance(value, kinds):
            raise self.error(f"{what} should be a {hint.__name__}, not {str(value)[:40]!r}")
        if hint is np.ndarray:
            if value.dtype.kind not in "fi" or value.ndim != 1:
                raise self.error(f"{what} should hold numbers, one after the other")
            self.check_floats(value, what, low)
        return value

    def integers(
        self, name: str, dtype: Any, shape: tuple[int | None, ...], low: int, below: int
    ) -> np.ndarray:
        """Integers from ``low`` to ``below - 1``."""
        array = self.array(name, dtype, shape)
        if array.size and (array.min() < low or array.max() >= below):
            raise self.error(f"the array {name!r} should hold numbers from {low} to {below - 1}")
        return array

    def offsets(self, name: str, n_runs: int, n_entries: int) -> np.ndarray:
        """Where each run of entries starts, and the end: ascending from 0 to ``n_entries``."""
        array = self.array(name, np.int64, (n_runs + 1,))
        falls = array[1:] < array[:-1]  # differences of huge numbers would wrap around
        if array[0] != 0 or array[-1] != n_entries or falls.any():
            raise self.error(f"the array {name!r} should ascend from 0 to {n_entries}")
        return array
