"""Fragments of a model that is fitted again on parts of its graphs."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from explain.test_fragment_table import MOLECULES, TAILS
from treelens.explain.fragment_refits import effects_elsewhere
from treelens.explain.fragments import find_fragments

Y = np.repeat(["toxic", "safe", "safe"], len(TAILS))


@pytest.fixture(scope="module")
def model():
    return tl.GraphClassifier(depth=1, random_state=0).fit(MOLECULES, Y)


def test_errors_over_refits(model):
    found = model.fragments(MOLECULES, Y, n_fragments=2, refits=3)
    assert (found["refit_error"] >= 0).all()
    assert found["refit_error"].iloc[0] < 1.0


def test_on_the_same_graphs_the_same_model_has_the_same_effects(model):
    found = find_fragments(model._decision, model._new_graphs(MOLECULES), n_fragments=4)
    table = model.fragments(MOLECULES, Y, n_fragments=4)
    everyone = np.arange(len(MOLECULES))
    effects = effects_elsewhere(model, found.seen, found.fragments, everyone)
    np.testing.assert_allclose(effects, table["effect"], atol=1e-9)


def test_a_fragment_that_no_graph_holds_has_no_effect(model):
    found = find_fragments(model._decision, model._new_graphs(MOLECULES), n_fragments=1)
    holders = np.unique(found.seen.graph_of_node[found.fragments[0].roots])
    others = np.setdiff1d(np.arange(len(MOLECULES)), holders)
    (effect,) = effects_elsewhere(model, found.seen, found.fragments, others)
    assert np.isnan(effect)


def test_what_refits_need(model):
    with pytest.raises(ValueError, match="refits needs y"):
        model.fragments(MOLECULES, refits=2)
    for refits in (1, -1):
        with pytest.raises(ValueError, match="refits must be 0, or at least 2"):
            model.fragments(MOLECULES, Y, refits=refits)
    with pytest.raises(ValueError, match="y has 1 entries for 30 graphs"):
        model.fragments(MOLECULES, Y[:1])
    with pytest.raises(ValueError, match="'odd', which is none of the classes"):
        model.fragments(MOLECULES, np.where(np.arange(30) == 7, "odd", Y))
