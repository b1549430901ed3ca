"""The graphs of a report: known or new, their order, their classes and names."""

from __future__ import annotations

import re

import numpy as np
import pytest

import treelens as tl
from treelens.graphs.targets import LIMITS
from treelens.models.predictions import Predictions
from treelens.models.thresholds import Threshold
from treelens.report.predicted import PredictedGraphs, class_codes, predict_graphs
from treelens.report.render import render


@pytest.mark.parametrize("name", ["numbers", "svm"])
def test_training_graphs_have_no_test_score(cases, name):
    model, graphs, y = cases[name]
    found = model.summary(graphs[::2], y[::2])
    assert found["scores"] is None
    assert all(found["predictions"]["in_training"])


def test_scores_leave_out_training_graphs(cases):
    model, graphs, y = cases["numbers"]
    found = model.summary(graphs, y)["scores"]
    new = model.predict(graphs[1::2]) - y[1::2]
    assert found["n_graphs"] == len(new)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(new**2)))
    assert found["points"]["index"] == list(range(1, len(y), 2))


def test_rows_that_were_dropped_from_a_training_table_are_no_test_set(cases):
    model, graphs, y = cases["numbers"]
    table = [*range(0, len(y), 2), 1, 3]  # all training rows and two others
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


def test_the_page_does_not_count_training_molecules_as_right(cases):
    model, graphs, y = cases["classes"]
    summary = model.summary(graphs[::2], y[::2])
    assert summary["data"]["n_in_training"] == len(y[::2])
    page = render(summary)
    assert "predictions are wrong" not in page
    assert "chance of being wrong" not in page
    assert page.index('<section id="glance">') < page.index('<section id="cards">')


def test_one_molecule_is_singular(cases):
    model, graphs, y = cases["numbers"]
    summary = model.summary(graphs[[0, 1]], y[[0, 1]])  # the first is a training molecule
    texts = " ".join(check["text"] for check in summary["checks"])
    assert "was trained on. It is left out" in texts
    assert not re.search(r"\b1 of the 2 molecules \([^)]*\) (have|are|were)\b", texts)
    page = render(summary)
    assert "a test set of 1 molecule)" in page
    assert not re.search(r"\b1 (training )?molecules", page)


def test_through_landmarks_all_training_graphs_are_known(molecules):
    graphs, y = molecules
    model = tl.GraphRegressor(depth=1, exact_size=10, n_landmarks=5, random_state=0)
    assert model.fit(graphs[::2], y[::2]).summary(graphs[::2], y[::2])["scores"] is None


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_variances_of_training_graphs_have_a_closed_form(cases, name):
    model, graphs, _ = cases[name]
    given = predict_graphs(model, graphs, None)
    assert given.inverse is not None
    expected = model.model_.decide(graphs, variance=True).variance
    np.testing.assert_allclose(given.predictions.variance, expected, rtol=1e-9)
    assert predict_graphs(model, graphs[:3], None).inverse is None


@pytest.mark.parametrize("name", ["numbers", "classes", "svm"])
def test_similarity_is_the_same_everywhere(summaries, name):
    summary = summaries[name]
    columns = summary["predictions"]
    assert 0.0 <= min(columns["similarity"]) <= max(columns["similarity"]) <= 1.0
    for row in summary["cards"]["rows"]:
        nearest = row["neighbors"][0]
        assert nearest["similarity"] == pytest.approx(columns["similarity"][row["index"]])
        assert nearest["similarity"] == pytest.approx(row["similarity"])


def test_limits_have_their_sign_and_no_error(molecules):
    graphs, y = molecules
    limits = np.where(y > 1.0, 1, 0)
    model = tl.GraphRegressor(depth=1).fit(graphs, np.minimum(y, 1.0), limits=limits)
    near = model.explain(graphs[0], n_neighbors=60).neighbors
    assert set(near["limit"]) == {"", ">"}
    assert (near.loc[near["limit"] == ">", "value"] == 1.0).all()
    new = tl.as_graph_collection(["CCCCO", "CCC(C)O"]).with_data({LIMITS: [0, -1]})
    summary = model.summary(new, [0.5, 2.0])
    assert summary["predictions"]["limit"] == ["", "<"]
    assert "measured <strong>&lt;2.00</strong>" in render(summary)
    assert any(near["sign"] == ">" for row in summary["cards"]["rows"] for near in row["neighbors"])


def predicted(truth=None, classes=None, **more) -> PredictedGraphs:
    """Four graphs with predictions of no model."""
    graphs = tl.as_graph_collection([([(0, 1)], {0: "a", 1: "b"})] * 4)
    given = {
        "decisions": np.array([[1.0], [2.0], [3.0], [4.0]]), "margins": np.zeros((4, 1)),
        "out_of_vocabulary": np.array([0.0, 0.0, 0.5, 0.0]), "graphs": None,
        "variance": np.array([4.0, 1.0, 9.0, 1.0]),
    }  # fmt: skip
    similarity = np.array([0.2, 1.0, 1.0, 0.9])
    known = np.array([False, True, False, False])
    return PredictedGraphs(
        graphs, graphs, truth, Predictions(**given, **more), classes, np.arange(4), similarity,
        known,
    )  # fmt: skip


CLASSES = np.array(["no", "yes"])
CHANCES = np.array([[0.9, 0.1], [0.4, 0.6], [0.55, 0.45], [0.2, 0.8]])


def test_orders_of_numbers():
    found = predicted(np.array([1.5, 2.0, 0.0, 3.0]))
    assert found.most_wrong.tolist() == [2, 3, 0, 1]
    assert found.most_uncertain.tolist() == [2, 0, 1, 3]
    assert found.most_similar.tolist() == [2, 3, 0]  # without the training graph
    assert predicted().most_wrong.tolist() == []


def test_orders_of_classes():
    chances = {"classes": CLASSES, "probabilities": CHANCES}
    assert predicted(**chances).predicted.tolist() == [1, 1, 1, 1]  # the sign of the decision
    found = predicted(np.zeros(4, int), **chances, threshold=Threshold(0.45, 1))
    assert found.predicted.tolist() == [0, 1, 1, 1]
    assert found.most_wrong.tolist() == [3, 1, 2]
    assert found.most_uncertain.tolist() == [2, 1, 3, 0]


def test_classes_and_their_texts():
    classes = np.array([-1, 1])
    assert class_codes(["1", "-1"], classes, 2).tolist() == [1, 0]
    assert class_codes([1, -1, 1], classes, 3).tolist() == [1, 0, 1]
    assert class_codes([1.0, -1.0], classes, 2).tolist() == [1, 0]
    assert class_codes([1, 2], np.array(["1", "2"]), 2).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("numbers", {"y": [1.0]}, "without X"),
        ("numbers", {"X": ["CC", "CCC"], "y": [1.0]}, "2 graphs but 1 values"),
        ("numbers", {"X": ["CC"], "y": ["high"]}, "not numbers"),
        ("svm", {"y": [1]}, "without X"),
        ("svm", {"X": None, "y": [1, -1]}, "one class for each of the 64 graphs"),
        ("classes", {"X": None, "y": [1] * 63 + [7]}, r"y\[63\] is 7"),
    ],
)
def test_wrong_arguments(cases, name, arguments, message):
    model, graphs, _ = cases[name]
    if arguments.get("X", 0) is None:
        arguments = {**arguments, "X": graphs}
    with pytest.raises(ValueError, match=message):
        model.summary(**arguments)
