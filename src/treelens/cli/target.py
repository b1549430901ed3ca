"""What the target column is: classes or numbers; what is wrong with it, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

from treelens.cli.console import InputError, counted

if TYPE_CHECKING:
    import numpy as np

    from treelens.graphs.tables import Table

MOST_CLASSES = 100
# From this many different numbers on, a column of floats is taken for a measurement.
FEWEST_MEASURED = 20
# A column with so large a share of numbers holds numbers, and remarks ("> 100") in between.
_MOSTLY = 0.8
_ROWS_IN_A_MESSAGE = 5
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True)
class Target:
    """A column as a target.

    Attributes
    ----------
    y : ndarray, shape (n_graphs,)
        Empty texts, or NaN among numbers, where there is none.
    labelled : ndarray of bool, shape (n_graphs,)
    """

    y: np.ndarray
    labelled: np.ndarray


def read_target(
    table: Table, column: str, rows: np.ndarray, task: str | None, note: Callable[[str], None]
) -> Target:
    """The target of the rows of some graphs; what stands there instead of a number is told."""
    import numpy as np

    from treelens.graphs.targets import as_target, is_missing

    every = table.column(column, "target")
    texts = _with_points([every[row] for row in rows.tolist()], column, note)
    labelled = np.array([not is_missing(text) for text in texts], dtype=bool)
    known = as_target(list(compress(texts, labelled)))
    if task != "classification" and known.dtype.kind == "U":
        labelled &= _without_remarks(texts, labelled, column, table, rows, note)
        known = as_target(list(compress(texts, labelled)))
    if labelled.all():
        return Target(known, labelled)
    y = np.full(len(texts), "", dtype=f"<U{max(1, known.astype(str).dtype.itemsize // 4)}")
    y[labelled] = known.astype(str)
    return Target(y, labelled)


def _with_points(texts: list[str], column: str, note: Callable[[str], None]) -> list[str]:
    """Decimal commas as points, where no number of the column has a point."""
    commas = ["," in text and bool(_DECIMAL_COMMA.fullmatch(text)) for text in texts]
    if not any(commas) or any(re.fullmatch(r"[+-]?\d*\.\d+", text) for text in texts):
        return texts
    note(f"column {column!r} has decimal commas (such as {texts[commas.index(True)]!r}): read so.")
    return [
        text.replace(",", ".") if comma else text for text, comma in zip(texts, commas, strict=True)
    ]


def _without_remarks(
    texts: list[str],
    labelled: np.ndarray,
    column: str,
    table: Table,
    rows: np.ndarray,
    note: Callable[[str], None],
) -> np.ndarray:
    """Which rows stay when remarks between measured numbers are passed over."""
    import numpy as np

    from treelens.graphs.integers import is_number
    from treelens.graphs.targets import as_target

    numeric = np.array([is_number(text) for text in texts], dtype=bool)
    n_remarks = int((labelled & ~numeric).sum())
    everything = np.ones(len(texts), dtype=bool)
    if not n_remarks or n_remarks > (1 - _MOSTLY) * labelled.sum():
        return everything
    if not looks_measured(as_target(list(compress(texts, numeric)))):
        return everything
    where = np.flatnonzero(labelled & ~numeric).tolist()
    shown = [f"{table.place(int(rows[i]))} {texts[i][:20]!r}" for i in where[:_ROWS_IN_A_MESSAGE]]
    more = f" and {n_remarks - len(shown)} more" if n_remarks > len(shown) else ""
    note(
        f"column {column!r} holds numbers, but something else in {counted(n_remarks, 'row')}: "
        f"{', '.join(shown)}{more}. That counts as no label."
    )
    return numeric


def missing_in_words(table: Table, column: str, missing: np.ndarray, n_rows: int) -> str:
    """Which rows have no label.

    ``missing`` are rows of the table.
    """
    shown = ", ".join(table.place(row) for row in missing[:_ROWS_IN_A_MESSAGE].tolist())
    more = f" and {len(missing) - _ROWS_IN_A_MESSAGE} more" if len(missing) > 5 else ""
    return (
        f"{table.source}: the target ({column!r}) is missing in {len(missing)} of {n_rows} rows: "
        f"{shown}{more}."
    )


def looks_measured(y: np.ndarray) -> bool:
    """Whether a target is a measurement: numbers, too many different ones to pass for classes."""
    import numpy as np

    values = np.unique(y)
    if y.dtype.kind == "i":
        return len(values) >= FEWEST_MEASURED or len(values) > max(2, len(y) // 2)
    return y.dtype.kind == "f" and not _few_values(values, len(y))


def as_numbers(y: np.ndarray, target: str, rows: np.ndarray) -> np.ndarray:
    """Targets of a regression as floats, or an error that names the first that is no number."""
    import numpy as np

    numbers = np.array([_number(value) for value in y.tolist()], dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        first = int(wrong[0])
        raise InputError(
            f"{target!r} should hold numbers for a regression, but row {int(rows[first]) + 1} "
            f"holds {str(y[first])[:40]!r} ({len(wrong)} such rows). Correct them, name another "
            "column with --target, or learn classes with --task classification."
        )
    return numbers


def _number(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")


def check_number_column(y: np.ndarray, target: str) -> None:
    """Refuse numbers that leave nothing to learn."""
    if len(y) < 2 or (y == y[0]).all():
        raise InputError(
            f"{target!r} holds one value only ({y[0]:g}, {len(y)} times): there is nothing to "
            "learn. Name another column with --target, or add rows with other values."
        )


def check_class_column(y: np.ndarray, target: str, rows: np.ndarray, sure: bool = False) -> None:
    """Refuse what cannot be learned as classes; ``sure``: that it is no measurement."""
    import numpy as np

    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise InputError(
            f"{target!r} holds one class only ({classes[0].item()!r}, {len(y)} times): there must "
            "be two or more. Name another column with --target, or add rows of another class."
        )
    if y.dtype.kind == "f" and looks_measured(y) and not sure:
        raise InputError(
            f"{target!r} looks like regression: {len(classes)} different numbers from "
            f"{classes[0]:g} to {classes[-1]:g} in {len(y)} rows. To predict them use 'treelens "
            "fit' with --method evidence and --task regression; to learn classes, make a column of "
            f"them, such as whether the value is above {np.median(y):g} (the median), and name it "
            "with --target."
        )
    if len(classes) > MOST_CLASSES or (len(classes) > 20 and len(classes) > len(y) / 2):
        measured = y.dtype.kind in "if"
        kind = "a measurement (regression)" if measured else "an identifier"
        hint = "predict it as a number with --task regression, " if measured else ""
        raise InputError(
            f"{target!r} has {len(classes)} classes in {len(y)} rows: it looks like {kind}, not "
            f"like a class. Name another column with --target, {hint}or merge classes (at most "
            f"{MOST_CLASSES})."
        )
    _check_no_single(y, classes, counts, target, rows)


def _few_values(classes: np.ndarray, n_rows: int) -> bool:
    """Whether floats are so few and so often repeated that they can pass for classes."""
    return len(classes) < FEWEST_MEASURED and len(classes) <= max(2, n_rows // 10)


def _check_no_single(
    y: np.ndarray, classes: np.ndarray, counts: np.ndarray, target: str, rows: np.ndarray
) -> None:
    single = classes[counts == 1]
    if len(single):
        row = int(rows[(y == single[0]).argmax()]) + 1
        others = f" (and {len(single) - 1} other classes too)" if len(single) > 1 else ""
        raise InputError(
            f"{target!r}: the class {single[0].item()!r} appears once, in row {row}{others}: "
            "cross-validation needs each class at least twice. Remove the row, correct a slip of "
            "the pen, or merge the class with another."
        )
