"""Choosing the settings of a classifier on explicit features, on a sample of the training set."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from treelens.kernels.approximate import (
    NystroemFeatures,
    UnaryFeatures,
    cauchy_sums,
    fourier_features,
    row_factors,
)
from treelens.kernels.binning import RandomBinning, buckets_for
from treelens.kernels.gram import pair_sums
from treelens.kernels.weighted import WeightedKernel
from treelens.models.landmarks import hard_landmarks
from treelens.models.linear_models import fit_linear, one_blas_thread
from treelens.models.svm import fit_svm_path
from treelens.models.tried import Base, Candidate, SearchResult
from treelens.patterns.features import Features, select_features
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.selection.search import (
    SCORES,
    Split,
    by_base,
    by_kernel,
    hinge_loss,
)
from treelens.selection.stochastic_weights import learn_weights_linearly
from treelens.selection.task import Task

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


class ApproximateSearch:
    """Scores settings on held-out graphs of a sample of the training set.

    Parameters
    ----------
    task : Task
    histograms : PatternHistograms
        Of all training graphs and depths.
    """

    def __init__(self, task: Task, histograms: PatternHistograms) -> None:
        self.approximation, self.n_jobs = task.approximation, task.n_jobs
        self._exactly = self.approximation in _SEARCHED_EXACTLY
        self.histograms, self.codes, self.seed = histograms, task.codes, task.seed
        self.first_depth, self.sample_weight = task.first_depth, task.sample_weight
        self.score, self.learner = SCORES[task.scoring], task.learner
        self.n_components = min(task.n_components, _MOST_SEARCH_COMPONENTS)
        self.all_components = task.n_components
        self.tick = lambda what: None
        self.held_out: dict[Candidate, tuple[np.ndarray, np.ndarray]] = {}
        self._splits = self._sampled_splits()
        self._sample = np.unique(np.concatenate([np.concatenate(s) for s in self._splits]))
        self._sampled = histograms.select_graphs(self._sample)
        self._level_sums: dict[int, np.ndarray] = {}

    def _sampled_splits(self) -> list[Split]:
        n = len(self.codes)
        size = min(n, _MOST_SEARCHED)
        n_test = max(len(np.unique(self.codes)), int(_HELD_OUT * size))
        n_splits = int(np.clip(_SPLIT_AGAIN_BELOW // n, 1, _MOST_SPLITS))
        splitter = StratifiedShuffleSplit(
            n_splits, test_size=n_test, train_size=size - n_test, random_state=self.seed
        )
        return [(np.sort(a), np.sort(b)) for a, b in splitter.split(self.codes, self.codes)]

    def run(self, candidates: list[Candidate]) -> tuple[SearchResult, Candidate]:
        """Uniform weights at all settings, then radii at the best ones of each kernel."""
        candidates = self._fine_enough(candidates)
        ratio = float(np.mean([len(b) / len(a) for a, b in self._splits]))
        result = SearchResult(len(self._splits), ratio)
        uniform = [c for c in candidates if c.weight_radius == 0]
        self._score_all(uniform or candidates, result)
        if uniform:
            leaders = [result.best(_has_kernel(name)) for name in {c.kernel for c in uniform}]
            settings = {(c.kernel, c.depth, c.gamma) for c in leaders if c is not None}
            learned = [
                c
                for c in candidates
                if c.weight_radius > 0 and (c.kernel, c.depth, c.gamma) in settings
            ]
            self._score_all(learned, result)
        best = result.best()
        assert best is not None, "every candidate is scored on every split"
        return result, best

    def _fine_enough(self, candidates: list[Candidate]) -> list[Candidate]:
        """Without the scales for which there are too few bins; all, if the user wants no other."""
        if self.approximation != "random-binning":
            return candidates
        fine = [
            c for c in candidates
            if self.all_components * (c.gamma or 0.0) / 2 >= _LEAST_CROSSINGS
        ]  # fmt: skip
        return fine or candidates

    @property
    def scored_on(self) -> str:
        """What the scores of the search are those of."""
        return "the exact kernel" if self.approximation in _SEARCHED_EXACTLY else "the features"

    def _score_all(
        self, candidates: list[Candidate], result: SearchResult, splits: list[Split] | None = None
    ) -> None:
        with warnings.catch_warnings(), one_blas_thread():
            warnings.simplefilter("ignore")  # a rough fit will do to compare settings
            for train, validation in splits or self._splits:
                for candidate, decisions in self._held_out_decisions(candidates, train, validation):
                    codes = self.codes[validation]
                    result.scores.setdefault(candidate, []).append(self.score(codes, decisions))
                    result.losses.setdefault(candidate, []).append(hinge_loss(codes, decisions))
                    self._keep(candidate, decisions, codes)

    def _keep(self, candidate: Candidate, decisions: np.ndarray, codes: np.ndarray) -> None:
        if candidate in self.held_out:
            old_decisions, old_codes = self.held_out[candidate]
            decisions, codes = np.vstack([old_decisions, decisions]), np.append(old_codes, codes)
        self.held_out[candidate] = decisions, codes

    def _held_out_decisions(
        self, candidates: list[Candidate], train: np.ndarray, validation: np.ndarray
    ) -> Iterator[tuple[Candidate, np.ndarray]]:
        for base, group in by_base(candidates).items():
            weights = (
                None if base.weight_radius == 0 else self.learn(base, train, _ROUGH_STEPS).weights_
            )
            features = self._features(base, weights)
            rows = [np.searchsorted(self._sample, x) for x in (train, validation)]
            if self._exactly:
                yield from self._exact_decisions(group, features, weights, *rows)
            else:
                yield from self._near_decisions(group, features, weights, *rows)
            self.tick(f"depth {base.depth}, weight radius {base.weight_radius:g}")

    def _exact_decisions(
        self,
        group: list[Candidate],
        features: Features,
        weights: np.ndarray | None,
        train: np.ndarray,
        validation: np.ndarray,
    ) -> Iterator[tuple[Candidate, np.ndarray]]:
        """Of SVMs on the exact kernel, for candidates of one base."""
        known, new = select_features(features, train), select_features(features, validation)
        sums = pair_sums(known.pairs, weights=weights, n_jobs=self.n_jobs)
        new_sums = pair_sums(new.pairs, known.pairs, weights, n_jobs=self.n_jobs)
        diagonal, offset = known.diagonal, float(known.diagonal.max())
        graphs = self._sample[train]
        for block in by_kernel(group):
            kernel = WeightedKernel(block[0].kernel, weights, block[0].gamma, offset)
            svms = fit_svm_path(
                kernel.of_sums(sums, diagonal, diagonal), self.codes[graphs],
                int(self.codes.max()) + 1, [c.C for c in block], self.sample_weight[graphs],
            )  # fmt: skip
            new_matrix = kernel.of_sums(new_sums, new.diagonal, diagonal)
            for candidate, svm in zip(block, svms, strict=True):
                yield candidate, svm.decide(new_matrix)

    def _near_decisions(
        self,
        group: list[Candidate],
        features: Features,
        weights: np.ndarray | None,
        train: np.ndarray,
        validation: np.ndarray,
    ) -> Iterator[tuple[Candidate, np.ndarray]]:
        """Of linear models on features, for candidates of one base."""
        graphs = self._sample[train]
        for block in by_kernel(group):
            name, gamma = block[0].kernel, block[0].gamma
            fit, new = self._maps(name, gamma, block[0].base, features, weights, train, validation)
            models = fit_linear(
                str(self.approximation), fit, self.codes[graphs], [c.C for c in block],
                self.sample_weight[graphs], _ROUGH_ITERATIONS,
            )  # fmt: skip
            for candidate, (coefficients, intercepts) in zip(block, models, strict=True):
                yield candidate, new @ coefficients.T + intercepts

    def calibrating(self, chosen: Candidate) -> tuple[np.ndarray, np.ndarray]:
        """Held-out decisions of the chosen settings, by the features themselves, and codes."""
        if self._exactly:
            self._exactly, self.held_out = False, {}
            self._score_all([chosen], SearchResult(len(self._splits), 1.0), self._splits[:1])
        return self.held_out[chosen]

    def _features(self, base: Base, weights: np.ndarray | None) -> Features:
        """Of the sampled graphs; what was dropped counts as unseen, at weight one."""
        histograms = self._sampled.select_depths(self.first_depth, base.depth)
        pairs = PairFeatures.from_histograms(histograms, base.kind, unit=False)
        unseen = histograms.unseen.sum(axis=1)
        if base.kind == "wasserstein":
            unseen = unseen / histograms.n_nodes.clip(1)
        return Features(pairs, pairs.diagonal(weights) + unseen / histograms.n_depths)

    def _maps(
        self,
        name: str,
        gamma: float | None,
        base: Base,
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
        if self.approximation == "random-fourier":
            mapped = fourier_features(self._sums(base, features, weights), gamma or 0.0, np.float32)
            factors = row_factors(features, name, gamma or 0.0, offset, weights)
            mapped *= factors[:, None].astype(np.float32)
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
        """Landmarks among the sampled graphs at the positions ``train``."""
        known, graphs = select_features(features, train), self._sample[train]
        rng = np.random.default_rng(self.seed)
        picked = hard_landmarks(
            known, self.codes[graphs], self.sample_weight[graphs], kernel, self.n_components, rng,
            self.n_jobs,
        )  # fmt: skip
        return select_features(known, picked)

    def _sums(self, base: Base, features: Features, weights: np.ndarray | None) -> np.ndarray:
        """Cauchy sums; with uniform weights those of each depth are made once for all depths."""
        n_frequencies = self.n_components // 2
        if weights is not None:
            return cauchy_sums(
                features.pairs, n_frequencies, self.seed, weights, n_jobs=self.n_jobs
            )
        starts = features.pairs.level_offsets
        n_depths = len(starts) - 1
        for level in range(n_depths):
            if level not in self._level_sums:
                run = int(starts[level]), int(starts[level + 1])
                self._level_sums[level] = n_depths * cauchy_sums(
                    features.pairs, n_frequencies, self.seed, patterns=run, n_jobs=self.n_jobs
                )
        total = sum((self._level_sums[level] for level in range(n_depths)), np.zeros(1))
        return total / n_depths

    def learn(self, base: Base, train: np.ndarray, most_steps: int | None = None) -> Any:
        """The learner, fitted to the graphs of ``train``."""
        histograms = self.histograms.select_depths(self.first_depth, base.depth)
        if len(train) < histograms.n_graphs:
            histograms = histograms.select_graphs(train)
        return learn_weights_linearly(
            histograms, self.codes[train], base.kind, base.weight_radius, self.learner, self.seed,
            most_steps,
        )  # fmt: skip


def _has_kernel(name: str) -> Callable[[Candidate], bool]:
    return lambda candidate: candidate.kernel == name
