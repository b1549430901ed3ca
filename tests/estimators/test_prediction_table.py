"""The table of predictions against the single methods."""

import warnings

import numpy as np
import pytest

import treelens as tl
from treelens.estimators.prediction_table import DOMAIN_COLUMNS
from treelens.evaluation.metrics import NINETY
from treelens.graphs.synthetic import make_random_graphs

GRAPHS = make_random_graphs(18, n_nodes=(4, 8), n_labels=3, random_state=0)
OTHERS = make_random_graphs(5, n_nodes=(4, 8), n_labels=4, random_state=1)
VALUES = np.array([graph.node_labels.count(0) + 0.1 * graph.n_nodes for graph in GRAPHS])
FEW = {"depth": 1, "max_steps": 5}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_numbers() -> None:
    model = tl.GraphRegressor(**FEW).fit(GRAPHS, VALUES)
    table = model.predict_table(OTHERS)
    mean, std = model.predict(OTHERS, return_std=True)
    np.testing.assert_allclose(table["prediction"], mean)
    np.testing.assert_allclose(table["std"], std)
    np.testing.assert_allclose(table["upper_90"] - mean, NINETY * std)
    np.testing.assert_allclose(mean - table["lower_90"], NINETY * std)
    assert list(table)[4:] == list(DOMAIN_COLUMNS)
    np.testing.assert_array_equal(table["out_of_vocabulary"], model.out_of_vocabulary(OTHERS))
    assert model.domain(OTHERS).equals(table[list(DOMAIN_COLUMNS)])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes: int) -> None:
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


def test_a_training_graph_is_as_similar_as_can_be_and_names_are_kept() -> None:
    model = tl.GraphRegressor(**FEW).fit(GRAPHS, VALUES)
    table = model.predict_table(GRAPHS)
    np.testing.assert_allclose(table["similarity"], 1.0)
    named = OTHERS._replaced(names=list("abcde"))
    assert model.predict_table(named).index.tolist() == list("abcde")
    assert model.predict_table(OTHERS).index.tolist() == [0, 1, 2, 3, 4]


def test_the_domain_is_made_once_and_anew_after_another_fit() -> None:
    model = tl.GraphRegressor(**FEW).fit(GRAPHS, VALUES)
    first = model.domain_
    assert model.domain_ is first
    model.fit(GRAPHS[:12], VALUES[:12])
    assert model.domain_ is not first


def test_a_million_threads_are_as_many_as_there_can_be() -> None:
    model = tl.GraphRegressor(**FEW, n_jobs=10**6).fit(GRAPHS, VALUES)
    one = tl.GraphRegressor(**FEW, n_jobs=1).fit(GRAPHS, VALUES)
    np.testing.assert_allclose(model.predict(OTHERS), one.predict(OTHERS))
