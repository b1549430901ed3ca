"""Rows of the same molecule: which measurements are one, and what they are merged to.

Groups are given by the first row of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

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


class Replicates(NamedTuple):
    """How far repeated measurements of one molecule lie apart."""

    std: float  # of a single measurement, pooled over molecules, on the learned scale
    n_degrees: int  # of freedom: values beyond the first of each molecule
    usual: int  # values of a molecule, the median
    relative: bool = False  # whether ``std`` is a share of the value

    @property
    def is_known(self) -> bool:
        """Whether there are enough to set the noise of means."""
        return self.n_degrees >= _FEWEST_REPLICATES

    def in_words(self, scale: str | None) -> str:
        """Return what is done with it; ``scale`` is what it is on, where that is not the units."""
        size = f"{100 * self.std:.2g} % of the value" if self.relative else f"{self.std:.2g}"
        found = f"repeated measurements have a standard deviation of {size}"
        found += "" if scale is None else f" ({scale})"
        if not self.is_known:
            return (
                f"{found}, from too few to set the noise ({self.n_degrees} of at least "
                f"{_FEWEST_REPLICATES})"
            )
        bars = "no error bar is narrower"
        if self.usual > 1:
            bars = f"no error bar is narrower than that of a mean of {self.usual}, the usual number"
        return f"{found}, which is the noise of one value, and less for a mean of several: {bars}"


def merged_measurements(
    known: Targets, groups: np.ndarray
) -> tuple[Targets, np.ndarray, Replicates | None]:
    """Return what the groups with a value or a limit are merged to, and which groups these are.

    That is the mean of their different measured values on the learned scale, with its noise, else
    their tightest limit. Groups of limits on both sides have no value and are no limit.

    The noise is that of replicates where there are enough of them: the pooled variance of a single
    measurement divided by their number. It is in the model as known noise, on top of which the
    noise of the model is learned, so that the error bar of a molecule that was trained on is not
    below it. Where no scale is named yet, replicates of positive values may lie apart by a share of
    the value instead: of a logarithm, which ``fit`` may choose, the slope would make a noise of one
    size infinitely large near 0. A table with fewer replicates is learned from as if there were
    none, since a spread that is estimated from a few pairs may be that of a single mistake. The
    third item is that spread; None where no group has several values, or noise was given.
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
    parts, open_scale = [y[rows] for rows in counted], known.transform in (None, "auto")
    spread = None if noise is not None else _replicates(parts, may_be_relative=open_scale)
    std = (
        None if known_std is None else np.array([np.sqrt((x**2).sum()) / len(x) for x in known_std])
    )
    if spread is not None and spread.is_known:
        std = spread.std / np.sqrt([len(rows) for rows in counted])
        std = std * values if spread.relative else std
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
    return merged, clear, spread


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


def _replicates(values: Sequence[np.ndarray], may_be_relative: bool) -> Replicates | None:
    """Return the spread of each group's values; None where each has only one."""
    counts = np.array([len(part) for part in values])
    several = [values[int(k)] for k in np.flatnonzero(counts > 1)]
    if not several:
        return None
    relative = may_be_relative and _spread_is_relative(several)
    std = _pooled([np.log(part) for part in several] if relative else several)
    return Replicates(std, int((counts - 1).sum()), int(np.median(counts)), relative)


def _pooled(groups: Sequence[np.ndarray]) -> float:
    """Return the standard deviation within groups, by a median: single mistakes do not count."""
    from scipy.stats import chi2

    degrees = np.array([len(part) - 1 for part in groups])
    return float(np.sqrt(np.median(_squares(groups) / chi2.median(degrees))))


def _squares(groups: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum of squares within each group, shape (n_groups,)."""
    return np.array([((part - part.mean()) ** 2).sum() for part in groups])


def _spread_is_relative(groups: Sequence[np.ndarray]) -> bool:
    """Return whether a spread of one share of the value is more likely than one of one size."""
    if min(part.min() for part in groups) <= 0.0:
        return False
    degrees = np.array([len(part) - 1 for part in groups])
    logs = [np.log(part) for part in groups]
    of_size, of_share = (np.log(_squares(x).sum() / degrees.sum()) for x in (groups, logs))
    slopes = (degrees * [part.mean() for part in logs]).sum() / degrees.sum()
    return bool(0.5 * of_share + slopes < 0.5 * of_size)
