"""A task in one piece: what follows from it is found once."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.svm.task import Task


def task(class_weight) -> Task:
    return Task(None, np.array(["a", "b"]), np.array([0, 0, 0, 1]), False, 0, None, "accuracy",
                class_weight, 5, 0)  # fmt: skip


@pytest.mark.parametrize(
    ("class_weight", "expected"),
    [
        (None, [1.0, 1.0, 1.0, 1.0]),
        ("balanced", [2 / 3, 2 / 3, 2 / 3, 2.0]),
        ({"b": 5.0}, [1.0, 1.0, 1.0, 5.0]),
    ],
)
def test_graphs_weigh_what_their_class_does(class_weight, expected) -> None:
    asked = task(class_weight)
    assert asked.sample_weight.tolist() == pytest.approx(expected)
    assert asked.sample_weight is asked.sample_weight
