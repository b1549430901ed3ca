"""Predictions, each graph refined once; thresholds and calibration; checks of targets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as theirs
from sklearn.linear_model import LogisticRegression

import treelens as tl
from treelens.models.predictions import (
    Predictions,
    Threshold,
    calibrated,
    choose_threshold,
    class_weights,
    fit_slope,
    parse_threshold,
    predicted_codes,
)
from treelens.patterns.vocabulary import PatternVocabulary

GRAPHS, Y = tl.make_synthetic(n_per_substructure=4, random_state=0)
NEW, NEW_Y = tl.make_synthetic(n_per_substructure=3, random_state=1)
SVC = {"depth": 2, "gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0}
MAKERS: dict[str, Callable[[], Any]] = {
    "svm": lambda: tl.GraphSVC("wwl", weight_radius=[0.0, 1.0], **SVC),
    "gaussian process": lambda: tl.GraphClassifier(
        depth=2, views=[tl.WLPatterns(trees=("labels",))], max_steps=5
    ),
}


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
    for ask in (
        model.predict,
        model.predict_proba,
        model.decision_function,
        model.out_of_vocabulary,
    ):
        refined.clear()
        ask(NEW)
        assert sum(refined) == len(NEW), ask
    refined.clear()
    model.explain(NEW[0])
    assert refined == [1]
    refined.clear()
    model.report(tmp_path / "report.html", NEW, NEW_Y)
    # Pairs of training graphs that are shown side by side are compared by patterns of their own,
    # and fragments are those of the training graphs, which are refined once.
    assert sorted(n for n in refined if n != 2) == sorted([len(NEW), len(GRAPHS)])


def test_slope_is_that_of_a_logistic_regression_without_intercept():
    rng = np.random.default_rng(0)
    decisions = rng.normal(size=(400, 1))
    codes = (rng.uniform(size=400) < 1 / (1 + np.exp(-3 * decisions[:, 0]))).astype(int)
    theirs = LogisticRegression(C=1e10, fit_intercept=False).fit(decisions, codes)
    slope = fit_slope(decisions, codes, np.ones(400))
    # the classes are a little less than certain here, so the slope is a little smaller
    assert 0.9 * theirs.coef_[0, 0] < slope < theirs.coef_[0, 0]
    np.testing.assert_allclose(
        calibrated(decisions, slope), theirs.predict_proba(decisions), atol=0.03
    )


def test_the_most_probable_class_has_the_largest_decision():
    decisions = np.random.default_rng(1).normal(size=(50, 4))
    probabilities = calibrated(decisions, 2.0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (probabilities.argmax(axis=1) == decisions.argmax(axis=1)).all()
    # nothing overflows
    assert calibrated(np.array([[1e6], [-1e6]]), 1e3).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(2)
    codes = (rng.random(400) < 0.08).astype(int)
    chance = np.clip(0.08 + 0.12 * codes + 0.08 * rng.normal(size=400), 0.001, 0.6).round(3)
    return np.column_stack([1 - chance, chance]), codes


@pytest.fixture(scope="module")
def tried(rare):
    """Threshold, MCC, recall, precision, missed and false alarms of all thresholds."""
    chances, codes = rare
    rows = []
    for value in np.unique(chances[:, 1]):
        named = (chances[:, 1] >= value).astype(int)
        scores = (theirs.matthews_corrcoef, theirs.recall_score, theirs.precision_score)
        missed, alarms = ((named == 0) & (codes == 1)).sum(), ((named == 1) & (codes == 0)).sum()
        rows.append((value, *(score(codes, named) for score in scores), missed, alarms))
    return np.array(rows).T


@pytest.mark.parametrize("asked", ["auto", "recall=0.9", "precision=0.5", "cost=10"])
def test_thresholds_are_the_best_of_all(asked, rare, tried):
    value, mcc, recall, precision, missed, alarms = tried
    cost = 10 * missed + alarms
    best = {
        "auto": value[mcc >= 0.99 * mcc.max()].min(),
        "recall=0.9": value[recall >= 0.9].max(),
        "precision=0.5": value[precision >= 0.5].min(),
        "cost=10": value[cost == cost.min()].max(),
    }[asked]
    assert choose_threshold(asked, *rare) == Threshold(pytest.approx(best), 1)
    chances, codes = rare
    other = choose_threshold(asked, chances[:, ::-1], 1 - codes)  # the rare class first
    assert other == Threshold(pytest.approx(best), 0)


def test_auto_leaves_common_classes_alone(rare):
    chances, codes = rare
    assert choose_threshold("auto", chances, np.arange(400) % 2) is None
    assert choose_threshold(0.5, chances, codes) is None
    assert choose_threshold(0.2, chances, codes) == Threshold(0.2, 1)
    assert choose_threshold("auto", np.full((400, 2), 0.5), codes) is None  # nothing to tell apart
    assert choose_threshold("auto", np.full((6, 3), 1 / 3), np.arange(6) % 3) is None


@pytest.mark.parametrize(
    "asked",
    [
        "best",
        "recall",
        "recall=",
        "recall=0",
        "recall=1.5",
        "cost=0",
        "cost=inf",
        "x=0.5",
        1.5,
        0,
        None,
        "nan",
    ],
)
def test_what_is_no_threshold_is_refused(asked):
    with pytest.raises(ValueError, match="'auto', a number between 0 and 1"):
        parse_threshold(asked)


def test_several_classes_have_no_threshold():
    with pytest.raises(ValueError, match="is for two classes, and there are 3"):
        choose_threshold("recall=0.9", np.full((6, 3), 1 / 3), np.arange(6) % 3)


def test_class_weights():
    classes, codes = np.array(["no", "yes"]), np.array([0, 0, 0, 1])
    np.testing.assert_array_equal(class_weights(None, classes, codes), 1.0)
    np.testing.assert_allclose(
        class_weights("balanced", classes, codes), [2 / 3, 2 / 3, 2 / 3, 2.0]
    )
    np.testing.assert_array_equal(class_weights({"yes": 3}, classes, codes), [1, 1, 1, 3])
    with pytest.raises(ValueError, match=r"not in y: .*maybe"):
        class_weights({"maybe": 1}, classes, codes)
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="finite numbers above 0"):
            class_weights({"yes": bad}, classes, codes)
