"""Targets: what a column of text holds (numbers, limits or classes), and checks of ``y``."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import compress
from typing import Any

import numpy as np

from treelens.graphs.errors import GraphDataError, first_few
from treelens.graphs.opening import is_integer, is_number
from treelens.graphs.tables import Table

LIMITS = "target_limit"  # in ``graph_data``: 1 for lower limits, -1 for upper ones, 0 for values
NOISE = "noise std"  # in ``graph_data``: standard deviation of each target, in its units
TASKS = ("auto", "classification", "regression")
MOST_CLASSES = 100
# From this many different numbers on, a column of floats is taken for a measurement.
FEWEST_MEASURED = 20
# A column with so large a share of numbers holds numbers, and remarks in between.
_MOSTLY = 0.8
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")  # 1,240 or 1,240,000.5
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+")
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


# --- targets given with graphs ----------------------------------------------------------------


def check_classes(y: Any, n_graphs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct classes and a code per graph, or raise an error about ``y``."""
    from sklearn.utils.multiclass import check_classification_targets, type_of_target

    if y is None:
        raise GraphDataError("A classifier needs classes: call fit(graphs, y).")
    check_kind(y)
    array = np.asarray(y)
    if array.shape != (n_graphs,):
        raise GraphDataError(
            f"y must be one class for each of {n_graphs} graphs, one-dimensional; got shape "
            f"{array.shape}."
        )
    # Among strings, an array turns NaN into the class "nan": a list is searched as it is.
    values = y if isinstance(y, (list, tuple)) else array.tolist()
    missing = [i for i, value in enumerate(values) if _is_nothing(value)]
    if missing:
        raise GraphDataError(
            f"y holds no class (NaN or None) for {len(missing)} graphs, the first at "
            f"position {missing[0]}: drop those graphs or give them a class."
        )
    if type_of_target(array) == "continuous":
        raise GraphDataError(
            "y holds numbers that are no classes: a classifier needs one class per graph. For "
            "numbers, use GraphRegressor."
        )
    check_classification_targets(array)
    classes, codes = np.unique(array, return_inverse=True)
    texts = {value for value in values if isinstance(value, str)}
    both = texts and texts & {str(value) for value in values if not isinstance(value, str)}
    if both:  # numpy makes one class of them
        one = min(both)
        raise GraphDataError(
            f"y holds {one} and {one!r}, a number and a text, which would be one class. Convert "
            "all classes to one kind."
        )
    by_name: dict[str, str] = {}
    for name in map(str, classes.tolist()):
        other = by_name.setdefault(name.strip().casefold(), name)
        if other != name:
            warnings.warn(
                f"The classes {other!r} and {name!r} differ in capitals or blanks only: they are "
                "learned as two classes.",
                UserWarning,
                stacklevel=3,
            )
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
    kind = None
    with suppress(ValueError):  # no array: another check says so
        kind = getattr(getattr(y, "dtype", None), "kind", None) or np.asarray(y).dtype.kind
    if kind in ("c", "M", "m"):
        what = "complex numbers" if kind == "c" else "dates or time spans"
        raise GraphDataError(f"y holds {what}: expected real numbers or classes.")


def first_without_class(y: np.ndarray) -> tuple[int, str] | None:
    """Return the position of the first graph without a class, and words about it."""
    if y.dtype.kind in "iubU":  # which have no word for nothing
        return None
    missing = ((k, f"y holds no class ({x})") for k, x in enumerate(y.tolist()) if _is_nothing(x))
    return next(missing, None)


def _is_nothing(value: Any) -> bool:
    from treelens._sklearn_compat import is_pandas_na

    return value is None or is_pandas_na(value) or bool(value != value)


def check_noise(noise: Any, n_graphs: int, place: Callable[[int], str] = "graph {}".format) -> Any:
    """Return standard deviations (n_graphs,) as floats; NaN where one is not known."""
    values = np.full(len(noise), np.nan)
    for k, value in enumerate(noise):
        try:
            values[k] = np.nan if value is None or value == "" else float(value)
            wrong = np.isinf(values[k]) or values[k] < 0
        except (TypeError, ValueError):
            wrong = True
        if wrong:
            raise GraphDataError(
                f"noise: a standard deviation is a number, 0 or more, but {place(k)} has "
                f"{value!r:.40}. Correct it, or leave it empty."
            )
    if len(values) != n_graphs:
        raise GraphDataError(f"noise: give {n_graphs} standard deviations; got {len(values)}.")
    if np.isnan(values).all():
        raise GraphDataError("noise: no standard deviation is known. Leave noise out.")
    return values


# --- a column of a table ------------------------------------------------------------------------


def read_target(
    table: Table, column: str, rows: np.ndarray, task: str | None, notes: list[str],
    qualifier: str | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:  # fmt: skip
    """Return the targets of some rows that have one, which these are (a mask), and limits or None.

    ``task`` is one of :data:`TASKS`; None: only classes will do. ``qualifier`` is a column.
    """
    every = table.column(column, "target")
    texts = [every[row] for row in rows.tolist()]
    labelled = np.array([not is_missing(text) for text in texts], dtype=bool)
    if task in ("classification", None):
        if qualifier is not None:
            raise GraphDataError(f"qualifier={qualifier}: limits are of numbers, not of classes.")
        texts = _without_commas(texts, column, notes) if task is None else texts
        return as_target(list(compress(texts, labelled))), labelled, None
    given = texts
    texts, qualifiers = _without_qualifiers(texts)
    if qualifier is not None:
        qualifiers = _read_qualifiers(table, qualifier, rows, qualifiers)
    texts = _without_commas(texts, column, notes)
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
            f"cells, such as {given[int(np.flatnonzero(labelled)[limits != 0][0])][:20]!r}: to "
            "learn numbers from limits, there must be measured ones too. To learn these texts as "
            "classes: task='classification'."
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
                f"{table.place(row)} holds {text[:20]!r}. Name another column with "
                "qualifier=COLUMN."
            )
        if beside and text and _SIGNS[beside] != _SIGNS[text]:
            raise GraphDataError(
                f"{table.place(row)} has {text!r} in column {column!r}, but {beside!r} beside the "
                "number. Correct one of them."
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


def _without_commas(texts: list[str], column: str, notes: list[str]) -> list[str]:
    """Return numbers with decimal commas or thousands separators as plain numbers."""
    commas = [x for x in texts if _GROUPED.fullmatch(x) or _DECIMAL_COMMA.fullmatch(x)]
    n_numbers = len(commas) + sum(map(is_number, texts))
    if not commas or n_numbers < _MOSTLY * sum(not is_missing(text) for text in texts):
        return texts
    points = any(map(_WITH_POINT.fullmatch, texts))
    grouped = all(map(_GROUPED.fullmatch, commas))
    decimal = all(map(_DECIMAL_COMMA.fullmatch, commas)) and not points
    if grouped and decimal:
        raise GraphDataError(
            f"column {column!r} has numbers such as {commas[0]!r}, whose comma may separate "
            "thousands or decimals. Write them without thousands separators, with a decimal point."
        )
    if not grouped and not decimal:
        return texts
    kind, new = ("thousands separators", "") if grouped else ("decimal commas", ".")
    notes.append(f"column {column!r} has {kind} (such as {commas[0]!r}).")
    changed = set(commas)
    return [text.replace(",", new) if text in changed else text for text in texts]


def _without_remarks(
    texts: list[str], labelled: np.ndarray, column: str, table: Table, rows: np.ndarray,
    notes: list[str],
) -> np.ndarray:  # fmt: skip
    """Return which rows stay when remarks between measured numbers are skipped."""
    numeric = np.array([is_number(text) for text in texts], dtype=bool)
    where = np.flatnonzero(labelled & ~numeric).tolist()
    few = len(where) <= (1 - _MOSTLY) * labelled.sum()
    measured = few and looks_measured(as_target(list(compress(texts, labelled & numeric))))
    beside = all(_WITH_UNIT_OR_ERROR.fullmatch(texts[k]) for k in where)
    if not measured and not beside:
        return np.ones(len(texts), dtype=bool)
    kind = "a unit or an error beside the number" if beside else "something else"
    found = f"column {column!r} holds numbers, but {kind} in {len(where)} of {labelled.sum()} rows"
    shown = first_few([f"{table.place(int(rows[i]))} {texts[i][:20]!r}" for i in where])
    if not measured:
        raise GraphDataError(
            f"{found}: {shown}. Write the number alone, in one unit. To learn these texts as "
            "classes: task='classification'."
        )
    notes.append(f"{found}: {shown}. These count as missing.")
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
            f"{str(y[first])[:40]!r} ({len(wrong)} such rows). Correct them, or name another "
            f"column with target=COLUMN{classes}."
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
            f"{target!r} has {len(classes)} different values in {len(y)} rows: it looks like "
            f"{kind}, not like a class. Name another column with target=COLUMN, {hint}or merge "
            f"classes (at most {MOST_CLASSES})."
        )
    single = classes[counts == 1]
    if len(single):
        raise GraphDataError(
            f"{target!r}: the class {single[0].item()!r} appears once, in "
            f"{place(int((y == single[0]).argmax()))} ({len(single)} such classes), and "
            "cross-validation needs two of each. Correct or remove the row, or merge the class."
        )
