"""Rows of the same molecule: which measurements are one, and what they are merged to.

Groups are given by the first row of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treelens.graphs.targets import is_number
from treelens.targets import Targets

_FEWEST_REPLICATES = 10  # degrees of freedom that a spread is estimated from


def same_measurements(groups: np.ndarray, columns: Sequence[Iterable[Any]]) -> np.ndarray:
    """Return groups of the same molecule under the same covariates."""

    def value(text: Any) -> Any:  # 25 and 25.0 are the same temperature
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


def merged_measurements(known: Targets, groups: np.ndarray) -> Targets:
    """Return the mean or tightest limit of each group on the learned scale, and its noise."""
    y, scale, record = known.learned(), known.record.scale, known.record
    signs = np.zeros(len(y), dtype=np.int64) if known.limits is None else known.limits
    values, merged_signs, counted = _merged_numbers(y, signs, groups)
    # limits beside measured values are no replicates
    alone = np.where(counted, groups, len(groups) + np.arange(len(groups)))
    std = noise_of_means(y, alone, known.learned_noise())
    std = None if std is None else std[: len(values)]
    if scale is not None:
        values = scale.inverse(values)
        std = None if std is None else std / scale.forward_std(values, np.ones(len(values)))
    return Targets(
        values,
        limits=merged_signs,
        noise=std,
        transform=record.transform,
        name=record.name,
        unit=record.unit,
    )


def _merged_numbers(
    y: np.ndarray, limits: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean or tightest limit of each group, its sign, and which rows (n,) made it."""
    parts = members(groups)
    values, signs, counted = np.empty(len(parts)), np.zeros(len(parts), np.int64), limits == 0
    for k, part in enumerate(parts):
        exact, lower, upper = (y[part][limits[part] == sign] for sign in (0, 1, -1))
        if len(exact):
            values[k] = exact.mean()
            continue
        counted[part[np.argmax(limits[part] * y[part])]] = True
        ends = [f(some) for f, some in ((np.max, lower), (np.min, upper)) if len(some)]
        values[k], signs[k] = np.mean(ends), bool(len(lower)) - bool(len(upper))
    return values, signs, counted


def noise_of_means(
    y: np.ndarray, groups: np.ndarray, known: np.ndarray | None = None
) -> np.ndarray | None:
    """Return the standard deviation of the mean of each group; None where it is not known.

    From those ``known`` of the values, else from the spread of replicates, pooled over all groups
    by a median, in which single mistakes do not count. Equal values are one that was copied.
    """
    parts = members(groups)
    if known is not None:
        return np.array([np.sqrt((known[part] ** 2).sum()) / len(part) for part in parts])
    from scipy.stats import chi2

    counts = np.array([len(np.unique(y[part])) for part in parts])
    if (counts - 1).sum() < _FEWEST_REPLICATES:
        return None
    several = np.flatnonzero(counts > 1)
    squares = [((u := np.unique(y[parts[k]])) - u.mean()) @ (u - u.mean()) for k in several]
    pooled = float(np.median(squares / chi2.median(counts[several] - 1)))
    return np.sqrt(pooled / counts)
