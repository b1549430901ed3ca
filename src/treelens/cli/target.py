"""What the target column is: classes or numbers; what is wrong with it, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treelens.cli.console import InputError

if TYPE_CHECKING:
    import numpy as np

MOST_CLASSES = 100
# From this many different numbers on, a column of floats is taken for a measurement.
FEWEST_MEASURED = 20
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})


def check_no_target_missing(table: Any, target: str) -> None:
    """Every row needs a class or a number."""
    values = table.column(target, "target")
    missing = [row for row, value in enumerate(values) if value.lower() in _MISSING]
    if missing:
        listed = ", ".join(table.place(row) for row in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise InputError(
            f"{table.source}: the target ({target!r}) is missing in {len(missing)} of "
            f"{len(values)} rows: {listed}{more}. Fill it in, or remove these rows."
        )


def looks_measured(y: np.ndarray) -> bool:
    """Whether a target is a measurement: numbers, not all whole, too many to pass for classes."""
    import numpy as np

    return y.dtype.kind == "f" and not _few_values(np.unique(y), len(y))


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


def check_numbers(y: np.ndarray, target: str) -> None:
    """Refuse numbers that leave nothing to learn."""
    if len(y) < 2 or (y == y[0]).all():
        raise InputError(
            f"{target!r} holds one value only ({y[0]:g}, {len(y)} times): there is nothing to "
            "learn. Name another column with --target, or add rows with other values."
        )


def check_classes(y: np.ndarray, target: str, rows: np.ndarray, sure: bool = False) -> None:
    """Refuse what cannot be learned as classes; ``sure``: that it is no measurement."""
    import numpy as np

    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise InputError(
            f"{target!r} holds one class only ({classes[0].item()!r}, {len(y)} times): there must "
            "be two or more. Name another column with --target, or add rows of another class."
        )
    if looks_measured(y) and not sure:
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
        hint = "predict it as a number with --task regression, or " if measured else ""
        raise InputError(
            f"{target!r} has {len(classes)} classes in {len(y)} rows: it looks like {kind}, not "
            f"like a class. Name another column with --target, {hint}merge classes (at most "
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
