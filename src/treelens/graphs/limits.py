"""Values of which a table has only a limit: ``>10``, ``<0.5``, or a column with qualifiers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from treelens.graphs.errors import GraphDataError
from treelens.graphs.tables import Table

LIMITS = "target_limit"  # in ``graph_data``: 1 for lower limits, -1 for upper ones, 0 for values
_APPROXIMATE = ("~", "≈", "~=")
_SIGNS = {
    **dict.fromkeys((">", ">=", "=>", "≥", ">>"), 1),
    **dict.fromkeys(("<", "<=", "=<", "≤", "<<"), -1),
    **dict.fromkeys(("", "=", "==", *_APPROXIMATE), 0),
}
_QUALIFIED = re.compile(r"\s*([<>≤≥~≈=]{1,2})\s*([^\s<>≤≥~≈=].*)")
_SHOWN = 3


def split_qualifiers(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the texts without qualifiers before them, and the qualifiers ("" for none).

    Examples
    --------
    >>> split_qualifiers([">10", "≤ 0.5 nM", "~3", "7", "<>1"])
    (['10', '0.5 nM', '3', '7', '<>1'], ['>', '≤', '~', '', ''])
    """
    bare, qualifiers = list(texts), [""] * len(texts)
    for k, text in enumerate(texts):
        found = _QUALIFIED.fullmatch(text)
        if found and found[1] in _SIGNS:
            qualifiers[k], bare[k] = found[1], found[2].strip()
    return bare, qualifiers


def read_qualifiers(table: Table, column: str, rows: np.ndarray, own: list[str]) -> list[str]:
    """Return the qualifiers of rows in a column; ``own`` are those beside the numbers."""
    every = table.column(column, "qualifier")
    found = []
    for row, beside in zip(rows.tolist(), own, strict=True):
        text = every[row].strip().strip("'\"")  # ChEMBL writes '='
        text = "" if text.lower() in ("nan", "na", "none", "null") else text
        if text not in _SIGNS:
            raise GraphDataError(
                f"column {column!r} should hold qualifiers (=, <, >, <=, >=, ~), but "
                f"{table.place(row)} holds {every[row][:20]!r}. Name another column with "
                "qualifier=COLUMN."
            )
        if beside and text and _SIGNS[beside] != _SIGNS[text]:
            raise GraphDataError(
                f"{table.place(row)} has {text!r} in column {column!r}, but {beside!r} beside the "
                "number. Correct one of them."
            )
        found.append(text or beside)
    return found


def limit_signs(qualifiers: Sequence[str]) -> np.ndarray | None:
    """1 for lower limits, -1 for upper ones, 0 for values; None where there are no limits."""
    signs = np.array([_SIGNS[text] for text in qualifiers], dtype=np.int64)
    return signs if signs.any() else None


def note_qualifier_columns(table: Table, notes: list[str]) -> None:
    """Note that a column which nobody named holds qualifiers."""
    for name in table.columns:
        texts = {text.strip().strip("'\"") for text in table.column(name, "column")}
        if texts <= _SIGNS.keys() and any(_SIGNS[text] for text in texts):
            notes.append(
                f"column {name!r} holds {', '.join(sorted(texts - {''}))}, and was not used: where "
                f"these qualify the values, qualifier={name!r} makes limits of them."
            )


def limits_in_words(y: np.ndarray, signs: np.ndarray, qualifiers: Sequence[str] = ()) -> str:
    """How many values are limits, and which ones.

    Examples
    --------
    >>> limits_in_words(np.array([3.0, 10.0, 10.0, 0.5]), np.array([0, 1, 1, -1]))
    '2 of 4 values are lower limits (>10) and 1 is an upper limit (<0.5): used as limits.'
    """
    parts: list[str] = []
    for sign, kind, mark in ((1, "lower", ">"), (-1, "upper", "<")):
        counted = Counter(y[signs == sign].tolist()).most_common()
        shown = ", ".join(f"{mark}{value:.10g}" for value, _ in counted[:_SHOWN])
        shown += ", ..." if len(counted) > _SHOWN else ""
        n = int((signs == sign).sum())
        if n:
            of = "" if parts else f" of {len(y)} values"
            article = "an" if kind == "upper" else "a"
            what = f"are {kind} limits" if n > 1 else f"is {article} {kind} limit"
            parts.append(f"{n}{of} {what} ({shown})")
    words = f"{' and '.join(parts)}: used as limits."
    n_approximate = sum(text in _APPROXIMATE for text in qualifiers)
    return words + (f" {n_approximate} marked ~ count as exact." if n_approximate else "")


def merged_limits(
    y: np.ndarray, limits: np.ndarray, parts: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """One value or limit for each group of rows: the mean of values, else the tightest limit.

    Between a lower and an upper limit their mean counts as a value.

    Examples
    --------
    >>> y, limits = np.array([5.0, 7.0, 4.0, 10.0, 20.0]), np.array([0, 0, 1, 1, 1])
    >>> merged_limits(y, limits, [np.array([0, 1, 2]), np.array([3, 4])])
    (array([ 6., 20.]), array([0, 1]))
    """
    values, signs = np.empty(len(parts)), np.zeros(len(parts), dtype=np.int64)
    for k, part in enumerate(parts):
        exact, lower, upper = (y[part][limits[part] == sign] for sign in (0, 1, -1))
        if len(exact):
            values[k] = exact.mean()
        elif len(lower) and len(upper):
            values[k] = 0.5 * (lower.max() + upper.min())
        else:
            signs[k] = 1 if len(lower) else -1
            values[k] = lower.max() if len(lower) else upper.min()
    return values, signs


def counted_rows(y: np.ndarray, limits: np.ndarray, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Which rows make the merged value of their group, shape (n,)."""
    counted = limits == 0
    for part in parts:
        if not counted[part].any():
            counted[part[np.argmax(limits[part] * y[part])]] = True
    return counted


def apart(y: np.ndarray, limits: np.ndarray | None) -> float:
    """By how much values contradict each other; a limit does so only on its wrong side.

    Examples
    --------
    >>> apart(np.array([5.0, 7.0]), None), apart(np.array([5.0, 7.0]), np.array([1, 0]))
    (2.0, 0.0)
    """
    if limits is None:
        return float(np.ptp(y))
    return float(np.where(limits < 0, -np.inf, y).max() - np.where(limits > 0, np.inf, y).min())
