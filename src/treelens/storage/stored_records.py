"""The JSON entries of a model file, each checked for kind and range before anything uses it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.kernels.table import KERNELS
from treelens.pairwise.objective import Margins
from treelens.pairwise.result import LearnedWeights
from treelens.svm.search import SCORES, Candidate, SearchResult

if TYPE_CHECKING:
    from treelens.patterns.vocabulary import PatternVocabulary
    from treelens.storage.stored import Stored

_MOST_SPLITS = 10**6
_END_OF_SEEDS = 2**63
_SCALARS = (bool, int, float, str, np.generic)


# --- classes -----------------------------------------------------------------


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


def checked_choice(stored: Stored, vocabulary: PatternVocabulary, first_depth: int) -> Any:
    """What cross-validation chose; depth and edge labels must be those of the patterns."""
    choice: dict[str, Any] = stored.value("choice", dict)
    kernel = choice.get("kernel")
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise stored.error(f"'choice' names the kernel {str(kernel)[:40]!r}, which is unknown")
    if choice.get("depth") != vocabulary.depth:
        raise stored.error(f"'choice' names a depth that is not the patterns' {vocabulary.depth}")
    _check_settings(stored, choice, "'choice'", KERNELS[kernel].has_gamma)
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
    stored.number(record.get("weight_radius"), f"'weight_radius' in {place}", 0.0)
    stored.number(record.get("C"), f"'C' in {place}", 0.0, above=True)
    if gamma or record.get("gamma") is not None:
        stored.number(record.get("gamma"), f"'gamma' in {place}", 0.0, above=True)


def checked_gain(stored: Stored) -> dict[str, Any] | None:
    """Whether learning helped, in numbers."""
    gain: dict[str, Any] | None = stored.value("learning_gain", dict, type(None))
    if gain is not None:
        for key in ("difference", "standard_error", "p_value", "learned_score", "uniform_score"):
            if not (key in ("standard_error", "p_value") and gain.get(key) is None):  # one split
                stored.number(gain.get(key), f"{key!r} in 'learning_gain'")
    return gain


def checked_result(stored: Stored, weights: np.ndarray, n_depths: int) -> LearnedWeights:
    """The record of the solver that found the weights."""
    record, where = stored.value("learning_result", dict), "'learning_result'"
    margins = stored.record(Margins, record.get("margins"), f"'margins' in {where}")
    stored.number(margins.sigma, f"'sigma' in {where}", 0.0, above=True)
    result = stored.record(LearnedWeights, record, where, weights=weights, margins=margins)
    for name in ("moved", "radii"):
        values = getattr(result, name)
        stored.check_floats(values, f"{name!r} in {where}", 0.0)
        if len(values) != n_depths:
            raise stored.error(f"{name!r} should hold {n_depths} numbers, not {len(values)}")
    for name in ("pair_norm", "step_size"):
        stored.number(getattr(result, name) or 0.0, f"{name!r} in {where}", 0.0)
    return result


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
    if not isinstance(candidate.kernel, str) or candidate.kernel not in KERNELS:
        raise stored.error(f"{place} name a kernel that is unknown")
    stored.whole(candidate.depth, f"'depth' in {place}", 0, _MOST_SPLITS)
    _check_settings(stored, candidate._asdict(), place, KERNELS[candidate.kernel].has_gamma)
