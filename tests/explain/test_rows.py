"""Rows of an explanation: the strongest patterns first, and voices on both sides."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from treelens.explain.expansion import FoundPatterns
from treelens.explain.rows import PatternRows, Voices

DECISION = SimpleNamespace(
    level_depths=np.array([0, 2]),
    training_indices=np.array([7, 3, -1, 5]),
    pattern_ids=lambda patterns: patterns + 10,
)


def found_patterns(patterns: list[int]) -> FoundPatterns:
    colors = np.zeros((2, 1), dtype=int)
    return FoundPatterns(
        colors, np.array(patterns), np.ones(len(patterns)), np.array([0, 3, 6]), True, 1.0, 0.0, 0.0
    )


def test_the_largest_contribution_of_either_sign_comes_first() -> None:
    found = found_patterns([0, 2, 3, 5])
    rows = PatternRows.sorted(
        DECISION, found, np.array([1, 2, 3, 4]), np.array([0.5, -2.0, -0.5, 1.0])
    )
    assert rows.patterns.tolist() == [2, 5, 0, 3]  # of equals the first pattern
    assert rows.contributions.tolist() == [-2.0, 1.0, 0.5, -0.5]
    assert rows.counts.tolist() == [2, 4, 1, 3]
    assert rows.depths.tolist() == [0, 2, 0, 2]
    assert rows.ids.tolist() == [12, 15, 10, 13]


def test_voices_for_come_strongest_first_and_against_strongest_last() -> None:
    coefficients = np.array([1.0, 3.0, 9.0, -2.0])
    voices = Voices.strongest(DECISION, coefficients, np.array([1.0, 0.5, 1.0, 1.0]), 3)
    assert voices.training_graphs.tolist() == [3, 7, 5]  # nobody stands for -1
    assert voices.contributions.tolist() == [1.5, 1.0, -2.0]


def test_no_more_than_asked_for_on_either_side() -> None:
    coefficients = np.array([1.0, 2.0, 0.0, 3.0])
    voices = Voices.strongest(DECISION, coefficients, np.ones(4), 1)
    assert voices.training_graphs.tolist() == [5]
    against = Voices.strongest(DECISION, -coefficients, np.ones(4), 2)
    assert against.training_graphs.tolist() == [3, 5]
    silent = Voices.strongest(DECISION, np.zeros(4), np.ones(4), 2)
    assert silent.training_graphs.tolist() == []
    assert Voices.strongest(DECISION, coefficients, np.ones(4), 0).picked.tolist() == []


def test_of_equal_voices_the_earlier_training_graph_comes_first() -> None:
    voices = Voices.strongest(DECISION, np.ones(4), np.ones(4), 3)
    assert voices.training_graphs.tolist() == [3, 5, 7]
