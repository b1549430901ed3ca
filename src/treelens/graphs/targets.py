"""What a column of text is as a target: whole numbers, numbers, or classes; and who has none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
