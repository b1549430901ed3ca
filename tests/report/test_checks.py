"""Checks of models and graphs, and their levels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import treelens as tl
from treelens.report.scores import coverage_check


def level(summary, words: str) -> str:
    (found,) = [check["level"] for check in summary["checks"] if words in check["text"]]
    return found


@pytest.mark.parametrize("name", ["numbers", "svm"])
def test_training_graphs(cases, name):
    model, graphs, y = cases[name]
    found = model.summary(graphs[::2], y[::2])
    assert level(found, "left out of the test scores") == "alarm"
    text = next(c["text"] for c in found["checks"] if "left out of the test" in c["text"])
    assert text.startswith(f"{len(y[::2])} of the {len(y[::2])}")


def test_unusual_molecules(cases):
    found = cases["numbers"][0].summary(["[Na+].[Cl-]", "FC(F)(F)I", "BrBr", "CCCO"])
    assert level(found, "do not occur") == level(found, "domain of applicability") == "alarm"
    assert 4 - found["domain"]["n_inside"] >= 3


def test_unusual_graphs_of_an_svm(cases):
    star = ([(0, k) for k in range(1, 9)], dict.fromkeys(range(9), "new"))
    assert level(cases["svm"][0].summary([star] * 3), "less similar") == "alarm"


def test_a_search_that_did_not_converge_comes_first(molecules):
    graphs, y = molecules
    with pytest.warns(ConvergenceWarning):
        model = tl.GraphRegressor(depth=1, max_steps=1).fit(graphs[::2], y[::2])
    first = model.summary()["checks"][0]
    assert first["level"] == "alarm"
    assert "before it converged" in first["text"]


def test_equal_graphs_of_different_classes(cases):
    model, graphs, y = cases["svm"]
    twice = [0, 0, 2, 4]
    found = model.summary(graphs[twice], [y[0], -y[0], y[2], y[4]])
    assert level(found, "another class") == "notice"
    assert level(model.summary(graphs[1::2], y[1::2]), "different classes") == "fine"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((0.5, 0.8), "alarm"), ((0.85, 0.95), "fine"), ((0.905, 0.915), "fine"),
        ((0.93, 1.0), "notice"),
    ],
)  # fmt: skip
def test_coverage(interval, expected):
    scores = {"coverage": np.mean(interval), "coverage_interval": interval}
    assert coverage_check(scores, "x")[0][0] == expected
    assert coverage_check({}, "x") == []
