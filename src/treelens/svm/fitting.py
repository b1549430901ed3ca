"""The settings of a ``GraphSVC``, and its fit: choose by cross-validation, then fit all graphs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from treelens.graphs.collection import GraphCollection
from treelens.kernels.table import KERNELS, check_kernel
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import (
    TrainingGraphs,
    class_weights,
    has_rare_class,
    predicted_codes,
    warn_if_one_class,
)
from treelens.parallel import progress_ticks
from treelens.patterns.forest import PatternExtractor
from treelens.patterns.histograms import Features, PatternHistograms
from treelens.svm.model import Choice, FittedSVM, LinearOnKernel
from treelens.svm.search import (
    SCORES,
    Candidate,
    KernelSearch,
    Split,
    learning_gain,
    repetitions_for,
    staged_search,
)
from treelens.svm.solver import SVM, fit_calibration, fit_svm

# What "auto" stands for. Wide enough that the choice is rarely at an edge.
AUTO_KERNELS = ("wwl", "tanimoto-rbf")
AUTO_DEPTHS = (1, 2, 3, 4, 5, 6)
AUTO_GAMMAS = (0.1, 1.0, 3.0, 10.0)
AUTO_CS = (0.1, 1.0, 3.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Task:
    """Training data and all settings of a fit but the candidates; "auto" is resolved."""

    graphs: GraphCollection
    classes: np.ndarray
    codes: np.ndarray  # (n_graphs,) positions in classes
    edge_labels: bool
    first_depth: int
    learner: Any  # unfitted; the search sets its radius
    scoring: str  # a key of treelens.svm.search.SCORES
    class_weight: Any  # None, "balanced" or a dict
    cv: Any  # number of folds, or a splitter
    seed: int
    n_jobs: int = 1
    progress: bool | None = False
    attributes: bool = False  # whether attributes of nodes and edges are patterns too


def inner_splits(cv: Any, codes: np.ndarray, classes: np.ndarray, seed: int) -> list[Split]:
    """Splits of the training graphs: the user's, or stratified folds, repeated for small sets."""
    if not isinstance(cv, Integral):
        return _checked_splits(cv, codes)
    counts = np.bincount(codes)
    smallest, rare = int(counts.min()), classes.tolist()[int(counts.argmin())]
    if smallest < 2:
        raise ValueError(
            f"Class {rare!r} has one member: cross-validation needs at least 2 of every class. "
            "Drop the class, merge it with another or collect more of it."
        )
    n_folds = min(int(cv), smallest)
    if n_folds < int(cv):
        warnings.warn(
            f"Class {rare!r} has {smallest} members, fewer than cv={cv} folds: "
            f"cross-validating with {n_folds} folds, so that each contains one of them.",
            UserWarning,
            stacklevel=3,
        )
    splitter = RepeatedStratifiedKFold(
        n_splits=n_folds, n_repeats=repetitions_for(len(codes)), random_state=seed
    )
    return list(splitter.split(codes, codes))


def _checked_splits(cv: Any, codes: np.ndarray) -> list[Split]:
    """The splits of the user's splitter; a ``ValueError`` where no SVM could be fitted."""
    checked = [(np.asarray(train), np.asarray(part)) for train, part in cv.split(codes, codes)]
    for number, (train, validation) in enumerate(checked):
        if (n_classes := len(np.unique(codes[train]))) < 2 or not len(validation):
            raise ValueError(
                f"Split {number} of cv has {n_classes} classes among its {len(train)} training "
                f"graphs and {len(validation)} validation graphs: at least 2 and 1 are needed. "
                "StratifiedKFold keeps every class in every part."
            )
    held_out = {code for _, validation in checked for code in codes[validation].tolist()}
    if len(held_out) < len(np.unique(codes)):
        raise ValueError(
            "The splits of cv never hold out a graph of some class, so its probability cannot be "
            "estimated. StratifiedKFold keeps every class in every part."
        )
    return checked


def resolved_scoring(scoring: str, codes: np.ndarray) -> str:
    """The score behind "auto": accuracy, unless a class is rare."""
    if scoring != "auto":
        return scoring
    if not has_rare_class(codes):
        return "accuracy"
    return "roc_auc" if codes.max() == 1 else "balanced_accuracy"


def resolved_class_weight(class_weight: Any, scoring: str, codes: np.ndarray) -> Any:
    """The weights behind "auto": "balanced" for a rare class, unless the score ignores it."""
    if not (isinstance(class_weight, str) and class_weight == "auto"):
        return class_weight
    balanced = scoring in ("auto", "balanced_accuracy") and has_rare_class(codes)
    return "balanced" if balanced else None


def rarest_class(classes: np.ndarray, codes: np.ndarray) -> dict[str, Any] | None:
    """The rare class and its share, as plain data; None where no class is rare."""
    if not has_rare_class(codes):
        return None
    counts = np.bincount(codes)
    rarest = int(counts.argmin())
    return {"class": classes.tolist()[rarest], "share": float(counts[rarest] / len(codes))}


def listed_kernels(kernel: str | Sequence[str]) -> list[str]:
    """The kernels to try."""
    if isinstance(kernel, str):
        return list(AUTO_KERNELS) if kernel == "auto" else [kernel]
    if not len(kernel):
        raise ValueError(f"kernel must be 'auto' or among {', '.join(KERNELS)}; got {kernel!r}.")
    for name in kernel:
        check_kernel(name)
    return list(kernel)


def listed(
    value: Any, auto: Sequence[Any], name: str, kind: Any, least: int, positive: bool = False
) -> list[Any]:
    """A parameter that may be "auto", one number or several, as a list of numbers."""
    if isinstance(value, str):
        return list(auto)
    values = [value] if isinstance(value, kind) else list(value)
    if not values or not all(
        isinstance(v, kind) and least <= v < np.inf and (v > 0 or not positive) for v in values
    ):
        numbers = "whole numbers" if kind is Integral else "numbers"
        bound = f"above {least}" if positive else f"of at least {least}"
        raise ValueError(f"{name} must be 'auto' or finite {numbers} {bound}, got {value!r}.")
    return values


# --- fitting ------------------------------------------------------------------------------------


def fit_chosen(task: Task, candidates: list[Candidate]) -> tuple[FittedSVM, Any]:
    """Choose settings on held-out parts, then fit weights and SVM to all graphs.

    Returns the model and the fitted learner of its weights (None: they are uniform).
    """
    deepest = max(c.depth for c in candidates)
    patterns, colors = PatternExtractor.fit(
        task.graphs, deepest, task.first_depth, KERNELS[candidates[0].kernel].pair_feature,
        edge_labels=task.edge_labels, attributes=task.attributes, n_jobs=task.n_jobs,
    )  # fmt: skip
    everything = patterns.count(colors)

    def counts(depth: int) -> PatternHistograms:
        return everything.select_levels(everything.level_depths <= depth)

    sample_weight = class_weights(task.class_weight, task.classes, task.codes)
    search = KernelSearch(
        counts, task.codes, inner_splits(task.cv, task.codes, task.classes, task.seed),
        task.learner, sample_weight, SCORES[task.scoring], task.n_jobs,
    )  # fmt: skip
    with progress_ticks(task.progress, "Choosing a kernel") as search.tick:
        result = staged_search(search, candidates)
    chosen = result.winner()
    # A splitter of the user's need not hold out every graph.
    known = np.isfinite(result.margins[chosen]).all(axis=1)
    calibration = fit_calibration(result.margins[chosen][known], task.codes[known])

    histograms = counts(chosen.depth)
    kind = KERNELS[chosen.kernel].pair_feature
    patterns = replace(patterns, forest=patterns.forest.truncated(chosen.depth), kind=kind)
    learner = None
    if chosen.weight_radius > 0:
        learner = search.learn(chosen.base, np.arange(len(task.codes)))
    elif not (histograms.support >= 2).any():  # a learner warns about this itself
        warnings.warn(
            "No two training graphs share a pattern: the weights are uniform and predictions "
            "little better than chance. Do the node labels identify single nodes?",
            UserWarning,
            stacklevel=3,
        )
    warn_if_one_class(predicted_codes(result.decisions[chosen][known]), task.classes)
    weights = None if learner is None else learner.weights_
    pairs = patterns.pairs(histograms)
    features = Features(pairs, pairs.diagonal(weights))
    kernel = WeightedKernel(chosen.kernel, weights, chosen.gamma, float(features.diagonal.max()))
    matrix = kernel.matrix(features, n_jobs=task.n_jobs)
    svm = fit_svm(matrix, task.codes, len(task.classes), chosen.C, sample_weight)
    svm, support = SVM(svm.coefficients[:, svm.support], svm.intercepts), svm.support
    training = TrainingGraphs(histograms, task.codes).with_identity(task.graphs)
    used = task.learner if learner is None else learner
    choice = Choice(
        {
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
            "n_candidates": len(candidates),
            "n_splits": result.n_splits,
        },
        learning_gain(result),
        result,
        used.flat_parameters() if hasattr(used, "flat_parameters") else None,
        getattr(learner, "result_", None),
    )
    model = FittedSVM(
        task.classes, patterns, LinearOnKernel(kernel, support, svm), task.graphs.recipe,
        calibration, training, choice,
    )  # fmt: skip
    return model, learner
