"""The graphs of a report: known or new, their order and classes; scores against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

import treelens as tl
from report.conftest import QUICK
from treelens.models.predictions import Predictions, Threshold
from treelens.models.scores import (
    reliability,
    scores_of_classes,
    scores_of_numbers,
    threshold_counts,
)
from treelens.report.predicted import PredictedGraphs, similarity_in_words
from treelens.report.render import render


@pytest.mark.parametrize("name", ["numbers", "classes", "svm"])
def test_training_graphs_have_no_test_score_and_do_not_count_as_right(cases, name):
    model, graphs, y = cases[name]
    found = model.summary(graphs[::2], y[::2])
    assert found["scores"] is None
    assert all(found["predictions"]["in_training"])
    (check,) = [c for c in found["checks"] if "left out of the test scores" in c["text"]]
    assert check["level"] == "alarm"
    assert check["text"].startswith(f"{len(y[::2])} of the {len(y[::2])}")
    page = render(found)
    assert "No test set" in page
    assert "<h2>Test set</h2>" not in page
    assert "predictions are wrong" not in page
    assert "chance of being wrong" not in page
    assert page.index('<section id="glance">') < page.index('<section id="cards">')


def test_scores_leave_out_training_graphs(cases):
    model, graphs, y = cases["numbers"]
    found = model.summary(graphs, y)["scores"]
    new = model.predict(graphs[1::2]) - y[1::2]
    assert found["n_graphs"] == len(new)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(new**2)))
    assert found["points"]["index"] == list(range(1, len(y), 2))
    table = [*range(0, len(y), 2), 1, 3]  # all training rows, and two that were once dropped
    assert model.summary(graphs[table], y[table])["scores"] is None


def test_molecules_that_no_pattern_distinguishes_are_compared_by_smiles(tmp_path):
    smiles = ["C" * n + "c1ccc(O)cc1" for n in range(1, 12)]
    model = tl.GraphRegressor(depth=0, descriptors=False).fit(smiles, np.arange(11.0))
    new = ["Oc1ccc(CC)cc1", "CCc1cccc(O)c1", "CCc1ccccc1O"]  # para, meta and ortho
    found = model.summary(new, [1.0, 2.0, 3.0])
    assert found["predictions"]["in_training"] == [True, False, False]
    assert found["scores"]["n_graphs"] == 2
    assert found["cards"]["rows"][0]["training"] == "The model was fitted to this molecule."
    model.save(tmp_path / "bare.treelens", training_data=False)
    found = tl.load(tmp_path / "bare.treelens").summary(new)
    assert found["predictions"]["in_training"] == [True] * 3
    assert found["cards"]["rows"][1]["training"] == "A training molecule has the same patterns."


def test_similarities_at_depth_zero_say_what_they_compare():
    smiles = ["C" * n + "c1ccc(O)cc1" for n in range(1, 12)]
    ethers = ["Cc1ccc(OC)cc1", "c1ccc(COC)cc1O", "OCCCCBr"]  # the first has atoms of another
    texts = {}
    for depth in (0, 2):
        model = tl.GraphRegressor(depth=depth, views=[tl.WLPatterns(trees=("labels",))])
        model.fit(smiles, np.arange(11.0))
        summary = model.summary(ethers)
        rows = {row["index"]: row for row in summary["cards"]["rows"]}
        texts[depth] = render(summary)
        (first, last) = (rows[k]["neighbors"][0] for k in (0, 2))
        assert summary["model"]["alone"] == ("atoms" if depth == 0 else None)
        assert (first["similarity"] == pytest.approx(1.0)) == (depth == 0)
        if depth == 0:
            assert first["alike"] == "same atoms"
            assert last["alike"] == f"{last['similarity']:.2f} by atoms alone"
            assert "training molecule has the same atoms" in rows[0]["domain"]
            assert "similarity" not in rows[0]["domain"].partition("(")[0]
        else:
            assert first["alike"] == f"{first['similarity']:.2f}"
    assert "similarity 1.00" not in texts[0]
    for words in ("same atoms", "by atoms alone", "similarities compare atoms alone"):
        assert (words in texts[0], words in texts[2]) == (True, False)


def test_no_similarity_is_rounded_up_to_one():
    assert similarity_in_words(0.9951) == "0.99"
    assert similarity_in_words(1.0 - 1e-12) == "1.00"
    assert similarity_in_words(0.9951, "labels") == "0.99 by labels alone"


def test_limits_have_their_sign_and_no_error(molecules):
    graphs, y = molecules
    limits = np.where(y > 1.0, 1, 0)
    model = tl.GraphRegressor(depth=1).fit(graphs, np.minimum(y, 1.0), limits=limits)
    near = model.explain(graphs[0], n_neighbors=60).neighbors
    assert set(near["limit"]) == {"", ">"}
    assert (near.loc[near["limit"] == ">", "value"] == 1.0).all()
    new = tl.as_graph_collection(["CCCCO", "CCC(C)O"])
    summary = model.summary(new, tl.Targets([0.5, 2.0], limits=["=", "<"]))
    assert summary["predictions"]["limit"] == ["", "<"]
    assert "measured <strong>&lt;2.00</strong>" in render(summary)
    assert any(near["sign"] == ">" for row in summary["cards"]["rows"] for near in row["neighbors"])


def predicted(truth=None, classes=None, **more):
    """Four graphs with predictions of no model."""
    graphs = tl.as_graph_collection([([(0, 1)], {0: "a", 1: "b"})] * 4)
    given = {
        "decisions": np.array([[1.0], [2.0], [3.0], [4.0]]),
        "margins": np.zeros((4, 1)),
        "out_of_vocabulary": np.array([0.0, 0.0, 0.5, 0.0]),
        "graphs": None,
        "variance": np.array([4.0, 1.0, 9.0, 1.0]),
    }
    similarity = np.array([0.2, 1.0, 1.0, 0.9])
    known = np.array([False, True, False, False])
    return PredictedGraphs(
        graphs,
        truth,
        Predictions(**given, **more),
        classes,
        np.arange(4),
        similarity,
        known,
    )


CLASSES = np.array(["no", "yes"])
CHANCES = np.array([[0.9, 0.1], [0.4, 0.6], [0.55, 0.45], [0.2, 0.8]])


def test_orders_of_numbers():
    found = predicted(np.array([1.5, 2.0, 0.0, 3.0]))
    assert found.most_wrong.tolist() == [2, 3, 0, 1]
    assert found.most_uncertain.tolist() == [2, 0, 1, 3]
    assert found.most_similar.tolist() == [2, 3, 0]  # without the training graph
    assert predicted().most_wrong.tolist() == []


def test_orders_of_classes_and_their_texts():
    chances = {"classes": CLASSES, "probabilities": CHANCES}
    assert predicted(**chances).predicted.tolist() == [1, 1, 1, 1]  # the sign of the decision
    found = predicted(np.zeros(4, int), **chances, threshold=Threshold(0.45, 1))
    assert found.predicted.tolist() == [0, 1, 1, 1]
    assert found.most_wrong.tolist() == [3, 1, 2]
    assert found.most_uncertain.tolist() == [2, 1, 3, 0]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("numbers", {"y": [1.0]}, "without X"),
        ("numbers", {"X": ["CC", "CCC"], "y": [1.0]}, "2 graphs but 1 values"),
        ("numbers", {"X": ["CC"], "y": ["high"]}, "not numbers"),
        ("svm", {"y": [1]}, "without X"),
        ("svm", {"X": None, "y": [1, -1]}, "There are 64 graphs but 2 values in y"),
        ("classes", {"X": None, "y": [1] * 63 + [7]}, r"y\[63\] is 7"),
    ],
)
def test_wrong_arguments(cases, name, arguments, message):
    model, graphs, _ = cases[name]
    if arguments.get("X", 0) is None:
        arguments = {**arguments, "X": graphs}
    with pytest.raises(ValueError, match=message):
        model.summary(**arguments)


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
    chances = np.array([[0.7, 0.2, 0.1], [0.1, 0.72, 0.18], [0.5, 0.3, 0.2]])
    parts = reliability(np.array([0, 2, 0]), chances, None)  # of the predicted class
    assert [(part["n"], part["observed"]) for part in parts] == [(1, 1.0), (2, 0.5)]


def test_one_graph_and_the_likelier_class_beside_a_threshold():
    found = scores_of_numbers(np.array([1.0]), np.array([2.0]), np.array([1.0]), 0.0)
    assert (found["r2"], found["rmse"]) == (None, 1.0)
    one = np.array([[0.3, 0.7]])
    found = scores_of_classes(np.array([1]), np.array([1]), one, np.array(["a", "b"]))
    assert found["balanced_accuracy"] is None
    assert (found["accuracy"], found["roc"]) == (1.0, [])
    assert np.isnan(found["per_class"][0]["recall"])  # None in a summary
    chances = np.array([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.2, 0.8]])
    codes, threshold = np.array([0, 0, 1, 1]), Threshold(0.25, 1)
    named = threshold.name(chances)
    found = scores_of_classes(codes, named, chances, np.array(["a", "b"]), threshold)
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
