"""From candidates to a fitted SVM: choose by cross-validation, then fit to all graphs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import predicted_codes
from treelens.models.targets import warn_if_one_class
from treelens.models.training import TrainingGraphs
from treelens.patterns.cells import MOST_STEPS, AttributeCells, has_attributes
from treelens.patterns.features import Features, PatternExtractor, with_cells
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import NodeColors, PatternVocabulary
from treelens.progress import progress_ticks
from treelens.svm.model import Choice, FittedSVM, LinearOnKernel
from treelens.svm.search import (
    SCORES,
    BestParams,
    Candidate,
    KernelSearch,
    SearchResult,
    learning_gain,
    staged_search,
)
from treelens.svm.settings import Task, inner_splits, rarest_class
from treelens.svm.solver import fit_calibration, fit_svm


def fit_chosen(task: Task, candidates: list[Candidate]) -> tuple[FittedSVM, Any]:
    """Choose settings on held-out parts, then fit weights and SVM to all graphs.

    Returns the model and the fitted learner of its weights (None: they are uniform).
    """
    deepest = max(c.depth for c in candidates)
    vocabulary, colors = PatternVocabulary.fit(task.graphs, deepest, task.edge_labels, task.n_jobs)
    everything = PatternHistograms.from_colors(vocabulary, colors, task.n_jobs)
    cells = cell_colors = None
    if task.attributes and has_attributes(task.graphs):
        cells = AttributeCells.fit(task.graphs, min(deepest, MOST_STEPS))
        cell_colors = NodeColors(cells.transform(task.graphs, task.n_jobs), colors.node_offsets)

    def counts(depth: int) -> PatternHistograms:
        labels = everything.select_depths(task.first_depth, depth)
        if cells is None or cell_colors is None:
            return labels
        return with_cells(labels, cells.truncated(min(depth, MOST_STEPS)), cell_colors, task.n_jobs)

    search = KernelSearch(
        counts, task.codes, inner_splits(task.cv, task.codes, task.classes, task.seed),
        task.learner, task.sample_weight, SCORES[task.scoring], task.n_jobs,
    )  # fmt: skip
    with progress_ticks(task.progress, "Choosing a kernel") as search.tick:
        result, chosen = staged_search(search, candidates)
    # A splitter of the user's need not hold out every graph.
    known = np.isfinite(result.margins[chosen]).all(axis=1)
    calibration = fit_calibration(result.margins[chosen][known], task.codes[known])

    histograms = counts(chosen.depth)
    patterns = PatternExtractor(
        vocabulary.truncated(chosen.depth), task.first_depth, KERNELS[chosen.kernel].pair_feature,
        None if cells is None else cells.truncated(min(chosen.depth, MOST_STEPS)),
    )  # fmt: skip
    learner = None
    if chosen.weight_radius > 0:
        learner = search.learn(chosen.base, np.arange(len(task.codes)))
    else:  # a learner warns about this itself
        _warn_if_nothing_shared(histograms)
    warn_if_one_class(predicted_codes(result.decisions[chosen][known]), task.classes)
    weights = None if learner is None else learner.weights_
    decision = _fit_decision(task, chosen, patterns, histograms, weights)
    used = task.learner if learner is None else learner
    choice = Choice(
        _best_params(task, chosen, result, len(candidates)),
        learning_gain(result),
        result,
        used.flat_parameters() if hasattr(used, "flat_parameters") else None,
        getattr(learner, "result_", None),
    )
    training = TrainingGraphs(histograms, task.codes).with_identity(task.graphs)
    model = FittedSVM(
        task.classes, patterns, decision, task.graphs.recipe, calibration, training, choice
    )
    return model, learner


def _fit_decision(
    task: Task,
    chosen: Candidate,
    patterns: PatternExtractor,
    histograms: PatternHistograms,
    weights: np.ndarray | None,
) -> LinearOnKernel:
    """The SVM on all training graphs, reduced to its support vectors."""
    pairs = patterns.pairs(histograms)
    features = Features(pairs, pairs.diagonal(weights))
    kernel = WeightedKernel(chosen.kernel, weights, chosen.gamma, float(features.diagonal.max()))
    matrix = kernel.matrix(features, n_jobs=task.n_jobs)
    svm = fit_svm(matrix, task.codes, len(task.classes), chosen.C, task.sample_weight)
    support = svm.support
    basis = Features(patterns.pairs(histograms.select_graphs(support)), features.diagonal[support])
    return LinearOnKernel(kernel, basis, support, svm.on(support))


def _best_params(
    task: Task, chosen: Candidate, result: SearchResult, n_candidates: int
) -> BestParams:
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


def _warn_if_nothing_shared(histograms: PatternHistograms) -> None:
    if not (histograms.support >= 2).any():
        warnings.warn(
            "No two training graphs share a pattern: the weights are uniform and predictions "
            "little better than chance. Do the node labels identify single nodes?",
            UserWarning,
            stacklevel=4,
        )
