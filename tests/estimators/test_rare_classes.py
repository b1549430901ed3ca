"""Rare classes: what "auto" scores and weighs, thresholds, and that models are of use for them."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score as balanced_accuracy
from sklearn.metrics import matthews_corrcoef, recall_score, roc_auc_score

import treelens as tl
from treelens import Graph, GraphSVC
from treelens.models.predictions import choose_threshold

SETTINGS = {
    "kernel": "wwl",
    "depth": 1,
    "weight_radius": 0,
    "gamma": [1.0, 3.0],
    "C": [1.0, 10.0],
    "cv": 3,
    "random_state": 0,
}


def rare_data(counts, seed=0):
    """Random trees, whose labels are drawn with shares of their class.

    The classes overlap: for none of the rare graphs is the rare class the likelier one.
    """
    shares = np.array([[0.55, 0.25, 0.15, 0.05], [0.45, 0.15, 0.25, 0.15], [0.35, 0.35, 0.1, 0.2]])
    codes, graphs = np.repeat(np.arange(len(counts)), counts), []
    rng = np.random.default_rng(seed)
    for code in codes.tolist():
        n = int(rng.integers(8, 14))
        labels = rng.choice(list("CNOS"), size=n, p=shares[code])
        edges = tuple((int(rng.integers(i)), i) for i in range(1, n))
        graphs.append(Graph(tuple(labels.tolist()), edges))
    return tl.as_graph_collection(graphs), codes


@pytest.fixture(scope="module")
def rare():
    return rare_data((300, 30)), rare_data((300, 30), seed=1)


def test_a_rare_class_is_ranked_and_named(rare):
    graphs, y = rare[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it predicts both classes
        fitted = GraphSVC(**SETTINGS).fit(*rare[0])
    assert roc_auc_score(y, fitted.decision_function(graphs)) > 0.75
    assert balanced_accuracy(y, fitted.predict(graphs)) > 0.7
    assert fitted.best_params_["scoring"] == "roc_auc"
    assert fitted.best_params_["class_weight"] == "balanced"
    assert fitted.best_params_["rare_class"] == {"class": 1, "share": pytest.approx(1 / 11)}


def test_accuracy_alone_predicts_the_frequent_class_and_warns(rare):
    """What the default was: 91 % right by never naming the rare class."""
    with pytest.warns(UserWarning, match="predicts the class 0 for every held-out graph"):
        model = GraphSVC(**{**SETTINGS, "C": 1.0}, scoring="accuracy").fit(*rare[0])
    assert set(model.predict(rare[1][0])) == {0}
    with pytest.warns(UserWarning, match="class_weight='balanced'"):
        GraphSVC(**{**SETTINGS, "C": 1.0}, class_weight=None).fit(*rare[0])


@pytest.mark.filterwarnings("ignore:The model predicts the class 0")
def test_a_rare_class_is_ranked_and_named_out_of_the_box(rare):
    graphs, y = rare[1]
    process, plain = (
        tl.GraphClassifier(depth=1, threshold=how).fit(*rare[0]) for how in ("auto", 0.5)
    )
    assert roc_auc_score(y, process.decision_function(graphs)) > 0.7
    np.testing.assert_array_equal(plain.predict_proba(graphs), process.predict_proba(graphs))
    named, hardly = process.predict(graphs), plain.predict(graphs)
    assert recall_score(y, hardly) < 0.1  # what naming the likelier class gives
    assert matthews_corrcoef(y, named) > max(0.2, matthews_corrcoef(y, hardly))
    assert recall_score(y, named) > 0.3
    # The threshold is that of the left-out predictions.
    expected = choose_threshold("auto", process.loo_.probabilities, process.train_codes_)
    assert process.threshold_ == expected
    named = expected.name(process.loo_.probabilities)
    assert process.loo_.predictions.tolist() == process.classes_[named].tolist()
    assert process.loo_.accuracy == np.mean(named == process.train_codes_)


@pytest.mark.parametrize("first", [False, True])
def test_recall_as_asked_for_whichever_class_is_rare(first, rare):
    graphs, y = rare[0]
    names = np.where(y == 1, "a" if first else "z", "m")
    model = tl.GraphClassifier(depth=1, weights="uniform", threshold="recall=0.9")
    model.fit(graphs, names)
    found = recall_score(names, model.loo_.predictions, pos_label="a" if first else "z")
    assert 0.9 <= found <= 0.95
    assert model.classes_[model.threshold_.code] == ("a" if first else "z")


def test_a_model_that_predicts_one_class_warns(rare):
    with pytest.warns(UserWarning, match="predicts the class 0 for every held-out graph"):
        model = tl.GraphClassifier(depth=0, weights="uniform", threshold=0.9).fit(*rare[0])
    assert "does not distinguish classes" in model._html_repr()
    alarms = [item["text"] for item in model.summary()["checks"] if item["level"] == "alarm"]
    assert any("put into the same class" in text for text in alarms)
