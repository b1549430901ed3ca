"""Checks of arrays that come from a file, before compiled loops follow their indices unchecked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from typing import TypeGuard

    import pandas as pd
    from numpy.typing import DTypeLike

LARGEST = 1e100  # no number of a model comes near; products of a few of them do not overflow


def check_array(
    array: np.ndarray,
    name: str,
    dtype: DTypeLike,
    shape: tuple[int | None, ...],
    low: float | None = None,
    below: float = np.inf,
) -> None:
    """Raise ``ValueError`` unless an array has this type, shape (None: any) and range of values."""
    if array.dtype != np.dtype(dtype):
        raise ValueError(f"{name} must be of type {np.dtype(dtype)}, not {array.dtype}")
    if len(array.shape) != len(shape) or any(
        wanted not in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    ):
        wanted = tuple("any" if n is None else n for n in shape)
        raise ValueError(f"{name} must have the shape {wanted}, not {array.shape}")
    if low is None or not array.size:
        return
    # as Python's numbers, which bounds of another type do not overflow
    if not (array.min().item() >= low and array.max().item() < below):
        raise ValueError(f"{name} must be at least {low:g} and below {below:g}")


def is_frame(value: object) -> TypeGuard[pd.DataFrame]:
    """Return whether a value has the columns of a DataFrame; pandas need not be imported."""
    return hasattr(value, "columns") and hasattr(value, "iloc")


def check_offsets(offsets: np.ndarray, name: str, n_runs: int, n_entries: int) -> None:
    """Raise ``ValueError`` unless offsets of ``n_runs`` runs ascend from 0 to ``n_entries``."""
    check_array(offsets, name, np.int64, (n_runs + 1,))
    falls = offsets[1:] < offsets[:-1]  # differences of huge numbers would wrap around
    if offsets[0] != 0 or offsets[-1] != n_entries or falls.any():
        raise ValueError(f"{name} must ascend from 0 to {n_entries}")


def check_positions(positions: np.ndarray, name: str, n: int) -> None:
    """Raise ``ValueError`` unless positions among ``n`` things ascend, each once."""
    check_array(positions, name, np.int64, (None,), 0, n)
    if (np.diff(positions) <= 0).any():
        raise ValueError(f"{name} must ascend")


def check_positive(value: float, name: str, most: float = LARGEST, *, zero: bool = False) -> None:
    """Raise ``ValueError`` unless ``value`` is above 0 (with ``zero``: or 0), up to ``most``."""
    if not 0.0 <= value <= most or (value == 0.0 and not zero):
        raise ValueError(f"{name} must be {'at least' if zero else 'above'} 0 and at most {most:g}")


def check_classes_ascend(classes: np.ndarray) -> None:
    """Raise ``ValueError`` unless there are two classes or more, scalars in ascending order."""
    labels = classes.tolist()
    scalars = all(isinstance(label, (bool, int, float, str, np.generic)) for label in labels)
    try:
        ascend = scalars and all(a < b for a, b in pairwise(labels))
    except TypeError:
        ascend = False
    if classes.ndim != 1 or len(classes) < 2 or not ascend:
        raise ValueError("classes must be two or more numbers or strings in ascending order")


def check_labels(labels: Iterable[Any], name: str) -> None:
    """Raise ``ValueError`` unless labels are hashable, equal to themselves, and each there once."""
    known = list(labels)
    try:
        distinct = len(set(known)) == len(known) and all(x == x for x in known)
    except TypeError:
        distinct = False
    if not distinct:
        raise ValueError(f"{name} must be different labels that can be hashed")


class Columns(dict[str, np.ndarray]):
    """A table in a model: columns of one length. To read a model need not import pandas.

    Examples
    --------
    >>> table = Columns.of_rows([{"step": 1, "gain": 0.5}, {"step": 2, "gain": 0.1}])
    >>> table.n_rows, table.frame()["gain"].tolist()
    (2, [0.5, 0.1])
    """

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Columns:
        """Return the columns of rows with the same keys."""
        found = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
        texts = {name for name, values in found.items() if isinstance(values[0], str)}
        kinds = {name: object if name in texts else None for name in found}
        return cls({name: np.array(values, kinds[name]) for name, values in found.items()})

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.values()), ()))

    def frame(self) -> pd.DataFrame:
        """Return the table as pandas has it."""
        import pandas as pd

        return pd.DataFrame({k: x.tolist() if x.dtype == object else x for k, x in self.items()})
