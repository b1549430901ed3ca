"""A fitted SVM on graphs, frozen: patterns, kernel, coefficients, calibration, search record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

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
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import KernelExpansion, Predictions, TrainingGraphs
from treelens.pairwise.bounds import fitted_bound
from treelens.pairwise.learn import LearnedWeights, PairwiseWeights
from treelens.patterns.features import Features, PatternExtractor
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.svm.search import BestParams, SearchResult
from treelens.svm.solver import SVM, calibrated_probabilities, decisions_of, margins_of


@dataclass(frozen=True, eq=False)
class LinearOnKernel:
    """Outputs that are linear in kernel values with the support vectors."""

    kernel: WeightedKernel
    basis_indices: np.ndarray  # of the support vectors among the training graphs
    svm: SVM


@dataclass(frozen=True, eq=False)
class Choice:
    """How a model was chosen."""

    best_params: BestParams
    learning_gain: dict[str, Any] | None
    cv_results: SearchResult
    learner: dict[str, Any] | None  # its parameters; None if it is not a PairwiseWeights
    learned: LearnedWeights | None  # its record; None with uniform weights

    def to_stored(self) -> Choice:
        """Return all scores, and held-out decisions of the best candidate of each kind only."""
        search = self.cv_results
        best = [search.best(keep) for keep in (
            lambda c: True, lambda c: c.weight_radius == 0, lambda c: c.weight_radius > 0
        )]  # fmt: skip
        decisions = {c: x for c, x in search.decisions.items() if c in best}
        return replace(self, cv_results=replace(search, decisions=decisions, margins={}))

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
            for name in ("difference", "learned_score", "uniform_score", "standard_error",
                         "p_value"):  # fmt: skip
                value = self.learning_gain[name]
                alone = search.n_splits == 1 and name in ("standard_error", "p_value")
                if not alone or value is not None:  # one split has no spread
                    check_array(np.array(value), name, np.float64, (), -LARGEST)


@dataclass(frozen=True, eq=False)
class FittedSVM:
    """All that predictions, explanations, reports and model files need."""

    classes: np.ndarray
    patterns: PatternExtractor  # the vocabulary, and what the kernel takes from it
    decision: LinearOnKernel
    recipe: GraphRecipe | None  # how the training graphs were made
    calibration: tuple[np.ndarray, np.ndarray]  # a logistic map from margins to probabilities
    training: TrainingGraphs
    choice: Choice

    def validate(self) -> None:
        """Raise ``ValueError`` where the parts of a stored model do not fit together."""
        check_classes_ascend(self.classes)
        histograms, first = self.training.histograms, self.patterns.first_depth
        n_classes, n_graphs = len(self.classes), histograms.n_graphs
        indices = self.decision.basis_indices
        offsets = self.patterns.forest.level_offsets
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

    @property
    def kernel(self) -> WeightedKernel:
        return self.decision.kernel

    @property
    def weights(self) -> np.ndarray:
        """One weight per pattern in use, shape (n_patterns,)."""
        if self.kernel.weights is not None:
            return self.kernel.weights
        offsets = self.patterns.forest.level_offsets
        return np.ones(int(offsets[-1] - offsets[self.patterns.first_depth]))

    @cached_property
    def training_graphs(self) -> Features:
        """Features of all training graphs, of which the support vectors are a part."""
        return self._features(self.training.histograms)

    @cached_property
    def basis(self) -> Features:
        """Features of the support vectors."""
        return self._features(self.training.histograms.select_graphs(self.decision.basis_indices))

    def _features(self, histograms: PatternHistograms) -> Features:
        pairs = self.patterns.pairs(histograms)
        return Features(pairs, pairs.diagonal(self.kernel.weights))

    @cached_property
    def expansion(self) -> KernelExpansion:
        """Of several classes, the mean of the decisions for each against each other class."""
        return KernelExpansion(
            self.patterns.forest, self.patterns.first_depth, self.kernel, self.weights,
            self.basis, self.decision.basis_indices, *self.decision.svm.per_class,
            self.classes, partial(self.patterns.refine, weights=self.kernel.weights),
        )  # fmt: skip

    def decide(self, graphs: GraphCollection, *, n_jobs: int = 1) -> Predictions:
        """Decision values and probabilities of graphs, each of which is refined once."""
        seen = self.patterns.refine(graphs, self.kernel.weights, n_jobs)
        outputs = self.decision.svm.outputs(self.kernel.matrix(seen.features, self.basis, n_jobs))
        margins = margins_of(outputs)
        return Predictions(
            decisions_of(outputs), seen.histograms.out_of_vocabulary(), seen, margins,
            calibrated_probabilities(margins, *self.calibration),
        ).checked()  # fmt: skip


def model_bound(model: FittedSVM, delta: float) -> dict[str, Any]:
    """The generalisation bound of a fitted SVM; see ``GraphSVC.generalization_bound``."""
    codes, choice = model.training.targets, model.choice
    pairs = PairFeatures.from_histograms(model.training.histograms, model.patterns.kind)
    learner = PairwiseWeights.from_flat({**(choice.learner or {}), "n_jobs": 1})
    learned = choice.learned
    if learned is None:  # uniform weights: the margins are those it would have learned with
        learned = learner.set_params(radius=0.0).fit(pairs, codes).result_
    bound = fitted_bound(pairs, codes, learner, learned, delta)
    n_candidates = choice.best_params["n_candidates"]
    if n_candidates > 1:
        bound["caveats"].append(
            f"The model was chosen among {n_candidates} candidates by cross-validation on the "
            "same graphs; the theorems are about one fixed beforehand."
        )
    return bound
