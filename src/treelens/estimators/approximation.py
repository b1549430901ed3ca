"""Fitting a graph classifier on explicit features: time and memory linear in the graphs.

The kernel is replaced by features (:mod:`treelens.kernels.approximate`), the support vector machine
by a linear model of scikit-learn on them. Nyström features are combinations of kernel values with
landmarks, so that model *is* a kernel machine whose training graphs are the landmarks. The other
two give a :class:`~treelens.estimators.feature_machine.FeatureMachine`.

Patterns that a single training graph holds match no other graph; they are dropped, and count as
unseen. That changes no kernel value between two graphs, and keeps the vocabulary small.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from treelens.estimators.feature_machine import FeatureMachine
from treelens.estimators.machine import KernelMachine, class_weights, fit_calibration
from treelens.estimators.progress import progress_ticks
from treelens.estimators.selection import SCORES, Base, Candidate, SearchResult, hinge_loss
from treelens.estimators.weights import PairwiseWeights
from treelens.graphs.collection import GraphCollection
from treelens.kernels.approximate import (
    RANDOM_FORMS,
    UNARY_FORMS,
    NystroemFeatures,
    RandomFeatures,
    UnaryFeatures,
    cauchy_sums,
    fourier_features,
    row_factors,
)
from treelens.kernels.forms import FORMS
from treelens.learning.margins import DistanceQuantiles, choose_margins
from treelens.learning.objective import pair_arrays
from treelens.patterns.features import Features, PatternExtractor
from treelens.patterns.histograms import PatternHistograms, SparseRows
from treelens.patterns.merging import select_patterns
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

if TYPE_CHECKING:
    from treelens.estimators.classifier import GraphClassifier

# Forms that each approximation has features for, and those that "auto" tries.
APPROXIMATIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "random-features": (RANDOM_FORMS, ("exponential",)),
    "nystroem": (tuple(FORMS), ("exponential", "tanimoto")),
    "unary": (UNARY_FORMS, ("assignment", "linear")),
}
MIN_SUPPORT = 2
# Settings are chosen on so many graphs and features at most, a quarter of the graphs held out;
# small sets are split several times over.
_MOST_SEARCHED = 6000
_MOST_SEARCH_COMPONENTS = 1024
_HELD_OUT = 0.25
_MOST_SPLITS = 5
_SPLIT_AGAIN_BELOW = 2000
# Graphs whose distances give the learner's margins: all pairs of so few cost next to nothing.
_MARGIN_GRAPHS = 1000
_TOLERANCE = 1e-5
_MOST_ITERATIONS = 1000
# The logistic loss is flatter than the hinge loss: this much more of it makes C mean the same.
_LOGISTIC_COST = 10.0
# Steps of the stochastic solver that suffice to compare settings.
_ROUGH_STEPS = 200_000

LinearModel = tuple[np.ndarray, np.ndarray]  # (n_outputs, n_features), (n_outputs,)


def forms_for(approximation: str, form: Any) -> list[str]:
    """The forms to try, or an error where there are no features for one."""
    known, auto = APPROXIMATIONS[approximation]
    forms = list(auto) if isinstance(form, str) and form == "auto" else form
    forms = [forms] if isinstance(forms, str) else list(forms)
    unknown = [f for f in forms if f not in known]
    if unknown or not forms:
        raise ValueError(
            f"approximation={approximation!r} has features for the forms {', '.join(known)}; "
            f"got form={form!r}."
        )
    return forms


def fit_approximate(
    model: GraphClassifier,
    graphs: GraphCollection,
    codes: np.ndarray,
    candidates: list[Candidate],
    seed: int,
) -> None:
    """Choose settings on a validation split, then fit weights, features and linear model.

    Sets what ``GraphClassifier.fit`` promises.
    """
    n_jobs = model._n_jobs()
    vocabulary, colors = PatternVocabulary.fit(
        graphs, max(c.depth for c in candidates), model._uses_edge_labels, n_jobs
    )
    histograms = PatternHistograms.from_colors(vocabulary, colors, n_jobs)
    keep = histograms.support >= MIN_SUPPORT
    vocabulary, histograms = select_patterns(vocabulary, keep), histograms.select_patterns(keep)
    search = ApproximateSearch(model, histograms, codes, seed)
    with progress_ticks(model.progress, "Choosing settings") as search.tick:
        model.search_, chosen = search.run(candidates)
    model._record_choice(chosen, candidates)
    model.choice_ |= {"approximation": model.approximation, "n_components": model.n_components}
    model._calibration = fit_calibration(*search.held_out[chosen])
    _fit_chosen(model, chosen, vocabulary.truncated(chosen.depth), search, graphs)


def _fit_chosen(
    model: GraphClassifier,
    chosen: Candidate,
    vocabulary: PatternVocabulary,
    search: ApproximateSearch,
    graphs: GraphCollection,
) -> None:
    """Weights, features and linear model on all training graphs."""
    n_jobs, everything = model._n_jobs(), np.arange(len(graphs))
    extractor = PatternExtractor(vocabulary, search.first_depth, FORMS[chosen.form].kind)
    histograms = search.histograms.select_depths(search.first_depth, chosen.depth)
    model.vocabulary_, model._extractor = vocabulary, extractor
    model.learner_ = None if chosen.radius == 0 else search.learn(chosen.base, everything)
    uniform = np.ones(histograms.n_patterns)
    model.weights_ = uniform if model.learner_ is None else model.learner_.weights_
    model.train_histograms_, model.train_codes_ = histograms, search.codes
    weights, pairs = model._weights(), extractor.pairs(histograms)
    unseen = extractor.unseen_self_sums(graphs, histograms)
    features = Features(pairs, pairs.self_sums(weights) + unseen)
    model.offset_ = float(features.self_sums.max())
    rng = np.random.default_rng(search.seed)
    n_landmarks = model.n_components if model.approximation == "nystroem" else 0
    model.support_ = landmark_positions(len(graphs), n_landmarks, rng)
    model._support_pairs = extractor.pairs(histograms.select_graphs(model.support_))
    model._support_selves = features.self_sums[model.support_]
    landmarks = Features(model._support_pairs, model._support_selves)
    feature_map = _feature_map(model, chosen, features, landmarks, search.seed)
    mapped = _mapped(feature_map, features, n_jobs)
    coefficients, intercepts = fit_linear(mapped, search.codes, [chosen.C], search.sample_weight)[0]
    if isinstance(feature_map, NystroemFeatures):
        model._machine = KernelMachine(coefficients @ feature_map.whitening.T, intercepts)
    else:
        model._machine = FeatureMachine(feature_map, coefficients, intercepts)


def _feature_map(
    model: GraphClassifier, chosen: Candidate, features: Features, landmarks: Features, seed: int
) -> Any:
    weights, offset = model._weights(), model.offset_
    if model.approximation == "unary":
        return UnaryFeatures.fit(features, chosen.form, weights)
    if model.approximation == "nystroem":
        return NystroemFeatures.fit(
            landmarks, chosen.form, chosen.gamma, offset, weights, model._n_jobs()
        )
    gamma = float(chosen.gamma or 0.0)
    return RandomFeatures(model.n_components, seed, chosen.form, gamma, offset, weights)


def _mapped(feature_map: Any, features: Features, n_jobs: int) -> Any:
    """Features of all training graphs: sparse, or dense in single precision."""
    if isinstance(feature_map, UnaryFeatures):
        return feature_map.transform(features, n_jobs)
    if isinstance(feature_map, RandomFeatures):
        return feature_map.transform(features, n_jobs, dtype=np.float32)
    return feature_map.transform(features, n_jobs).astype(np.float32)


def landmark_positions(n_graphs: int, n_landmarks: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of landmark graphs, drawn without replacement, ascending."""
    n_landmarks = min(n_landmarks, n_graphs)
    return np.sort(rng.choice(n_graphs, size=n_landmarks, replace=False))


def one_blas_thread() -> threadpool_limits:
    """For small matrices, and products with a vector, a second thread only waits for the first."""
    return threadpool_limits(limits=1, user_api="blas")


def fit_linear(
    mapped: Any, codes: np.ndarray, Cs: Sequence[float], sample_weight: np.ndarray
) -> list[LinearModel]:
    """Linear models on features for ascending ``C``, each starting where the last one ended.

    Dense features get a logistic regression, sparse ones a linear support vector machine. ``C``
    is relative to the mean squared length of the rows, as the kernel machine's is to the kernel's
    mean diagonal.
    """
    dense = isinstance(mapped, np.ndarray)
    lengths = np.einsum("ij,ij->i", mapped, mapped) if dense else mapped.power(2).sum(axis=1)
    scale = max(float(np.mean(lengths)), np.finfo(float).tiny)
    if dense:
        scale /= _LOGISTIC_COST
        model = LogisticRegression(tol=_TOLERANCE, max_iter=_MOST_ITERATIONS, warm_start=True)
    else:
        model = LinearSVC(dual="auto", max_iter=_MOST_ITERATIONS, random_state=0)
    models = []
    with one_blas_thread():
        for C in Cs:
            model.set_params(C=C / scale).fit(mapped, codes, sample_weight)
            models.append((model.coef_.astype(np.float64), model.intercept_.astype(np.float64)))
    return models


class ApproximateSearch:
    """Scores settings on held-out graphs of a sample of the training set.

    Parameters
    ----------
    model : GraphClassifier
        Unfitted; its parameters say what to do.
    histograms : PatternHistograms
        Of all training graphs and depths.
    codes : ndarray of int
    seed : int
    """

    def __init__(
        self, model: GraphClassifier, histograms: PatternHistograms, codes: np.ndarray, seed: int
    ) -> None:
        self.approximation, self.n_jobs = model.approximation, model._n_jobs()
        self.histograms, self.codes, self.seed = histograms, codes, seed
        self.first_depth = 0 if model.include_depth_zero else 1
        self.sample_weight = class_weights(model.class_weight, model.classes_, codes)
        self.score = SCORES[model.scoring]
        self.learner = model.learner
        self.n_components = min(model.n_components, _MOST_SEARCH_COMPONENTS)
        self.tick = lambda what: None
        self.held_out: dict[Candidate, tuple[np.ndarray, np.ndarray]] = {}
        self._splits = self._sampled_splits()
        self._sample = np.unique(np.concatenate([np.concatenate(s) for s in self._splits]))
        self._sampled = histograms.select_graphs(self._sample)
        self._level_sums: dict[int, np.ndarray] = {}

    def _sampled_splits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        n = len(self.codes)
        size = min(n, _MOST_SEARCHED)
        n_test = max(len(np.unique(self.codes)), int(_HELD_OUT * size))
        n_splits = int(np.clip(_SPLIT_AGAIN_BELOW // n, 1, _MOST_SPLITS))
        splitter = StratifiedShuffleSplit(
            n_splits, test_size=n_test, train_size=size - n_test, random_state=self.seed
        )
        return [(np.sort(a), np.sort(b)) for a, b in splitter.split(self.codes, self.codes)]

    def run(self, candidates: list[Candidate]) -> tuple[SearchResult, Candidate]:
        """Uniform weights at all settings, then radii at the best depth and scale of each form."""
        ratio = float(np.mean([len(b) / len(a) for a, b in self._splits]))
        result = SearchResult(len(self._splits), ratio)
        uniform = [c for c in candidates if c.radius == 0]
        self._score_all(uniform or candidates, result)
        if uniform:
            leaders = [result.best(lambda c, f=f: c.form == f) for f in {c.form for c in uniform}]
            settings = {(c.form, c.depth, c.gamma) for c in leaders if c is not None}
            learned = [
                c for c in candidates if c.radius > 0 and (c.form, c.depth, c.gamma) in settings
            ]
            self._score_all(learned, result)
        best = result.best()
        assert best is not None, "every candidate is scored on every split"
        return result, best

    def _score_all(self, candidates: list[Candidate], result: SearchResult) -> None:
        with warnings.catch_warnings(), one_blas_thread():
            warnings.simplefilter("ignore")  # a rough fit will do to compare settings
            for train, validation in self._splits:
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
        groups: dict[Base, list[Candidate]] = {}
        for candidate in candidates:
            groups.setdefault(candidate.base, []).append(candidate)
        for base, group in groups.items():
            weights = None if base.radius == 0 else self.learn(base, train, _ROUGH_STEPS).weights_
            features = self._features(base, weights)
            settings: dict[tuple[str, float | None], list[Candidate]] = {}
            for candidate in group:
                settings.setdefault((candidate.form, candidate.gamma), []).append(candidate)
            for (form, gamma), block in settings.items():
                block = sorted(block, key=lambda c: c.C)
                rows = [np.searchsorted(self._sample, x) for x in (train, validation)]
                fit, new = self._maps(form, gamma, base, features, weights, *rows)
                models = fit_linear(
                    fit, self.codes[train], [c.C for c in block], self.sample_weight[train]
                )
                for candidate, (coefficients, intercepts) in zip(block, models, strict=True):
                    yield candidate, new @ coefficients.T + intercepts
            self.tick(f"depth {base.depth}, radius {base.radius:g}")

    def _features(self, base: Base, weights: np.ndarray | None) -> Features:
        """Of the sampled graphs; what was dropped counts as unseen, at weight one."""
        histograms = self._sampled.select_depths(self.first_depth, base.depth)
        pairs = PairFeatures.from_histograms(histograms, base.kind, unit=False)
        unseen = histograms.unseen.sum(axis=1)
        if base.kind == "wasserstein":
            unseen = unseen / histograms.n_nodes.clip(1)
        return Features(pairs, pairs.self_sums(weights) + unseen / histograms.n_depths)

    def _maps(
        self,
        form: str,
        gamma: float | None,
        base: Base,
        features: Features,
        weights: np.ndarray | None,
        train: np.ndarray,
        validation: np.ndarray,
    ) -> tuple[Any, Any]:
        """Features of the training and of the validation graphs, given by their positions."""
        offset = float(features.self_sums[train].max())
        if self.approximation == "random-features":
            mapped = fourier_features(self._sums(base, features, weights), gamma or 0.0, np.float32)
            factors = row_factors(features, form, gamma or 0.0, offset, weights)
            mapped *= factors[:, None].astype(np.float32)
            return mapped[train], mapped[validation]
        if self.approximation == "nystroem":
            rng = np.random.default_rng(self.seed)
            picked = train[landmark_positions(len(train), self.n_components, rng)]
            landmarks = _selected(features, picked)
            feature_map = NystroemFeatures.fit(landmarks, form, gamma, offset, weights, self.n_jobs)
            mapped = feature_map.transform(features, self.n_jobs).astype(np.float32)
            return mapped[train], mapped[validation]
        unary = UnaryFeatures.fit(_selected(features, train), form, weights)
        mapped = unary.transform(features)
        return mapped[train], mapped[validation]

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
        return sum(self._level_sums[level] for level in range(n_depths)) / n_depths

    def learn(
        self, base: Base, train: np.ndarray, most_steps: int | None = None
    ) -> PairwiseWeights:
        """The learner, fitted to the graphs of ``train``."""
        histograms = self.histograms.select_depths(self.first_depth, base.depth)
        if len(train) < histograms.n_graphs:
            histograms = histograms.select_graphs(train)
        return learn_weights_linearly(
            histograms, self.codes[train], base.kind, base.radius, self.learner, self.seed,
            most_steps,
        )  # fmt: skip


def learn_weights_linearly(
    histograms: PatternHistograms,
    codes: np.ndarray,
    kind: str,
    radius: float,
    learner: PairwiseWeights | None,
    seed: int,
    most_steps: int | None = None,
) -> PairwiseWeights:
    """Learn weights without ever looking at all pairs, whatever their number.

    The stochastic solver draws pairs; margins left to the data come from the distances within a
    sample. A learner that was given keeps its own solver.
    """
    if learner is None:
        learner = PairwiseWeights(solver="stochastic", n_checks=0, random_state=seed)
    learner = clone(learner).set_params(radius=radius)
    if most_steps is not None:
        learner.set_params(n_steps=min(learner.n_steps, most_steps))
    if histograms.n_graphs > _MARGIN_GRAPHS:
        picked = landmark_positions(
            histograms.n_graphs, _MARGIN_GRAPHS, np.random.default_rng(seed)
        )
        sample = PairFeatures.from_histograms(histograms.select_graphs(picked), kind)
        quantiles = DistanceQuantiles.of_all_pairs(sample, pair_arrays(sample), learner.b, 1)
        margins = choose_margins(learner.margins, learner.sigma, learner.b, quantiles)
        learner.set_params(margins=(margins.alpha1, margins.alpha2), sigma=margins.sigma)
    return learner.fit(PairFeatures.from_histograms(histograms, kind), codes)


def _selected(features: Features, positions: np.ndarray) -> Features:
    """The features of some graphs."""
    pairs, rows = features.pairs, features.pairs.rows
    table = sparse.csr_array(
        (rows.values, rows.indices, rows.offsets), shape=(pairs.n_graphs, pairs.n_patterns)
    )[positions]
    picked = SparseRows(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data)
    lists = picked.transposed(pairs.n_patterns)
    chosen = PairFeatures(lists, picked, pairs.level_offsets, pairs.minimum, pairs.scale[positions])
    return Features(chosen, features.self_sums[positions])
