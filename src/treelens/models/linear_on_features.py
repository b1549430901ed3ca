"""A linear model on explicit features: decisions, and what patterns add to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from treelens.kernels import _compiled_approximate as compiled
from treelens.kernels.approximate import (
    RandomFourierFeatures,
    UnaryFeatures,
    cauchy_sums,
)
from treelens.kernels.binning import RandomBinning
from treelens.kernels.weighted import WeightedKernel
from treelens.patterns.features import Features


@dataclass(frozen=True)
class LinearOnFeatures:
    """Decision values ``features @ coefficients.T + intercepts``.

    Attributes
    ----------
    feature_map : RandomBinning, RandomFourierFeatures or UnaryFeatures
    coefficients : ndarray, shape (n_outputs, n_features)
    intercepts : ndarray, shape (n_outputs,)
    kernel : WeightedKernel
        What the features stand for.
    """

    feature_map: RandomBinning | RandomFourierFeatures | UnaryFeatures
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
        if isinstance(self.feature_map, RandomFourierFeatures):
            return self._along_the_path(self.feature_map, features)
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

    def _along_the_path(
        self, feature_map: RandomFourierFeatures, features: Features
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gather the slope while all frequencies grow from 0 to what they are, in proportion.

        On the way, at ``t`` from 0 to 1, the features are ``start exp(growth t)`` times cosines
        and sines of ``t angle``. The integrals of both are parts of one complex exponential; a
        pattern's share of every angle, and of the growth, is its term in their sums.
        """
        rows, weights, half_gamma = (
            features.pairs.rows,
            feature_map.weights,
            0.5 * feature_map.gamma,
        )
        n = feature_map.n_components // 2
        sums = cauchy_sums(features.pairs, n, feature_map.seed, weights)[0]
        known = float(features.pairs.diagonal(weights)[0])
        growth = half_gamma * known if feature_map.kernel == "wwl" else 0.0
        start = float(feature_map.row_factors(features)[0]) * np.exp(-growth) / np.sqrt(n)
        integral = _mean_of_exponential(growth + 1j * half_gamma * sums)  # (n,)
        cosines, sines = self.coefficients[:, :n], self.coefficients[:, n:]
        per_angle = start * (sines * integral.real - cosines * integral.imag)  # (n_outputs, n)
        slopes = np.empty((len(self.intercepts), len(rows.indices)))
        for output in range(len(slopes)):
            compiled.cauchy_projections(
                rows.indices, feature_map.seed, per_angle[output], slopes[output]
            )
        if growth:
            per_growth = start * (cosines * integral.real + sines * integral.imag).sum(axis=1)
            slopes += per_growth[:, None]
        values = rows.values if weights is None else rows.values * weights[rows.indices]
        return self.intercepts + start * cosines.sum(axis=1), half_gamma * values * slopes


def _mean_of_exponential(rate: np.ndarray) -> np.ndarray:
    """The integral of ``exp(rate t)`` over t from 0 to 1."""
    small = np.abs(rate) < 1e-6
    safe = np.where(small, 1.0, rate)
    return np.where(small, 1.0 + 0.5 * rate, (np.exp(safe) - 1.0) / safe)
