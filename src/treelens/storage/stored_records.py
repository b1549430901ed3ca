"""The JSON entries of a model file, each checked for kind and range before anything uses it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens._sklearn_compat import InvalidParameterError
from treelens.kernels.forms import FORMS
from treelens.learning.objective import Margins
from treelens.learning.result import LearnedWeights
from treelens.selection.search import SCORES, Candidate, SearchResult

if TYPE_CHECKING:
    from treelens.patterns.vocabulary import PatternVocabulary
    from treelens.storage.stored import Stored

_MOST_THREADS = 4096
_MOST_SPLITS = 10**6
_MOST_ITERATIONS = 2**62
_END_OF_SEEDS = 2**63
_SCALARS = (bool, int, float, str, np.generic)


# --- parameters and classes -----------------------------------------------------------------


def known_parameters(stored: Stored, name: str, estimator: type) -> dict[str, Any]:
    """Constructor parameters that this version knows; a later one may have more."""
    parameters = stored.value(name, dict)
    known = inspect.signature(estimator).parameters
    return {key: value for key, value in parameters.items() if key in known}


def checked_estimator(stored: Stored, name: str, estimator: type) -> Any:
    """An estimator with the parameters under a name, which must be such as ``fit`` takes."""
    made = estimator(**known_parameters(stored, name, estimator))
    try:
        made._validate_params()
    except InvalidParameterError as error:
        raise stored.error(f"{name!r}: {str(error)[:300]}") from error
    if made.n_jobs is not None:
        stored.whole(made.n_jobs, f"'n_jobs' in {name!r}", -_MOST_THREADS, _MOST_THREADS + 1)
        if made.n_jobs == 0:
            raise stored.error(f"'n_jobs' in {name!r} should not be 0")
    return made


def checked_class_labels(stored: Stored) -> np.ndarray:
    """Two classes or more, ascending: predictions are looked up among them."""
    classes: np.ndarray = stored.value("classes", np.ndarray)
    if len(classes) < 2:
        raise stored.error(f"'classes' should hold two or more, not {len(classes)}")
    labels = classes.tolist()
    if not all(isinstance(label, _SCALARS) for label in labels):
        raise stored.error("'classes' should hold numbers or texts")
    try:
        ascend = all(a < b for a, b in pairwise(labels))
    except TypeError:
        ascend = False
    if not ascend:
        raise stored.error("'classes' should ascend, each class once")
    return classes


def check_labels(stored: Stored, name: str, labels: Any) -> None:
    """Labels of nodes or edges: hashable, equal to themselves, each once."""
    for label in labels:
        if isinstance(label, (list, dict, np.ndarray)):
            raise stored.error(f"a label is a {type(label).__name__}, which no label can be")
    try:
        distinct = len(set(labels)) == len(labels) and all(x == x for x in labels)
    except TypeError:
        distinct = False
    if not distinct:
        raise stored.error(f"{name!r} should hold different labels")


# --- what was chosen ------------------------------------------------------------------------


def checked_choice(
    stored: Stored, vocabulary: PatternVocabulary, first_depth: int
) -> dict[str, Any]:
    """What cross-validation chose; forms, depths and edge labels must be those of the patterns."""
    choice: dict[str, Any] = stored.value("choice", dict)
    form = choice.get("form")
    if not isinstance(form, str) or form not in FORMS:
        raise stored.error(f"'choice' names the kernel form {str(form)[:40]!r}, which is unknown")
    if choice.get("depth") != vocabulary.depth:
        raise stored.error(f"'choice' names a depth that is not the patterns' {vocabulary.depth}")
    _check_settings(stored, choice, "'choice'", FORMS[form].has_gamma)
    expected = {
        "edge_labels": vocabulary.uses_edge_labels,
        "include_depth_zero": first_depth == 0,
    }
    for key, value in expected.items():
        if not isinstance(choice.get(key), (bool, np.bool_)) or choice[key] != value:
            raise stored.error(f"'choice' should give {key!r} the value {value} of its patterns")
    if not isinstance(choice.get("scoring"), str) or choice["scoring"] not in SCORES:
        raise stored.error(f"'choice' should give 'scoring' one of {', '.join(SCORES)}")
    stored.number(choice.get("score"), "'score' in 'choice'")
    stored.whole(choice.get("n_splits"), "'n_splits' in 'choice'", 1, _MOST_SPLITS)
    stored.whole(choice.get("n_candidates"), "'n_candidates' in 'choice'", 1, _END_OF_SEEDS)
    return choice


def _check_settings(stored: Stored, record: Mapping[str, Any], place: str, gamma: bool) -> None:
    """Radius, C and gamma of a candidate."""
    stored.number(record.get("radius"), f"'radius' in {place}", 0.0)
    stored.number(record.get("C"), f"'C' in {place}", 0.0, above=True)
    if gamma or record.get("gamma") is not None:
        stored.number(record.get("gamma"), f"'gamma' in {place}", 0.0, above=True)


def checked_gain(stored: Stored) -> dict[str, Any] | None:
    """Whether learning helped, in numbers."""
    gain: dict[str, Any] | None = stored.value("learning_gain", dict, type(None))
    if gain is not None:
        for key in ("difference", "standard_error", "p_value", "learned_score", "uniform_score"):
            stored.number(gain.get(key), f"{key!r} in 'learning_gain'")
    return gain


def checked_result(stored: Stored, weights: np.ndarray, n_depths: int) -> LearnedWeights:
    """The record of the solver that found the weights."""
    record = stored.value("learning_result", dict)
    known = {field.name for field in fields(LearnedWeights)} - {"weights", "margins"}
    try:
        margins = Margins(**record["margins"])
        rest = {name: value for name, value in record.items() if name in known}
        result = LearnedWeights(weights, margins=margins, **rest)
    except (KeyError, TypeError) as error:
        raise stored.error(f"'learning_result' is not complete ({error})") from error
    for name in ("alpha1", "alpha2", "sigma", "b"):
        stored.number(getattr(margins, name), f"{name!r} in 'learning_result'")
    stored.number(margins.sigma, "'sigma' in 'learning_result'", 0.0, above=True)
    for name in ("history", "gaps"):
        stored.check_floats(_vector(stored, getattr(result, name), name), f"{name!r}")
    for name in ("moved", "radii"):
        values = _vector(stored, getattr(result, name), name)
        stored.check_floats(values, f"{name!r}", 0.0)
        if len(values) != n_depths:
            raise stored.error(f"{name!r} should hold {n_depths} numbers, not {len(values)}")
    stored.number(result.pair_norm, "'pair_norm' in 'learning_result'", 0.0)
    stored.whole(result.n_iter, "'n_iter' in 'learning_result'", 0, _MOST_ITERATIONS)
    if result.step_size is not None:
        stored.number(result.step_size, "'step_size' in 'learning_result'", 0.0)
    told = isinstance(result.converged, (bool, np.bool_)) and isinstance(result.solver, str)
    if not told:
        raise stored.error("'learning_result' should say whether it 'converged', and its 'solver'")
    return result


def _vector(stored: Stored, values: Any, name: str) -> np.ndarray:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fi":
        raise stored.error(f"{name!r} in 'learning_result' should be an array of numbers")
    return values


# --- the search -----------------------------------------------------------------------------


def checked_search(stored: Stored) -> tuple[SearchResult, list[Candidate], list[int]]:
    """The record of the search without its scores, the candidates, and where their scores end."""
    record = stored.value("search", dict)
    try:
        candidates = [Candidate(*parts) for parts in record["candidates"]]
        n_scores, n_splits, ratio = (
            record[key] for key in ("n_scores", "n_splits", "test_to_train")
        )
        same_length = len(n_scores) == len(candidates)
    except (KeyError, TypeError, ValueError) as error:
        raise stored.error(f"'search' is not complete ({error})") from error
    n_splits = stored.whole(n_splits, "'n_splits' in 'search'", 1, _MOST_SPLITS)
    ratio = stored.number(ratio, "'test_to_train' in 'search'", 0.0)
    for candidate in candidates:
        _check_candidate(stored, candidate)
    if not same_length or len(set(candidates)) < len(candidates):
        raise stored.error("'search' should give every candidate once, and its number of scores")
    ends = [0]
    for n in n_scores:
        ends.append(ends[-1] + stored.whole(n, "'n_scores' in 'search'", 0, n_splits + 1))
    return SearchResult(n_splits, ratio), candidates, ends


def _check_candidate(stored: Stored, candidate: Candidate) -> None:
    place = "'candidates' of 'search'"
    if not isinstance(candidate.form, str) or candidate.form not in FORMS:
        raise stored.error(f"{place} name a form that is unknown")
    stored.whole(candidate.depth, f"'depth' in {place}", 0, _MOST_SPLITS)
    _check_settings(stored, candidate._asdict(), place, FORMS[candidate.form].has_gamma)


# --- explicit features ----------------------------------------------------------------------


def checked_feature_numbers(stored: Stored, record: Mapping[str, Any]) -> tuple[int, int]:
    """``n_components`` and ``seed`` of a feature map."""
    place = "in 'feature_map'"
    n_components = record.get("n_components")
    return (
        stored.whole(n_components, f"'n_components' {place}", 1, 2**31),
        stored.whole(record.get("seed"), f"'seed' {place}", 0, _END_OF_SEEDS),
    )


def check_thresholds(
    stored: Stored, offsets: np.ndarray, thresholds: np.ndarray, minimum: bool
) -> None:
    """Cuts of every pattern: above 0 and ascending; one each where counts are multiplied."""
    if not minimum:
        if (np.diff(offsets) != 1).any():
            raise stored.error("the array 'threshold_offsets' should give every pattern one entry")
        return
    inside = np.ones(len(thresholds), dtype=bool)  # not the first cut of a pattern
    inside[offsets[:-1][offsets[:-1] < len(thresholds)]] = False
    falls = thresholds[1:] <= thresholds[:-1]
    if (thresholds <= 0).any() or falls[inside[1:]].any():
        raise stored.error("the array 'thresholds' should ascend within a pattern, from above 0 on")
