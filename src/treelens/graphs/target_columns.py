"""Targets: what a column of text holds, numbers, limits or classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np

from treelens.errors import GraphDataError, first_few
from treelens.graphs.cells import (
    APPROXIMATE,
    SIGNS,
    Cell,
    is_integer,
    is_missing,
    is_number,
    is_outside,
    read_cell,
)
from treelens.graphs.tables import Table

TASKS = ("auto", "classification", "regression")
MOST_CLASSES = 100
# From this many different numbers on, a column of floats is taken for a measurement.
FEWEST_MEASURED = 20
# A column with so large a share of numbers holds numbers, and remarks in between.
_MOSTLY = 0.8
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")  # 1,240 or 1,240,000.5
_EUROPEAN = re.compile(  # 900 or 0,25 or 1.240 or 1.240,5
    r"[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d+)?(?:[eE][+-]?\d+)?"
)


def as_target(values: Sequence[str]) -> np.ndarray:
    """Integers where all are whole numbers, floats where all are numbers, else strings."""
    if all(map(is_integer, values)):
        return np.array([int(x) for x in values], dtype=np.int64)
    if not all(map(is_number, values)):
        return np.array(values, dtype=str)
    numbers = np.array([float(x) for x in values], dtype=np.float64)
    whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
    return numbers.astype(np.int64) if whole and abs(numbers).max() < 2**53 else numbers


# --- a column of a table ------------------------------------------------------------------------


def read_target(
    table: Table,
    column: str,
    rows: np.ndarray,
    task: str | None,
    notes: list[str],
    qualifier: str | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the targets of some rows that have one, which these are (a mask), and limits or None.

    ``task`` is one of :data:`TASKS`; None: only classes will do. ``qualifier`` is a column.
    """
    every = table.column(column, "target")
    given = [every[row] for row in rows.tolist()]
    labelled = np.array([not is_missing(text) for text in given], dtype=bool)
    if task in ("classification", None):
        if qualifier is not None:
            raise GraphDataError(f"qualifier={qualifier}: limits are of numbers, not of classes.")
        texts = _in_plain_style(given, column, notes) if task is None else given
        return as_target(list(compress(texts, labelled))), labelled, None
    cells = [read_cell(text) for text in given]
    found = [cell.qualifier for cell in cells]
    if qualifier is not None:
        found = _read_qualifiers(table, qualifier, rows, found)
    texts = _in_plain_style([cell.number for cell in cells], column, notes, table)
    has = labelled & np.array([is_number(text) for text in texts], dtype=bool)
    known = as_target(list(compress(texts, has)))
    measured = task == "regression" or looks_measured(known)
    if not measured:
        _check_units(column, given, cells)
    others = labelled & ~has
    outside = others & np.array([is_outside(text) for text in given], dtype=bool)
    remarks = others & ~outside
    if others.any() and not (measured and has.sum() >= _MOSTLY * (has | remarks).sum()):
        return as_target(list(compress(given, labelled))), labelled, None  # classes
    _note_outside(list(compress(given, outside)), column, notes)
    places = [f"{table.place(int(rows[k]))} {given[k][:20]!r}" for k in np.flatnonzero(remarks)]
    if places:
        notes.append(
            f"column {column!r} holds numbers, but something else in {len(places)} of "
            f"{labelled.sum()} rows: {first_few(places)}. These count as missing: write the number "
            "alone, and limits as <0.5."
        )
    qualifiers = list(compress(found, has))
    limits = np.array([SIGNS[text] for text in qualifiers], dtype=np.int64)
    if not limits.any():
        return known, has, None
    exact = known[limits == 0]
    if not len(exact) or (task == "auto" and not looks_measured(exact)):
        raise GraphDataError(
            f"column {column!r} has a qualifier in {int((limits != 0).sum())} of {len(known)} "
            f"cells, such as {given[int(np.flatnonzero(has)[limits != 0][0])][:20]!r}: there "
            "must be measured ones too. To learn these texts as classes: task='classification'."
        )
    notes.append(f"column {column!r}: {limits_in_words(known, limits, qualifiers)}")
    return known, has, limits


def errors_in_cells(table: Table, column: str, rows: np.ndarray) -> list[str]:
    """Return what stands behind ± in the cells of a column, as plain numbers; "" for nothing.

    Examples
    --------
    >>> errors_in_cells(Table("t", ["y"], [["12 ± 3"], ["7"]], None), "y", np.arange(2))
    ['3', '']
    """
    every = table.column(column, "target")
    cells = [read_cell(every[row]) for row in rows.tolist()]
    texts = [text for cell in cells for text in (cell.number, cell.error)]
    return _in_plain_style(texts, column, [])[1::2]


def _qualifiers(table: Table, column: str) -> list[str]:
    """Return the cells of a column without the quotes that ChEMBL writes."""
    texts = [text.strip("'\"") for text in table.column(column, "qualifier")]
    return ["" if is_missing(text) else text for text in texts]


def _read_qualifiers(table: Table, column: str, rows: np.ndarray, own: list[str]) -> list[str]:
    """Return the qualifiers of rows in a column; ``own`` are those beside the numbers."""
    every, found = _qualifiers(table, column), []
    for row, beside in zip(rows.tolist(), own, strict=True):
        text = every[row]
        if text not in SIGNS:
            raise GraphDataError(
                f"column {column!r} should hold qualifiers (=, <, >, <=, >=, ~), but "
                f"{table.place(row)} holds {text[:20]!r}. Name another with qualifier=COLUMN."
            )
        if beside and text and SIGNS[beside] != SIGNS[text]:
            raise GraphDataError(
                f"{table.place(row)} has {text!r} in {column!r}, but {beside!r} beside the number."
            )
        found.append(text or beside)
    return found


def note_qualifier_columns(table: Table, notes: list[str]) -> None:
    """Note that a column which nobody named holds qualifiers."""
    for name in set(table.columns):
        texts = set(_qualifiers(table, name)) if table.columns.count(name) == 1 else set()
        if texts <= SIGNS.keys() and any(SIGNS[text] for text in texts):
            notes.append(
                f"column {name!r} holds {', '.join(sorted(texts - {''}))}, and was not used: where "
                f"these qualify the values, qualifier={name!r} makes limits of them."
            )


def limits_in_words(y: np.ndarray, signs: np.ndarray, qualifiers: Sequence[str] = ()) -> str:
    """Return how many values are limits, and which ones."""
    parts = []
    for sign, kind, mark in ((1, "lower", ">"), (-1, "upper", "<")):
        counted = Counter(y[signs == sign].tolist()).most_common()
        if counted:
            shown = first_few([f"{mark}{value:.10g}" for value, _ in counted], 3)
            parts.append(f"{(signs == sign).sum()} of {len(y)} values are {kind} limits ({shown})")
    words = f"{' and '.join(parts)}: used as limits."
    n_approximate = sum(text in APPROXIMATE for text in qualifiers)
    return words + (f" {n_approximate} marked ~ count as exact." if n_approximate else "")


def looks_numeric(text: str) -> bool:
    """Return whether text is a number, with decimal commas or thousands separators as well.

    Examples
    --------
    >>> [text for text in ("7.4", "7,4", "5.900,3", "1,240", "n.d.") if looks_numeric(text)]
    ['7.4', '7,4', '5.900,3', '1,240']
    """
    return bool(is_number(text) or _GROUPED.fullmatch(text) or _EUROPEAN.fullmatch(text))


def _in_plain_style(
    texts: list[str], column: str, notes: list[str], table: Table | None = None
) -> list[str]:
    """Return numbers with decimal commas or thousands separators as plain numbers.

    A column is written in one of two styles: 1,240.5 or 1.240,5. ``table`` may tell which.
    """
    numbers = [text for text in texts if looks_numeric(text)]
    others = [x for x in numbers if not is_number(x)]
    if len(numbers) < _MOSTLY * sum(not is_missing(text) for text in texts):
        return texts
    english = all(is_number(x) or _GROUPED.fullmatch(x) for x in numbers)
    european = all(map(_EUROPEAN.fullmatch, numbers))
    if not others:
        if european and table is not None:
            _check_points(numbers, column, table, notes)
        return texts
    if english and european:
        raise GraphDataError(
            f"column {column!r} has numbers such as {others[0]!r}, whose comma may separate "
            "thousands or decimals. Write them without thousands separators, with a decimal point."
        )
    if english:
        notes.append(f"column {column!r} has thousands separators (such as {others[0]!r}).")
        return [x.replace(",", "") if _GROUPED.fullmatch(x) else x for x in texts]
    if european:
        examples = {
            "decimal commas": next((x for x in numbers if "," in x), None),
            "points between thousands": next((x for x in numbers if "." in x), None),
        }
        found = [f"{kind} (such as {x!r})" for kind, x in examples.items() if x is not None]
        notes.append(f"column {column!r} has {' and '.join(found)}.")
        plain = str.maketrans(",", ".", ".")
        return [x.translate(plain) if _EUROPEAN.fullmatch(x) else x for x in texts]
    return texts


def _check_points(numbers: list[str], column: str, table: Table, notes: list[str]) -> None:
    """Say that points before three digits are read as decimal ones; raise if others are commas."""
    pointed = next((x for x in numbers if "." in x), None)
    if pointed is None:
        return
    for name in dict.fromkeys(table.columns):
        cells = [row[table.columns.index(name)].strip() for row in table.rows]
        known = [text for text in cells if not is_missing(text)]
        comma = next((x for x in known if "," in x), None)
        if comma is not None and all(map(_EUROPEAN.fullmatch, known)):
            raise GraphDataError(
                f"column {column!r} has numbers such as {pointed!r}, whose point may separate "
                f"thousands or decimals: column {name!r} has decimal commas ({comma!r}). Write "
                "them without thousands separators, and all decimals in one way."
            )
    if table.separator == ";":
        notes.append(
            f"column {column!r} has numbers such as {pointed!r}, read with a decimal point: where "
            "it separates thousands, write them without."
        )


def _check_units(column: str, given: list[str], cells: list[Cell]) -> None:
    """Raise where numbers with units might as well be classes, such as doses."""
    beside = [text for text, cell in zip(given, cells, strict=True) if cell.unit or cell.error]
    if beside:
        raise GraphDataError(
            f"column {column!r} holds few different numbers, and a unit or an error beside them in "
            f"{len(beside)} cells, such as {beside[0][:20]!r}. Say what to learn by "
            "task='regression' or task='classification'."
        )


def _note_outside(texts: list[str], column: str, notes: list[str]) -> None:
    """Note the cells that say BLQ or the like."""
    if texts:
        counted = [f"{text[:20]!r} in {n}" for text, n in Counter(texts).most_common()]
        notes.append(
            f"column {column!r}: {len(texts)} cells say that a value lies outside what could be "
            f"measured, but not where that ends ({first_few(counted)}). They count as missing; "
            "with a number, such as <0.5, they would be limits."
        )


def looks_measured(y: np.ndarray) -> bool:
    """Whether a target is a measurement: numbers, too many different ones to pass for classes."""
    values = np.unique(y)
    if y.dtype.kind == "i":
        return len(values) >= FEWEST_MEASURED or len(values) > max(2, len(y) // 2)
    few = len(values) < FEWEST_MEASURED and len(values) <= max(2, len(y) // 10)
    return y.dtype.kind == "f" and not few


def as_numbers(y: np.ndarray, target: str, place: Callable[[int], str], learn: bool) -> np.ndarray:
    """Return targets as finite floats, or raise an error that names the first that is none."""
    import pandas as pd

    numbers = pd.to_numeric(pd.Series(y), errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        first = int(wrong[0])
        classes = ", or learn classes with task='classification'" if learn else ""
        raise GraphDataError(
            f"{target!r} should hold numbers for a regression, but {place(first)} holds "
            f"{str(y[first])[:40]!r} ({len(wrong)} such rows). Correct them{classes}."
        )
    return numbers


def check_learnable(
    y: np.ndarray, task: str, target: str, place: Callable[[int], str], sure: bool = False
) -> None:
    """Raise where a column leaves nothing to learn; ``sure``: it is no measurement."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        what = "value" if task == "regression" else "class"
        raise GraphDataError(
            f"{target!r} holds one {what} only ({classes.tolist()}, {len(y)} times): there must "
            "be two or more. Name another column with target=COLUMN."
        )
    if task == "regression":
        return
    numbers = y.dtype.kind in "if"
    if (y.dtype.kind == "f" and looks_measured(y) and not sure) or (
        len(classes) > MOST_CLASSES or (len(classes) > 20 and len(classes) > len(y) / 2)
    ):
        kind = "a measurement" if numbers else "an identifier"
        hint = "fit a regression (task='regression'), " if numbers else ""
        raise GraphDataError(
            f"{target!r} has {len(classes)} different values in {len(y)} rows, like {kind}. Name "
            f"another column with target=COLUMN, {hint}or merge classes (at most {MOST_CLASSES})."
        )
    single = classes[counts == 1]
    if len(single):
        raise GraphDataError(
            f"{target!r}: the class {single[0].item()!r} appears once, in "
            f"{place(int((y == single[0]).argmax()))} ({len(single)} such classes): there must be "
            "two of each. Correct or remove the row, or merge the class."
        )
