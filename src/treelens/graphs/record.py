"""The record of a table that a model keeps: columns, transform and unit of the target, counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.errors import GraphDataError


@dataclass(frozen=True)
class TableRecord:
    """Where molecules and their targets were read from.

    Parameters
    ----------
    source : str or None
        The name of the file, without its folder.
    smiles, target : str or None
        Columns.
    ids : tuple of str
        Columns that name the rows.
    task : str or None
        ``"regression"`` or ``"classification"``.
    transform : str or None
        The scale that numbers are learned on: ``"log10"`` or ``"ln"``. A regressor applies it to
        ``y`` in ``fit`` and inverts it in ``predict``.
    units : str or None
        Of the target, as its column has it.
    counts : mapping of str to int
        What was done about rows, in words, and to how many.

    Examples
    --------
    >>> record = TableRecord("x.csv", "Structure", "IC50", transform="log10", units="nM")
    >>> record.target_in_words
    "log10 of 'IC50' (nM)"
    """

    source: str | None = None
    smiles: str | None = None
    target: str | None = None
    ids: tuple[str, ...] = ()
    task: str | None = None
    transform: str | None = None
    units: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def target_in_words(self) -> str:
        in_name = self.units is None or self.units in (self.target or "")
        words = f"{self.target!r}" + ("" if in_name else f" ({self.units})")
        return words if self.transform is None else f"{self.transform} of {words}"


class Transform(NamedTuple):
    """A scale that numbers are learned on; ``base`` is the base of the logarithm.

    It increases, so that lower limits stay lower limits.

    Examples
    --------
    >>> scale = transform_named("log10")
    >>> scale.forward(np.array([100.0])).tolist(), scale.inverse(np.array([2.0])).tolist()
    ([2.0], [100.0])
    """

    name: str
    base: float
    forward: Callable[[np.ndarray], np.ndarray]

    def inverse(self, values: np.ndarray) -> np.ndarray:
        """Return values in the units of the table."""
        return np.power(self.base, values)

    def inverse_std(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return standard deviations in the units of the table, of log-normal variables."""
        mean, variance = mean * np.log(self.base), (std * np.log(self.base)) ** 2
        return np.exp(mean + variance / 2) * np.sqrt(np.expm1(variance))

    def forward_std(self, values: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return small standard deviations of values in units of the table, on this scale."""
        return std / (values * np.log(self.base))

    def inverse_cov(self, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Return covariances in the units of the table, of log-normal variables."""
        mean, cov = mean * np.log(self.base), cov * np.log(self.base) ** 2
        expected = np.exp(mean + np.diagonal(cov) / 2)
        return np.outer(expected, expected) * np.expm1(cov)

    def checked(self, y: np.ndarray, place: Callable[[int], str]) -> np.ndarray:
        """Return numbers on the scale, or raise an error that names the first not above 0."""
        wrong = np.flatnonzero(~(np.isnan(y) | (y > 0)))
        if len(wrong):
            first = int(wrong[0])
            raise GraphDataError(
                f"transform={self.name!r} needs values above 0, but {place(first)} is "
                f"{y[first]:g} ({len(wrong)} such values). Correct or remove them, or leave the "
                "transform out."
            )
        return self.forward(y)


def transform_named(name: str | None) -> Transform | None:
    """Return the transform ``"log10"`` or ``"ln"``; None for None and ``"none"``."""
    known = {"log10": Transform("log10", 10.0, np.log10), "ln": Transform("ln", np.e, np.log)}
    if name in (None, "none"):
        return None
    if name not in known:
        raise ValueError(f"transform must be one of none, {', '.join(known)}; got {name!r}.")
    return known[name]


def learned_transform(recipe: Any) -> Transform | None:
    """Return the transform in the record of a recipe; None where there is none."""
    table = None if recipe is None else recipe.table
    return None if table is None else transform_named(table.transform)
