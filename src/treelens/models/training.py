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
    """

    histograms: PatternHistograms
    targets: np.ndarray
    n_in_all: int | None = None

    @cached_property
    def usual_out_of_vocabulary(self) -> float:
        """The out-of-vocabulary fraction that a graph like these rarely exceeds."""
        return usual_out_of_vocabulary(self.histograms)
