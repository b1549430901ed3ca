"""Decisions of classifiers as kernel expansions, those of features graph by graph."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import treelens as tl
from treelens.explain.classifier import ClassifierExplainer, decision_maker
from treelens.graphs.synthetic import make_random_graphs

GRAPHS = make_random_graphs(20, n_nodes=(4, 8), n_labels=3, random_state=0)
Y = np.arange(20) % 2
SETTINGS = {"gamma": 1.0, "C": 1.0, "cv": 2, "random_state": 0, "progress": False}


@pytest.mark.parametrize("kernel", ["wwl-linear", "laplacian"])
def test_patterns_add_up_to_the_decision(kernel) -> None:
    model = tl.GraphSVC(kernel, 1, 0.0, **SETTINGS).fit(GRAPHS, Y)
    said = model.model_.decide(GRAPHS)
    explainer = ClassifierExplainer(model.model_)
    for index in (0, 7):
        found = explainer.explain(GRAPHS, said, index)
        total = found.base + found.pattern_rows.contributions.sum()
        assert total == pytest.approx(said.decisions[index, 0], abs=1e-6)
        assert found.decision == pytest.approx(said.decisions[index, 0], abs=1e-6)
        assert len(found.neighbors) > 0


def test_what_nobody_knows_how_to_explain() -> None:
    with pytest.raises(TypeError, match="no explanation for SimpleNamespace"):
        decision_maker(SimpleNamespace(), None)
