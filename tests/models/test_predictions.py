"""Predictions: classes from decision values or by a threshold, and no infinities."""

from typing import Any

import numpy as np
import pytest

from treelens.models.predictions import Predictions, predicted_codes
from treelens.models.thresholds import Threshold


def said(decisions: list[list[float]], **more: Any) -> Predictions:
    values = np.array(decisions)
    return Predictions(values, np.zeros(len(values)), None, values, **more)  # type: ignore[arg-type]


def test_one_column_is_decided_by_its_sign_and_zero_is_the_first_class():
    assert predicted_codes(np.array([[-0.5], [0.0], [1e-300]])).tolist() == [0, 0, 1]


def test_of_several_columns_the_largest_wins():
    assert predicted_codes(np.array([[0.1, 0.3, 0.2], [-1.0, -3.0, -2.0]])).tolist() == [1, 0]


def test_a_threshold_names_the_rare_class_sooner_than_the_sign_would():
    probabilities = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]])
    decisions = [[-2.0], [-0.8], [1.4]]
    plain = said(decisions, probabilities=probabilities)
    lower = said(decisions, probabilities=probabilities, threshold=Threshold(0.3, 1))
    assert plain.predicted_codes.tolist() == [0, 0, 1]
    assert Threshold(0.8, 0).name(probabilities).tolist() == [0, 1, 1]
    assert lower.predicted_codes.tolist() == [0, 1, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["decisions", "probabilities", "variance"])
def test_what_is_no_number_is_an_error_that_names_the_graph(bad, where):
    parts: dict[str, Any] = {"probabilities": np.full((2, 2), 0.5), "variance": np.ones(2)}
    decisions = [[1.0], [bad if where == "decisions" else 2.0]]
    if where == "probabilities":
        parts[where][1, 0] = bad
    elif where == "variance":
        parts[where][1] = bad
    with pytest.raises(ValueError, match="graph 1 is not a finite number"):
        said(decisions, **parts).checked()
