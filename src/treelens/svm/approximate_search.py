"""Choosing the settings of a classifier on explicit features, on a sample of the training set."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from treelens.kernels.approximate import NystroemFeatures, UnaryFeatures
from treelens.kernels.binning import RandomBinning, buckets_for
from treelens.kernels.weighted import WeightedKernel
from treelens.parallel import one_blas_thread
from treelens.patterns.features import Features, select_features
from treelens.patterns.histograms import PatternHistograms
from treelens.svm.landmarks import hard_landmarks
from treelens.svm.linear_models import fit_linear
from treelens.svm.search import (
    SCORES,
    Calibrating,
    HeldOut,
    KernelSearch,
    Split,
    by_kernel,
    decisions_of,
    hinge_loss,
)
from treelens.svm.search_result import Base, Candidate, SearchResult
from treelens.svm.stochastic_weights import learn_weights_linearly
from treelens.svm.task import Task

# Approximations that come so near that settings may be chosen by the exact SVM. On the few
# graphs of a search that costs less, and has no noise. (On three folds of NCI1 a second
# round on the features themselves made the same choice, at several times the cost.)
_SEARCHED_EXACTLY = ("random-binning",)
# Bins tell graphs apart where a frequency leaves its first interval, ``gamma / 2`` times per grid
# on average; with fewer crossings than this in all, some patterns would be seen on no grid.
_LEAST_CROSSINGS = 100
# Settings are chosen on so many graphs and features at most, a quarter of the graphs held out;
# small sets are split several times over.
_MOST_SEARCHED = 6000
_MOST_SEARCH_COMPONENTS = 1024
_HELD_OUT = 0.25
_MOST_SPLITS = 5
_SPLIT_AGAIN_BELOW = 12_000
# Iterations of a linear model, and steps of the stochastic solver, that suffice to compare them.
_ROUGH_ITERATIONS = 150
_ROUGH_STEPS = 200_000


class ApproximateSearch(KernelSearch):
    """Scores settings by linear models on features, on a sample of the training set.

    All candidates are scored on all splits: there is no race. Outputs are decision values, one for
    each class. What patterns were dropped for their rarity count as unseen, at weight one.

    Parameters
    ----------
    task : Task
    histograms : PatternHistograms
        Of all training graphs and depths.
    """

    sums_of_all = False

    def __init__(self, task: Task, histograms: PatternHistograms) -> None:
        self.approximation, self.seed = str(task.approximation), task.seed
        self._exactly = self.approximation in _SEARCHED_EXACTLY
        self.n_components = min(task.n_components, _MOST_SEARCH_COMPONENTS)
        self.all_components = task.n_components
        self._held_out: HeldOut = {}
        splits = _sampled_splits(task.codes, task.seed)
        sample = np.unique(np.concatenate([np.concatenate(split) for split in splits]))
        super().__init__(
            histograms.select_graphs(sample),
            task.codes[sample],
            [(np.searchsorted(sample, a), np.searchsorted(sample, b)) for a, b in splits],
            task.learner,
            task.first_depth,
            task.sample_weight[sample],
            SCORES[task.scoring],
            task.n_jobs,
        )
        self.facts |= {
            "approximation": self.approximation,
            "n_components": task.n_components,
            "scored_on": "the exact kernel" if self._exactly else "the features",
        }

    def run(self, candidates: Sequence[Candidate], result: SearchResult | None = None,
            race: bool = False) -> SearchResult:  # fmt: skip
        """Score candidates split by split, without the scales for which there are too few bins."""
        with warnings.catch_warnings(), one_blas_thread():
            warnings.simplefilter("ignore")  # a rough fit will do to compare settings
            return super().run(self._fine_enough(candidates), result, race)

    def _fine_enough(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """All, if the user wants no other."""
        if self.approximation != "random-binning":
            return candidates
        fine = [
            c for c in candidates
            if self.all_components * (c.gamma or 0.0) / 2 >= _LEAST_CROSSINGS
        ]  # fmt: skip
        return fine or candidates

    def leading(self, result: SearchResult, learned: list[Candidate]) -> list[Candidate]:
        """Every cost and radius at the best depth and scale of each kernel."""
        leaders = [result.best(_has_kernel(name)) for name in {c.kernel for c in result.scores}]
        settings = {(c.kernel, c.depth, c.gamma) for c in leaders if c is not None}
        return [c for c in learned if (c.kernel, c.depth, c.gamma) in settings]

    def learned(
        self, histograms: PatternHistograms, codes: np.ndarray, base: Base, rough: bool = False
    ) -> Any:
        """The learner, fitted to drawn pairs of all graphs of some histograms."""
        return learn_weights_linearly(
            histograms, codes, base.kind, base.weight_radius, self.learner, self.seed,
            _ROUGH_STEPS if rough else None,
        )  # fmt: skip

    def features(self, base: Base, weights: np.ndarray | None) -> Features:
        histograms = self.histograms.select_depths(self.first_depth, base.depth)
        known = super().features(base, weights)
        unseen = histograms.unseen.sum(axis=1)
        if base.kind == "wasserstein":
            unseen = unseen / histograms.n_nodes.clip(1)
        return Features(known.pairs, known.diagonal + unseen / histograms.n_depths)

    def _outputs(
        self,
        group: list[Candidate],
        features: Features,
        weights: np.ndarray | None,
        train: np.ndarray,
        validation: np.ndarray,
    ) -> Iterator[tuple[Candidate, np.ndarray]]:
        """Of linear models on features, or of SVMs where these come near, for one base."""
        if self._exactly:
            for candidate, outputs in super()._outputs(group, features, weights, train, validation):
                yield candidate, decisions_of(outputs)
            return
        for block in by_kernel(group):
            name, gamma = block[0].kernel, block[0].gamma
            fit, new = self._maps(name, gamma, features, weights, train, validation)
            models = fit_linear(
                self.approximation, fit, self.codes[train], [c.C for c in block],
                self.sample_weight[train], _ROUGH_ITERATIONS,
            )  # fmt: skip
            for candidate, (coefficients, intercepts) in zip(block, models, strict=True):
                yield candidate, new @ coefficients.T + intercepts

    def _decisions(self, outputs: np.ndarray) -> np.ndarray:
        return outputs

    def _loss(self, codes: np.ndarray, outputs: np.ndarray) -> float:
        return hinge_loss(codes, outputs)

    def _keep(self, held_out: HeldOut, result: SearchResult) -> None:
        self._held_out |= held_out

    def calibrating(self, chosen: Candidate, result: SearchResult) -> Calibrating:
        """What was held out at the chosen settings, by the features themselves."""
        if self._exactly:
            self._exactly, self.splits = False, self.splits[:1]
            self.run([chosen])
        decisions = np.vstack(self._held_out[chosen])
        codes = np.concatenate([self.codes[validation] for _, validation in self.splits])
        return Calibrating(decisions, decisions, codes)

    def _maps(
        self,
        name: str,
        gamma: float | None,
        features: Features,
        weights: np.ndarray | None,
        train: np.ndarray,
        validation: np.ndarray,
    ) -> tuple[Any, Any]:
        """Features of the training and of the validation graphs, given by their positions."""
        offset = float(features.diagonal[train].max())
        if self.approximation == "random-binning":
            given = self.n_components, self.seed, name, gamma or 0.0, offset, weights
            bins = RandomBinning(*given, buckets_for(len(train), self.n_components))
            mapped = bins.transform(features, self.n_jobs)
            return mapped[train], mapped[validation]
        if self.approximation == "nystroem":
            kernel = WeightedKernel(name, weights, gamma, offset)
            landmarks = self._searched_landmarks(features, kernel, train)
            feature_map = NystroemFeatures.fit(landmarks, kernel, self.n_jobs)
            mapped = feature_map.transform(features, self.n_jobs).astype(np.float32)
            return mapped[train], mapped[validation]
        unary = UnaryFeatures.fit(select_features(features, train), name, weights)
        mapped = unary.transform(features)
        return mapped[train], mapped[validation]

    def _searched_landmarks(
        self, features: Features, kernel: WeightedKernel, train: np.ndarray
    ) -> Features:
        """Landmarks among the graphs at the positions ``train``."""
        known = select_features(features, train)
        rng = np.random.default_rng(self.seed)
        picked = hard_landmarks(
            known, self.codes[train], self.sample_weight[train], kernel, self.n_components, rng,
            self.n_jobs,
        )  # fmt: skip
        return select_features(known, picked)


def _sampled_splits(codes: np.ndarray, seed: int) -> list[Split]:
    """Positions of the graphs to fit to and of those to score on."""
    n = len(codes)
    size = min(n, _MOST_SEARCHED)
    n_test = max(len(np.unique(codes)), int(_HELD_OUT * size))
    n_splits = int(np.clip(_SPLIT_AGAIN_BELOW // n, 1, _MOST_SPLITS))
    splitter = StratifiedShuffleSplit(
        n_splits, test_size=n_test, train_size=size - n_test, random_state=seed
    )
    return [(np.sort(a), np.sort(b)) for a, b in splitter.split(codes, codes)]


def _has_kernel(name: str) -> Callable[[Candidate], bool]:
    return lambda candidate: candidate.kernel == name
