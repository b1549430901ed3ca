"""Arrays and entries of a stored classifier: checked against each other before use."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import treelens as tl
from storage.conftest import (
    GRAPHS,
    OTHERS,
    Y,
    fitted,
    refuse,
)
from storage.test_persistence import saved_and_loaded


@pytest.mark.parametrize(
    "classes",
    [np.array([3, 9], np.int8), np.array([1.0, 2.0]), np.array([False, True]),
     np.array(["no", "yes, sure"]), np.array(["no", "yes"], dtype=object)],
    ids=lambda x: str(x.dtype),
)  # fmt: skip
def test_classes_keep_their_type(classes, tmp_path):
    model = fitted("wwl-linear", 0.0, classes[(Y > 0).astype(int)])
    loaded = saved_and_loaded(model, tmp_path)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(GRAPHS).tolist() == model.predict(GRAPHS).tolist()


def test_a_foreign_learner_is_an_error(tmp_path):
    class Own(tl.PairwiseWeights):
        pass

    with pytest.raises(TypeError, match="its learner is a Own"):
        fitted(learner=Own()).save(tmp_path / "x.treelens")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [("weights", lambda x: x[:-1], "should have shape"),
     ("weights", lambda x: x.astype(np.int64), "should be of type float64, not int64"),
     ("weights", lambda x: np.where(x == x[0], np.nan, x), "infinities or NaN"),
     ("coefficients", lambda x: x.T.copy(), "should have shape"),
     ("coefficients", lambda x: x * np.inf, "infinities or NaN"),
     ("level_1_own", lambda x: x + 100, "'level_1_own' should hold numbers from 0 to 3"),
     ("level_2_child_keys", lambda x: x - 1, "'level_2_child_keys' should hold numbers"),
     ("level_1_child_offsets", lambda x: x[::-1].copy(), "should ascend from 0"),
     ("level_1_child_offsets", lambda x: x + 1, "should ascend from 0"),
     ("level_1_child_offsets", lambda x: np.r_[0, 2**63 - 1, -(2**63), x[3:]], "ascend from 0"),
     ("train_graphs", lambda x: x + 1, "'train_graphs' should hold numbers from 0 to 39"),
     ("train_graphs", lambda x: x[::-1].copy(), "should ascend within a pattern"),
     ("train_offsets", lambda x: x[:-1], "should have shape"),
     ("train_counts", lambda x: x - 1, "'train_counts' should hold numbers from 1"),
     ("train_counts", lambda x: x + 1, "'train_counts' should add up to 'train_n_nodes'"),
     ("train_unseen", lambda x: x + 1, "'train_counts' should add up to 'train_n_nodes'"),
     ("train_n_nodes", lambda x: x[:-1], "train_graphs"),
     ("weights", lambda x: x - 10, "should hold numbers from 0 to 1e"),
     ("weights", lambda x: x * 1e300, "should hold numbers from 0 to 1e"),
     ("support_diagonal", lambda x: x * 0.5, "'support_diagonal' is below what the patterns"),
     ("calibration_intercepts", lambda x: x * np.nan, "infinities or NaN"),
     ("train_codes", lambda x: x + 1, "should hold numbers from 0 to 1"),
     ("support", lambda x: x + 1000, "should hold numbers"),
     ("support", lambda x: x[::-1].copy(), "should ascend"),
     ("search_scores", lambda x: x[1:], "should have shape")],
)  # fmt: skip
def test_arrays_that_do_not_fit_together(path, name, change, message):
    refuse(path, lambda r: r.set_array(name, change(r.array(name))), message)


def test_decisions_that_are_no_numbers_are_an_error(model):
    broken = copy.deepcopy(model)
    broken.weights_[:] = broken.learner_.weights_[:] = 1e90
    broken.best_params_["gamma"] = 1e90
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match="decision value of graph 0 is not a finite number"),
    ):
        broken.predict(OTHERS)


def put(**entries):
    return lambda r: r.data.update(entries)


def within(name, **entries):
    return lambda r: r.data[name].update(entries)


@pytest.mark.parametrize(
    ("change", "message"),
    [(lambda r: r.members.pop("arrays/support.npy"), "the array 'support' is missing"),
     (lambda r: r.data.pop("classes"), "'classes' is missing"),
     (put(classes=[1, 2]), "'classes' should be ndarray, not list"),
     (put(classes={"$array": ["int64", [1]]}), "should hold two or more"),
     (put(classes={"$array": ["O", [1, 2]]}), "cannot be read"),
     (put(classes={"$array": ["object", 5]}), "cannot be read"),
     (put(classes={"$pickle": "x"}), "has no meaning"),
     (put(depth="2"), "'depth' should be int, not str"),
     (put(depth=5), "'level_3_own' is missing"),
     (put(first_depth=9), "'first_depth' should be 0 to 2"),
     (put(node_alphabet=[{"a": 1}, 1, 2, 3]), "which no label can be"),
     (put(choice={}), "names the kernel 'None'"),
     (put(choice={"kernel": "wwl-linear", "depth": 1}), "a depth that is not"),
     (put(choice={"kernel": "wwl", "depth": 2, "weight_radius": 0, "C": 1}),
      "'gamma' in 'choice' should be a number"),
     (put(offset="1"), "'offset' should be float"),
     (put(learning_result={}), "'learning_result' is not complete"),
     (put(search={"candidates": [[1]]}), "'search' is not complete"),
     (put(parameters=[]), "'parameters' should be dict"),
     (put(classes={"$array": ["str", ["", "x" * 10**6, *("y" for _ in range(10**5))]]}),
      "100002 texts of up to 1000000 letters are too many"),
     (put(classes={"$array": ["int64", [2, 1]]}), "'classes' should ascend"),
     (put(classes={"$array": ["float64", [1.0, {"$float": "nan"}]]}), "'classes' should ascend"),
     (put(node_alphabet=[0, 1, 2, 2]), "'node_alphabet' should hold different labels"),
     (put(offset={"$float": "nan"}), "'offset' should be a number"),
     (put(recipe={"reader": 3}), "'recipe': 'reader' should be a text"),
     (put(recipe={"hydrogens": "yes"}), "'recipe': 'hydrogens' should be true, false or null"),
     (within("parameters", n_jobs=100_000), "'n_jobs' in 'parameters' should be a whole number"),
     (within("parameters", n_jobs=0), "'n_jobs' in 'parameters' should not be 0"),
     (within("parameters", scoring="luck"), "'parameters': The 'scoring' parameter of GraphSVC"),
     (within("search", n_splits={"$float": "inf"}), "'n_splits' in 'search' should be a whole"),
     (within("search", n_scores=[2**63 - 1, 2**63 - 1]), "'n_scores' in 'search' should be"),
     (within("choice", gamma={"$float": "nan"}), "'gamma' in 'choice' should be a number above 0"),
     (lambda r: r.manifest.update(format="other"), "is no treelens model")],
)  # fmt: skip
def test_entries_that_are_missing_or_wrong(path, change, message):
    refuse(path, change, message)
