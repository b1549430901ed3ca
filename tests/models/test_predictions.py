"""Predictions of fitted models, each graph refined once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treelens as tl
from treelens.models.predictions import Predictions, Threshold, predicted_codes
from treelens.patterns.vocabulary import PatternVocabulary

GRAPHS, Y = tl.make_synthetic(n_per_substructure=4, random_state=0)
NEW, NEW_Y = tl.make_synthetic(n_per_substructure=3, random_state=1)
SVC = {"depth": 2, "gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0}
MAKERS: dict[str, Callable[[], Any]] = {
    "svm": lambda: tl.GraphSVC("wwl", weight_radius=[0.0, 1.0], **SVC),
    "gaussian process": lambda: tl.GraphClassifier(depth=2, trees=("labels",), max_steps=5),
}  # fmt: skip


def said(decisions: list[list[float]], **more: Any) -> Predictions:
    values = np.array(decisions)
    return Predictions(values, np.zeros(len(values)), None, values, **more)  # type: ignore[arg-type]


def test_one_column_is_decided_by_its_sign_and_of_several_the_largest_wins():
    assert predicted_codes(np.array([[-0.5], [0.0], [1e-300]])).tolist() == [0, 0, 1]
    assert predicted_codes(np.array([[0.1, 0.3, 0.2], [-1.0, -3.0, -2.0]])).tolist() == [1, 0]


def test_a_threshold_names_the_rare_class_sooner_than_the_sign_would():
    probabilities = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]])
    decisions = [[-2.0], [-0.8], [1.4]]
    plain = said(decisions, probabilities=probabilities)
    lower = said(decisions, probabilities=probabilities, threshold=Threshold(0.3, 1))
    assert plain.predicted_codes.tolist() == [0, 0, 1]
    assert Threshold(0.8, 0).name(probabilities).tolist() == [0, 1, 1]
    assert lower.predicted_codes.tolist() == [0, 1, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["decisions", "probabilities", "variance"])
def test_what_is_no_number_is_an_error_that_names_the_graph(bad, where):
    parts: dict[str, Any] = {"probabilities": np.full((2, 2), 0.5), "variance": np.ones(2)}
    decisions = [[1.0], [bad if where == "decisions" else 2.0]]
    if where == "probabilities":
        parts[where][1, 0] = bad
    elif where == "variance":
        parts[where][1] = bad
    with pytest.raises(ValueError, match="graph 1 is not a finite number"):
        said(decisions, **parts).checked()


@pytest.fixture
def refined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many graphs every refinement so far was about."""
    counted: list[int] = []
    real = PatternVocabulary._refined

    def counting(known: Any, graphs: Any, *rest: Any) -> Any:
        counted.append(len(graphs))
        return real(known, graphs, *rest)

    monkeypatch.setattr(PatternVocabulary, "_refined", counting)
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
