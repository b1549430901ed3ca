"""Targets: what a column of text holds (whole numbers, numbers or classes), and checks of ``y``."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import compress
from typing import Any

import numpy as np

from treelens.graphs.errors import GraphDataError
from treelens.graphs.integers import is_integer, is_number
from treelens.graphs.limits import (
    limit_signs,
    limits_in_words,
    read_qualifiers,
    split_qualifiers,
)
from treelens.graphs.tables import Table, first_few

TASKS = ("auto", "classification", "regression")
MOST_CLASSES = 100
# From this many different numbers on, a column of floats is taken for a measurement.
FEWEST_MEASURED = 20
# A column with so large a share of numbers holds numbers, and remarks ("> 100") in between.
_MOSTLY = 0.8
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")  # 1,240 or 1,240,000.5
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+")
_DIGITS = r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
_UNITS = r"(?:[pnuµμmk]?(?:M|g|L|l|mol|s)|min|h|d|%|°C|K|eV|Da)"
# What may stand beside a number in a cell, and what to do about it.
_BESIDE_NUMBERS = (
    (re.compile(rf"{_DIGITS}\s*(?:±|\+/-|\+-).*"), "an error",
     "write the number alone"),
    (re.compile(rf"{_DIGITS}(?:\s+[A-Za-zµμ°%][^\s\d]{{0,14}}|{_UNITS}(?:/{_UNITS})?)"), "a unit",
     "write the number alone, in one unit"),
)  # fmt: skip

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
    """Return the distinct classes and a code per graph, or raise an error about ``y``.

    Examples
    --------
    >>> classes, codes = check_classes(["b", "a", "b"], 3)
    >>> classes.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    from sklearn.utils.multiclass import check_classification_targets

    if y is None:
        raise GraphDataError("A classifier needs classes: call fit(graphs, y).")
    check_kind(y)
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
    _check_names(y, classes)
    if len(classes) < 2:
        raise GraphDataError(
            f"y holds one class only ({classes.tolist()[0]!r}): a classifier needs two or more."
        )
    return classes, codes


def check_kind(y: Any) -> None:
    """Raise where ``y`` is of a kind that numpy would convert to something else in silence."""
    if isinstance(y, (set, frozenset, dict)):
        raise GraphDataError(
            f"y is a {type(y).__name__}, which has no order: use a list or an array, one target "
            "for each graph."
        )
    if np.ma.isMaskedArray(y) and np.ma.getmaskarray(y).any():
        raise GraphDataError(
            f"y is masked for {int(np.ma.getmaskarray(y).sum())} graphs: leave these graphs out."
        )
    kind = getattr(getattr(y, "dtype", None), "kind", None)
    if kind is None:
        with suppress(ValueError):  # no array: another check says so
            kind = np.asarray(y).dtype.kind
    names = {"c": "complex numbers", "M": "dates", "m": "time spans"}
    if kind in names:
        raise GraphDataError(
            f"y holds {names[kind]}: expected real numbers or classes. Convert them first."
        )


def _check_names(y: Any, classes: np.ndarray) -> None:
    """Refuse 1 beside "1", which numpy makes one class; a warning about "active" and "Active"."""
    values = y if isinstance(y, (list, tuple)) else getattr(y, "tolist", list)()
    kinds = {isinstance(value, str) for value in values}
    if len(kinds) > 1:
        texts = {value for value in values if isinstance(value, str)}
        both = sorted(texts & {str(value) for value in values if not isinstance(value, str)})
        if both:
            raise GraphDataError(
                f"y holds {both[0]} and {both[0]!r}, a number and a text, which would be one "
                "class. Convert all classes to one kind."
            )
    by_name: dict[str, str] = {}
    for name in map(str, classes.tolist()):
        other = by_name.setdefault(name.strip().casefold(), name)
        if other != name:
            warnings.warn(
                f"The classes {other!r} and {name!r} differ in capitals or blanks only: they are "
                "learned as two classes.",
                UserWarning,
                stacklevel=4,
            )


def check_none_missing(classes: Iterable[Any]) -> None:
    """Raise where a graph has no class."""
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


# --- a column of a table ------------------------------------------------------------------------


def read_target(
    table: Table,
    column: str,
    rows: np.ndarray,
    task: str | None,
    notes: list[str],
    qualifier: str | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the targets of some rows that have one, which rows these are (a mask), and limits.

    ``task`` is one of :data:`TASKS`; None: only classes will do. What stands between numbers that
    is none counts as missing, with a note. ``qualifier`` is a column. Limits are 1 for lower ones,
    -1 for upper ones and 0 for values; None where there are none.
    """
    every = table.column(column, "target")
    texts = [every[row] for row in rows.tolist()]
    labelled = np.array([not is_missing(text) for text in texts], dtype=bool)
    if task in ("classification", None):
        if qualifier is not None:
            raise GraphDataError(
                f"qualifier={qualifier}: limits are of numbers, and these are classes."
            )
        texts = _without_commas(texts, column, notes) if task is None else texts
        return as_target(list(compress(texts, labelled))), labelled, None
    given = texts
    texts, qualifiers = split_qualifiers(texts)
    if qualifier is not None:
        qualifiers = read_qualifiers(table, qualifier, rows, qualifiers)
    texts = _without_commas(texts, column, notes)
    known = as_target(list(compress(texts, labelled)))
    if known.dtype.kind == "U":
        labelled &= _without_remarks(texts, labelled, column, table, rows, notes)
        known = as_target(list(compress(texts, labelled)))
    if known.dtype.kind == "U":  # classes, in which signs have no meaning
        return as_target(list(compress(given, labelled))), labelled, None
    qualifiers = list(compress(qualifiers, labelled))
    limits = limit_signs(qualifiers)
    if limits is None:
        return known, labelled, None
    exact = known[limits == 0]
    if not len(exact) or (task == "auto" and not looks_measured(exact)):
        few = "" if not len(exact) else f" and {len(np.unique(exact))} different numbers"
        raise GraphDataError(
            f"column {column!r} has a qualifier in {int((limits != 0).sum())} of {len(known)} "
            f"cells, such as {given[int(np.flatnonzero(labelled)[limits != 0][0])][:20]!r}"
            f"{few}: to learn numbers from limits, there must be measured ones too. To learn these "
            "texts as classes: task='classification'."
        )
    notes.append(f"column {column!r}: {limits_in_words(known, limits, qualifiers)}")
    return known, labelled, limits


def _without_commas(texts: list[str], column: str, notes: list[str]) -> list[str]:
    """Numbers with decimal commas or thousands separators as plain numbers."""
    commas = [
        text for text in texts
        if "," in text and (_GROUPED.fullmatch(text) or _DECIMAL_COMMA.fullmatch(text))
    ]  # fmt: skip
    n_numbers = len(commas) + sum(map(is_number, texts))
    if not commas or n_numbers < _MOSTLY * sum(not is_missing(text) for text in texts):
        return texts
    grouped = all(_GROUPED.fullmatch(text) for text in commas)
    decimal = all(_DECIMAL_COMMA.fullmatch(text) for text in commas)
    points = any(map(_WITH_POINT.fullmatch, texts))
    if grouped and decimal and not points:
        raise GraphDataError(
            f"column {column!r} has numbers such as {commas[0]!r}, whose comma may separate "
            "thousands or decimals. Write them without thousands separators, with a decimal point."
        )
    if grouped:
        notes.append(f"column {column!r} has thousands separators (such as {commas[0]!r}).")
        new = ""
    elif decimal and not points:
        notes.append(f"column {column!r} has decimal commas (such as {commas[0]!r}).")
        new = "."
    else:
        return texts
    changed = set(commas)
    return [text.replace(",", new) if text in changed else text for text in texts]


def _without_remarks(
    texts: list[str], labelled: np.ndarray, column: str, table: Table, rows: np.ndarray,
    notes: list[str],
) -> np.ndarray:  # fmt: skip
    """Return which rows stay when remarks between measured numbers are skipped."""
    numeric = np.array([is_number(text) for text in texts], dtype=bool)
    remarks = [texts[k] for k in np.flatnonzero(labelled & ~numeric)]
    beside = _beside_numbers(remarks)
    few = len(remarks) <= (1 - _MOSTLY) * labelled.sum()
    measured = few and looks_measured(as_target(list(compress(texts, labelled & numeric))))
    if remarks and beside is not None and not measured:
        raise GraphDataError(
            f"column {column!r} has {beside[0]} beside the number in {len(remarks)} of "
            f"{int(labelled.sum())} cells, such as {remarks[0][:20]!r}: {beside[1]}. "
            "To learn these texts as classes: task='classification'."
        )
    if not remarks or not measured:
        return np.ones(len(texts), dtype=bool)
    where = np.flatnonzero(labelled & ~numeric).tolist()
    shown = first_few([f"{table.place(int(rows[i]))} {texts[i][:20]!r}" for i in where])
    kind = "something else" if beside is None else f"{beside[0]} beside them"
    advice = "" if beside is None else f" To use them, {beside[1]}."
    notes.append(
        f"column {column!r} holds numbers, but {kind} in {len(remarks)} "
        f"row{'s' if len(remarks) > 1 else ''}: {shown}. These count as missing."
        f"{advice}"
    )
    return numeric


def _beside_numbers(texts: Sequence[str]) -> tuple[str, str] | None:
    """What stands beside the number in every text, and what to do about it; else None."""
    for text_of, what, advice in _BESIDE_NUMBERS:
        if texts and all(map(text_of.fullmatch, texts)):
            return what, advice
    every = [any(p.fullmatch(text) for p, _, _ in _BESIDE_NUMBERS) for text in texts]
    if texts and all(every):
        return "a unit or an error", "write the number alone"
    return None


def looks_measured(y: np.ndarray) -> bool:
    """Whether a target is a measurement: numbers, too many different ones to pass for classes."""
    values = np.unique(y)
    if y.dtype.kind == "i":
        return len(values) >= FEWEST_MEASURED or len(values) > max(2, len(y) // 2)
    few = len(values) < FEWEST_MEASURED and len(values) <= max(2, len(y) // 10)
    return y.dtype.kind == "f" and not few


def as_numbers(y: np.ndarray, target: str, place: Callable[[int], str]) -> np.ndarray:
    """Return targets as finite floats, or raise an error that names the first that is none."""
    numbers = np.array([_number(value) for value in y.tolist()], dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        first = int(wrong[0])
        raise GraphDataError(
            f"{target!r} should hold numbers for a regression, but {place(first)} holds "
            f"{str(y[first])[:40]!r} ({len(wrong)} such rows). Correct them, name another column "
            "with target=COLUMN, or learn classes with task='classification'."
        )
    return numbers


def _number(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")


def check_learnable(
    y: np.ndarray, task: str, target: str, place: Callable[[int], str], sure: bool = False
) -> None:
    """Raise where a column leaves nothing to learn; ``sure``: it is no measurement."""
    if task != "regression":
        _check_class_column(y, target, place, sure)
    elif len(y) < 2 or (y == y[0]).all():
        raise GraphDataError(
            f"{target!r} holds one value only ({y[0]:g}, {len(y)} times): there is nothing to "
            "learn. Name another column with target=COLUMN."
        )


def _check_class_column(
    y: np.ndarray, target: str, place: Callable[[int], str], sure: bool
) -> None:
    classes, counts = np.unique(y, return_counts=True)
    measured = y.dtype.kind in "if"
    if len(classes) == 1:
        raise GraphDataError(
            f"{target!r} holds one class only ({classes[0].item()!r}, {len(y)} times): there must "
            "be two or more. Name another column with target=COLUMN."
        )
    if y.dtype.kind == "f" and looks_measured(y) and not sure:
        raise GraphDataError(
            f"{target!r} looks like a measurement: {len(classes)} different numbers from "
            f"{classes[0]:g} to {classes[-1]:g} in {len(y)} rows. Fit a regression "
            "(task='regression'), or make a column of classes, such as whether the value is above "
            f"{np.median(y):g} (the median)."
        )
    if len(classes) > MOST_CLASSES or (len(classes) > 20 and len(classes) > len(y) / 2):
        kind = "a measurement (regression)" if measured else "an identifier"
        hint = "predict it as a number with task='regression', " if measured else ""
        raise GraphDataError(
            f"{target!r} has {len(classes)} classes in {len(y)} rows: it looks like {kind}, not "
            f"like a class. Name another column with target=COLUMN, {hint}or merge classes (at "
            f"most {MOST_CLASSES})."
        )
    single = classes[counts == 1]
    if len(single):
        others = f" (and {len(single) - 1} other classes too)" if len(single) > 1 else ""
        raise GraphDataError(
            f"{target!r}: the class {single[0].item()!r} appears once, in "
            f"{place(int((y == single[0]).argmax()))}{others}: cross-validation needs each class "
            "at least twice. Remove the row, correct it, or merge the class with another."
        )
