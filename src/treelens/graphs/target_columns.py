"""Targets: what a column of text holds, numbers, limits or classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np

from treelens.errors import GraphDataError, first_few
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
_DIGITS = r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
_UNITS = r"(?:[pnuµμmk]?(?:M|g|L|l|mol|s)|min|h|d|%|°C|K|eV|Da)"
_WITH_UNIT_OR_ERROR = re.compile(
    rf"{_DIGITS}(?:\s*(?:±|\+/-|\+-).*|\s+[A-Za-zµμ°%][^\s\d]{{0,14}}|{_UNITS}(?:/{_UNITS})?)"
)
_APPROXIMATE = ("~", "≈", "~=")
_SIGNS = {
    **dict.fromkeys((">", ">=", "=>", "≥", ">>"), 1),
    **dict.fromkeys(("<", "<=", "=<", "≤", "<<"), -1),
    **dict.fromkeys(("", "=", "==", *_APPROXIMATE), 0),
}
_QUALIFIED = re.compile(r"\s*([<>≤≥~≈=]{1,2})\s*([^\s<>≤≥~≈=].*)")
MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "nan", "null", "none", "<na>", "#n/a", "nd", "n.d.", "not determined"}
)
# Python's ``int`` also reads ``1_0``, ``01`` and the digits of every script. Here, integers fit
# into 64 bits, and no digit of a number is lost in a float.
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(
    r"[+-]?(?:(?:(?:0|[1-9][0-9]{0,15})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity)",
    re.IGNORECASE | re.ASCII,
)


def is_integer(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def is_missing(text: str) -> bool:
    """Whether a cell says that there is no value."""
    return text.lower() in MISSING


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
    texts = [every[row] for row in rows.tolist()]
    labelled = np.array([not is_missing(text) for text in texts], dtype=bool)
    if task in ("classification", None):
        if qualifier is not None:
            raise GraphDataError(f"qualifier={qualifier}: limits are of numbers, not of classes.")
        texts = _in_plain_style(texts, column, notes) if task is None else texts
        return as_target(list(compress(texts, labelled))), labelled, None
    given = texts
    texts, qualifiers = _without_qualifiers(texts)
    if qualifier is not None:
        qualifiers = _read_qualifiers(table, qualifier, rows, qualifiers)
    texts = _in_plain_style(texts, column, notes, table)
    known = as_target(list(compress(texts, labelled)))
    if known.dtype.kind == "U":
        labelled &= _without_remarks(texts, labelled, column, table, rows, notes)
        known = as_target(list(compress(texts, labelled)))
    if known.dtype.kind == "U":  # classes, in which signs have no meaning
        return as_target(list(compress(given, labelled))), labelled, None
    qualifiers = list(compress(qualifiers, labelled))
    limits = np.array([_SIGNS[text] for text in qualifiers], dtype=np.int64)
    if not limits.any():
        return known, labelled, None
    exact = known[limits == 0]
    if not len(exact) or (task == "auto" and not looks_measured(exact)):
        raise GraphDataError(
            f"column {column!r} has a qualifier in {int((limits != 0).sum())} of {len(known)} "
            f"cells, such as {given[int(np.flatnonzero(labelled)[limits != 0][0])][:20]!r}: there "
            "must be measured ones too. To learn these texts as classes: task='classification'."
        )
    notes.append(f"column {column!r}: {limits_in_words(known, limits, qualifiers)}")
    return known, labelled, limits


def _without_qualifiers(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the texts without qualifiers before them, and the qualifiers ("" for none)."""
    bare, qualifiers = list(texts), [""] * len(texts)
    for k, text in enumerate(texts):
        found = _QUALIFIED.fullmatch(text)
        if found and found[1] in _SIGNS:
            qualifiers[k], bare[k] = found[1], found[2].strip()
    return bare, qualifiers


def _qualifiers(table: Table, column: str) -> list[str]:
    """Return the cells of a column without the quotes that ChEMBL writes."""
    texts = [text.strip("'\"") for text in table.column(column, "qualifier")]
    return ["" if is_missing(text) else text for text in texts]


def _read_qualifiers(table: Table, column: str, rows: np.ndarray, own: list[str]) -> list[str]:
    """Return the qualifiers of rows in a column; ``own`` are those beside the numbers."""
    every, found = _qualifiers(table, column), []
    for row, beside in zip(rows.tolist(), own, strict=True):
        text = every[row]
        if text not in _SIGNS:
            raise GraphDataError(
                f"column {column!r} should hold qualifiers (=, <, >, <=, >=, ~), but "
                f"{table.place(row)} holds {text[:20]!r}. Name another with qualifier=COLUMN."
            )
        if beside and text and _SIGNS[beside] != _SIGNS[text]:
            raise GraphDataError(
                f"{table.place(row)} has {text!r} in {column!r}, but {beside!r} beside the number."
            )
        found.append(text or beside)
    return found


def note_qualifier_columns(table: Table, notes: list[str]) -> None:
    """Note that a column which nobody named holds qualifiers."""
    for name in set(table.columns):
        texts = set(_qualifiers(table, name)) if table.columns.count(name) == 1 else set()
        if texts <= _SIGNS.keys() and any(_SIGNS[text] for text in texts):
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
    n_approximate = sum(text in _APPROXIMATE for text in qualifiers)
    return words + (f" {n_approximate} marked ~ count as exact." if n_approximate else "")


def _in_plain_style(
    texts: list[str], column: str, notes: list[str], table: Table | None = None
) -> list[str]:
    """Return numbers with decimal commas or thousands separators as plain numbers.

    A column is written in one of two styles: 1,240.5 or 1.240,5. ``table`` may tell which.
    """
    numbers = [x for x in texts if is_number(x) or _GROUPED.fullmatch(x) or _EUROPEAN.fullmatch(x)]
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


def _without_remarks(
    texts: list[str],
    labelled: np.ndarray,
    column: str,
    table: Table,
    rows: np.ndarray,
    notes: list[str],
) -> np.ndarray:
    """Return which rows stay when remarks between measured numbers are skipped."""
    numeric = np.array([is_number(text) for text in texts], dtype=bool)
    where = np.flatnonzero(labelled & ~numeric).tolist()
    mostly = labelled.sum() - len(where) >= _MOSTLY * labelled.sum()
    measured = mostly and looks_measured(as_target(list(compress(texts, labelled & numeric))))
    beside = all(_WITH_UNIT_OR_ERROR.fullmatch(texts[k]) for k in where)
    if not measured and not beside:
        return np.ones(len(texts), dtype=bool)
    kind = "a unit or an error beside the number" if beside else "something else"
    found = f"column {column!r} holds numbers, but {kind} in {len(where)} of {labelled.sum()} rows"
    shown = first_few([f"{table.place(int(rows[i]))} {texts[i][:20]!r}" for i in where])
    if not measured:
        raise GraphDataError(
            f"{found}: {shown}. Write the number alone, or learn texts: task='classification'."
        )
    notes.append(
        f"{found}: {shown}. These count as missing: write the number alone, and limits as <0.5."
    )
    return numeric


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
