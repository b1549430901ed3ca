"""What a column of text is as a target: whole numbers, numbers, or classes; and who has none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treelens.graphs.errors import GraphDataError
from treelens.graphs.integers import is_integer, is_number

MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "nan", "null", "none", "<na>", "#n/a", "nd", "n.d.", "not determined"}
)


def is_missing(text: str) -> bool:
    """Whether a cell says that there is no value.

    Examples
    --------
    >>> [is_missing(text) for text in ("", "NaN", "n.d.", "0", "none of these")]
    [True, True, True, False, False]
    """
    return text.lower() in MISSING


def as_target(values: Sequence[str]) -> np.ndarray:
    """Integers where all are whole numbers, floats where all are numbers, else strings.

    Examples
    --------
    >>> as_target(["1", "2.0"]).dtype.kind, as_target(["1", "2.5"]).dtype.kind
    ('i', 'f')
    >>> as_target(["1", "01"]).tolist()
    ['1', '01']
    """
    if all(map(is_integer, values)):
        return np.array([int(x) for x in values], dtype=np.int64)
    if not all(map(is_number, values)):
        return np.array(values, dtype=str)
    numbers = np.array([float(x) for x in values], dtype=np.float64)
    whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
    return numbers.astype(np.int64) if whole and abs(numbers).max() < 2**53 else numbers


def check_classes(y: Any, n_graphs: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct classes and a code per graph, or an error that says what is wrong with ``y``.

    Examples
    --------
    >>> classes, codes = check_classes(["b", "a", "b"], 3)
    >>> classes.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    from sklearn.utils.multiclass import check_classification_targets

    if y is None:
        raise GraphDataError("A classifier needs classes: call fit(graphs, y).")
    array = np.asarray(y)
    if array.ndim != 1:
        raise GraphDataError(
            f"y must be one class per graph, one-dimensional; got shape {array.shape}."
        )
    if len(array) != n_graphs:
        raise GraphDataError(
            f"There are {n_graphs} graphs but {len(array)} classes in y: give one each."
        )
    # Among strings, an array turns NaN into the class "nan": a list is searched as it is.
    check_none_missing(y if isinstance(y, (list, tuple)) else array.tolist())
    check_classification_targets(array)
    classes, codes = np.unique(array, return_inverse=True)
    if len(classes) < 2:
        raise GraphDataError(
            f"y holds one class only ({classes.tolist()[0]!r}): a classifier needs two or more."
        )
    return classes, codes


def check_none_missing(classes: Iterable[Any]) -> None:
    """An error where a graph has no class."""
    missing = [i for i, value in enumerate(classes) if _is_nothing(value)]
    if missing:
        raise GraphDataError(
            f"y holds no class (NaN or None) for {len(missing)} graphs, the first at "
            f"position {missing[0]}: drop those graphs or give them a class."
        )


def first_without_class(y: np.ndarray) -> tuple[int, str] | None:
    """The first graph without a class: its position, and words about it.

    Examples
    --------
    >>> first_without_class(np.array(["a", None], dtype=object))
    (1, 'y holds no class (None)')
    """
    if y.dtype.kind in "iubU":  # which have no word for nothing
        return None
    for position, value in enumerate(y.tolist()):
        if _is_nothing(value):
            return position, f"y holds no class ({value})"
    return None


def _is_nothing(value: Any) -> bool:
    from treelens._sklearn_compat import is_pandas_na

    return value is None or is_pandas_na(value) or bool(value != value)
