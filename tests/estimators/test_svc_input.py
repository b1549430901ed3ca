"""GraphSVC and input that is bad or odd: what it refuses, warns of and survives."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedShuffleSplit

import treelens as tl
from strategies import random_collection
from treelens import GraphSVC
from treelens.graphs.errors import GraphDataError, NotGraphsError
from treelens.svm import search as selection

ONE_SPLIT = StratifiedShuffleSplit(1, test_size=0.5, random_state=0)


def small(**changes: Any) -> GraphSVC:
    """A model with one candidate, quick to fit."""
    one = {"kernel": "wwl", "depth": 2, "weight_radius": 0.0, "gamma": 1.0, "C": 10.0}
    return GraphSVC(**{**one, "cv": ONE_SPLIT, "random_state": 0, **changes})


@pytest.fixture(scope="module")
def data():
    return tl.make_synthetic(8, random_state=0)


BAD_PARAMETERS = [
    ("kernel", "expo"), ("kernel", ["tanimoto", "expo"]), ("kernel", []),
    ("depth", -1), ("depth", 1.5), ("depth", "deep"), ("depth", []), ("depth", [1, -1]),
    ("depth", [1, 2.5]),
    ("weight_radius", -1.0), ("weight_radius", [0.0, -0.1]),
    ("weight_radius", [np.nan]), ("weight_radius", [np.inf]),
    ("gamma", 0.0), ("gamma", [1.0, 0.0]), ("gamma", -1.0),
    ("C", 0.0), ("C", -1.0), ("C", [0.0]), ("C", [1.0, "two"]), ("C", np.nan),
    ("include_depth_zero", "no"), ("edge_labels", "maybe"), ("learner", "mine"),
    ("cv", 1), ("cv", "five"), ("scoring", "f1"), ("class_weight", "even"), ("n_jobs", 1.5),
    ("random_state", "seed"), ("progress", "yes"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS, ids=str)
def test_bad_parameters_are_named(name, value, data):
    with pytest.raises(ValueError, match=name):
        small(**{name: value}).fit(*data)


def test_no_depth_is_left(data):
    with pytest.raises(ValueError, match="depth"):
        small(depth=0, include_depth_zero=False).fit(*data)


def test_repeated_values_count_once(data):
    model = small(depth=[1, 1], C=[1, 1.0], weight_radius=(0, 0.0)).fit(*data)
    assert model.best_params_["n_candidates"] == 1


NOT_CLASSES = [
    (lambda y: None, "needs classes"),
    (lambda y: y[:-1], "64 graphs"),
    (lambda y: np.zeros(64), r"one class only \(0.0\)"),
    (lambda y: np.linspace(0, 1, 64), "continuous"),
    (lambda y: [np.nan, *y[1:].astype(float)], "for 1 graphs, the first at position 0"),
]


@pytest.mark.parametrize(("spoil", "message"), NOT_CLASSES)
def test_what_is_no_class_is_refused(spoil, message, data):
    graphs, y = data
    with pytest.raises(ValueError, match=message):
        small().fit(graphs, spoil(y))


def test_what_is_no_graph_is_refused(data):
    with pytest.raises(NotGraphsError):
        small().fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(GraphDataError, match="0 graphs"):
        small().fit([], [])
    with pytest.raises(GraphDataError, match="0 graphs"):
        small().fit(*data).predict([])


def test_a_rare_class_means_fewer_folds_and_a_warning(data):
    graphs, _ = data
    y = np.array(["rare"] * 3 + ["common"] * 61)
    with pytest.warns(UserWarning, match="'rare' has 3 members, fewer than cv=5 folds: .* 3 folds"):
        model = small(cv=5).fit(graphs, y)
    assert model.best_params_["n_splits"] == 3 * selection.repetitions_for(64)


def test_two_graphs(data):
    graphs, _ = data
    with pytest.raises(ValueError, match="has one member"):
        small(cv=5).fit(graphs[:2], [0, 1])
    with pytest.raises(ValueError, match="one class only"):
        small().fit(graphs[:2], [1, 1])
    with pytest.raises(ValueError, match="one class only"):
        small().fit(graphs[:1], [1])


def test_four_graphs_are_enough(data):
    graphs, _ = data
    model = small(weight_radius=[0.0, 1.0], cv=2).fit(graphs[[0, 1, -2, -1]], [0, 0, 1, 1])
    assert np.isfinite(model.decision_function(graphs)).all()


def test_a_class_absent_from_a_split_is_survived():
    """An unshuffled splitter leaves each class out of training once: nothing right, nothing NaN."""
    graphs, y = random_collection(np.random.default_rng(0), 24), np.repeat([0, 1, 2], 8)
    model = small(depth=1, cv=KFold(3)).fit(graphs, y)
    assert model.best_params_["score"] == 0.0
    assert np.isfinite(model.predict_proba(graphs)).all()


STRANGERS = [([], {0: f"only in {k}"}) for k in range(12)]


@pytest.mark.parametrize("weight_radius", [0.0, 1.0, [0.0, 1.0]])
def test_graphs_without_shared_patterns_warn_and_weights_stay_uniform(weight_radius):
    with pytest.warns(UserWarning, match=r"[Nn]o two (training )?graphs share"):
        model = small(weight_radius=weight_radius).fit(STRANGERS, [0, 1] * 6)
    np.testing.assert_array_equal(model.weights_, 1.0)
    np.testing.assert_array_equal(model.predict(STRANGERS), [0, 1] * 6)


def test_shared_labels_alone_do_not_count_where_depth_zero_does_not():
    stars = [([(0, k) for k in range(1, n)], dict.fromkeys(range(n), "C")) for n in range(3, 11)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(depth=1).fit(stars, [0, 1] * 4)
    paths = [([], {0: "C"})] * 4 + [([(0, 1)], {0: "C", 1: "N"})] * 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(depth=1, include_depth_zero=False).fit(paths, [0, 1] * 4)


def test_graphs_all_alike_are_decided_alike():
    model = small(weight_radius=[0.0, 1.0]).fit([STRANGERS[0]] * 10, [0, 1] * 5)
    assert len(set(model.predict([STRANGERS[0]] * 3))) == 1
