"""The bound of a fitted classifier, and what it warns of."""

from __future__ import annotations

import pytest

import treelens as tl
from treelens.svm.model import model_bound

GRAPHS, Y = tl.make_synthetic(n_per_substructure=4, random_state=0)
SETTINGS = {"gamma": 1.0, "cv": 2, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def fixed():
    return tl.GraphSVC("wwl", 1, 0.0, C=10.0, **SETTINGS).fit(GRAPHS, Y).model_


def test_a_choice_among_candidates_is_a_caveat(fixed) -> None:
    chosen = tl.GraphSVC("wwl", 1, 0.0, C=[1.0, 10.0], **SETTINGS).fit(GRAPHS, Y).model_

    def told(model) -> list[str]:
        return [text for text in model_bound(model, 0.05)["caveats"] if "chosen among" in text]

    assert told(fixed) == []
    (text,) = told(chosen)
    assert "chosen among 2 candidates" in text


def test_a_bound_that_may_fail_more_often_is_tighter(fixed) -> None:
    rare, often = model_bound(fixed, 0.01), model_bound(fixed, 0.2)
    assert often["gap"] < rare["gap"]
    assert often["loss"] == rare["loss"]
    assert (often["n_graphs"], often["delta"]) == (len(Y), 0.2)


def test_uniform_weights_move_nothing(fixed) -> None:
    assert model_bound(fixed, 0.05)["stability"]["k_n"] == 0.0
