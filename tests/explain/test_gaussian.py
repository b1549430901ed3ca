"""A Gaussian process as a kernel expansion: its sums are its predictions."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.explain.gaussian import GaussianDecision
from treelens.graphs.synthetic import make_random_graphs

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
GRAPHS = make_random_graphs(14, n_nodes=(4, 8), n_labels=3, random_state=3)
OTHERS = make_random_graphs(4, n_nodes=(4, 8), n_labels=4, random_state=4)
VALUES = np.array([graph.node_labels.count(0) + 0.1 * graph.n_nodes for graph in GRAPHS])


@pytest.fixture(scope="module")
def regressor():
    return tl.GraphRegressor(depth=1, max_steps=5).fit(GRAPHS, VALUES)


def test_intercept_and_coefficients_give_the_prediction(regressor) -> None:
    decision, model = GaussianDecision(regressor.model_), regressor.model_
    rows = model.kernel_rows(model.look_at(OTHERS).features)
    expected = decision.intercepts + rows @ decision.coefficients.T
    np.testing.assert_allclose(expected[:, 0], regressor.predict(OTHERS), rtol=1e-10)


def test_without_covariates_nothing_stands_beside(regressor) -> None:
    decision = GaussianDecision(regressor.model_)
    assert decision.beside(decision.find(OTHERS[:1])).tolist() == [0.0]


def test_facts_of_training_graphs_are_values_or_classes(regressor) -> None:
    picked = np.array([3, 0])
    facts = GaussianDecision(regressor.model_).facts_of_training(picked)
    np.testing.assert_allclose(facts["value"], VALUES[picked])
    y = np.where(np.median(VALUES) < VALUES, "many", "few")
    classifier = tl.GraphClassifier(depth=1, max_steps=5).fit(GRAPHS, y)
    facts = GaussianDecision(classifier.model_).facts_of_training(picked)
    assert facts["class_label"].tolist() == y[picked].tolist()


def test_covariates_stand_beside_with_what_they_add(rng) -> None:
    warmth = rng.normal(size=14)
    model = tl.GraphRegressor(depth=1, max_steps=5)
    model.fit(GRAPHS, VALUES + 3 * warmth, covariates={"warmth": warmth})
    decision = GaussianDecision(model.model_)
    seen = model.model_.look_at(OTHERS.with_data({"warmth": rng.normal(size=4)}))
    added = model.model_.from_covariates(seen.features)
    assert np.abs(added).max() > 0.1
    for index in range(4):
        beside = decision.beside(decision.found_in(seen, index))
        np.testing.assert_allclose(beside, added[index], rtol=1e-9)
