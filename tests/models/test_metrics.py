"""Scores against scikit-learn and their definitions; thresholds against trying all of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import metrics as theirs

from treelens.models.metrics import class_scores, matthews, number_scores, rarer_code
from treelens.models.thresholds import Threshold, choose_threshold, parse_threshold
from treelens.selection.validation import (
    codes_among,
    holm,
    mean_scores,
    paired_tests,
    positive_class,
)


def test_scores_of_numbers_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth, mean, std = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.5, 2, 50)
    ours = number_scores(truth, mean, std)
    assert ours["rmse"] == pytest.approx(theirs.root_mean_squared_error(truth, mean))
    assert ours["mae"] == pytest.approx(theirs.mean_absolute_error(truth, mean))
    assert ours["r2"] == pytest.approx(theirs.r2_score(truth, mean))
    assert ours["nlpd"] == pytest.approx(-norm.logpdf(truth, mean, std).mean())
    low, high = norm.interval(0.9, mean, std)
    assert ours["coverage"] == pytest.approx(np.mean((low <= truth) & (truth <= high)))
    assert number_scores(truth, mean)["coverage"] is None
    assert number_scores(np.ones(3), np.ones(3))["r2"] is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(1)
    codes = rng.choice(n_classes, 80, p=[0.7, 0.3] if n_classes == 2 else [0.5, 0.3, 0.2])
    chances = rng.dirichlet(np.ones(n_classes), 80)
    named = chances.argmax(axis=1)
    ours = class_scores(codes, named, chances)
    assert ours["accuracy"] == pytest.approx(theirs.accuracy_score(codes, named))
    assert ours["balanced_accuracy"] == pytest.approx(theirs.balanced_accuracy_score(codes, named))
    assert ours["mcc"] == pytest.approx(theirs.matthews_corrcoef(codes, named))
    assert ours["log_loss"] == pytest.approx(theirs.log_loss(codes, chances))
    if n_classes == 2:
        assert ours["roc_auc"] == pytest.approx(theirs.roc_auc_score(codes, chances[:, 1]))
        assert ours["pr_auc"] == pytest.approx(theirs.average_precision_score(codes, chances[:, 1]))
        assert ours["recall"] == pytest.approx(theirs.recall_score(codes, named))
        assert ours["precision"] == pytest.approx(theirs.precision_score(codes, named))
    else:
        assert ours["roc_auc"] == pytest.approx(
            theirs.roc_auc_score(codes, chances, multi_class="ovr")
        )
        assert ours["recall"] is None


def test_recall_is_that_of_the_rarer_class_or_of_the_one_asked_for():
    codes, named = np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1])
    chances = np.eye(2)[named]
    assert class_scores(codes, named, chances)["precision"] == 0.5  # of class 0
    assert class_scores(codes, named, chances, positive=1)["precision"] == 1.0
    assert rarer_code(codes) == 0


def test_what_cannot_be_told_is_none():
    one = class_scores(np.zeros(3, int), np.zeros(3, int), np.full((3, 2), 0.5))
    assert one["roc_auc"] is one["balanced_accuracy"] is None
    assert not one["names_one_class"]  # there was one class to name
    strange = class_scores(np.array([0, -1, 1]), np.array([0, 0, 0]), np.full((3, 2), 0.5))
    assert strange["roc_auc"] is strange["log_loss"] is None
    assert strange["names_one_class"]
    assert strange["mcc"] == 0.0
    assert matthews(np.array([0, 1]), np.array([1, 0])) == -1.0


# --- thresholds ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(2)
    codes = (rng.random(400) < 0.08).astype(int)
    chance = np.clip(0.08 + 0.12 * codes + 0.08 * rng.normal(size=400), 0.001, 0.6).round(3)
    return np.column_stack([1 - chance, chance]), codes


def tried(rare, kind, number=None):
    """All thresholds one after the other, the plain way."""
    chances, codes = rare
    rows = []
    for value in np.unique(chances[:, 1]):
        named = (chances[:, 1] >= value).astype(int)
        recall, precision = theirs.recall_score(codes, named), theirs.precision_score(codes, named)
        missed, alarms = ((named == 0) & (codes == 1)).sum(), ((named == 1) & (codes == 0)).sum()
        rows.append((value, theirs.matthews_corrcoef(codes, named), recall, precision,
                     (number or 0) * missed + alarms))  # fmt: skip
    table = np.array(rows)
    if kind == "recall":
        return table[table[:, 2] >= number, 0].max()
    if kind == "precision":
        return table[table[:, 3] >= number, 0].min()
    if kind == "cost":
        return table[table[:, 4] == table[:, 4].min(), 0].max()
    return table[table[:, 1] >= 0.99 * table[:, 1].max(), 0].min()


@pytest.mark.parametrize(
    ("asked", "kind", "number"),
    [("auto", "auto", None), ("recall=0.9", "recall", 0.9), ("precision=0.5", "precision", 0.5),
     ("cost=10", "cost", 10.0)],
)  # fmt: skip
def test_thresholds_are_the_best_of_all(asked, kind, number, rare):
    assert choose_threshold(asked, *rare) == Threshold(pytest.approx(tried(rare, kind, number)), 1)
    chances, codes = rare
    other = choose_threshold(asked, chances[:, ::-1], 1 - codes)  # the rare class first
    assert other == Threshold(pytest.approx(tried(rare, kind, number)), 0)


def test_auto_leaves_common_classes_alone(rare):
    chances, codes = rare
    assert choose_threshold("auto", chances, np.arange(400) % 2) is None
    assert choose_threshold(0.5, chances, codes) is None
    assert choose_threshold(0.2, chances, codes) == Threshold(0.2, 1)
    assert choose_threshold("auto", np.full((400, 2), 0.5), codes) is None  # nothing to tell apart
    assert choose_threshold("auto", np.full((6, 3), 1 / 3), np.arange(6) % 3) is None


def test_a_threshold_names_classes():
    chances = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]])
    assert Threshold(0.3, 1).name(chances).tolist() == [0, 1, 1]
    assert Threshold(0.8, 0).name(chances).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "asked", ["best", "recall", "recall=", "recall=0", "recall=1.5", "cost=0", "cost=inf", "x=0.5",
              1.5, 0, None, "nan"]
)  # fmt: skip
def test_what_is_no_threshold_is_refused(asked):
    with pytest.raises(ValueError, match="'auto', a number between 0 and 1"):
        parse_threshold(asked)


def test_several_classes_have_no_threshold():
    with pytest.raises(ValueError, match="is for two classes, and there are 3"):
        choose_threshold("recall=0.9", np.full((6, 3), 1 / 3), np.arange(6) % 3)


# --- tests of differences -----------------------------------------------------------------------


def test_holm_against_the_definition():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_two_models_are_tested_against_each_other_once():
    rng = np.random.default_rng(0)
    base = rng.normal(0.8, 0.02, 10)
    scores = {"a": base, "b": base + 0.1 + rng.normal(0, 0.001, 10), "c": [*base[:9], None]}
    rivals = {"a": "b", "b": "a", "c": "a"}
    tests = paired_tests(scores, 1 / 9, rivals.__getitem__)
    assert [(t["model"], t["against"]) for t in tests] == [("a", "b"), ("c", "a")]
    assert tests[0]["p_holm"] < 0.001
    assert tests[1]["difference"] == 0.0  # on the nine that both have
    assert tests[1]["p_value"] == 1.0  # equal differences are no evidence


def test_means_are_over_what_is_known():
    found = mean_scores({"roc_auc": [0.5, None, 0.7], "recall": [None, None, None]})
    assert found["roc_auc"] == pytest.approx(0.6)
    assert found["roc_auc_std"] == pytest.approx(0.1)
    assert found["recall"] is None


def test_classes_are_compared_as_texts():
    assert codes_among(np.array([10, 9]), np.array(["10", "9"])).tolist() == [0, 1]
    assert positive_class(np.array([1, 1, 0])) == 0
    assert positive_class(np.array([0, 1, 2])) is None
