"""What all fitted models have in common."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.recipe import GraphRecipe
from treelens.models.predictions import Predictions
from treelens.models.training import TrainingGraphs
from treelens.patterns.features import Features


class FittedModel(Protocol):
    """A fitted SVM or Gaussian process, as predictions, reports and files see it."""

    @property
    def classes(self) -> np.ndarray | None:
        """None where numbers are predicted."""

    @property
    def recipe(self) -> GraphRecipe | None:
        """How the training graphs were made."""

    @property
    def training(self) -> TrainingGraphs | None:
        """Counts and targets of the training graphs."""

    @property
    def training_graphs(self) -> Features:
        """Features of all training graphs."""

    @property
    def weights(self) -> np.ndarray:
        """One weight per pattern in use, shape (n_patterns,)."""

    def decide(self, graphs: GraphCollection, *, n_jobs: int = 1) -> Predictions:
        """Return the predictions of graphs, each refined once."""
