"""From candidates to a fitted classifier: choose, then fit the chosen settings to all graphs.

A :class:`Scheme` says how: ``EXACT`` is here, explicit features are in
:mod:`treelens.svm.approximation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import predicted_codes
from treelens.models.training import TrainingGraphs
from treelens.patterns.features import Features, PatternExtractor, sum_of_squares
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.progress import progress_ticks
from treelens.svm.gain import learning_gain
from treelens.svm.linear_on_features import LinearOnFeatures
from treelens.svm.model import Choice, FittedSVM, LinearOnKernel
from treelens.svm.search import SCORES, KernelSearch, staged_search
from treelens.svm.search_result import BestParams, Candidate, SearchResult
from treelens.svm.settings import (
    inner_splits,
    rarest_class,
    warn_if_nothing_shared,
    warn_if_one_class_is_all,
)
from treelens.svm.svm import fit_calibration, fit_svm
from treelens.svm.task import Task


class Fitted(NamedTuple):
    """A fitted classifier, and the fitted learner of its weights (None: they are uniform)."""

    model: FittedSVM
    learner: Any


class Weighed(NamedTuple):
    """All training graphs with the kernel of the chosen settings."""

    patterns: PatternExtractor
    histograms: PatternHistograms
    features: Features
    kernel: WeightedKernel
    learner: Any


class Scheme(NamedTuple):
    """A way to choose and to fit: on the exact kernel, or on explicit features.

    Attributes
    ----------
    search : callable
        ``search(task, histograms)`` is the :class:`KernelSearch` that chooses.
    decide : callable
        ``decide(task, chosen, weighed)`` is fitted to all training graphs.
    min_support : int
        Patterns that fewer graphs hold are dropped, and count as unseen.
    progress : str
    """

    search: Callable[[Task, PatternHistograms], KernelSearch]
    decide: Callable[[Task, Candidate, Weighed], LinearOnKernel | LinearOnFeatures]
    min_support: int = 1
    progress: str = "Choosing a kernel"


def fit_chosen(task: Task, candidates: list[Candidate], scheme: Scheme) -> Fitted:
    """Choose settings on held-out parts, then fit weights and what decides to all graphs."""
    vocabulary, everything = count_training(task, candidates)
    histograms = everything
    if scheme.min_support > 1:
        keep = everything.support >= scheme.min_support
        vocabulary, histograms = vocabulary.select_patterns(keep), everything.select_patterns(keep)
    search = scheme.search(task, histograms)
    with progress_ticks(task.progress, scheme.progress) as search.tick:
        result, chosen = staged_search(search, candidates)
    held_out = search.calibrating(chosen, result)
    calibration = fit_calibration(held_out.margins, held_out.codes)
    if chosen.weight_radius == 0 and histograms is everything:  # else the learner itself says so
        warn_if_nothing_shared(histograms.select_depths(task.first_depth, chosen.depth))
    weighed = weigh_training(task, chosen, vocabulary, histograms, everything, search)
    warn_if_one_class_is_all(predicted_codes(held_out.decisions), task.classes)
    best = best_params(task, chosen, result, len(candidates)) | search.facts
    decision = scheme.decide(task, chosen, weighed)
    return finished(task, weighed, decision, calibration, best, result)


def count_training(
    task: Task, candidates: list[Candidate]
) -> tuple[PatternVocabulary, PatternHistograms]:
    """Refine all training graphs, once, as deep as any candidate goes."""
    deepest = max(c.depth for c in candidates)
    vocabulary, colors = PatternVocabulary.fit(task.graphs, deepest, task.edge_labels, task.n_jobs)
    return vocabulary, PatternHistograms.from_colors(vocabulary, colors, task.n_jobs)


def weigh_training(
    task: Task,
    chosen: Candidate,
    vocabulary: PatternVocabulary,
    histograms: PatternHistograms,
    everything: PatternHistograms,
    search: KernelSearch,
) -> Weighed:
    """Learn the weights of the chosen settings from all training graphs.

    ``everything`` are counts that still hold what was dropped from the vocabulary for its rarity.
    """
    pair_feature = KERNELS[chosen.kernel].pair_feature
    patterns = PatternExtractor(vocabulary.truncated(chosen.depth), task.first_depth, pair_feature)
    in_use = histograms.select_depths(task.first_depth, chosen.depth)
    learner = None
    if chosen.weight_radius > 0:
        learner = search.learned(in_use, task.codes, chosen.base)
    weights = None if learner is None else learner.weights_
    pairs = patterns.pairs(in_use)
    diagonal = pairs.diagonal(weights)
    if everything is not histograms:
        whole = everything.select_depths(task.first_depth, chosen.depth)
        diagonal = diagonal + patterns.unseen_diagonal(task.graphs, in_use, sum_of_squares(whole))
    kernel = WeightedKernel(chosen.kernel, weights, chosen.gamma, float(diagonal.max()))
    return Weighed(patterns, in_use, Features(pairs, diagonal), kernel, learner)


def _exact_search(task: Task, histograms: PatternHistograms) -> KernelSearch:
    return KernelSearch(
        histograms,
        task.codes,
        inner_splits(task.cv, task.codes, task.classes, task.seed),
        task.learner,
        first_depth=task.first_depth,
        sample_weight=task.sample_weight,
        score=SCORES[task.scoring],
        n_jobs=task.n_jobs,
    )


def _fit_svm(task: Task, chosen: Candidate, weighed: Weighed) -> LinearOnKernel:
    """The machine on all training graphs, keeping the graphs that carry it."""
    matrix = weighed.kernel.matrix(weighed.features, n_jobs=task.n_jobs)
    svm = fit_svm(matrix, task.codes, len(task.classes), chosen.C, task.sample_weight)
    basis = basis_features(weighed, svm.support)
    return LinearOnKernel(weighed.kernel, basis, svm.support, svm.on(svm.support))


def basis_features(weighed: Weighed, positions: np.ndarray) -> Features:
    """Features of the training graphs that a model compares with."""
    pairs = weighed.patterns.pairs(weighed.histograms.select_graphs(positions))
    return Features(pairs, weighed.features.diagonal[positions])


def best_params(
    task: Task, chosen: Candidate, result: SearchResult, n_candidates: int
) -> BestParams:
    """What was chosen, and what "auto" stood for."""
    return {
        "kernel": chosen.kernel,
        "depth": chosen.depth,
        "weight_radius": chosen.weight_radius,
        "gamma": chosen.gamma,
        "C": chosen.C,
        "edge_labels": task.edge_labels,
        "include_depth_zero": task.first_depth == 0,
        "scoring": task.scoring,
        "class_weight": task.class_weight,
        "rare_class": rarest_class(task.classes, task.codes),
        "score": result.mean(chosen),
        "n_candidates": n_candidates,
        "n_splits": result.n_splits,
    }


def finished(
    task: Task,
    weighed: Weighed,
    decision: LinearOnKernel | LinearOnFeatures,
    calibration: tuple[np.ndarray, np.ndarray],
    best: BestParams,
    result: SearchResult,
) -> Fitted:
    """All of it in one frozen thing."""
    learned = getattr(weighed.learner, "result_", None)
    used = task.learner if weighed.learner is None else weighed.learner
    # By these a learner of ours can be made again; of any other nothing is known.
    flat = used.flat_parameters() if hasattr(used, "flat_parameters") else None
    choice = Choice(best, learning_gain(result), result, flat, learned)
    model = FittedSVM(
        task.classes, weighed.patterns, decision, task.graphs.recipe, calibration,
        TrainingGraphs(weighed.histograms, task.codes), choice,
    )  # fmt: skip
    return Fitted(model, weighed.learner)


EXACT = Scheme(_exact_search, _fit_svm)
