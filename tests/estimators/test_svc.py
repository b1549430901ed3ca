"""GraphSVC: fitting, predictions, the chosen parameters; input that is bad or odd."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.svm import SVC

import treelens as tl
from strategies import random_collection
from treelens import GraphSVC
from treelens.errors import GraphDataError
from treelens.estimators import svc
from treelens.svm.search import radii_for
from treelens.svm.solver import fit_calibration

GRID = {
    "kernel": ["wwl", "tanimoto"],
    "depth": [1, 2],
    "weight_radius": [0.0, 1.0],
    "gamma": [1.0, 10.0],
    "C": [1.0, 100.0],
}
ONE_SPLIT = StratifiedShuffleSplit(1, test_size=0.5, random_state=0)
FIXED = {
    "kernel": "wwl",
    "depth": 2,
    "weight_radius": 0.0,
    "gamma": 1.0,
    "C": 10.0,
    "cv": ONE_SPLIT,
}


def small(**changes: Any) -> GraphSVC:
    """A model with one candidate, quick to fit."""
    return GraphSVC(**{**FIXED, "random_state": 0, **changes})


@pytest.fixture(scope="module")
def data():
    return tl.make_synthetic(8, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    """One that chose among a few candidates, learned ones included."""
    return GraphSVC(**GRID, cv=StratifiedKFold(4), random_state=0).fit(*data)


@pytest.fixture(scope="module")
def learned(data):
    return small(weight_radius=2.0).fit(*data)


@pytest.fixture(scope="module")
def three_classes():
    """Graphs of three kinds of atoms mostly; the classes are words."""
    rng = np.random.default_rng(0)
    kinds = ["CCCNO", "NNNCO", "OOOCN"]
    parts = [random_collection(rng, 12, labels=kind, max_nodes=20) for kind in kinds]
    graphs = [graph for part in parts for graph in part]
    return graphs, np.repeat(["carbon", "nitrogen", "oxygen"], 12)


def test_learns_the_synthetic_classes(model, data):
    assert model.score(*data) == 1.0
    new, y = tl.make_synthetic(5, random_state=1)
    assert model.score(new, y) > 0.9
    np.testing.assert_array_equal(model.classes_, [-1, 1])
    decisions, probabilities = model.decision_function(new), model.predict_proba(new)
    np.testing.assert_array_equal(model.predict(new), np.where(decisions > 0, 1, -1))
    assert (np.diff(probabilities[np.argsort(decisions), 1]) >= 0).all()


def test_explanations_of_several_classes_add_up_to_mean_margins(three_classes):
    graphs, y = three_classes
    model = small(depth=1, weight_radius=1.0).fit(graphs, y)
    margins = model.mean_margins(graphs)
    assert margins.shape == model.predict_proba(graphs).shape == (36, 3)
    np.testing.assert_allclose(margins.sum(axis=1), 0.0, atol=1e-9)
    predicted = model.predict(graphs)
    guessed = model.decision_function(graphs).argmax(axis=1)
    np.testing.assert_array_equal(predicted, model.classes_[guessed])
    assert np.mean(predicted == y) > 0.8
    for i in range(0, 36, 5):
        assert model.explain(graphs[i]).class_label == predicted[i]
        for code, label in enumerate(model.classes_):
            explanation = model.explain(graphs[i], class_label=label)
            assert explanation.predicted_class == predicted[i]
            assert explanation.decision == pytest.approx(margins[i, code])
            total = explanation.base + explanation.pattern_contributions["contribution"].sum()
            assert total == pytest.approx(margins[i, code])
            spread = explanation.base + explanation.node_contributions.sum()
            assert spread == pytest.approx(margins[i, code])


def test_decisions_are_those_of_svc_on_the_kernel(data):
    """With uniform weights the whole estimator is WassersteinWL and SVC."""
    graphs, y = data
    train, new = np.arange(0, 64, 2), np.arange(1, 64, 2)
    model = small().fit(graphs[train], y[train])
    kernel = tl.WassersteinWL(2, gamma=1.0, include_depth_zero=True)
    svc = SVC(kernel="precomputed", C=10.0).fit(kernel.fit_transform(graphs[train]), y[train])
    expected = svc.decision_function(kernel.transform(graphs[new]))
    np.testing.assert_allclose(model.decision_function(graphs[new]), expected, atol=5e-3)


def test_auto_is_the_grid_that_the_parameters_promise(monkeypatch):
    """The numbers are those that the class documents: a choice needs all of them at hand."""
    found, fit_chosen = [], svc.model.fit_chosen

    def fit_the_first(graphs, classes, codes, candidates, **settings):
        found.extend(candidates)
        return fit_chosen(graphs, classes, codes, found[:1], **settings)

    monkeypatch.setattr(svc.model, "fit_chosen", fit_the_first)
    graphs, y = tl.make_synthetic(n_per_substructure=2, random_state=0)
    GraphSVC().fit(graphs, y)
    promised = {
        "kernel": {"wwl", "tanimoto-rbf"},
        "depth": {1, 2, 3, 4, 5, 6},
        "weight_radius": {0.0, *radii_for(len(graphs))},
        "gamma": {0.1, 1.0, 3.0, 10.0},
        "C": {0.1, 1.0, 3.0, 10.0, 100.0},
    }
    for name, values in promised.items():
        assert {getattr(c, name) for c in found} == values
    assert len(found) == np.prod([len(values) for values in promised.values()])


def test_the_final_weights_are_learned_to_the_learners_own_tolerance(data, learned):
    """The search compares rough weights; those of the model are not rough."""
    assert learned.learning_gain_ is None  # nothing to compare with
    assert learned.weights_ is learned.learner_.weights_
    graphs, y = data
    uniform = small().fit(graphs, y)
    assert uniform.learner_ is None
    np.testing.assert_array_equal(uniform.weights_, 1.0)
    learner = tl.PairwiseWeights(solver=tl.QuasiNewton(tol=1e-6, max_iter=500))
    model = small(weight_radius=3.0, learner=learner).fit(graphs, y)
    assert model.learner_.solver.tol == 1e-6
    assert model.learner_.converged_
    assert model.learner_.gaps_[-1] <= 1e-6
    kernel = tl.WassersteinWL(
        model.best_params_["depth"],
        include_depth_zero=True,
        weights=clone(learner).set_params(radius=3.0),
    ).fit(graphs, y)
    np.testing.assert_allclose(model.weights_, kernel.weights_, atol=1e-6)


def test_the_choice_is_in_the_grid_and_the_best_there(model):
    choice = model.best_params_
    for name in ("kernel", "depth", "weight_radius", "C"):
        assert choice[name] in GRID[name]
    assert choice["gamma"] in ([None] if choice["kernel"] == "tanimoto" else GRID["gamma"])
    assert choice["n_candidates"] == 2 * 2 * (2 + 1) * 2
    best = model.cv_results_.best()
    assert best._asdict() == {name: choice[name] for name in best._fields}
    assert choice["score"] == max(map(model.cv_results_.mean, model.cv_results_.finished()))


def test_a_learner_of_ones_own_is_copied_and_gets_the_seed(data):
    solver = tl.StochasticGradient(n_steps=300, n_checks=0)
    learner = tl.PairwiseWeights(margins=(1.0, 0.5), sigma=0.1, solver=solver)
    a, b = (small(weight_radius=1.0, learner=learner).fit(*data) for _ in range(2))
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert (a.learner_.margins, a.learner_.radius) == ((1.0, 0.5), 1.0)
    assert not hasattr(learner, "weights_")
    assert learner.random_state is None
    other = small(weight_radius=1.0, learner=learner, random_state=1).fit(*data)
    assert (other.weights_ != a.weights_).any()


def test_edge_labels_where_there_are_some(data):
    rng = np.random.default_rng(0)
    labelled, y = random_collection(rng, 20), np.arange(20) % 2
    assert small().fit(labelled, y).best_params_["edge_labels"] is True
    assert small(edge_labels=False).fit(labelled, y).best_params_["edge_labels"] is False
    assert small().fit(*data).best_params_["edge_labels"] is False
    with pytest.raises(GraphDataError, match="carry no edge labels"):
        small(edge_labels=True).fit(*data)


def test_a_splitter_that_leaves_graphs_out_does_not_spoil_the_probabilities(data):
    """Graphs that were never held out have no decision value to calibrate with."""
    graphs, y = data
    model = small(C=1.0, cv=ShuffleSplit(1, test_size=0.25, random_state=0)).fit(graphs, y)
    held_out = model.cv_results_.decisions[model.cv_results_.best()]
    known = np.isfinite(held_out[:, 0])
    assert known.sum() == 16
    expected = fit_calibration(held_out[known], model.train_codes_[known])
    np.testing.assert_array_equal(model.model_.calibration[0], expected[0])
    assert np.isfinite(model.predict_proba(graphs)).all()


def test_same_seed_same_model_for_any_number_of_threads(model, data):
    graphs, _ = data
    for n_jobs in (1, 2):
        again = clone(model).set_params(n_jobs=n_jobs).fit(*data)
        assert again.best_params_ == model.best_params_
        np.testing.assert_array_equal(again.weights_, model.weights_)
        np.testing.assert_array_equal(
            again.decision_function(graphs), model.decision_function(graphs)
        )
        assert again.cv_results_.scores == model.cv_results_.scores


BAD_PARAMETERS = [
    ("kernel", "expo"),
    ("kernel", ["tanimoto", "expo"]),
    ("kernel", []),
    ("depth", -1),
    ("depth", 1.5),
    ("depth", []),
    ("depth", [1, -1]),
    ("depth", [1, 2.5]),
    ("weight_radius", -1.0),
    ("weight_radius", [np.nan]),
    ("weight_radius", [np.inf]),
    ("gamma", 0.0),
    ("gamma", [1.0, 0.0]),
    ("C", [0.0]),
    ("C", [1.0, "two"]),
    ("C", np.nan),
    ("include_depth_zero", "no"),
    ("edge_labels", "maybe"),
    ("learner", "mine"),
    ("cv", 1),
    ("cv", "five"),
    ("scoring", "f1"),
    ("class_weight", "even"),
    ("n_jobs", 1.5),
    ("random_state", "seed"),
    ("progress", "yes"),
]


@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS, ids=str)
def test_bad_parameters_are_named(name, value, data):
    with pytest.raises(ValueError, match=name):
        small(**{name: value}).fit(*data)


def test_what_is_no_class_is_refused(data):
    graphs, y = data
    for wrong, message in (
        (None, "call fit"),
        (y[:-1], "64 graphs"),
        (np.linspace(0, 1, 64), "GraphRegressor"),
    ):
        with pytest.raises(ValueError, match=message):
            small().fit(graphs, wrong)
    with pytest.raises(GraphDataError, match="0 graphs"):
        small().fit([], [])


def test_four_graphs_are_enough_and_a_class_absent_from_a_split_is_survived(data):
    """An unshuffled splitter leaves each class out of training once: nothing right, nothing NaN."""
    graphs, _ = data
    model = small(weight_radius=[0.0, 1.0], cv=2).fit(graphs[[0, 1, -2, -1]], [0, 0, 1, 1])
    assert np.isfinite(model.decision_function(graphs)).all()
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
    alike = small(weight_radius=weight_radius).fit([STRANGERS[0]] * 10, [0, 1] * 5)
    assert len(set(alike.predict([STRANGERS[0]] * 3))) == 1
