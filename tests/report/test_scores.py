"""Scores of the report, compared with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

import treelens as tl
from report.conftest import QUICK
from treelens.models.thresholds import Threshold
from treelens.report.scores import (
    class_scores,
    number_scores,
    reliability,
    threshold_counts,
)


def test_numbers(summaries, cases):
    model, graphs, y = cases["numbers"]
    mean, std = model.predict(graphs[1::2], return_std=True)
    found, truth = summaries["numbers"]["scores"], y[1::2]
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(truth, mean))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(truth, mean))
    assert found["r2"] == pytest.approx(metrics.r2_score(truth, mean))
    within = np.abs(truth - mean) <= 1.6448536 * std
    assert found["coverage"] == pytest.approx(within.mean())
    nominal = found["calibration"]["nominal"].index(0.9)
    assert found["calibration"]["observed"][nominal] == pytest.approx(within.mean())
    for name in ("rmse", "r2", "nlpd", "coverage"):
        expected = getattr(model.loo_, name)
        assert summaries["numbers"]["validation"][name] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["classes", "svm"])
def test_classes(name, cases):
    model, graphs, _ = cases[name]
    graphs = graphs[1::2]
    y = np.random.default_rng(0).choice(model.classes_, len(graphs))  # so that some are wrong
    summary = model.summary(graphs, y)
    new = np.flatnonzero(~np.array(summary["predictions"]["in_training"]))
    found, y = summary["scores"], y[new]
    predicted = model.predict(graphs)[new]
    probabilities = model.predict_proba(graphs)[new]
    assert found["accuracy"] == metrics.accuracy_score(y, predicted)
    assert found["balanced_accuracy"] == metrics.balanced_accuracy_score(y, predicted)
    assert found["confusion"] == metrics.confusion_matrix(y, predicted).tolist()
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(y, probabilities[:, 1]))
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, probabilities))
    report = metrics.classification_report(y, predicted, output_dict=True, zero_division=np.nan)
    for part in found["per_class"]:
        expected = report[part["class"]]
        assert part["recall"] == pytest.approx(expected["recall"])
        assert (part["precision"] or 0.0) == pytest.approx(np.nan_to_num(expected["precision"]))
    curve = found["roc"][0]
    area = metrics.auc(curve["false_positive_rate"], curve["true_positive_rate"])
    assert area == pytest.approx(curve["auc"])
    known = found["thresholds"]
    assert known["found"][known["at"]] == found["confusion"][1][1]
    assert known["alarms"][known["at"]] == found["confusion"][0][1]


def test_validation_of_classes(summaries, cases):
    model = cases["classes"][0]
    assert summaries["classes"]["validation"]["method"] == "leave-one-out"
    assert summaries["classes"]["validation"]["accuracy"] == pytest.approx(model.loo_.accuracy)
    assert summaries["classes"]["validation"]["log_loss"] == pytest.approx(model.loo_.log_loss)
    model, found = cases["svm"][0], summaries["svm"]["validation"]
    (decisions,) = model.cv_results_.decisions.values()
    assert found["method"] == "cross-validation"
    assert found["accuracy"] == np.mean((decisions[:, 0] > 0) == model.train_codes_)
    expected = metrics.roc_auc_score(model.train_codes_, decisions[:, 0])
    assert found["roc_auc"] == pytest.approx(expected)


def test_many_classes_of_an_svm(synthetic):
    graphs, _ = synthetic
    y = np.array(["one", "two", "three"])[np.asarray(graphs.graph_data["substructure"], int) % 3]
    model = tl.GraphSVC("wwl", 1, 0, **QUICK).fit(graphs[::2], y[::2])
    found = model.summary(graphs[1::2], y[1::2])
    new = ~np.array(found["predictions"]["in_training"])
    probabilities, truth = model.predict_proba(graphs[1::2])[new], y[1::2][new]
    expected = [
        metrics.roc_auc_score(truth == label, probabilities[:, code])
        for code, label in enumerate(model.classes_)
    ]
    assert [curve["auc"] for curve in found["scores"]["roc"]] == pytest.approx(expected)
    assert np.array(found["scores"]["confusion"]).shape == (3, 3)
    assert found["validation"]["log_loss"] is None  # votes have no probabilities


def test_reliability_of_many_classes_is_of_the_predicted_class():
    chances = np.array([[0.7, 0.2, 0.1], [0.1, 0.72, 0.18], [0.5, 0.3, 0.2]])
    found = reliability(np.array([0, 2, 0]), chances)
    assert [(part["n"], part["observed"]) for part in found] == [(1, 1.0), (2, 0.5)]


def test_points_of_many_graphs_are_a_fair_sample():
    rng = np.random.default_rng(0)
    values, error = rng.normal(size=5000), rng.normal(size=5000)
    found = number_scores(values, values + error, np.ones(5000), 0.0)["points"]
    assert (found["n_all"], len(found["index"])) == (5000, 800)
    drawn = found["predicted"] - found["measured"]
    assert np.sqrt(np.mean(drawn**2)) == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.1)


def test_one_graph():
    found = number_scores(np.array([1.0]), np.array([2.0]), np.array([1.0]), 0.0)
    assert (found["r2"], found["rmse"]) == (None, 1.0)
    one = np.array([[0.3, 0.7]])
    found = class_scores(np.array([1]), np.array([1]), one, np.array(["a", "b"]))
    assert found["balanced_accuracy"] is None
    assert (found["accuracy"], found["roc"], found["per_class"][0]["recall"]) == (1.0, [], None)


def test_the_likelier_class_beside_a_threshold():
    chances = np.array([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.2, 0.8]])
    codes, threshold = np.array([0, 0, 1, 1]), Threshold(0.25, 1)
    named = threshold.name(chances)
    found = class_scores(codes, named, chances, np.array(["a", "b"]), threshold)
    assert (found["accuracy"], found["accuracy_likeliest"]) == (0.75, 0.75)
    assert found["thresholds"]["at"] == 25


@pytest.mark.parametrize("code", [0, 1])
def test_counts_at_every_threshold(code):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=80)
    values = np.round(rng.random(80), 2)  # some lie on thresholds exactly
    chances = np.column_stack([1 - values, values])[:, [1, 0] if code == 0 else [0, 1]]
    counts = threshold_counts(codes, chances, np.array(["a", "b"]), Threshold(0.3, code))
    assert (counts["positive"], counts["at"]) == ("ab"[code], 30)
    for percent in range(101):
        named = np.where(chances[:, code] >= percent / 100, code, 1 - code)
        matrix = metrics.confusion_matrix(codes, named, labels=[1 - code, code])
        assert counts["alarms"][percent] == matrix[0, 1]
        assert counts["found"][percent] == matrix[1, 1]
    thirds = np.full((3, 3), 1 / 3)
    assert threshold_counts(np.arange(3), thirds, np.array(["a", "b", "c"]), None) is None
