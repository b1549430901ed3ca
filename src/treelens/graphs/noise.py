"""Known noise: standard deviations of measurements, from a column or from replicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treelens.graphs.duplicates import members
from treelens.graphs.errors import GraphDataError

NOISE = "noise std"  # in graph_data: standard deviation of each target, in its units
_FEWEST = 10  # degrees of freedom that a spread of replicates is estimated from


def check_noise(noise: Any, n_graphs: int, place: Callable[[int], str] | None = None) -> np.ndarray:
    """Return standard deviations (n_graphs,) as floats; NaN where one is not known."""
    try:
        values = np.array([np.nan if x is None else x for x in noise], dtype=np.float64)
    except (TypeError, ValueError):
        raise GraphDataError("noise must be standard deviations, one number per graph.") from None
    if values.shape != (n_graphs,):
        raise GraphDataError(
            f"noise must be one standard deviation for each of {n_graphs} graphs; got the shape "
            f"{values.shape}."
        )
    wrong = np.flatnonzero(np.isinf(values) | (values < 0))
    if len(wrong):
        first = int(wrong[0])
        where = f"graph {first}" if place is None else place(first)
        raise GraphDataError(
            f"noise: a standard deviation is 0 or more, but {where} has {values[first]:g} "
            f"({len(wrong)} such values). Correct them, or leave them empty."
        )
    if np.isnan(values).all():
        raise GraphDataError("noise: no standard deviation is known. Leave noise out.")
    return values


def read_noise(texts: Sequence[str], place: Callable[[int], str]) -> np.ndarray:
    """Return the standard deviations in a column; NaN for an empty cell."""
    values: list[float | None] = []
    for k, text in enumerate(texts):
        try:
            values.append(float(text) if text.strip() else None)
        except ValueError:
            raise GraphDataError(
                f"noise: {place(k)} holds {text[:40]!r}, which is no standard deviation. Correct "
                "it, or leave it empty."
            ) from None
    return check_noise(values, len(texts), place)


def noise_of_means(
    y: np.ndarray, groups: np.ndarray, known: np.ndarray | None = None
) -> np.ndarray | None:
    """Return the standard deviation of the mean of each group; None where it is not known.

    From the ``known`` standard deviations (n,) of the values; else from the spread of replicates,
    pooled over all groups: with the two or three values that most groups have, their own spread
    says little. The pooled variance is a median over groups, so that single mistakes (a wrong unit)
    do not count. Equal values are one measurement that was copied.

    Examples
    --------
    >>> noise_of_means(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 2]), np.array([0.6, 0.8, 1.0]))
    array([0.5, 1. ])
    """
    parts = members(groups)
    if known is not None:
        return np.array([np.sqrt((known[part] ** 2).sum()) / len(part) for part in parts])
    from scipy.stats import chi2

    counts = np.array([len(np.unique(y[part])) for part in parts])
    if (counts - 1).sum() < _FEWEST:
        return None
    several = np.flatnonzero(counts > 1)
    squares = [((u := np.unique(y[parts[k]])) - u.mean()) @ (u - u.mean()) for k in several]
    pooled = float(np.median(squares / chi2.median(counts[several] - 1)))
    return np.sqrt(pooled / counts)
