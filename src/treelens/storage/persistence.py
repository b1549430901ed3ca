"""Model files: a fitted model to a file and back, without pickle; here those of ``GraphSVC``.

What is kept is what predicting, explaining and reporting need, as numbers and plain labels; the
rest (pair features, the extractor) is built from it. Loading checks every array against the others
before anything computes with it, since compiled loops follow its indices unchecked.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import treelens
from treelens.estimators.weights import PairwiseWeights
from treelens.kernels.table import KERNELS
from treelens.kernels.voting import class_pairs
from treelens.models.linear_on_features import get_linear_on_features, put_feature_map
from treelens.models.svm import SVM
from treelens.patterns.features import PatternExtractor
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.selection.search import Candidate, SearchResult
from treelens.storage.archive import (
    Contents,
    ModelFileError,
    ModelFileNotFoundError,
    read_archive,
    write_archive,
)
from treelens.storage.plain_data import UnknownKindError, to_plain
from treelens.storage.stored import Stored
from treelens.storage.stored_patterns import (
    get_lists,
    get_recipe,
    get_vocabulary,
    plain_parameters,
    plain_value,
    put_lists,
    put_recipe,
    put_vocabulary,
)
from treelens.storage.stored_records import (
    checked_choice,
    checked_class_labels,
    checked_estimator,
    checked_gain,
    checked_result,
    checked_search,
)

if TYPE_CHECKING:
    from treelens.estimators.evidence import GraphClassifier, GraphRegressor
    from treelens.estimators.streaming import StreamingGraphClassifier
    from treelens.estimators.svc import GraphSVC

    # What keeps its training graphs, and what may not.
    FullModel = GraphSVC | GraphClassifier | GraphRegressor
    AnyModel = FullModel | StreamingGraphClassifier

__all__ = ["ModelFileError", "ModelFileNotFoundError", "load", "load_model", "save_model"]

_ROUNDING = 1e-6


def save_model(model: GraphSVC, path: str | Path) -> None:
    """Write a fitted classifier to a file, whole or not at all; see :func:`load`.

    Raises
    ------
    TypeError
        If a label, a class or the learner is of a kind that a model file cannot keep.
    """
    check_is_fitted(model)
    data: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    _put_settings(model, data)
    put_recipe(model.recipe_, data)
    put_vocabulary(model.vocabulary_, data, arrays)
    _put_histograms(model.train_histograms_, data, arrays)
    _put_machine(model, data, arrays)
    _put_learner(model.learner_, data, arrays)
    _put_search(model, data, arrays)
    write_archive(path, Contents(data, arrays), treelens.__version__)


def load(path: str | Path) -> AnyModel:
    """Load a model that ``model.save(path)`` wrote.

    Loading runs no code from the file: it holds numbers and plain labels only. Predictions are
    those of the saved model to the last bit, on the same machine.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    ModelFileError
        A ``ValueError`` that says what is wrong: a file that is cut off, altered, of a version
        that this treelens does not know, or no model at all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphClassifier(depth=2).fit(graphs, y)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.treelens")
    >>> model.save(path)
    >>> bool((tl.load(path).decision_function(graphs) == model.decision_function(graphs)).all())
    True
    """
    return model_of(Stored(read_archive(path), str(path)))


def model_of(stored: Stored) -> AnyModel:
    """The model in what was read from a file."""
    if _kind(stored) != "streaming":
        return _full_model_of(stored)
    from treelens.storage.stored_streaming import get_streaming

    return get_streaming(stored)


def load_model(path: str | Path) -> FullModel:
    """A model from its file; one fitted to blocks of graphs is refused."""
    stored = Stored(read_archive(path), str(path))
    if _kind(stored) == "streaming":
        raise ModelFileError(
            f"{path}: this model was fitted to blocks of graphs (StreamingGraphClassifier), and "
            "holds too little for commands. In Python, treelens.load(path) predicts and explains."
        )
    return _full_model_of(stored)


def _kind(stored: Stored) -> str:
    """What a file holds; the first kind there was has no name in its files."""
    kind: str = stored.value("model", str) if stored.has_value("model") else "svc"
    if kind not in ("svc", "streaming", "gaussian-process"):
        raise stored.error(f"'model' names a kind, {kind[:40]!r}, that this treelens does not know")
    return kind


def _full_model_of(stored: Stored) -> FullModel:
    if _kind(stored) == "svc":
        return _get_model(stored)
    from treelens.storage.stored_evidence import get_evidence

    return get_evidence(stored)


def _get_model(stored: Stored) -> GraphSVC:
    vocabulary = get_vocabulary(stored)
    histograms = _get_histograms(stored, vocabulary)
    model = _get_settings(stored, vocabulary, histograms)
    model.recipe_ = get_recipe(stored)
    _get_learner(stored, model)
    _get_machine(stored, model)
    _get_search(stored, model)
    return model


# --- settings and what was chosen -----------------------------------------------------------


def _put_settings(model: GraphSVC, data: dict[str, Any]) -> None:
    data["parameters"], data["parameters_not_kept"] = plain_parameters(model)
    data["learner_parameters"] = None
    if model.learner is not None:
        data["learner_parameters"] = plain_parameters(_checked_learner(model.learner))[0]
    data["classes"] = plain_value(model.classes_, "a class")
    data["choice"] = plain_value(model.best_params_, "best_params_")
    data["learning_gain"] = plain_value(model.learning_gain_, "learning_gain_")


def _get_settings(
    stored: Stored, vocabulary: PatternVocabulary, histograms: PatternHistograms
) -> GraphSVC:
    from treelens.estimators.svc import GraphSVC

    model: GraphSVC = checked_estimator(stored, "parameters", GraphSVC)
    if stored.value("learner_parameters", dict, type(None)) is not None:
        model.learner = checked_estimator(stored, "learner_parameters", PairwiseWeights)
    model.vocabulary_, model.train_histograms_ = vocabulary, histograms
    model.classes_ = checked_class_labels(stored)
    model.best_params_ = checked_choice(stored, vocabulary, histograms.first_depth)
    model.learning_gain_ = checked_gain(stored)
    kind = KERNELS[model.best_params_["kernel"]].pair_feature
    model._extractor = PatternExtractor(vocabulary, histograms.first_depth, kind)
    model._uses_edge_labels = vocabulary.uses_edge_labels
    return model


# --- counts ----------------------------------------------------------------------------------


def _put_histograms(
    histograms: PatternHistograms, data: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    data["first_depth"] = int(histograms.first_depth)
    put_lists(histograms, arrays)
    arrays["train_unseen"] = histograms.unseen


def _get_histograms(stored: Stored, vocabulary: PatternVocabulary) -> PatternHistograms:
    first = stored.value("first_depth", int)
    if not 0 <= first <= vocabulary.depth:
        raise stored.error(f"'first_depth' should be 0 to {vocabulary.depth}, not {first}")
    level_offsets = vocabulary.level_offsets[first:] - vocabulary.level_offsets[first]
    return get_lists(stored, level_offsets, first)


# --- weights and machine --------------------------------------------------------------------


def _put_machine(model: GraphSVC, data: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    data["offset"] = float(model.offset_)
    arrays["train_codes"] = model.train_codes_.astype(np.int64, copy=False)
    arrays["support"] = model._basis.astype(np.int64, copy=False)
    arrays["support_diagonal"] = model._support_diagonal
    data["pairwise"] = bool(model._machine.pairwise)
    arrays["coefficients"] = model._machine.coefficients
    arrays["intercepts"] = model._machine.intercepts
    arrays["calibration_coefficients"], arrays["calibration_intercepts"] = model._calibration
    put_feature_map(model._machine, data, arrays)


def _get_machine(stored: Stored, model: GraphSVC) -> None:
    histograms, n_classes = model.train_histograms_, len(model.classes_)
    n_outputs = 1 if n_classes == 2 else n_classes
    model.offset_ = stored.number(stored.value("offset", float), "'offset'", 0.0)
    model.train_codes_ = stored.integers(
        "train_codes", np.int64, (histograms.n_graphs,), 0, n_classes
    )
    support = stored.integers("support", np.int64, (None,), 0, histograms.n_graphs)
    if (np.diff(support) <= 0).any():
        raise stored.error("the array 'support' should ascend")
    model._basis = support
    model._support_pairs = model._extractor.pairs(histograms.select_graphs(support))
    model._support_diagonal = stored.floats("support_diagonal", (len(support),), 0.0)
    # Patterns that were left out may add to them, but nothing takes away: kernels divide by them.
    least = model._support_pairs.diagonal(model._weights())
    if (model._support_diagonal < least * (1.0 - _ROUNDING)).any():
        raise stored.error("the array 'support_diagonal' is below what the patterns add up to")
    if stored.has_value("feature_map"):
        model._machine = get_linear_on_features(stored, model, n_outputs)
    else:
        model._machine = _get_svm(stored, n_classes, len(support))
    model._calibration = (
        stored.floats("calibration_coefficients", (n_outputs, n_outputs)),
        stored.floats("calibration_intercepts", (n_outputs,)),
    )


def _get_svm(stored: Stored, n_classes: int, n_support: int) -> SVM:
    """Version 1 knew no machines for every two classes: there each was told from the rest."""
    pairwise = stored.has_value("pairwise") and stored.value("pairwise", bool)
    n_outputs = 1 if n_classes == 2 else n_classes
    if pairwise:
        n_outputs = len(class_pairs(n_classes)[0])
    return SVM(
        stored.floats("coefficients", (n_outputs, n_support)),
        stored.floats("intercepts", (n_outputs,)),
        pairwise and n_classes > 2,
    )


def _checked_learner(learner: Any) -> PairwiseWeights:
    if type(learner) is not PairwiseWeights:
        raise UnknownKindError(
            f"The model cannot be saved: its learner is a {type(learner).__name__}; only "
            "PairwiseWeights can be kept in a file."
        )
    return learner


def _put_learner(learner: Any, data: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """The fitted learner; None, uniform weights, leaves no array of weights."""
    data["learner"] = data["learning_result"] = None
    if learner is None:
        return
    data["learner"] = plain_parameters(_checked_learner(learner))[0]
    arrays["weights"] = learner.weights_
    result = asdict(learner.result_)  # its parts too
    del result["weights"]
    data["learning_result"] = plain_value(result, "result_")


def _get_learner(stored: Stored, model: GraphSVC) -> None:
    n_patterns = model.train_histograms_.n_patterns
    if stored.value("learner", dict, type(None)) is None:
        model.learner_, model.weights_ = None, np.ones(n_patterns)
        return
    learner: PairwiseWeights = checked_estimator(stored, "learner", PairwiseWeights)
    learner.weights_ = stored.floats("weights", (n_patterns,), 0.0)
    model.learner_, model.weights_ = learner, learner.weights_
    result = checked_result(stored, learner.weights_, model.train_histograms_.n_depths)
    learner.result_ = result
    learner.history_, learner.gaps_ = result.history, result.gaps
    learner.converged_, learner.n_iter_ = result.converged, result.n_iter


# --- the search -----------------------------------------------------------------------------


def _put_search(model: GraphSVC, data: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Scores of all candidates; held-out decision values of the few that are of interest."""
    search = model.cv_results_
    candidates = list(search.scores)
    data["search"] = {
        "n_splits": search.n_splits,
        "test_to_train": float(search.test_to_train),
        "candidates": [to_plain(list(c)) for c in candidates],
        "n_scores": [len(search.scores[c]) for c in candidates],
    }
    for name in ("scores", "losses"):
        lists = [getattr(search, name)[c] for c in candidates]
        arrays[f"search_{name}"] = np.concatenate([np.empty(0), *map(np.asarray, lists)])
    for number, candidate in enumerate(candidates):
        if candidate in _of_interest(search) and candidate in search.decisions:
            arrays[f"decisions_{number}"] = search.decisions[candidate]


def _of_interest(search: SearchResult) -> list[Candidate]:
    """The best candidate of all, with uniform and with learned weights."""
    best = (
        search.best(),
        search.best(lambda c: c.weight_radius == 0),
        search.best(lambda c: c.weight_radius > 0),
    )
    return [candidate for candidate in best if candidate is not None]


def _get_search(stored: Stored, model: GraphSVC) -> None:
    result, candidates, ends = checked_search(stored)
    pairs = list(zip(candidates, ends[:-1], ends[1:], strict=True))
    for name in ("scores", "losses"):
        values = stored.floats(f"search_{name}", (ends[-1],)).tolist()
        getattr(result, name).update({c: values[start:end] for c, start, end in pairs})
    shape = (model.train_histograms_.n_graphs, len(model._calibration[1]))
    for number, candidate in enumerate(candidates):
        if stored.has_array(f"decisions_{number}"):
            # NaN: a graph that the user's splitter never held out
            result.decisions[candidate] = stored.floats(f"decisions_{number}", shape, nan=True)
    model.cv_results_ = result
