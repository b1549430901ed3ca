"""Is this column a class? What is wrong with it, and what to do, in one message."""

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
    """Every row needs a class."""
    values = table.column(target, "target")
    missing = [row for row, value in enumerate(values) if value.lower() in _MISSING]
    if missing:
        listed = ", ".join(table.place(row) for row in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise InputError(
            f"{table.source}: the class ({target!r}) is missing in {len(missing)} of {len(values)} "
            f"rows: {listed}{more}. Fill it in, or remove these rows."
        )


def check_classes(y: np.ndarray, target: str, rows: np.ndarray) -> None:
    """Refuse what cannot be learned as classes."""
    import numpy as np

    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise InputError(
            f"{target!r} holds one class only ({classes[0].item()!r}, {len(y)} times): there must "
            "be two or more. Name another column with --target, or add rows of another class."
        )
    if y.dtype.kind == "f" and not _few_values(classes, len(y)):
        raise InputError(
            f"{target!r} looks like regression: {len(classes)} different numbers from "
            f"{classes[0]:g} to {classes[-1]:g} in {len(y)} rows. treelens learns classes. Make a "
            f"column of classes, such as whether the value is above {np.median(y):g} (the median), "
            "and name it with --target."
        )
    if len(classes) > MOST_CLASSES or (len(classes) > 20 and len(classes) > len(y) / 2):
        kind = "a measurement (regression)" if y.dtype.kind in "if" else "an identifier"
        raise InputError(
            f"{target!r} has {len(classes)} classes in {len(y)} rows: it looks like {kind}, not "
            f"like a class. Name another column with --target, or merge classes (at most "
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
