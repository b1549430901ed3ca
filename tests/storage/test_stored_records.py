"""Entries of a model file are checked for kind and range, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.storage.archive import Contents, ModelFileError
from treelens.storage.plain_data import to_plain
from treelens.storage.stored import Stored
from treelens.storage.stored_records import (
    check_labels,
    checked_class_labels,
    checked_gain,
    checked_search,
)
from treelens.svm.search import Candidate


def stored(**entries) -> Stored:
    plain = {name: to_plain(value) for name, value in entries.items()}
    return Stored(Contents(plain, {}), "model.treelens")


@pytest.mark.parametrize("classes", [["a", "b"], [-1, 1], [False, True], [0.5, 1.5, 2.5]])
def test_classes_that_ascend(classes) -> None:
    assert checked_class_labels(stored(classes=np.array(classes))).tolist() == classes


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a"], "two or more, not 1"),
        (["b", "a"], "should ascend, each class once"),
        (["a", "a"], "should ascend, each class once"),
        ([1.0, float("nan")], "should ascend"),
    ],
)
def test_classes_that_no_search_could_be_made_in(classes, message) -> None:
    with pytest.raises(ModelFileError, match=message):
        checked_class_labels(stored(classes=np.array(classes)))


def test_classes_of_mixed_and_of_strange_kinds() -> None:
    with pytest.raises(ModelFileError, match="should ascend"):
        checked_class_labels(stored(classes=np.array(["a", 1], dtype=object)))
    strange = np.empty(2, dtype=object)
    strange[:] = [("a",), ("b",)]
    with pytest.raises(ModelFileError, match="numbers or texts"):
        checked_class_labels(stored(classes=strange))


@pytest.mark.parametrize("labels", [[], ["C", "N"], [("C", 1), 3, None]])
def test_labels_that_can_serve(labels) -> None:
    check_labels(stored(), "node_alphabet", labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["C", "C"], "'node_alphabet' should hold different labels"),
        ([1, 1.0], "'node_alphabet' should hold different labels"),
        ([float("nan")], "'node_alphabet' should hold different labels"),
        ([["C"]], "a label is a list"),
        ([{"C": 1}], "a label is a dict"),
        ([(["C"],)], "'node_alphabet' should hold different labels"),  # cannot be hashed
    ],
)
def test_labels_that_cannot(labels, message) -> None:
    with pytest.raises(ModelFileError, match=message):
        check_labels(stored(), "node_alphabet", labels)


def test_a_gain_may_be_missing_but_not_half_there() -> None:
    whole = dict.fromkeys(
        ("difference", "standard_error", "p_value", "learned_score", "uniform_score"), 0.5
    )
    assert checked_gain(stored(learning_gain=None)) is None
    assert checked_gain(stored(learning_gain=whole)) == whole
    for name in whole:
        with pytest.raises(ModelFileError, match=f"'{name}' in 'learning_gain'"):
            checked_gain(stored(learning_gain={**whole, name: "high"}))


FIRST, SECOND = Candidate(0.0, 2, "wwl", 1.0, 10.0), Candidate(0.0, 1, "tanimoto", None, 1.0)


def search(**changes) -> Stored:
    record = {
        "candidates": [list(FIRST), list(SECOND)], "n_scores": [3, 1], "n_splits": 3,
        "test_to_train": 0.5,
    }  # fmt: skip
    return stored(search={**record, **changes})


def test_a_search_and_where_scores_end() -> None:
    result, candidates, ends = checked_search(search())
    assert (result.n_splits, candidates, ends) == (3, [FIRST, SECOND], [0, 3, 4])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_scores": [3]}, "every candidate once, and its number of scores"),
        ({"candidates": [list(FIRST), list(FIRST)]}, "every candidate once"),
        ({"n_scores": [4, 1]}, "'n_scores' in 'search'"),
        ({"n_scores": [-1, 1]}, "'n_scores' in 'search'"),
        ({"n_scores": 2}, "'search' is not complete"),
        ({"n_splits": 0}, "'n_splits' in 'search'"),
        ({"test_to_train": -0.5}, "'test_to_train' in 'search'"),
        ({"candidates": [[*FIRST, 1], list(SECOND)]}, "'search' is not complete"),
        (
            {"candidates": [list(FIRST._replace(kernel="none")), list(SECOND)]},
            "that is unknown",
        ),
        ({"candidates": [list(FIRST._replace(depth=-1)), list(SECOND)]}, "'depth' in"),
        ({"candidates": [list(FIRST._replace(gamma=None)), list(SECOND)]}, "'gamma' in"),
        ({"candidates": [list(FIRST._replace(C=0.0)), list(SECOND)]}, "'C' in"),
        ({"candidates": [list(FIRST._replace(weight_radius=-1.0)), list(SECOND)]}, "'weight_rad"),
    ],
)
def test_searches_that_cannot_have_been(changes, message) -> None:
    with pytest.raises(ModelFileError, match=message):
        checked_search(search(**changes))
