"""A fit does not depend on the order in which the training graphs come."""

import numpy as np
import pytest

import treelens as tl


@pytest.fixture(scope="module")
def chains():
    """Some 500 graphs, of which the parts that are compared are drawn by chance."""
    rng = np.random.default_rng(0)
    graphs = tl.as_graph_collection(
        [
            (
                [(i, i + 1) for i in range(n)],
                dict(enumerate(rng.choice(["C", "N", "O"], size=n + 1, p=[0.6, 0.2, 0.2]))),
            )
            for n in rng.integers(2, 9, size=500)
        ]
    )
    sizes = graphs.sizes
    return graphs, sizes + rng.normal(size=500), rng.permutation(450)


@pytest.mark.parametrize("weights", ["uniform", "auto"])
def test_shuffled_rows_predict_the_same_numbers(chains, weights):
    graphs, y, order = chains
    settings = {"weights": weights, "learning_size": 300}  # a sample is drawn
    models = [
        tl.GraphRegressor(**settings).fit(graphs[rows], y[rows]) for rows in (np.arange(450), order)
    ]
    assert models[0].best_weights_ == models[1].best_weights_
    first, second = (model.predict(graphs[450:]) for model in models)
    np.testing.assert_allclose(first, second, atol=0.003 * y.std())


def test_shuffled_rows_predict_the_same_classes_through_landmarks(chains):
    graphs, y, order = chains
    classes = y > np.quantile(y, 0.85)
    settings = {"weights": "uniform", "exact_size": 100, "n_landmarks": 60}
    models = [
        tl.GraphClassifier(**settings).fit(graphs[rows], classes[rows])
        for rows in (np.arange(450), order)
    ]
    first, second = (model.predict_proba(graphs[450:])[:, 1] for model in models)
    np.testing.assert_allclose(first, second, atol=0.003)
