"""What a user brings to a comparison: estimators by name, and predictions in files."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import treelens as tl
from cli.conftest import refused, run, write_csv
from cli.test_fit import NUMBERS
from treelens.chem.rivals import GraphCounts, rival_estimator
from treelens.errors import IgnoredDataWarning

GIVEN = ["--models", "gp_uniform", "--depth", 1, "--jobs", 1, "--folds", 2, "--json"]
FOREST = RandomForestClassifier(n_estimators=5)


def small_forest():
    return RandomForestClassifier(n_estimators=5, random_state=3)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    rows = [(*row, f"m{k}") for k, row in enumerate(NUMBERS)]
    return write_csv(tmp_path_factory.mktemp("rivals") / "x.csv", rows, "smiles,value,name")


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    rows = [(s, "big" if y > np.median([v for _, v in NUMBERS]) else "small") for s, y in NUMBERS]
    return write_csv(tmp_path_factory.mktemp("rivals") / "c.csv", rows, "smiles,size")


def values():
    return np.array([y for _, y in NUMBERS], dtype=float)


def evaluate(data, *rivals, target="value"):
    each = [word for rival in rivals for word in ("--rival", rival)]
    return run("evaluate", data, "--target", target, *GIVEN, *each)


def test_counts_are_fingerprints_of_molecules_and_patterns_of_other_graphs():
    molecules = GraphCounts().fit_transform(["CCO", "CCN"])
    assert molecules.shape == (2, 2048 + 21)
    graphs, _ = tl.make_synthetic(n_per_substructure=3, random_state=0)
    counts = GraphCounts(depth=1)
    seen = counts.fit_transform(graphs[:10])
    np.testing.assert_array_equal(seen, counts.transform(graphs[:10]))
    # the patterns of each depth add up to the nodes
    np.testing.assert_array_equal(seen.sum(axis=1), 2 * graphs[:10].sizes)
    assert counts.transform(graphs[10:]).shape[1] == seen.shape[1]


def test_an_estimator_is_a_class_a_function_or_an_object():
    for name in ("sklearn.ensemble:RandomForestClassifier", f"{__name__}:FOREST"):
        title, made = rival_estimator(name, "classification", 2, 7)
        assert title == name.split(":")[1]
        assert made[-1].random_state == 7
        assert made[-1] is not FOREST
    _, made = rival_estimator(f"{__name__}:small_forest", "classification", 1, 7)
    assert made[-1].random_state == 3  # what was chosen stays
    _, ours = rival_estimator("treelens:GraphClassifier", "classification", 1, 0)
    assert isinstance(ours, tl.GraphClassifier)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("forest", "expected an estimator"),
        ("sklearn.no_such:X", "cannot import"),
        ("sklearn.ensemble:NoSuch", "has no NoSuch"),
        ("sklearn.ensemble:RandomForestRegressor", "needs a classifier"),
        ("sklearn.svm:LinearSVC", "predict_proba"),
        ("sklearn.ensemble:VotingClassifier", "a function that returns"),
    ],
)
def test_what_cannot_be_a_rival(name, words):
    with pytest.raises(ValueError, match=words):
        rival_estimator(name, "classification", 1, 0)


def test_perfect_predictions_by_fold_win_on_the_splits_of_the_file(numbers, tmp_path):
    folds = np.arange(len(NUMBERS)) % 3
    names = [f"m{k}" for k in range(len(NUMBERS))]
    table = pd.DataFrame({"name": names, "prediction": values(), "fold": folds})
    table.sample(frac=1.0, random_state=0).to_csv(tmp_path / "r.csv", index=False)
    found = evaluate(numbers, tmp_path / "r.csv", "sklearn.linear_model:Ridge").data
    assert [each["model"] for each in found["models"]] == ["gp_uniform", "r.csv", "Ridge"]
    assert (found["split"], found["n_splits"], found["n_folds"]) == ("file", 3, 3)
    assert found["models"][1]["scores"]["rmse"] == pytest.approx([0.0] * 3, abs=1e-12)
    assert {test["against"] for test in found["tests"]} == {"gp_uniform"}


def test_predictions_without_folds_are_scored_on_our_splits(numbers, tmp_path):
    rows = np.arange(1, len(NUMBERS) + 1)
    pd.DataFrame({"row": rows, "prediction": values() + 0.5}).to_csv(tmp_path / "r.csv")
    found = evaluate(numbers, tmp_path / "r.csv").data
    assert found["models"][1]["scores"]["rmse"] == pytest.approx([0.5] * 2)
    assert any("had not seen" in note for note in found["notes"])


def test_probabilities_of_a_file(classes, tmp_path):
    is_big = values() > np.median(values())
    table = pd.DataFrame(
        {"row": np.arange(1, len(is_big) + 1), "probability_big": 0.6 * is_big + 0.2}
    )
    table["probability_small"] = 1.0 - table["probability_big"]
    table.to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "c.csv").write_text(
        "row,class\n" + "\n".join(f"{k},{'big' if x else 'small'}" for k, x in enumerate(is_big, 1))
    )
    found = evaluate(classes, tmp_path / "p.csv", tmp_path / "c.csv", target="size").data
    for each in found["models"][1:]:
        assert (each["roc_auc"], each["accuracy"]) == (1.0, 1.0)
    assert any("without probabilities" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prediction\n1.0\n", "no column says which rows"),
        ("row,prediction\n1,many\n", "is not a number"),
        ("row,prediction\n1,1.0\n1,2.0\n", "predicted before"),
        ("row,prediction\n1,1.0\n", "has no prediction of"),
        ("name,prediction\nx,1.0\n", "none of its rows"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(numbers, tmp_path, text, words):
    (tmp_path / "r.csv").write_text(text)
    rival = ["--rival", tmp_path / "r.csv"]
    refused(run("evaluate", numbers, "--target", "value", *GIVEN[:-1], *rival), words)


def test_attributes_that_counts_do_not_use_are_named():
    attributes = {node: [float(node)] for node in range(3)}
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, "a", "label")
    nx.set_node_attributes(graph, attributes, "place")
    graphs = tl.as_graph_collection([graph, graph], node_attributes=["place"])
    with pytest.warns(IgnoredDataWarning, match="attributes are not used"):
        GraphCounts(depth=1).fit(graphs)
