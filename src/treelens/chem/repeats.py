"""Rows of the same molecule: which measurements are one, and what they are merged to.

Groups are given by the first row of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treelens.errors import GraphDataError
from treelens.graphs.cells import is_number
from treelens.targets import Targets

_FEWEST_REPLICATES = 10  # degrees of freedom that a spread is estimated from


def same_measurements(groups: np.ndarray, columns: Sequence[Iterable[Any]]) -> np.ndarray:
    """Return groups of the same molecule under the same covariates."""

    def value(text: object) -> Any:  # 25 and 25.0 are the same temperature
        cell = str(text).strip()
        return float(cell) if is_number(cell) else cell

    first_of: dict[tuple[Any, ...], int] = {}
    keys = zip(groups.tolist(), *(map(value, column) for column in columns), strict=True)
    return np.array([first_of.setdefault(key, k) for k, key in enumerate(keys)], dtype=np.int64)


def members(groups: np.ndarray) -> list[np.ndarray]:
    """Return the positions of each group, in the order of their first members."""
    _, which = np.unique(groups, return_inverse=True)
    return np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])


def merged_classes(y: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the most frequent class of each group, and which groups have no tie."""
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.array([np.bincount(codes[p], minlength=len(classes)) for p in members(groups)])
    clear = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    return classes[votes.argmax(axis=1)], clear


def merged_measurements(known: Targets, groups: np.ndarray) -> tuple[Targets, np.ndarray]:
    """Return what the groups with a value or a limit are merged to, and which groups these are.

    That is the mean of their different measured values on the learned scale, with its noise, else
    their tightest limit. Groups of limits on both sides have no value and are no limit.
    """
    scale = known.record.scale
    if known.sample_weight is not None:
        raise GraphDataError(
            "Rows of the same molecule cannot be merged with a sample_weight: give their noise "
            "instead, or merge them before."
        )
    y, noise = known.learned(), known.learned_noise()
    signs = np.zeros(len(y), dtype=np.int64) if known.limits is None else known.limits
    counted = [_counted_rows(part, y, signs, noise) for part in members(groups)]
    clear = np.array([len(rows) > 0 for rows in counted], dtype=bool)
    counted = [rows for rows in counted if len(rows)]
    values = np.array([y[rows].mean() for rows in counted])
    known_std = None if noise is None else [noise[rows] for rows in counted]
    std = noise_of_means([y[rows] for rows in counted], known_std)
    if scale is not None:
        values = scale.inverse(values)
        std = None if std is None else std / scale.forward_std(values, np.ones(len(values)))
    single = np.array([len(rows) == 1 for rows in counted], dtype=bool)
    first = np.array([rows[0] for rows in counted], dtype=np.int64)
    values = np.where(single, known.numbers()[first], values)  # as it was given, not via logarithms
    merged = Targets(
        values,
        limits=signs[first],
        noise=std,
        transform=known.transform,
        name=known.name,
        unit=known.unit,
    )
    return merged, clear


def _counted_rows(
    part: np.ndarray, y: np.ndarray, signs: np.ndarray, noise: np.ndarray | None
) -> np.ndarray:
    """Return the rows of a group that make its value or limit; none where limits are on both sides.

    Equal values are one that was copied: of their rows, that of the least noise counts.
    """
    exact = part[signs[part] == 0]
    if len(exact):
        if noise is not None:
            exact = exact[np.argsort(noise[exact], kind="stable")]
        return exact[np.unique(y[exact], return_index=True)[1]]
    if len(np.unique(signs[part])) > 1:
        return part[:0]
    return part[[np.argmax(signs[part] * y[part])]]


def noise_of_means(
    values: Sequence[np.ndarray], known: Sequence[np.ndarray] | None = None
) -> np.ndarray | None:
    """Return the standard deviation of the mean of each group's values; None if it is not known.

    From those ``known`` of the values, else from the spread of replicates, pooled over all groups
    by a median, in which single mistakes do not count.
    """
    counts = np.array([len(part) for part in values])
    if known is not None:
        return np.array([np.sqrt((std**2).sum()) / len(std) for std in known])
    from scipy.stats import chi2

    if (counts - 1).sum() < _FEWEST_REPLICATES:
        return None
    several = np.flatnonzero(counts > 1)
    squares = [((v := values[int(k)]) - v.mean()) @ (v - v.mean()) for k in several]
    pooled = float(np.median(squares / chi2.median(counts[several] - 1)))
    return np.sqrt(pooled / counts)
