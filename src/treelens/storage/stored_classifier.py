"""A fitted classifier in a model file, and back: support vector machines and linear models.

What is kept is what predicting, explaining and reporting need, as numbers and plain labels; the
rest (pair features) is built from it. Loading checks every array against the others before
anything computes with it, since compiled loops follow its indices unchecked.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel
from treelens.models.training import TrainingGraphs
from treelens.pairwise.result import LearnedWeights
from treelens.patterns.features import Features, PatternExtractor
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.storage.archive import Contents
from treelens.storage.plain_data import to_plain
from treelens.storage.stored import Stored
from treelens.storage.stored_patterns import (
    get_lists,
    get_recipe,
    get_vocabulary,
    plain_value,
    put_lists,
    put_recipe,
    put_vocabulary,
)
from treelens.storage.stored_records import (
    checked_choice,
    checked_class_labels,
    checked_gain,
    checked_result,
    checked_search,
)
from treelens.svm.model import Choice, FittedSVM, LinearOnKernel
from treelens.svm.search import Candidate, SearchResult
from treelens.svm.solver import SVM, class_pairs

_ROUNDING = 1e-6


def put_classifier(model: FittedSVM, into: Contents) -> None:
    """Everything about a model that was chosen by a search."""
    choice, training = model.choice, model.training
    into.data["classes"] = plain_value(model.classes, "a class")
    into.data["choice"] = plain_value(dict(choice.best_params), "best_params_")
    into.data["learning_gain"] = plain_value(choice.learning_gain, "learning_gain_")
    put_recipe(model.recipe, into)
    put_vocabulary(model.patterns.vocabulary, into)
    _put_histograms(training.histograms, into)
    into.arrays["train_codes"] = training.targets.astype(np.int64, copy=False)
    into.arrays["calibration_coefficients"], into.arrays["calibration_intercepts"] = (
        model.calibration
    )
    _put_learned(model, into)
    _put_decision(model, into)
    _put_search(choice.cv_results, into)


def get_classifier(stored: Stored, learner: dict[str, Any] | None) -> FittedSVM:
    """The model of a file; ``learner`` are the parameters of the learner that the search had."""
    vocabulary = get_vocabulary(stored)
    histograms = _get_histograms(stored, vocabulary)
    classes = checked_class_labels(stored)
    best = checked_choice(stored, vocabulary, histograms.first_depth)
    gain = checked_gain(stored)
    pair_feature = KERNELS[best["kernel"]].pair_feature
    patterns = PatternExtractor(vocabulary, histograms.first_depth, pair_feature)
    weights, learned = _get_learned(stored, histograms)
    offset = stored.number(stored.value("offset", float), "'offset'", 0.0)
    kernel = WeightedKernel(best["kernel"], weights, best["gamma"], offset)
    codes = stored.integers("train_codes", np.int64, (histograms.n_graphs,), 0, len(classes))
    decision = _get_decision(stored, kernel, patterns, histograms, len(classes))
    n_outputs = _n_outputs(len(classes))
    calibration = (
        stored.floats("calibration_coefficients", (n_outputs, n_outputs)),
        stored.floats("calibration_intercepts", (n_outputs,)),
    )
    result = _get_search(stored, (histograms.n_graphs, n_outputs))
    return FittedSVM(
        classes, patterns, decision, get_recipe(stored), calibration,
        TrainingGraphs(histograms, codes), Choice(best, gain, result, learner, learned),
    )  # fmt: skip


# --- counts ----------------------------------------------------------------------------------


def _put_histograms(histograms: PatternHistograms, into: Contents) -> None:
    into.data["first_depth"] = int(histograms.first_depth)
    put_lists(histograms, into)
    into.arrays["train_unseen"] = histograms.unseen


def _get_histograms(stored: Stored, vocabulary: PatternVocabulary) -> PatternHistograms:
    first: int = stored.value("first_depth", int)
    if not 0 <= first <= vocabulary.depth:
        raise stored.error(f"'first_depth' should be 0 to {vocabulary.depth}, not {first}")
    offsets = vocabulary.level_offsets
    return get_lists(stored, offsets[first:] - offsets[first], first)


# --- weights ----------------------------------------------------------------------------------


def _put_learned(model: FittedSVM, into: Contents) -> None:
    """Learned weights with the solver's record; uniform ones leave no array."""
    into.data["learner"] = into.data["learning_result"] = None
    if model.kernel.weights is None or model.choice.learned is None:
        return
    into.data["learner"] = plain_value(model.choice.learner, "the learner")
    into.arrays["weights"] = model.kernel.weights
    result = asdict(model.choice.learned)  # its parts too
    del result["weights"]
    into.data["learning_result"] = plain_value(result, "result_")


def _get_learned(
    stored: Stored, histograms: PatternHistograms
) -> tuple[np.ndarray | None, LearnedWeights | None]:
    if stored.value("learner", dict, type(None)) is None:
        return None, None
    weights = stored.floats("weights", (histograms.n_patterns,), 0.0)
    return weights, checked_result(stored, weights, histograms.n_depths)


# --- what decides -----------------------------------------------------------------------------


def _put_decision(model: FittedSVM, into: Contents) -> None:
    """Coefficients, and the training graphs that they belong to."""
    decision = model.decision
    into.data["offset"] = float(decision.kernel.offset)
    into.arrays["support"] = decision.basis_indices.astype(np.int64, copy=False)
    into.arrays["support_diagonal"] = decision.basis.diagonal
    into.arrays["coefficients"] = decision.svm.coefficients
    into.arrays["intercepts"] = decision.svm.intercepts


def _get_decision(
    stored: Stored,
    kernel: WeightedKernel,
    patterns: PatternExtractor,
    histograms: PatternHistograms,
    n_classes: int,
) -> LinearOnKernel:
    support = stored.integers("support", np.int64, (None,), 0, histograms.n_graphs)
    if (np.diff(support) <= 0).any():
        raise stored.error("the array 'support' should ascend")
    pairs = patterns.pairs(histograms.select_graphs(support))
    diagonal = stored.floats("support_diagonal", (len(support),), 0.0)
    # Patterns that were left out may add to them, but nothing takes away: kernels divide by them.
    if (diagonal < pairs.diagonal(kernel.weights) * (1.0 - _ROUNDING)).any():
        raise stored.error("the array 'support_diagonal' is below what the patterns add up to")
    svm = _get_svm(stored, n_classes, len(support))
    return LinearOnKernel(kernel, Features(pairs, diagonal), support, svm)


def _n_outputs(n_classes: int) -> int:
    return 1 if n_classes == 2 else n_classes


def _get_svm(stored: Stored, n_classes: int, n_support: int) -> SVM:
    n_outputs = len(class_pairs(n_classes)[0])
    return SVM(
        stored.floats("coefficients", (n_outputs, n_support)),
        stored.floats("intercepts", (n_outputs,)),
    )


# --- the search -------------------------------------------------------------------------------


def _put_search(search: SearchResult, into: Contents) -> None:
    """Scores of all candidates; held-out decision values of the few that are of interest."""
    candidates = list(search.scores)
    into.data["search"] = {
        "n_splits": search.n_splits,
        "test_to_train": float(search.test_to_train),
        "candidates": [to_plain(list(c)) for c in candidates],
        "n_scores": [len(search.scores[c]) for c in candidates],
    }
    for name in ("scores", "losses"):
        lists = [getattr(search, name)[c] for c in candidates]
        into.arrays[f"search_{name}"] = np.concatenate([np.empty(0), *map(np.asarray, lists)])
    for number, candidate in enumerate(candidates):
        if candidate in _of_interest(search) and candidate in search.decisions:
            into.arrays[f"decisions_{number}"] = search.decisions[candidate]


def _of_interest(search: SearchResult) -> list[Candidate]:
    """The best candidate of all, with uniform and with learned weights."""
    best = (
        search.best(),
        search.best(lambda c: c.weight_radius == 0),
        search.best(lambda c: c.weight_radius > 0),
    )
    return [candidate for candidate in best if candidate is not None]


def _get_search(stored: Stored, shape: tuple[int, int]) -> SearchResult:
    result, candidates, ends = checked_search(stored)
    pairs = list(zip(candidates, ends[:-1], ends[1:], strict=True))
    for name in ("scores", "losses"):
        values = stored.floats(f"search_{name}", (ends[-1],)).tolist()
        getattr(result, name).update({c: values[start:end] for c, start, end in pairs})
    for number, candidate in enumerate(candidates):
        if stored.has_array(f"decisions_{number}"):
            # NaN: a graph that the user's splitter never held out
            result.decisions[candidate] = stored.floats(f"decisions_{number}", shape, nan=True)
    return result
