"""Targets on another scale: what a model learns, and the way back to the units of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from treelens.cli.console import InputError

if TYPE_CHECKING:
    import numpy as np


class Transform(NamedTuple):
    """A scale: there and back."""

    name: str
    there: Callable[[np.ndarray], np.ndarray]
    back: Callable[[np.ndarray], np.ndarray]


def transform_named(name: str | None) -> Transform | None:
    """``"log10"``, ``"ln"``, or None for ``"none"``.

    Examples
    --------
    >>> import numpy as np
    >>> scale = transform_named("log10")
    >>> scale.there(np.array([100.0])).tolist(), scale.back(np.array([2.0])).tolist()
    ([2.0], [100.0])
    """
    import numpy as np

    known = {
        "log10": Transform("log10", np.log10, lambda x: np.power(10.0, x)),
        "ln": Transform("ln", np.log, np.exp),
    }
    if name in (None, "none"):
        return None
    if name not in known:
        raise InputError(f"--transform {name}: expected one of none, {', '.join(known)}.")
    return known[name]


def learned_scale(model: Any) -> Transform | None:
    """The scale that a fitted model of numbers learned on."""
    recipe = model.recipe_
    known = None if recipe is None or recipe.table is None else recipe.table.transform
    return transform_named(known)


def transformed(
    y: np.ndarray, transform: Transform | None, target: str, rows: np.ndarray
) -> np.ndarray:
    """Numbers on the scale, or an error that names the first that has no place on it."""
    import numpy as np

    if transform is None:
        return y
    wrong = np.flatnonzero(~(np.isnan(y) | (y > 0)))
    if len(wrong):
        first = int(wrong[0])
        raise InputError(
            f"--transform {transform.name}: {target!r} must be above 0, but row "
            f"{int(rows[first]) + 1} holds {y[first]:g} ({len(wrong)} such rows). Correct them, "
            "empty their cells to leave them out, or leave --transform out."
        )
    return transform.there(y)
