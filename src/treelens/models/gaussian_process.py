"""The fitted Gaussian process: patterns, weights, kernel and posterior as one frozen thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.kernels.mixture import MixtureScales, WeightedKernel
from treelens.models.posterior import ExactPosterior, LandmarkPosterior, MeanPosterior
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import NodeColors

# Predictions are made for so many graphs at a time: their kernel rows are what takes memory.
_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class WeightedForest:
    """A forest of patterns with a weight for each, known or not.

    Attributes
    ----------
    forest : PatternForest
    log_weights : ndarray, shape (n_patterns,)
        ``theta``: the sum of the deviations of a pattern and its ancestors.
    level_weights : ndarray, shape (n_levels,)
        ``beta``: positive, one on average.
    """

    forest: PatternForest
    log_weights: np.ndarray
    level_weights: np.ndarray

    @cached_property
    def weights(self) -> np.ndarray:
        """``beta * exp(theta)``, shape (n_patterns,)."""
        per_pattern = np.repeat(self.level_weights, np.diff(self.forest.level_offsets))
        return per_pattern * np.exp(self.log_weights)

    def features(self, colors: NodeColors, n_jobs: int = 1) -> WeighedGraphs:
        """What the kernel needs to know of graphs."""
        histograms = self.forest.count(colors, n_jobs)
        unseen = self.forest.unseen_sums(colors, self.log_weights, self.level_weights)
        return self.weighed(histograms, unseen)

    def weighed(
        self, histograms: PatternHistograms, unseen_sums: np.ndarray | float = 0.0
    ) -> WeighedGraphs:
        """The same from counts that are ready."""
        pairs = PairFeatures.of_counts(histograms)
        return WeighedGraphs(pairs, pairs.self_sums(self.weights) + unseen_sums, histograms)


class WeighedGraphs(NamedTuple):
    """Some graphs as the kernel sees them."""

    pairs: PairFeatures
    diagonal: np.ndarray  # (n_graphs,) the sums of each graph with itself
    histograms: PatternHistograms


class Predictions(NamedTuple):
    """What the model says of new graphs, in the units of the targets."""

    mean: np.ndarray  # (n_graphs, n_columns)
    variance: np.ndarray | None  # (n_graphs,) of a new target, noise included; None: not asked for
    unseen_fraction: np.ndarray  # (n_graphs,) of the patterns, those outside the vocabulary
    similarity: np.ndarray  # (n_graphs,) to the most similar basis graph, from 0 to 1
    around: Any = None  # what ``look`` found, where it was asked for


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A Gaussian process after training: everything that predicting and explaining need.

    Attributes
    ----------
    weighted : WeightedForest
    scales : MixtureScales
    noise : float
        Variance of the noise, on the scale of the standardised targets.
    basis : PatternHistograms
        Of the graphs that predictions are sums over: all training graphs, or the landmarks.
    basis_indices : ndarray of int
        Where these stood among the training graphs.
    posterior : ExactPosterior, LandmarkPosterior or MeanPosterior
        The last is what a file keeps of the first; it is completed when variances are asked for.
    target_offset : ndarray, shape (n_columns,)
    target_scale : float
        Targets are ``offset + scale * f``.
    sample_weights : ndarray, shape (n_basis,), optional
        The noise variance of a basis graph is divided by its weight; None where the posterior is
        one of landmarks, which has no use for them.
    """

    weighted: WeightedForest
    scales: MixtureScales
    noise: float
    basis: PatternHistograms
    basis_indices: np.ndarray
    posterior: ExactPosterior | LandmarkPosterior | MeanPosterior
    target_offset: np.ndarray
    target_scale: float
    sample_weights: np.ndarray | None = None

    @cached_property
    def kernel(self) -> WeightedKernel:
        return WeightedKernel(self.weighted.weights, self.scales)

    @cached_property
    def basis_graphs(self) -> WeighedGraphs:
        return self.weighted.weighed(self.basis)

    @property
    def coefficients(self) -> np.ndarray:
        """What each basis graph adds per unit of kernel, in the targets' units: (n_columns, n)."""
        return self.target_scale * self.posterior.coefficients.T

    def kernel_rows(self, graphs: WeighedGraphs, n_jobs: int = 1) -> np.ndarray:
        """Kernel values with the basis graphs, shape (n_graphs, n_basis)."""
        basis = self.basis_graphs
        return self.kernel.matrix(
            graphs.pairs, graphs.diagonal, basis.pairs, basis.diagonal, n_jobs
        )

    def _full_posterior(self, n_jobs: int) -> ExactPosterior | LandmarkPosterior:
        """The posterior with all that variances need."""
        posterior = self.posterior
        if isinstance(posterior, MeanPosterior):
            assert self.sample_weights is not None
            among = self.kernel_rows(self.basis_graphs, n_jobs)
            posterior = posterior.completed(among, self.noise / self.sample_weights, n_jobs)
            object.__setattr__(self, "posterior", posterior)  # the same thing, with its factor
        return posterior

    def decide(
        self,
        graphs: GraphCollection,
        *,
        variance: bool = False,
        n_jobs: int = 1,
        look: Callable[[WeighedGraphs], tuple[np.ndarray, ...]] | None = None,
    ) -> Predictions:
        """Means of new graphs and, if asked for, variances: every graph is refined once.

        ``look`` may look at the refined graphs as well; what it finds, a named tuple of arrays,
        comes back as ``around``.
        """
        parts = [
            self._decide_block(graphs[start : start + _BLOCK], variance, n_jobs, look)
            for start in range(0, len(graphs), _BLOCK)
        ]
        mean, unseen, similarity = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("mean", "unseen_fraction", "similarity")
        )
        spread = np.concatenate([part.variance for part in parts]) if variance else None
        if look is None:
            return Predictions(mean, spread, unseen, similarity)
        columns = map(np.concatenate, zip(*(part.around for part in parts), strict=True))
        return Predictions(mean, spread, unseen, similarity, type(parts[0].around)(*columns))

    def _decide_block(
        self, graphs: GraphCollection, variance: bool, n_jobs: int, look: Any = None
    ) -> Predictions:
        weighed = self.weighted.features(self.weighted.forest.transform(graphs, n_jobs), n_jobs)
        rows = self.kernel_rows(weighed, n_jobs)
        mean = self.target_offset + rows @ self.coefficients.T
        spread = None
        if variance:
            taken = self._full_posterior(n_jobs).reduction(rows)
            left = np.maximum(self.scales.amplitude - taken, 0.0)
            spread = self.target_scale**2 * (left + self.noise)
        similarity = rows.max(axis=1) / self.scales.amplitude
        around = None if look is None else look(weighed)
        return Predictions(mean, spread, weighed.histograms.unseen_share(), similarity, around)
