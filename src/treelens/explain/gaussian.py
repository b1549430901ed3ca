"""A fitted Gaussian process as something that can be explained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from treelens.explain.contributions import FoundPatterns, pattern_effects, usual_out_of_vocabulary
from treelens.explain.paths import KernelSums, PathSlopes, mixture_slopes
from treelens.graphs.collection import GraphCollection
from treelens.models.gaussian_process import FittedModel, WeighedGraphs
from treelens.patterns.forest import PatternForest
from treelens.patterns.pairs import PairFeatures


@dataclass(frozen=True, eq=False)
class GaussianDecision:
    """The kernel expansion behind a Gaussian process's predictions.

    Attributes
    ----------
    model : FittedModel
    training_targets : ndarray, shape (n_basis,)
        Class codes or values of the graphs that the expansion runs over.
    classes : ndarray or None
        None where numbers are predicted.
    """

    model: FittedModel
    training_targets: np.ndarray
    classes: np.ndarray | None = None

    @property
    def vocabulary(self) -> PatternForest:
        return self.model.weighted.forest

    @property
    def level_depths(self) -> np.ndarray:
        return self.vocabulary.level_depths

    @property
    def weights(self) -> np.ndarray:
        return self.model.weighted.weights

    @property
    def offset(self) -> float:
        return 0.0

    @property
    def gamma(self) -> float | None:
        return None

    @property
    def pairs(self) -> PairFeatures:
        return self.model.basis_graphs.pairs

    @property
    def diagonal(self) -> np.ndarray:
        return self.model.basis_graphs.diagonal

    @property
    def coefficients(self) -> np.ndarray:
        return self.model.coefficients

    @property
    def intercepts(self) -> np.ndarray:
        return self.model.target_offset

    @property
    def votes(self) -> None:
        """Classes are decided by the largest value, not by votes."""
        return None

    @property
    def training_indices(self) -> np.ndarray:
        return self.model.basis_indices

    @property
    def out_of_vocabulary_limit(self) -> float:
        return usual_out_of_vocabulary(self.model.basis)

    def pattern_ids(self, patterns: np.ndarray) -> np.ndarray:
        return patterns

    def find(self, graph: GraphCollection) -> FoundPatterns:
        """The known patterns of one graph, and what the others add to its own sum."""
        weighted = self.model.weighted
        colors = weighted.forest.transform(graph)
        weighed = weighted.features(colors)
        known = float(weighed.pairs.diagonal(weighted.weights)[0])
        unseen = max(float(weighed.diagonal[0]) - known, 0.0)
        return FoundPatterns(colors.colors, weighed.histograms, weighed.pairs, unseen)

    def effects(self, graphs: WeighedGraphs) -> sparse.csr_array:
        """What every pattern adds to the prediction of every graph: (n_graphs, n_patterns).

        The contributions of ``explain`` without the rest, from counts alone.
        """
        weights = self.model.weighted.weights
        unseen = np.maximum(graphs.diagonal - graphs.pairs.diagonal(weights), 0.0)
        patterns, values = [], []
        for k in range(graphs.histograms.n_graphs):
            histograms = graphs.histograms.select_graphs(np.array([k]))
            pairs = PairFeatures.of_counts(histograms)
            found = FoundPatterns(np.empty((0, 0)), histograms, pairs, float(unseen[k]))
            patterns.append(found.patterns)
            values.append(pattern_effects(found, self))
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in patterns])])
        shape = (len(patterns), len(weights))
        return sparse.csr_array(
            (np.concatenate(values), np.concatenate(patterns), offsets), shape=shape
        )

    def slopes(self, sums: KernelSums) -> PathSlopes:
        return mixture_slopes(self.model.scales, sums)

    def facts_of_patterns(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        return {"tree": self.vocabulary.tree_names(ids)}

    def facts_of_training(self, picked: np.ndarray) -> dict[str, np.ndarray]:
        targets = self.training_targets[picked]
        if self.classes is None:
            return {"value": targets}
        return {"class_label": self.classes[targets]}
