"""What two models say of the same graphs: agreement against scikit-learn, and its order."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

import treelens as tl
from treelens.explain.compared_predictions import Side, agreement_of, graph_table
from treelens.models.predictions import Predictions

GRAPHS = tl.as_graph_collection([([(0, 1)], {0: "a", 1: "b"})] * 4)


def numbers(values) -> Side:
    values = np.array(values, dtype=float)
    said = Predictions(values[:, None], np.zeros(4), None, values[:, None])
    model = SimpleNamespace(_decide=lambda graphs: said, _decision=SimpleNamespace(classes=None))
    return Side.of(model, GRAPHS)


def classes(chances, names=("no", "yes")) -> Side:
    chances = np.array(chances, dtype=float)
    if chances.ndim == 1:
        decisions, chances = chances[:, None] - 0.5, np.column_stack([1 - chances, chances])
    else:
        decisions = chances
    said = Predictions(decisions, np.zeros(4), None, decisions, chances)
    decision = SimpleNamespace(classes=np.array(list(names)))
    return Side.of(SimpleNamespace(_decide=lambda graphs: said, _decision=decision), GRAPHS)


def test_numbers_agree_by_correlation_and_difference() -> None:
    a, b = numbers([1.0, 2.0, 3.0, 4.0]), numbers([2.0, 2.0, 5.0, 3.0])
    found = agreement_of(a, b, np.array([1.0, 2.0, 3.0, 3.0]))
    assert found["correlation"] == pytest.approx(np.corrcoef(a.predictions, b.predictions)[0, 1])
    assert found["rms_difference"] == pytest.approx(np.sqrt(6 / 4))
    assert found["mean_difference"] == pytest.approx(0.5)
    assert (found["score_a"], found["score_b"]) == pytest.approx((0.5, np.sqrt(5 / 4)))


def test_two_classes_agree_as_scikit_learn_has_it() -> None:
    a, b = classes([0.9, 0.2, 0.6, 0.4]), classes([0.8, 0.6, 0.1, 0.3])
    found = agreement_of(a, b, np.array(["yes", "no", "yes", "yes"]))
    assert found["same"] == 0.5
    assert found["kappa"] == pytest.approx(cohen_kappa_score(a.predictions, b.predictions))
    assert found["mean_difference"] == pytest.approx(np.mean([0.1, 0.4, 0.5, 0.1]))
    ranks = spearmanr(a.said.decisions[:, 0], b.said.decisions[:, 0])[0]
    assert found["rank_correlation"] == pytest.approx(ranks)
    assert (found["score_a"], found["score_b"]) == (0.75, 0.25)


def test_what_does_not_vary_has_no_correlation() -> None:
    assert agreement_of(numbers([1.0] * 4), numbers([1, 2, 3, 4]), None)["correlation"] is None
    same = agreement_of(classes([0.9] * 4), classes([0.8] * 4), None)
    assert same["kappa"] is None
    assert same["rank_correlation"] is None
    assert "score_a" not in same


def test_classes_of_a_file_are_compared_as_texts() -> None:
    a = classes([0.9, 0.2, 0.6, 0.4], names=(0, 1))
    found = agreement_of(a, a, np.array(["1", "0", "1", "0"]))
    assert found["score_a"] == 1.0


def test_the_largest_disagreement_comes_first() -> None:
    table = graph_table(numbers([1.0, 2.0, 3.0, 4.0]), numbers([1.0, 0.0, 4.0, 5.0]), None)
    assert table.index.tolist() == [1, 2, 3, 0]
    assert table["difference"].tolist() == [-2.0, 1.0, 1.0, 0.0]
    assert table["name"].tolist()[0] == "graph 1"
    assert "truth" not in table


def test_of_two_classes_the_probability_is_that_of_the_second() -> None:
    table = graph_table(classes([0.9, 0.2, 0.6, 0.4]), classes([0.8, 0.6, 0.1, 0.3]), np.arange(4))
    assert table.index.tolist()[:2] == [2, 1]
    assert table["probability_a"].tolist()[:2] == [0.6, 0.2]
    assert table["difference"].tolist()[:2] == pytest.approx([-0.5, 0.4])
    assert table["truth"].tolist()[0] == 2


def test_of_several_classes_it_is_that_of_the_one_named() -> None:
    rows = [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.4, 0.35, 0.25]]
    a, b = classes(rows, "xyz"), classes(rows[::-1], "xyz")
    table = graph_table(a, b, None).sort_index()
    assert table["a"].tolist() == ["x", "y", "z", "x"]
    assert table["probability_a"].tolist() == [0.6, 0.8, 0.6, 0.4]
    assert table["difference"][1] == pytest.approx(-0.6)
    assert "rank_correlation" not in agreement_of(a, b, None)
