"""The summary is plain data, and its numbers are right."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics

import treelens as tl
from report.conftest import QUICK
from treelens.report import summarize


def test_the_summary_is_plain_data(summary):
    text = json.dumps(summary, allow_nan=False)
    assert json.loads(text) == summary


def test_a_summary_of_the_model_alone(learned):
    found = summarize(learned.model_)
    json.dumps(found, allow_nan=False)
    for name in ("data", "scores", "map", "graphs", "examples"):
        assert found[name] is None
    assert found["held_out"]["n_graphs"] == found["model"]["n_training_graphs"] == 48
    assert found["patterns"]["rows"][0]["occurrence"] is None


def test_model_summary_is_the_same(learned, synthetic, summary):
    assert learned.summary(*synthetic) == summary


def test_every_graph_is_explained(learned, synthetic, summary):
    graphs, _ = synthetic
    rows = summary["graphs"]["rows"]
    assert [row["index"] for row in rows] == list(range(len(graphs)))
    row, explanation = rows[5], learned.explain(graphs[5])
    np.testing.assert_allclose(row["contributions"], explanation.node_contributions, rtol=5e-3)
    assert sum(row["contributions"]) == pytest.approx(row["decision"] - row["base"], abs=0.02)
    assert row["labels"] == [str(label) for label in graphs[5].node_labels]
    assert row["edges"] == [node for edge in graphs[5].edges for node in edge]
    for pattern, _ in row["patterns"]:
        assert str(pattern) in summary["pattern_texts"]


def test_doubtful_cases_come_in_order(learned, synthetic):
    graphs, y = synthetic
    wrong_on_purpose = np.where(np.arange(len(y)) < 3, -y, y)
    found = summarize(learned.model_, graphs, wrong_on_purpose)["examples"]
    right = learned.predict(graphs) == wrong_on_purpose
    assert found["n_wrong"] == int((~right).sum()) >= 3
    of_predicted = [row["probability"] for row in found["most_wrong"]]
    assert of_predicted == sorted(of_predicted, reverse=True)
    assert all(row["class"] != row["predicted"] for row in found["most_wrong"])
    doubt = [abs(row["probability"] - 0.5) for row in found["most_uncertain"]]
    assert doubt == sorted(doubt)


def test_more_than_two_classes(synthetic):
    graphs, _ = synthetic
    y = np.array(["one", "two", "three"])[np.asarray(graphs.graph_data["substructure"], int) % 3]
    model = tl.GraphSVC("wwl", 1, 0, **QUICK).fit(graphs, y)
    found = summarize(model.model_, graphs, y)
    decisions = model.decision_function(graphs)
    expected = [
        metrics.roc_auc_score(y == label, decisions[:, code])
        for code, label in enumerate(model.classes_)
    ]
    assert [curve["auc"] for curve in found["scores"]["roc"]] == pytest.approx(expected)
    assert np.array(found["scores"]["confusion"]).shape == (3, 3)
    assert found["graphs"]["rows"][0]["toward"] == str(model.predict(graphs[:1])[0])


def test_learning_is_told_in_words(synthetic):
    graphs, y = synthetic
    model = tl.GraphSVC("wwl", 2, [0.0, 3.0], **QUICK).fit(graphs, y)
    found = summarize(model.model_)["learning"]
    gain = model.learning_gain_
    assert found["gain"]["difference"] == gain["difference"]
    assert f"{100 * gain['difference']:+.1f} points" in found["words"]
    uniform = tl.GraphSVC("wwl", 1, 0, **QUICK).fit(graphs, y)
    assert summarize(uniform.model_)["learning"]["verdict"] == "not tried"
    assert summarize(uniform.model_)["weights"]["uniform"]


def test_a_loaded_model_gives_the_same_summary(learned, synthetic, summary, tmp_path):
    learned.save(tmp_path / "model.treelens")
    assert tl.load(tmp_path / "model.treelens").summary(*synthetic) == summary


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [1]}, "without X"),
        ({"X": "graphs", "y": [1, -1]}, "one class for each of the 64 graphs"),
        ({"X": "graphs", "y": [1] * 63 + [7]}, r"y\[63\] is 7, a class that the model never"),
    ],
)
def test_what_does_not_fit_is_refused(learned, synthetic, arguments, message):
    if "X" in arguments:
        arguments = {**arguments, "X": synthetic[0]}
    with pytest.raises(ValueError, match=message):
        summarize(learned.model_, **arguments)


def test_classes_read_as_text_are_recognised(learned, synthetic, summary):
    graphs, y = synthetic
    assert summarize(learned.model_, graphs, y.astype(str))["scores"] == summary["scores"]


def test_names_instead_of_codes(mutag):
    graphs, y = mutag
    model = tl.GraphSVC("tanimoto", 1, 0, C=10.0, cv=2, random_state=0, progress=False)
    found = summarize(model.fit(graphs, y).model_, graphs[:20], y[:20], names="MUTAG")
    assert "C(:C,:C,:C)" in [row["text"] for row in found["patterns"]["rows"]]
    assert {"C", "N", "O"} <= set(found["graphs"]["rows"][0]["labels"])
