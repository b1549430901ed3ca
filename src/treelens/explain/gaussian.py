"""A fitted Gaussian process as something that can be explained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelens.explain.contributions import FoundPatterns, usual_unseen_share
from treelens.explain.paths import KernelSums, PathSlopes, mixture_slopes
from treelens.graphs.collection import GraphCollection
from treelens.models.gaussian_process import FittedModel
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
    def self_sums(self) -> np.ndarray:
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
    def unseen_limit(self) -> float:
        return usual_unseen_share(self.model.basis)

    def pattern_ids(self, patterns: np.ndarray) -> np.ndarray:
        return patterns

    def find(self, graph: GraphCollection) -> FoundPatterns:
        """The known patterns of one graph, and what the others add to its own sum."""
        weighted = self.model.weighted
        colors = weighted.forest.transform(graph)
        weighed = weighted.features(colors)
        known = float(weighed.pairs.self_sums(weighted.weights)[0])
        unseen = max(float(weighed.diagonal[0]) - known, 0.0)
        return FoundPatterns(colors.colors, weighed.histograms, weighed.pairs, unseen)

    def slopes(self, sums: KernelSums) -> PathSlopes:
        return mixture_slopes(self.model.scales, sums)

    def facts_of_training(self, picked: np.ndarray) -> dict[str, np.ndarray]:
        targets = self.training_targets[picked]
        if self.classes is None:
            return {"value": targets}
        return {"class_label": self.classes[targets]}
