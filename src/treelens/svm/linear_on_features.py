"""A linear model on explicit features: decisions, and what patterns add to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from treelens.kernels.approximate import UnaryFeatures
from treelens.kernels.binning import RandomBinning
from treelens.kernels.weighted import WeightedKernel
from treelens.patterns.features import Features


@dataclass(frozen=True)
class LinearOnFeatures:
    """Decision values ``features @ coefficients.T + intercepts``.

    Attributes
    ----------
    feature_map : RandomBinning or UnaryFeatures
    coefficients : ndarray, shape (n_outputs, n_features)
    intercepts : ndarray, shape (n_outputs,)
    kernel : WeightedKernel
        What the features stand for.
    """

    feature_map: RandomBinning | UnaryFeatures
    coefficients: np.ndarray
    intercepts: np.ndarray
    kernel: WeightedKernel
    pairwise: ClassVar[bool] = False  # several classes: each against the rest

    def outputs(self, features: Features, n_jobs: int = 1) -> np.ndarray:
        """Decision values of graphs, shape (n_graphs, n_outputs)."""
        mapped = self.feature_map.transform(features, n_jobs=n_jobs)
        return mapped @ self.coefficients.T + self.intercepts

    def contributions(self, features: Features) -> tuple[np.ndarray, np.ndarray]:
        """What the patterns of one graph add to every decision value.

        Returns
        -------
        bases : ndarray, shape (n_outputs,)
            Decision values before any known pattern is counted.
        contributions : ndarray, shape (n_outputs, n_entries)
            One column per entry of the graph's row; ``bases`` and these add up to the decision.
        """
        if isinstance(self.feature_map, RandomBinning):
            starts, terms = self.feature_map.path_terms(features, self.coefficients)
            return self.intercepts + starts, terms
        mapped = self.feature_map.transform(features)
        offsets = self.feature_map.threshold_offsets
        pattern = np.searchsorted(offsets, mapped.indices, side="right") - 1
        terms = np.zeros((len(self.intercepts), features.pairs.n_patterns))
        for output, coefficients in enumerate(self.coefficients):
            np.add.at(terms[output], pattern, coefficients[mapped.indices] * mapped.data)
        return self.intercepts, terms[:, features.pairs.rows.indices]
