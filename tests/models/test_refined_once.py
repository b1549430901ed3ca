"""Fitting, predicting, explaining and reporting refine every graph once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treelens as tl
from treelens.patterns import refinement

GRAPHS, Y = tl.make_synthetic(n_per_substructure=4, random_state=0)
NEW, NEW_Y = tl.make_synthetic(n_per_substructure=3, random_state=1)
SVC = {"depth": 2, "gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0}
MAKERS: dict[str, Callable[[], Any]] = {
    "svm": lambda: tl.GraphSVC("wwl", weight_radius=[0.0, 1.0], **SVC),
    "gaussian process": lambda: tl.GraphClassifier(depth=2, trees=("labels",), max_steps=5),
}  # fmt: skip


@pytest.fixture
def refined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many graphs every refinement so far was about."""
    counted: list[int] = []
    real = refinement.refine

    def counting(graphs: Any, *rest: Any) -> Any:
        counted.append(len(graphs))
        return real(graphs, *rest)

    monkeypatch.setattr(refinement, "refine", counting)
    return counted


@pytest.mark.parametrize("name", MAKERS)
def test_each_graph_once(name: str, refined: list[int], tmp_path: Any) -> None:
    model = MAKERS[name]().fit(GRAPHS, Y)
    assert sum(refined) == len(GRAPHS)
    for ask in (model.predict, model.predict_proba, model.decision_function,
                model.out_of_vocabulary):  # fmt: skip
        refined.clear()
        ask(NEW)
        assert sum(refined) == len(NEW), ask
    refined.clear()
    model.explain(NEW[0])
    assert refined == [1]
    refined.clear()
    model.report(tmp_path / "report.html", NEW, NEW_Y)
    # Pairs of training graphs that are shown side by side are compared by patterns of their own.
    assert [n for n in refined if n != 2] == [len(NEW)]


def test_predictions_contain_what_explanations_need() -> None:
    model = MAKERS["svm"]().fit(GRAPHS, Y).model_
    said = model.decide(NEW)
    assert said.decisions.shape == (len(NEW), 1)
    np.testing.assert_array_equal(said.decisions, said.margins)
    assert said.graphs.histograms.n_graphs == len(NEW)
    np.testing.assert_allclose(said.probabilities.sum(axis=1), 1.0)
