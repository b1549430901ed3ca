"""Thresholds for a rare class: the best of all there are, as asked for."""

import numpy as np
import pytest
from sklearn import metrics as theirs

from treelens.models.thresholds import Threshold, choose_threshold, parse_threshold


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(2)
    codes = (rng.random(400) < 0.08).astype(int)
    chance = np.clip(0.08 + 0.12 * codes + 0.08 * rng.normal(size=400), 0.001, 0.6).round(3)
    return np.column_stack([1 - chance, chance]), codes


@pytest.fixture(scope="module")
def tried(rare):
    """Threshold, MCC, recall, precision, missed and false alarms of all thresholds."""
    chances, codes = rare
    rows = []
    for value in np.unique(chances[:, 1]):
        named = (chances[:, 1] >= value).astype(int)
        scores = (theirs.matthews_corrcoef, theirs.recall_score, theirs.precision_score)
        missed, alarms = ((named == 0) & (codes == 1)).sum(), ((named == 1) & (codes == 0)).sum()
        rows.append((value, *(score(codes, named) for score in scores), missed, alarms))
    return np.array(rows).T


@pytest.mark.parametrize("asked", ["auto", "recall=0.9", "precision=0.5", "cost=10"])
def test_thresholds_are_the_best_of_all(asked, rare, tried):
    value, mcc, recall, precision, missed, alarms = tried
    cost = 10 * missed + alarms
    best = {
        "auto": value[mcc >= 0.99 * mcc.max()].min(),
        "recall=0.9": value[recall >= 0.9].max(),
        "precision=0.5": value[precision >= 0.5].min(),
        "cost=10": value[cost == cost.min()].max(),
    }[asked]
    assert choose_threshold(asked, *rare) == Threshold(pytest.approx(best), 1)
    chances, codes = rare
    other = choose_threshold(asked, chances[:, ::-1], 1 - codes)  # the rare class first
    assert other == Threshold(pytest.approx(best), 0)


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
