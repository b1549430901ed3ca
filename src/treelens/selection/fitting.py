"""From candidates to a fitted classifier: choose, then fit the chosen settings to all graphs.

The exact kernel is searched and fitted here; explicit features bring their own search and their own
last step (:mod:`treelens.scale.approximation`), and share what lies between.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple, Protocol

import numpy as np

from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel
from treelens.learning.settings import LearnerSettings
from treelens.models.classifier import Choice, FittedClassifier, LinearOnKernel
from treelens.models.linear_on_features import LinearOnFeatures
from treelens.models.predictions import predicted_codes
from treelens.models.svm import fit_calibration, fit_svm
from treelens.models.training import TrainingGraphs
from treelens.models.tried import Base, BestParams, Candidate, SearchResult
from treelens.patterns.features import Features, PatternExtractor, sum_of_squares
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.selection.gain import learning_gain
from treelens.selection.progress import progress_ticks
from treelens.selection.search import SCORES, KernelSearch, staged_search
from treelens.selection.settings import (
    inner_splits,
    rarest_class,
    warn_if_nothing_shared,
    warn_if_one_class_is_all,
)
from treelens.selection.task import Task


class Fitted(NamedTuple):
    """A fitted classifier, and the fitted learner of its weights (None: they are uniform)."""

    model: FittedClassifier
    learner: Any


class Weighed(NamedTuple):
    """All training graphs with the kernel of the chosen settings."""

    patterns: PatternExtractor
    histograms: PatternHistograms
    features: Features
    kernel: WeightedKernel
    learner: Any


class Search(Protocol):
    """What fitting the chosen settings asks of the search that chose them."""

    @property
    def histograms(self) -> PatternHistograms: ...

    def learn(self, base: Base, train: np.ndarray) -> Any: ...


def fit_exact(task: Task, candidates: list[Candidate]) -> Fitted:
    """Choose by cross-validation, and fit a support vector machine on the exact kernel."""
    vocabulary, histograms = count_training(task, candidates)
    search = KernelSearch(
        histograms,
        task.codes,
        inner_splits(task.cv, task.codes, task.classes, task.seed),
        task.learner,
        first_depth=task.first_depth,
        sample_weight=task.sample_weight,
        score=SCORES[task.scoring],
        n_jobs=task.n_jobs,
    )
    with progress_ticks(task.progress, "Choosing a kernel") as search.tick:
        result, chosen = staged_search(search, candidates)
    held_out = result.margins[chosen]
    known = np.isfinite(held_out).all(axis=1)  # a splitter need not cover every graph
    calibration = fit_calibration(held_out[known], task.codes[known])
    if chosen.weight_radius == 0:  # else the learner itself says so
        warn_if_nothing_shared(histograms.select_depths(task.first_depth, chosen.depth))
    weighed = weigh_training(task, chosen, vocabulary, search)
    warn_if_one_class_is_all(predicted_codes(result.decisions[chosen][known]), task.classes)
    best = best_params(task, chosen, result, len(candidates))
    return finished(task, weighed, _fit_svm(task, chosen, weighed), calibration, best, result)


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
    search: Search,
    everything: PatternHistograms | None = None,
) -> Weighed:
    """Learn the weights of the chosen settings from all training graphs.

    ``everything`` are counts that still hold what was dropped from the vocabulary for its rarity.
    """
    pair_feature = KERNELS[chosen.kernel].pair_feature
    patterns = PatternExtractor(vocabulary.truncated(chosen.depth), task.first_depth, pair_feature)
    histograms = search.histograms.select_depths(task.first_depth, chosen.depth)
    learner = None
    if chosen.weight_radius > 0:
        learner = search.learn(chosen.base, np.arange(len(task.codes)))
    weights = None if learner is None else learner.weights_
    pairs = patterns.pairs(histograms)
    diagonal = pairs.diagonal(weights)
    if everything is not None:
        whole = everything.select_depths(task.first_depth, chosen.depth)
        diagonal = diagonal + patterns.unseen_diagonal(
            task.graphs, histograms, sum_of_squares(whole)
        )
    kernel = WeightedKernel(chosen.kernel, weights, chosen.gamma, float(diagonal.max()))
    return Weighed(patterns, histograms, Features(pairs, diagonal), kernel, learner)


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
    choice = Choice(best, learning_gain(result), result, _own_parameters(used), learned)
    model = FittedClassifier(
        task.classes, weighed.patterns, decision, task.graphs.recipe, calibration,
        TrainingGraphs(weighed.histograms, task.codes), choice,
    )  # fmt: skip
    return Fitted(model, weighed.learner)


def _own_parameters(learner: Any) -> dict[str, Any] | None:
    """Parameters of a learner of ours, by which it can be made again; None of any other."""
    parameters: dict[str, Any] = learner.get_params(deep=False)
    ours = {field.name for field in fields(LearnerSettings)} | {"preset"}
    return parameters if set(parameters) == ours else None
