"""Scores of the report on a Gaussian process, held against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from treelens.report.evidence_scores import number_scores, reliability


def test_scores_of_numbers(of_numbers, number_model, molecules):
    graphs, y = molecules
    mean, std = number_model.predict(graphs[1::2], return_std=True)
    found, truth = of_numbers["scores"], y[1::2]
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(truth, mean))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(truth, mean))
    assert found["r2"] == pytest.approx(metrics.r2_score(truth, mean))
    within = np.abs(truth - mean) <= 1.6448536 * std
    assert found["coverage"] == pytest.approx(within.mean())
    nominal = found["calibration"]["nominal"].index(0.9)
    assert found["calibration"]["observed"][nominal] == pytest.approx(within.mean())


def test_left_out_scores_are_those_of_the_model(of_numbers, number_model):
    for name in ("rmse", "r2", "nlpd", "coverage"):
        assert of_numbers["left_out"][name] == pytest.approx(getattr(number_model.loo_, name))


def test_scores_of_classes(of_classes, class_model, synthetic):
    graphs, y = synthetic
    probabilities = class_model.predict_proba(graphs[1::2])
    found, truth = of_classes["scores"], y[1::2]
    assert found["log_loss"] == pytest.approx(metrics.log_loss(truth, probabilities))
    assert found["accuracy"] == np.mean(class_model.predict(graphs[1::2]) == truth)
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(truth, probabilities[:, 1]))
    assert of_classes["left_out"]["accuracy"] == pytest.approx(class_model.loo_.accuracy)
    assert of_classes["left_out"]["log_loss"] == pytest.approx(class_model.loo_.log_loss)


def test_reliability_with_more_than_two_classes_is_of_the_class_predicted():
    said = np.array([[0.7, 0.2, 0.1], [0.1, 0.72, 0.18], [0.5, 0.3, 0.2]])
    found = reliability(np.array([0, 2, 0]), said)
    assert [(part["n"], part["observed"]) for part in found] == [(1, 1.0), (2, 0.5)]


def test_a_scatter_of_many_graphs_is_a_fair_sample():
    rng = np.random.default_rng(0)
    values, error = rng.normal(size=5000), rng.normal(size=5000)
    found = number_scores(values, values + error, np.ones(5000), 0.0)["points"]
    assert (found["n_all"], len(found["index"])) == (5000, 800)
    np.testing.assert_array_equal(found["measured"], values[found["index"]])
    drawn = found["predicted"] - found["measured"]
    assert np.sqrt(np.mean(drawn**2)) == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.1)


def test_one_measurement_has_no_r2():
    found = number_scores(np.array([1.0]), np.array([2.0]), np.array([1.0]), 0.0)
    assert found["r2"] is None
    assert found["rmse"] == 1.0
