"""Fitting a graph classifier on explicit features: time and memory linear in the graphs.

The kernel is replaced by features (:mod:`treelens.kernels.approximate`), the support vector machine
by a linear model of scikit-learn on them. Nyström features are combinations of kernel values with
landmarks, so that model *is* a kernel machine whose training graphs are the landmarks. The others
give a :class:`~treelens.models.linear_on_features.LinearOnFeatures`.

Patterns that a single training graph holds match no other graph; they are dropped, and count as
unseen. That changes no kernel value between two training graphs, and keeps the vocabulary small;
what a new graph would share with that single one is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.estimators.stochastic_weights import learn_weights_linearly
from treelens.graphs.collection import GraphCollection
from treelens.kernels.approximate import (
    NystroemFeatures,
    RandomFourierFeatures,
    UnaryFeatures,
)
from treelens.kernels.binning import RandomBinning, buckets_for
from treelens.kernels.table import KERNELS, RANDOM_KERNELS, UNARY_KERNELS
from treelens.models.landmarks import hard_landmarks, landmark_positions
from treelens.models.linear_models import fit_linear
from treelens.models.linear_on_features import LinearOnFeatures
from treelens.models.svm import SVM, fit_calibration, predicted_codes
from treelens.patterns.features import Features, PatternExtractor
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.merging import select_patterns
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.selection.approximate_search import ApproximateSearch
from treelens.selection.progress import progress_ticks
from treelens.selection.search import Candidate
from treelens.selection.settings import warn_if_one_class_is_all

if TYPE_CHECKING:
    from treelens.estimators.svc import GraphSVC

__all__ = [
    "APPROXIMATIONS",
    "fit_approximate",
    "kernels_for",
    "landmark_positions",
    "learn_weights_linearly",
]

# Forms that each approximation has features for, and those that "auto" tries.
APPROXIMATIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "random-binning": (RANDOM_KERNELS, ("wwl",)),
    "random-fourier": (RANDOM_KERNELS, ("wwl",)),
    "nystroem": (tuple(KERNELS), ("wwl", "tanimoto")),
    "unary": (UNARY_KERNELS, ("wl-oa", "wwl-linear")),
}
MIN_SUPPORT = 2


def kernels_for(approximation: str, kernel: Any) -> list[str]:
    """The kernels to try, or an error where there are no features for one."""
    known, auto = APPROXIMATIONS[approximation]
    kernels = list(auto) if isinstance(kernel, str) and kernel == "auto" else kernel
    kernels = [kernels] if isinstance(kernels, str) else list(kernels)
    unknown = [f for f in kernels if f not in known]
    if unknown or not kernels:
        raise ValueError(
            f"approximation={approximation!r} has features for the kernels {', '.join(known)}; "
            f"got kernel={kernel!r}."
        )
    return kernels


def fit_approximate(
    model: GraphSVC,
    graphs: GraphCollection,
    codes: np.ndarray,
    candidates: list[Candidate],
    seed: int,
) -> None:
    """Choose settings on a validation split, then fit weights, features and linear model.

    Sets what ``GraphSVC.fit`` promises.
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
        model.cv_results_, chosen = search.run(candidates)
    model._record_choice(chosen, candidates, codes)
    model.best_params_ |= {
        "approximation": model.approximation, "n_components": model.n_components,
        "scored_on": search.scored_on,
    }  # fmt: skip
    decisions, held_out_codes = search.calibrating(chosen)
    model._calibration = fit_calibration(decisions, held_out_codes)
    warn_if_one_class_is_all(predicted_codes(decisions), model.classes_)
    _fit_chosen(model, chosen, vocabulary.truncated(chosen.depth), search, graphs)


def _fit_chosen(
    model: GraphSVC,
    chosen: Candidate,
    vocabulary: PatternVocabulary,
    search: ApproximateSearch,
    graphs: GraphCollection,
) -> None:
    """Weights, features and linear model on all training graphs."""
    n_jobs, everything = model._n_jobs(), np.arange(len(graphs))
    extractor = PatternExtractor(
        vocabulary, search.first_depth, KERNELS[chosen.kernel].pair_feature
    )
    histograms = search.histograms.select_depths(search.first_depth, chosen.depth)
    model.vocabulary_, model._extractor = vocabulary, extractor
    model.learner_ = None if chosen.weight_radius == 0 else search.learn(chosen.base, everything)
    uniform = np.ones(histograms.n_patterns)
    model.weights_ = uniform if model.learner_ is None else model.learner_.weights_
    model.train_histograms_, model.train_codes_ = histograms, search.codes
    weights, pairs = model._weights(), extractor.pairs(histograms)
    unseen = extractor.unseen_diagonal(graphs, histograms)
    features = Features(pairs, pairs.diagonal(weights) + unseen)
    model.offset_ = float(features.diagonal.max())
    model._basis = _landmarks(model, chosen, features, search)
    model._support_pairs = extractor.pairs(histograms.select_graphs(model._basis))
    model._support_diagonal = features.diagonal[model._basis]
    landmarks = Features(model._support_pairs, model._support_diagonal)
    feature_map = _feature_map(model, chosen, features, landmarks, search.seed)
    mapped = _mapped(feature_map, features, n_jobs)
    coefficients, intercepts = fit_linear(
        str(model.approximation), mapped, search.codes, [chosen.C], search.sample_weight
    )[0]
    if isinstance(feature_map, NystroemFeatures):
        model._machine = SVM(coefficients @ feature_map.whitening.T, intercepts)
    else:
        model._machine = LinearOnFeatures(feature_map, coefficients, intercepts)


def _landmarks(
    model: GraphSVC, chosen: Candidate, features: Features, search: ApproximateSearch
) -> np.ndarray:
    """Positions of the landmarks; none where the features compare with no training graph."""
    if model.approximation != "nystroem":
        return np.zeros(0, dtype=np.int64)
    kernel = chosen.kernel, chosen.gamma, model.offset_, model._weights()
    rng = np.random.default_rng(search.seed)
    return hard_landmarks(
        features, search.codes, search.sample_weight, kernel, model.n_components, rng,
        model._n_jobs(),
    )  # fmt: skip


def _feature_map(
    model: GraphSVC, chosen: Candidate, features: Features, landmarks: Features, seed: int
) -> Any:
    weights, offset = model._weights(), model.offset_
    if model.approximation == "unary":
        return UnaryFeatures.fit(features, chosen.kernel, weights)
    if model.approximation == "nystroem":
        return NystroemFeatures.fit(
            landmarks, chosen.kernel, chosen.gamma, offset, weights, model._n_jobs()
        )
    given = model.n_components, seed, chosen.kernel, float(chosen.gamma or 0.0), offset, weights
    if model.approximation == "random-binning":
        return RandomBinning(*given, buckets_for(features.pairs.n_graphs, model.n_components))
    return RandomFourierFeatures(*given)


def _mapped(feature_map: Any, features: Features, n_jobs: int) -> Any:
    """Features of all training graphs: sparse, or dense in single precision."""
    if isinstance(feature_map, (UnaryFeatures, RandomBinning)):
        return feature_map.transform(features, n_jobs)
    if isinstance(feature_map, RandomFourierFeatures):
        return feature_map.transform(features, n_jobs, dtype=np.float32)
    return feature_map.transform(features, n_jobs).astype(np.float32)
