"""A fitted Gaussian process as something that can be explained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treelens.explain.expansion import FoundPatterns
from treelens.explain.paths import KernelSums, PathSlopes, mixture_slopes
from treelens.gp.model import FittedGP
from treelens.graphs.collection import GraphCollection
from treelens.patterns.features import SeenGraphs
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import usual_out_of_vocabulary
from treelens.patterns.pairs import PairFeatures


@dataclass(frozen=True, eq=False)
class GaussianDecision:
    """The kernel expansion behind a Gaussian process's predictions.

    Attributes
    ----------
    model : FittedGP
    """

    model: FittedGP

    @property
    def classes(self) -> np.ndarray | None:
        return self.model.classes

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
        return self._usual_out_of_vocabulary

    @cached_property
    def _usual_out_of_vocabulary(self) -> float:
        return usual_out_of_vocabulary(self.model.basis)

    def pattern_ids(self, patterns: np.ndarray) -> np.ndarray:
        return patterns

    def find(self, graph: GraphCollection) -> FoundPatterns:
        """The known patterns of one graph, and what the others add to its own sum."""
        return self.found_in(self.model.look_at(graph), 0)

    def found_in(self, seen: SeenGraphs, index: int) -> FoundPatterns:
        """The same of one of several graphs that were refined before."""
        return FoundPatterns.of(seen, index, self.model.weights)

    def slopes(self, sums: KernelSums) -> PathSlopes:
        return mixture_slopes(self.model.scales, sums)

    def beside(self, found: FoundPatterns) -> np.ndarray:
        """What covariates add to the outputs, shape (n_outputs,)."""
        covariates = self.model.covariates
        if covariates is None or found.covariates is None:
            return np.zeros(len(self.intercepts))
        basis = covariates.training[self.model.basis_indices]
        return (self.coefficients @ covariates.scales.matrix(found.covariates, basis).T)[:, 0]

    def facts_of_patterns(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        return {"tree": self.vocabulary.tree_names(ids)}

    def facts_of_training(self, picked: np.ndarray) -> dict[str, np.ndarray]:
        assert self.model.training is not None
        targets = self.model.training.targets[self.model.basis_indices[picked]]
        if self.classes is None:
            return {"value": targets}
        return {"class_label": self.classes[targets]}
