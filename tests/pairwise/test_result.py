"""How far learned weights are from uniform ones, depth by depth."""

from __future__ import annotations

import numpy as np

from treelens.pairwise.result import distance_moved


def test_the_distance_of_every_depth_is_its_own() -> None:
    weights = np.array([1.0, 4.0, 5.0, 1.0, 0.0])
    assert distance_moved(weights, np.array([0, 1, 3, 5])).tolist() == [0.0, 5.0, 1.0]


def test_a_depth_without_patterns_has_not_moved() -> None:
    assert distance_moved(np.array([3.0]), np.array([0, 0, 1, 1])).tolist() == [0.0, 2.0, 0.0]
