"""Settings of a support vector machine: "auto" resolved, wrong values refused."""

import warnings
from numbers import Integral, Real

import numpy as np
import pytest
from sklearn.model_selection import KFold, PredefinedSplit

from treelens.svm.model import (
    AUTO_KERNELS,
    inner_splits,
    listed,
    listed_kernels,
    resolved,
)
from treelens.svm.search import repetitions_for

AB = np.array(["a", "b"])
BALANCED = np.array([0, 1] * 10)
RARE = np.array([0] * 19 + [1])
RARE_OF_THREE = np.array([0] * 20 + [1] * 20 + [2])


def test_folds_hold_every_class_and_every_graph_as_often_as_repeated() -> None:
    splits = inner_splits(5, BALANCED, AB, seed=0)
    assert len(splits) == 5 * repetitions_for(len(BALANCED))
    held_out = np.concatenate([validation for _, validation in splits])
    assert set(np.bincount(held_out)) == {repetitions_for(len(BALANCED))}
    assert all(len(set(BALANCED[validation])) == 2 for _, validation in splits)
    first, same, other = (inner_splits(2, BALANCED, AB, seed) for seed in (0, 0, 1))
    assert all((a[1] == b[1]).all() for a, b in zip(first, same, strict=True))
    assert any((a[1] != b[1]).any() for a, b in zip(first, other, strict=True))


def test_a_small_class_makes_fewer_folds_and_a_single_one_none() -> None:
    codes = np.array([0] * 10 + [1] * 3)
    with pytest.warns(UserWarning, match=r"Class 'b' has 3 members.*with 3 folds"):
        splits = inner_splits(5, codes, AB, seed=0)
    assert all(1 in codes[validation] for _, validation in splits)
    with pytest.raises(ValueError, match="Class 'b' has one member"):
        inner_splits(5, RARE, AB, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inner_splits(3, codes, AB, seed=0)  # just enough


def test_a_splitter_of_the_users_is_taken_as_it_is() -> None:
    found = inner_splits(KFold(2), BALANCED, AB, seed=0)
    for ours, theirs in zip(found, KFold(2).split(BALANCED, BALANCED), strict=True):
        assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))


class Splits:
    def __init__(self, *splits):
        self.splits = splits

    def split(self, X, y):
        return self.splits


@pytest.mark.parametrize(
    "cv",
    [
        Splits(),
        Splits(([0, 2], [1])),  # one class to learn from
        Splits(([0, 1], [2, 3]), ([0, 1], [])),
        PredefinedSplit([0, -1] * 10),
        Splits(([0, 1], [2, 4])),  # one class is never held out
    ],
)
def test_splits_that_no_machine_could_be_fitted_to(cv) -> None:
    with pytest.raises(ValueError, match="use StratifiedKFold"):
        inner_splits(cv, BALANCED, AB, seed=0)


@pytest.mark.parametrize(
    ("codes", "scoring", "class_weight"),
    [
        (BALANCED, "accuracy", None),
        (np.arange(100) // 75, "accuracy", None),  # 25 % is not rare
        (np.arange(100) // 76, "roc_auc", "balanced"),
        (RARE, "roc_auc", "balanced"),
        (np.arange(60) % 6, "accuracy", None),  # every class has its even share
        (np.append(np.arange(60) % 6, [5] * 60), "accuracy", None),
        (np.append(np.arange(60) % 6, [5] * 60 + [4] * 61), "balanced_accuracy", "balanced"),
        (RARE_OF_THREE, "balanced_accuracy", "balanced"),
    ],
)
def test_a_rare_class_changes_score_and_weights(codes, scoring, class_weight) -> None:
    assert resolved("auto", "auto", codes) == (scoring, class_weight)


def test_what_was_asked_for_stays() -> None:
    for ignoring in ("accuracy", "roc_auc"):
        assert resolved(ignoring, "auto", RARE) == (ignoring, None)
    assert resolved("balanced_accuracy", "auto", RARE) == ("balanced_accuracy", "balanced")
    assert resolved("auto", None, RARE) == ("roc_auc", None)
    own = {"a": 1.0, "b": 5.0}
    assert resolved("auto", own, RARE)[1] is own


def test_settings_as_lists() -> None:
    assert listed_kernels("auto") == list(AUTO_KERNELS)
    assert listed_kernels("tanimoto") == ["tanimoto"]
    assert listed_kernels(("wwl", "tanimoto")) == ["wwl", "tanimoto"]
    assert listed("auto", (1, 2), "depth", Integral) == [1, 2]
    assert listed(3, (), "depth", Integral) == [3]
    assert listed(np.array([0.5, 1]), (), "gamma", Real, positive=True) == [0.5, 1.0]
