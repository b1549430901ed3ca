"""A fitted classifier, frozen: patterns, kernel, coefficients, calibration, and how it was chosen.

Support vector machines and linear models on explicit features differ in one part, what turns
features into outputs (``decision``). Everything that predicts, explains, reports or stores reads
this and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from treelens.array_checks import (
    LARGEST,
    check_array,
    check_classes_ascend,
    check_positions,
    check_positive,
)
from treelens.graphs.collection import GraphCollection
from treelens.graphs.recipe import GraphRecipe
from treelens.kernels.table import KERNELS
from treelens.kernels.voting import class_values, mean_margins
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import Predictions
from treelens.models.training import TrainingGraphs
from treelens.pairwise.result import LearnedWeights
from treelens.patterns.features import Features, PatternExtractor
from treelens.svm.linear_on_features import LinearOnFeatures
from treelens.svm.search_result import BestParams, SearchResult
from treelens.svm.svm import SVM, calibrated_probabilities


class FittedModel(Protocol):
    """What all fitted models have in common: they decide on graphs, and refine them once."""

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
    """Outputs that are linear in kernel values with some training graphs: an SVM, or Nyström.

    Attributes
    ----------
    kernel : WeightedKernel
    basis : Features
        Of the training graphs that carry it: support vectors, or landmarks.
    basis_indices : ndarray of int
        Where these stood among the training graphs.
    svm : SVM
        Coefficients and intercepts.
    """

    __derived__ = ("basis",)

    kernel: WeightedKernel
    basis: Features
    basis_indices: np.ndarray
    svm: SVM

    @property
    def pairwise(self) -> bool:
        return self.svm.pairwise

    def outputs(self, features: Features, n_jobs: int = 1) -> np.ndarray:
        """Outputs for graphs, shape (n_graphs, n_outputs)."""
        return self.svm.outputs(self.kernel.matrix(features, self.basis, n_jobs))


@dataclass(frozen=True, eq=False)
class Choice:
    """How a model came about, for those who want to know.

    Attributes
    ----------
    best_params : BestParams
    learning_gain : dict or None
    cv_results : SearchResult
    learner : dict or None
        Parameters of the learner that the search had; None: one that is not ours.
    learned : LearnedWeights or None
        What it recorded; None with uniform weights.
    """

    best_params: BestParams
    learning_gain: dict[str, Any] | None
    cv_results: SearchResult
    learner: dict[str, Any] | None
    learned: LearnedWeights | None

    def to_stored(self) -> Choice:
        """Return all scores, and held-out decisions of the best candidate of each kind only."""
        search = self.cv_results
        best = [search.best(keep) for keep in (
            lambda c: True, lambda c: c.weight_radius == 0, lambda c: c.weight_radius > 0
        )]  # fmt: skip
        scores, losses = (
            {c: [float(x) for x in values] for c, values in record.items()}
            for record in (search.scores, search.losses)
        )
        decisions = {c: x for c, x in search.decisions.items() if c in best}
        kept = replace(search, scores=scores, losses=losses, decisions=decisions, margins={})
        return replace(self, cv_results=kept)

    def validate(self) -> None:
        search = self.cv_results
        check_positive(search.n_splits, "n_splits", 1e6)
        check_positive(search.test_to_train, "test_to_train", zero=True)
        for candidate, scores in search.scores.items():
            known = candidate.kernel in KERNELS and candidate.depth >= 0
            n_losses = len(search.losses.get(candidate, ()))
            if not known or not n_losses == len(scores) <= search.n_splits:
                raise ValueError("candidates must have a known kernel, and a score per split")
        if set(search.decisions) - set(search.scores) or search.best() is None:
            raise ValueError("one candidate must have been scored on all splits")
        if self.learning_gain is not None:
            for name in (
                "difference", "standard_error", "p_value", "learned_score", "uniform_score",
            ):  # fmt: skip
                check_array(np.array(self.learning_gain[name]), name, np.float64, (), -LARGEST)


@dataclass(frozen=True, eq=False)
class FittedSVM:
    """Everything that predicting, explaining, reporting and storing need.

    Attributes
    ----------
    classes : ndarray
    patterns : PatternExtractor
        The vocabulary, and what the kernel takes from it.
    decision : LinearOnKernel or LinearOnFeatures
    recipe : GraphRecipe or None
        What made the training graphs.
    calibration : (coefficients, intercepts)
        A logistic map from margins to probabilities.
    training : TrainingGraphs
    choice : Choice
    """

    classes: np.ndarray
    patterns: PatternExtractor
    decision: LinearOnKernel | LinearOnFeatures
    recipe: GraphRecipe | None
    calibration: tuple[np.ndarray, np.ndarray]
    training: TrainingGraphs
    choice: Choice

    def validate(self) -> None:
        """Raise ``ValueError`` where the parts of a stored model do not fit together."""
        check_classes_ascend(self.classes)
        histograms, first = self.training.histograms, self.patterns.first_depth
        assert isinstance(self.decision, LinearOnKernel)
        n_classes, n_graphs, indices = (
            len(self.classes), histograms.n_graphs, self.decision.basis_indices,
        )  # fmt: skip
        offsets = self.patterns.vocabulary.level_offsets
        if not 0 <= first < len(offsets) - 1 or histograms.first_depth != first:
            raise ValueError("first_depth must be a depth of the vocabulary, and the histograms'")
        if not np.array_equal(histograms.level_offsets, offsets[first:] - offsets[first]):
            raise ValueError("the histograms must count the patterns of the vocabulary")
        if self.patterns.kind != self.kernel.pair_feature:
            raise ValueError("the kind of pair feature must be that of the kernel")
        check_array(self.weights, "weights", np.float64, (histograms.n_patterns,))
        check_array(self.training.targets, "targets", np.int64, (n_graphs,), 0, n_classes)
        check_positions(indices, "basis_indices", n_graphs)
        svm, n_pairs = self.decision.svm, n_classes * (n_classes - 1) // 2
        check_array(svm.coefficients, "coefficients", np.float64, (n_pairs, len(indices)))
        check_array(svm.intercepts, "intercepts", np.float64, (n_pairs,))
        if svm.pairwise != (n_classes > 2):
            raise ValueError("several classes must be decided one against one")
        n_outputs = 1 if n_classes == 2 else n_classes
        check_array(self.calibration[0], "calibration", np.float64, (n_outputs, n_outputs))
        check_array(self.calibration[1], "calibration", np.float64, (n_outputs,))
        for held_out in self.choice.cv_results.decisions.values():
            check_array(held_out, "decisions", np.float64, (n_graphs, n_outputs))
        learned = self.choice.learned
        if (learned is None) != (self.kernel.weights is None):
            raise ValueError("learned weights must be those of the kernel")
        if learned is not None and len(learned.moved) != histograms.n_depths:
            raise ValueError("moved must have one entry per depth")

    def from_stored(self) -> FittedSVM:
        """Return the model with the features of its basis graphs, which files leave out."""
        decision = self.decision
        assert isinstance(decision, LinearOnKernel)
        counts = self.training.histograms.select_graphs(decision.basis_indices)
        pairs = self.patterns.pairs(counts)
        basis = Features(pairs, pairs.diagonal(self.kernel.weights))
        return replace(self, decision=replace(decision, basis=basis))

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
        """Decision values and probabilities of new graphs: every graph is refined once."""
        seen = self.patterns.look_at(graphs, self.kernel.weights, n_jobs)
        outputs = self.decision.outputs(seen.features, n_jobs)
        decisions = margins = outputs
        if self.decision.pairwise:
            decisions, margins = class_values(outputs), mean_margins(outputs.T).T
        probabilities = calibrated_probabilities(margins, *self.calibration)
        return Predictions(
            decisions, seen.histograms.out_of_vocabulary(), seen, margins, probabilities
        ).checked()
