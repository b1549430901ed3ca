"""A fitted SVM on graphs, frozen: patterns, kernel, coefficients, calibration, search record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.recipe import GraphRecipe
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import Predictions
from treelens.models.training import TrainingGraphs
from treelens.pairwise.bounds import fitted_bound
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.result import LearnedWeights
from treelens.pairwise.settings import LearnerSettings
from treelens.patterns.features import Features, PatternExtractor
from treelens.patterns.pairs import PairFeatures
from treelens.svm.search import BestParams, SearchResult
from treelens.svm.solver import SVM, calibrated_probabilities, decisions_of, margins_of


class FittedModel(Protocol):
    """What all fitted models have in common."""

    @property
    def classes(self) -> np.ndarray | None: ...
    @property
    def recipe(self) -> GraphRecipe | None: ...
    @property
    def training(self) -> TrainingGraphs | None: ...
    @property
    def weights(self) -> np.ndarray: ...

    def decide(self, graphs: GraphCollection, *, n_jobs: int = 1) -> Predictions: ...


@dataclass(frozen=True, eq=False)
class LinearOnKernel:
    """Outputs that are linear in kernel values with the support vectors."""

    kernel: WeightedKernel
    basis: Features  # of the support vectors
    basis_indices: np.ndarray  # their positions among the training graphs
    svm: SVM

    def outputs(self, features: Features, n_jobs: int = 1) -> np.ndarray:
        """Outputs for graphs, shape (n_graphs, n_outputs)."""
        return self.svm.outputs(self.kernel.matrix(features, self.basis, n_jobs))


@dataclass(frozen=True, eq=False)
class Choice:
    """How a model was chosen.

    Attributes
    ----------
    best_params : BestParams
    learning_gain : dict or None
    cv_results : SearchResult
    learner : dict or None
        Parameters of the learner of the search; None for one that is not a PairwiseWeights.
    learned : LearnedWeights or None
        The record of the fitted learner; None with uniform weights.
    """

    best_params: BestParams
    learning_gain: dict[str, Any] | None
    cv_results: SearchResult
    learner: dict[str, Any] | None
    learned: LearnedWeights | None


@dataclass(frozen=True, eq=False)
class FittedSVM:
    """All that predictions, explanations, reports and model files need.

    Attributes
    ----------
    classes : ndarray
    patterns : PatternExtractor
        The vocabulary, and what the kernel takes from it.
    decision : LinearOnKernel
    recipe : GraphRecipe or None
        How the training graphs were made.
    calibration : (coefficients, intercepts)
        A logistic map from margins to probabilities.
    training : TrainingGraphs
    choice : Choice
    """

    classes: np.ndarray
    patterns: PatternExtractor
    decision: LinearOnKernel
    recipe: GraphRecipe | None
    calibration: tuple[np.ndarray, np.ndarray]
    training: TrainingGraphs
    choice: Choice

    @property
    def kernel(self) -> WeightedKernel:
        return self.decision.kernel

    @property
    def weights(self) -> np.ndarray:
        """One weight per pattern in use, shape (n_patterns,)."""
        if self.kernel.weights is not None:
            return self.kernel.weights
        offsets = self.patterns.vocabulary.level_offsets
        return np.ones(int(offsets[-1] - offsets[self.patterns.first_depth]))

    def decide(self, graphs: GraphCollection, *, n_jobs: int = 1) -> Predictions:
        """Decision values and probabilities of graphs, each of which is refined once."""
        seen = self.patterns.look_at(graphs, self.kernel.weights, n_jobs)
        outputs = self.decision.outputs(seen.features, n_jobs)
        margins = margins_of(outputs)
        return Predictions(
            decisions_of(outputs), seen.histograms.out_of_vocabulary(), seen, margins,
            calibrated_probabilities(margins, *self.calibration),
        ).checked()  # fmt: skip


def model_bound(model: FittedSVM, delta: float) -> dict[str, Any]:
    """The generalisation bound of a fitted SVM; see ``GraphSVC.generalization_bound``."""
    training, choice = model.training, model.choice
    pairs = PairFeatures.from_histograms(training.histograms, model.patterns.kind)
    parameters = {**(choice.learner or {}), "n_jobs": 1}
    learned = choice.learned
    if learned is None:  # uniform weights: the margins are those it would have learned with
        parameters["radius"] = 0.0
        learned = learn_weights(pairs, training.targets, **parameters)
    settings = LearnerSettings(**parameters)
    bound = fitted_bound(pairs, training.targets, settings, learned, delta)
    if choice.best_params["n_candidates"] > 1:
        bound["caveats"].append(
            f"The model was chosen among {choice.best_params['n_candidates']} candidates by "
            "cross-validation on the same graphs; the theorems are about one fixed beforehand."
        )
    return bound
