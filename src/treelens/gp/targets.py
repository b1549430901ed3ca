"""Targets of a Gaussian process: numbers centred and scaled, classes as columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Targets that differ by less than this part of their size are constant.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets centred and, if they are numbers, of unit size, with the way back.

    Attributes
    ----------
    values : ndarray, shape (n_graphs, n_columns)
    offset : ndarray, shape (n_columns,)
    scale : float
    weights : ndarray, shape (n_graphs,)
        Sample weights: a graph's noise variance is divided by its weight.
    limits : ndarray of int, shape (n_graphs,), optional
        1 where the value is a lower limit, -1 where it is an upper one, else 0; None without any.
    """

    values: np.ndarray
    offset: np.ndarray
    scale: float
    weights: np.ndarray
    limits: np.ndarray | None = None

    @classmethod
    def standardized(cls, raw: np.ndarray, weights: np.ndarray, scale: float | None) -> Targets:
        """Centre the columns of ``raw``; without a ``scale``, divide by their deviation."""
        offset = np.average(raw, axis=0, weights=weights)
        centred = raw - offset
        if scale is None:
            scale = float(np.sqrt(np.average((centred**2).mean(axis=1), weights=weights)))
        if scale <= _CONSTANT * float(np.abs(raw).max(initial=0.0)):  # rounding is no spread
            return cls(np.zeros_like(centred), offset, 1.0, weights)
        return cls(centred / scale, offset, scale, weights)

    def alike(self, raw: np.ndarray, weights: np.ndarray) -> Targets:
        """Targets of other graphs, with the offset and the scale of these."""
        return Targets((raw - self.offset) / self.scale, self.offset, self.scale, weights)

    def select(self, indices: np.ndarray | slice) -> Targets:
        limits = None if self.limits is None else self.limits[indices]
        if limits is not None and not limits.any():
            limits = None
        values, weights = self.values[indices], self.weights[indices]
        return Targets(values, self.offset, self.scale, weights, limits)


def class_columns(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes as numbers: ±1 for two, else +1 against -1 / (n_classes - 1) in each column."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    columns = np.full((len(codes), n_classes), -1.0 / (n_classes - 1))
    columns[np.arange(len(codes)), codes] = 1.0
    return columns
