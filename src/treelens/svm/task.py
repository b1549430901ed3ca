"""What a classifier is to be chosen and fitted for: data and settings, resolved, in one piece."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.svm.svm import class_weights


@dataclass(frozen=True, eq=False)
class Task:
    """Graphs, classes, and everything about the search but its candidates.

    Attributes
    ----------
    graphs : GraphCollection
    classes : ndarray
    codes : ndarray of int, shape (n_graphs,)
    edge_labels : bool
    first_depth : int
    learner : Any
        Unfitted; its radius is set by the search.
    scoring : str
        A key of ``treelens.svm.search.SCORES``.
    class_weight : None, "balanced" or dict
    cv : int or splitter
    seed : int
    n_jobs : int
    progress : bool or None
    approximation : str or None
    n_components : int
    """

    graphs: GraphCollection
    classes: np.ndarray
    codes: np.ndarray
    edge_labels: bool
    first_depth: int
    learner: Any
    scoring: str
    class_weight: Any
    cv: Any
    seed: int
    n_jobs: int = 1
    progress: bool | None = False
    approximation: str | None = None
    n_components: int = 2048

    @cached_property
    def sample_weight(self) -> np.ndarray:
        """One weight per graph."""
        return class_weights(self.class_weight, self.classes, self.codes)
