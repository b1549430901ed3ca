"""What a fitted model keeps of the graphs it was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treelens.patterns.histograms import PatternHistograms, usual_out_of_vocabulary


@dataclass(frozen=True, eq=False)
class TrainingGraphs:
    """Counts and targets of the training graphs.

    Attributes
    ----------
    histograms : PatternHistograms
        Of the depths in use.
    targets : ndarray, shape (n_graphs,)
        Class codes, or values.
    n_in_all : int or None
        How many graphs the model was fitted to, where these are a sample of them.
    limits : ndarray of int, shape (n_graphs,), or None
        1 where a value is a lower limit, -1 where it is an upper one, 0 where it is exact.
    """

    histograms: PatternHistograms
    targets: np.ndarray
    n_in_all: int | None = None
    limits: np.ndarray | None = None

    @property
    def exact(self) -> np.ndarray | slice:
        """Which values are measured, not limits: the graphs that scores are about."""
        return slice(None) if self.limits is None else self.limits == 0

    def sign(self, index: int) -> str:
        """``">"`` or ``"<"`` where the value of a graph is a limit, else empty."""
        return "" if self.limits is None else ("", ">", "<")[self.limits[index]]

    @cached_property
    def usual_out_of_vocabulary(self) -> float:
        """The out-of-vocabulary fraction that a graph like these rarely exceeds."""
        return usual_out_of_vocabulary(self.histograms)
