"""The table of predictions against the single methods, and what a notebook shows."""

import warnings

import numpy as np
import pytest

import treelens as tl
from strategies import make_random_graphs
from treelens.estimators.named_models import DOMAIN_COLUMNS
from treelens.evaluation.metrics import NINETY

GRAPHS = make_random_graphs(18, n_nodes=(4, 8), n_labels=3, random_state=0)
OTHERS = make_random_graphs(5, n_nodes=(4, 8), n_labels=4, random_state=1)
VALUES = np.array([graph.node_labels.count(0) + 0.1 * graph.n_nodes for graph in GRAPHS])
FEW = {"depth": 1, "max_steps": 5}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_numbers():
    model = tl.GraphRegressor(**FEW, n_jobs=10**6).fit(GRAPHS, VALUES)  # all that there can be
    table = model.predict_table(OTHERS)
    mean, std = model.predict(OTHERS, return_std=True)
    np.testing.assert_allclose(table["prediction"], mean)
    np.testing.assert_allclose(table["std"], std)
    np.testing.assert_allclose(table["upper_90"] - mean, NINETY * std)
    np.testing.assert_allclose(mean - table["lower_90"], NINETY * std)
    assert list(table)[4:] == list(DOMAIN_COLUMNS)
    np.testing.assert_array_equal(table["out_of_vocabulary"], model.out_of_vocabulary(OTHERS))
    assert model.domain(OTHERS).equals(table[list(DOMAIN_COLUMNS)])
    np.testing.assert_allclose(model.predict_table(GRAPHS)["similarity"], 1.0)
    named = OTHERS.with_names(list("abcde"))
    assert model.predict_table(named).index.tolist() == list("abcde")
    first = model.domain_
    assert model.domain_ is first
    model.fit(GRAPHS[:12], VALUES[:12])
    assert model.domain_ is not first


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes):
    y = np.array(["x", "y", "z"])[np.argsort(np.argsort(VALUES)) % n_classes]
    model = tl.GraphClassifier(**FEW).fit(GRAPHS, y)
    table, chances = model.predict_table(OTHERS), model.predict_proba(OTHERS)
    assert table["class"].tolist() == model.predict(OTHERS).tolist()
    codes = np.searchsorted(model.classes_, table["class"])
    np.testing.assert_allclose(table["probability"], chances[np.arange(5), codes])
    for column, name in enumerate(model.classes_):
        np.testing.assert_allclose(table[f"probability {name}"], chances[:, column])
    decisions = model.decision_function(OTHERS)
    expected = decisions if n_classes == 2 else decisions[np.arange(5), codes]
    np.testing.assert_allclose(table["decision"], expected)


def test_a_notebook_shows_scores_and_escapes_everything():
    assert "sk-" in tl.GraphRegressor()._repr_html_()  # scikit-learn's own, before the fit
    shown = tl.GraphRegressor(**FEW).fit(GRAPHS, VALUES)._repr_html_()
    for words in ("GraphRegressor", "18 graphs", "RMSE", "heaviest patterns"):
        assert words in shown
    evil = "<script>alert(1)</script>"
    labels = [evil if i % 2 else "C" for i in range(4)]
    graphs = [tl.Graph(tuple(labels[: 2 + i % 3]), ((0, 1),)) for i in range(24)]
    y = np.where(np.arange(24) % 3 == 0, evil, "b<b>")
    model = tl.GraphClassifier(depth=1, weights="uniform").fit(graphs, y)
    shown = model._repr_html_()
    assert shown == model._repr_mimebundle_()["text/html"]
    assert "ROC AUC" in shown
    assert "<script>" not in shown
    assert "b<b>" not in shown
    assert "&lt;script&gt;" in shown
    table = model.predict_table(graphs)._repr_html_()
    assert "<script>" not in table
    assert "in_domain" in table
