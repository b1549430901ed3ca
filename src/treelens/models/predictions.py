"""What all fitted models have in common, and their predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.recipe import GraphRecipe
from treelens.models.thresholds import Threshold
from treelens.models.training import TrainingGraphs
from treelens.patterns.features import Features, RefinedGraphs
from treelens.patterns.forest import PatternForest


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """Outputs that are linear in kernel values: ``intercepts + coefficients @ k(graph, basis)``.

    Two classes share one output, positive for the second; more have one output each.
    """

    forest: PatternForest
    first_level: int  # of the forest that the kernel uses; its first pattern is number 0 here
    kernel: Any  # WeightedKernel or MixtureKernel
    weights: np.ndarray  # (n_patterns,) of the patterns from first_level on
    basis: Features  # of the n training graphs that have a coefficient
    basis_indices: np.ndarray  # (n,) their positions in the training set
    coefficients: np.ndarray  # (n_outputs, n)
    intercepts: np.ndarray  # (n_outputs,)
    classes: np.ndarray | None  # None for regression
    refine: Callable[..., RefinedGraphs]  # from graphs and n_jobs
    # Of n_jobs: the upper Cholesky factor of the covariance of the targets; None where predictions
    # without a training graph have no closed form.
    factor: Callable[[int], np.ndarray | None] = lambda n_jobs: None

    @property
    def first_pattern(self) -> int:
        """Id in the forest of the first pattern in use."""
        return int(self.forest.level_offsets[self.first_level])


class FittedModel(Protocol):
    """A fitted SVM or Gaussian process, as predictions, explanations, reports and files see it."""

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

    @property
    def expansion(self) -> KernelExpansion:
        """The outputs as sums over training graphs, which explanations divide among patterns."""

    def decide(self, graphs: GraphCollection, *, n_jobs: int = 1) -> Predictions:
        """Return the predictions of graphs, each refined once."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of new graphs, shape (n_graphs, ...) each."""

    decisions: np.ndarray  # (.., n_columns) decision values, one column for two classes; or numbers
    out_of_vocabulary: np.ndarray  # (..,) fraction of patterns that training never saw
    graphs: RefinedGraphs  # as the model sees them, for contributions on demand
    # What is linear in the kernel: ``decisions``, but of an SVM with several classes, whose
    # decision values count votes, the mean margin of every class.
    margins: np.ndarray  # (.., n_columns)
    probabilities: np.ndarray | None = None  # (.., n_classes)
    variance: np.ndarray | None = None  # (..,) of a new target, noise included, if asked for
    threshold: Threshold | None = None  # None: the class of the largest decision value is named
    from_covariates: np.ndarray | None = None  # (.., n_columns) what covariates add to decisions

    @property
    def mean(self) -> np.ndarray:
        """The decision values by the name they have of a Gaussian process: posterior means."""
        return self.decisions

    @property
    def predicted_codes(self) -> np.ndarray:
        """Classes as positions in the model's list of them, shape (n_graphs,)."""
        if self.threshold is None:
            return predicted_codes(self.decisions)
        assert self.probabilities is not None
        return self.threshold.name(self.probabilities)

    def checked(self) -> Predictions:
        """Return these predictions, or raise an error where one is not finite."""
        for values in (self.decisions, self.margins, self.probabilities, self.variance):
            if values is not None and not np.isfinite(values).all():
                row = int(np.argwhere(~np.isfinite(values))[0, 0])
                raise ValueError(
                    f"The decision value of graph {row} is not a finite number: the model's "
                    "weights, gamma or coefficients are out of any sensible range. Fit the model "
                    "again, with a smaller gamma; if it came from a file, get the file from a "
                    "source you trust."
                )
        return self


def predicted_codes(decisions: np.ndarray) -> np.ndarray:
    """Class codes from decision values, shape (n,)."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(int)
    return decisions.argmax(axis=1)
