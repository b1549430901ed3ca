"""Tables of fragments: which outputs they are about, and what size alone does."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import treelens as tl
from treelens.explain.fragment_seen import ExplainedGraphs
from treelens.explain.fragments import outputs_of, size_effect, toward_of
from treelens.patterns.forest import PatternForest

NUMBERS = SimpleNamespace(classes=None)
TWO = SimpleNamespace(classes=np.array(["no", "yes"]))
THREE = SimpleNamespace(classes=np.array([1, 2, 3]))


def test_two_classes_share_an_output_that_the_first_turns() -> None:
    assert outputs_of(NUMBERS, None) == [(0, 1.0, None)]
    assert outputs_of(TWO, None) == outputs_of(TWO, "yes") == [(0, 1.0, None)]
    assert outputs_of(TWO, "no") == [(0, -1.0, None)]


def test_several_classes_have_an_output_each() -> None:
    assert outputs_of(THREE, None) == [(0, 1.0, 1), (1, 1.0, 2), (2, 1.0, 3)]
    assert outputs_of(THREE, 3) == [(2, 1.0, 3)]


def test_classes_that_are_none() -> None:
    with pytest.raises(ValueError, match="class_label='yes', but this model predicts numbers"):
        outputs_of(NUMBERS, "yes")
    with pytest.raises(ValueError, match=r"one of the classes \['no', 'yes'\], got 'maybe'"):
        outputs_of(TWO, "maybe")


@pytest.mark.parametrize(
    ("decision", "label", "words"),
    [(NUMBERS, None, None), (TWO, None, "yes"), (TWO, "no", "no"), (THREE, None, None),
     (THREE, 2, "2")],
)  # fmt: skip
def test_what_positive_effects_speak_for(decision, label, words) -> None:
    assert toward_of(decision, label) == words


def test_what_size_does_is_the_mean_over_graphs_not_over_nodes() -> None:
    small, large = ([(0, 1)], dict.fromkeys(range(2), "a")), ([], dict.fromkeys(range(6), "a"))
    graphs = tl.as_graph_collection([small, large])
    forest, colors = PatternForest.fit(graphs, 0, ("labels",))
    phi = np.array([1.0, 3.0, *[0.5] * 6])
    found = size_effect(ExplainedGraphs(forest, graphs, colors, phi), sign=-1.0)
    assert found["per_node"] == pytest.approx(-1.25)
    assert found["mean_nodes"] == 4.0
    assert found["effect"] == pytest.approx(-5.0)
    assert found["error"] > 0
