"""Checks of regression targets, sample weights and class weights."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from treelens._sklearn_compat import check_sample_weight
from treelens.graphs.targets import check_kind

_NOT_NUMBERS = (
    "y contains values that are not numbers: a regressor needs one number per graph. For classes, "
    "use GraphClassifier."
)


def check_numbers(y: Any, n_graphs: int) -> np.ndarray:
    """Return regression targets as floats."""
    if y is None:
        raise ValueError("A regressor needs values: call fit(graphs, y).")
    check_kind(y)
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        found = first_no_number(np.asarray(y, dtype=object)) if np.ndim(y) == 1 else None
        if found is None:
            raise ValueError(_NOT_NUMBERS) from None
        raise ValueError(f"{found[1]}, at position {found[0]}: correct or drop it.") from None
    if values.ndim != 1:
        raise ValueError(
            f"y must be one value per graph, one-dimensional; got shape {values.shape}."
        )
    if len(values) != n_graphs:
        raise ValueError(
            f"There are {n_graphs} graphs but {len(values)} values in y: give one each."
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(
            f"y holds NaN or infinity for {len(wrong)} graphs, the first at position {wrong[0]}: "
            "drop those graphs or give them a value."
        )
    largest, spread = float(np.abs(values).max(initial=0.0)), float(np.ptp(values))
    if largest > 1e100 or 0.0 < spread < 1e-100:
        raise ValueError(
            f"The values of y reach {largest:.3g} and differ by {spread:.3g}: rescale them, their "
            "squares overflow or underflow."
        )
    return values


def first_no_number(y: np.ndarray) -> tuple[int, str] | None:
    """Return the position of the first value that is not a finite number, and a message.

    None where all are numbers; a ``ValueError`` where they are texts and none is a number.
    """
    import pandas as pd

    numbers = pd.to_numeric(pd.Series(y), errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if not len(wrong):
        return None
    values = y.tolist()
    if len(wrong) == len(y) and any(isinstance(v, str) and v.strip() for v in values):
        raise ValueError(_NOT_NUMBERS)
    return int(wrong[0]), f"y holds {values[wrong[0]]!r}, which is no number"


def check_weights(sample_weight: Any, n_graphs: int) -> np.ndarray:
    """Sample weights scaled to a mean of one; a ``ValueError`` describes what is wrong."""
    if n_graphs < 2:
        raise ValueError("There is 1 graph: a Gaussian process needs at least 2 to learn from.")
    weights = check_sample_weight(sample_weight, np.empty((n_graphs, 1)), dtype=np.float64)
    if not (weights > 0).all():
        raise ValueError("sample_weight must be above 0 everywhere: drop graphs of no weight.")
    if weights.max() / weights.min() > 1e6:
        warnings.warn("sample_weight spans more than six powers of ten.", UserWarning, stacklevel=3)
    return weights / weights.mean()


def class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """One weight per training graph from ``None``, ``"balanced"`` or a dict by class."""
    if class_weight is None:
        return np.ones(len(codes))
    if isinstance(class_weight, str):
        counts = np.bincount(codes, minlength=len(classes))
        return (len(codes) / (len(classes) * counts.clip(1)))[codes]
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        names = ", ".join(sorted(map(repr, unknown)))
        raise ValueError(f"class_weight names classes that are not in y: {names}.")
    weights = np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])
    if not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError(f"class_weight must be finite numbers above 0, got {class_weight!r}.")
    return weights[codes]


def warn_if_one_class(held_out: np.ndarray, classes: np.ndarray) -> None:
    """Warn where one class was predicted for all held-out graphs; ``held_out`` are codes."""
    if len(np.unique(held_out)) == 1:
        warnings.warn(
            f"The model predicts the class {classes.tolist()[held_out[0]]!r} for every held-out "
            "graph, so its accuracy is the share of that class. Its decision values may still "
            "rank graphs (see the ROC AUC); class_weight='balanced' weights rare classes up.",
            UserWarning,
            stacklevel=4,
        )
