"""Columns of predictions: what the model said, in its order and on the scale of the table."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from treelens.cli.predict_columns import (
    beside_columns,
    class_columns,
    doubt_columns,
    number_columns,
)
from treelens.cli.transform import transform_named
from treelens.evaluation.metrics import NINETY
from treelens.models.predictions import Predictions


def said(decisions, **more) -> Predictions:
    decisions = np.array(decisions, dtype=float)
    return Predictions(decisions, np.linspace(0, 1, len(decisions)), None, decisions, **more)


def model_that_says(what: Predictions, **more) -> SimpleNamespace:
    return SimpleNamespace(_decide=lambda graphs, **options: what, **more)


def test_the_probability_is_that_of_the_class_named() -> None:
    probabilities = np.array([[0.7, 0.3], [0.2, 0.8]])
    model = model_that_says(
        said([[-1.5], [2.5]], probabilities=probabilities), classes_=np.array([3, 5])
    )
    found = class_columns(model, None)
    assert list(found) == [
        "class", "probability", "decision", "out_of_vocabulary", "probability 3", "probability 5",
    ]  # fmt: skip
    assert list(found["class"]) == ["3", "5"]
    assert found["probability"].tolist() == [0.7, 0.8]
    assert found["decision"].tolist() == [-1.5, 2.5]
    assert found["probability 5"].tolist() == [0.3, 0.8]


def test_of_several_classes_the_decision_is_that_of_the_one_named() -> None:
    decisions = [[1.0, 3.0, 2.0], [0.5, 0.1, 0.2]]
    model = model_that_says(
        said(decisions, probabilities=np.eye(3)[[1, 0]]), classes_=np.array(["a", "b", "c"])
    )
    found = class_columns(model, None)
    assert list(found["class"]) == ["b", "a"]
    assert found["decision"].tolist() == [3.0, 0.5]


def test_numbers_have_an_interval_around_them() -> None:
    model = model_that_says(said([[1.0], [2.0]], variance=np.array([4.0, 0.25])))
    found = number_columns(model, None, None)
    assert list(found) == ["prediction", "std", "lower_90", "upper_90", "out_of_vocabulary"]
    assert found["std"].tolist() == [2.0, 0.5]
    np.testing.assert_allclose(found["upper_90"] - found["prediction"], NINETY * found["std"])
    np.testing.assert_allclose(found["prediction"] - found["lower_90"], NINETY * found["std"])


def test_on_another_scale_bounds_come_back_and_deviations_stay() -> None:
    what = said([[2.0]], variance=np.array([1.0]), from_covariates=np.array([[0.5]]))
    found = number_columns(model_that_says(what), None, transform_named("log10"))
    assert found["prediction"].tolist() == [100.0]
    assert found["std_log10"].tolist() == [1.0]
    assert found["lower_90"][0] == pytest.approx(10 ** (2 - NINETY))
    assert found["upper_90"][0] == pytest.approx(10 ** (2 + NINETY))
    assert found["from_covariates_log10"].tolist() == [0.5]


def test_what_covariates_add_has_one_column_or_none() -> None:
    assert beside_columns(said([[1.0]])) == {}
    assert beside_columns(said([[1.0, 2.0]], from_covariates=np.ones((1, 2)))) == {}
    one = beside_columns(said([[1.0]], from_covariates=np.array([[0.25]])))
    assert one["from_covariates"].tolist() == [0.25]


def test_a_model_without_a_domain_has_no_doubts() -> None:
    what = said([[1.0]], variance=np.array([1.0]))
    assert doubt_columns(SimpleNamespace(), what) == {}
    assert doubt_columns(SimpleNamespace(domain_=None), said([[1.0]])) == {}
