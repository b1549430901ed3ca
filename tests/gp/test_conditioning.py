"""Joined counts, and weights that new patterns inherit."""

import numpy as np
import pytest

import treelens as tl
from strategies import random_collection
from treelens.gp.conditioning import joined_histograms


@pytest.fixture(scope="module")
def model_and_graphs():
    rng = np.random.default_rng(1)
    graphs = random_collection(rng, 60)
    values = np.array([len(g.node_labels) for g in graphs]) + rng.normal(size=60)
    return tl.GraphRegressor(depth=2).fit(graphs[:30], values[:30]).model_, graphs


def test_new_patterns_inherit_the_weights_that_predictions_give_them(model_and_graphs):
    model, graphs = model_and_graphs
    before = model.weighted.refine(graphs[30:]).features.diagonal  # unseen patterns included
    extended, colors = model.weighted.extended(graphs[30:])
    extended.validate()
    after = extended.weighed(extended.forest.count(colors)).diagonal
    np.testing.assert_allclose(after, before, rtol=1e-10)
    again = extended.refine(graphs[:30]).features.diagonal
    np.testing.assert_allclose(again, model.basis_graphs.diagonal, rtol=1e-10)


def test_joined_counts_are_those_of_all_graphs(model_and_graphs):
    model, graphs = model_and_graphs
    extended, colors = model.weighted.extended(graphs[30:])
    joined = joined_histograms(model.basis, extended.forest.count(colors))
    joined.validate()
    counted = extended.forest.count(extended.forest.transform(graphs))
    for name in ("offsets", "graphs", "counts", "level_offsets", "n_nodes", "unseen"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(counted, name))
