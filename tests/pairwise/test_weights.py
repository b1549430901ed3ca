"""PairwiseWeights as an estimator: parameters, clones, pickles, messages."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import treelens as tl
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.solvers import SOLVER_KINDS
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

Y = np.random.default_rng(2).choice(["no", "yes", "maybe"], size=20)


def test_attributes_are_those_of_the_result(features):
    learner = tl.PairwiseWeights(radius=0.5).fit(features, Y)
    expected = learn_weights(features, Y, radius=0.5)
    np.testing.assert_array_equal(learner.weights_, expected.weights)
    np.testing.assert_array_equal(learner.history_, expected.history)
    np.testing.assert_array_equal(learner.gaps_, expected.gaps)
    assert (learner.converged_, learner.n_iter_) == (expected.converged, expected.n_iter)
    assert learner.converged_ is True
    assert learner.result_.margins == expected.margins


@pytest.mark.parametrize("solver", ["quasi-newton", tl.ProjectedGradient(max_iter=7, tol=0.5)])
def test_flat_parameters_and_back(solver):
    learner = tl.PairwiseWeights(2.0, solver=solver, margins=(0.6, 0.4))
    flat = learner.flat_parameters()
    assert tl.PairwiseWeights.from_flat({**flat, "of a later version": 1}).flat_parameters() == flat


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVER_KINDS)
def test_clone_pickle_and_seed(make_features, solver):
    features = make_features(20)
    limits = {"n_steps": 2000} if solver == "stochastic" else {"max_iter": 30}
    learner = tl.PairwiseWeights(solver=SOLVER_KINDS[solver](**limits), random_state=3)
    fitted = clone(learner).fit(features, Y)
    again = clone(learner).set_params(n_jobs=2).fit(features, Y)
    np.testing.assert_array_equal(fitted.weights_, again.weights_)
    back = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(fitted.weights_, back.weights_)
    assert back.flat_parameters() == fitted.flat_parameters()
    assert not hasattr(learner, "weights_")


@pytest.mark.parametrize(
    ("radius", "expected"), [(2, [2.0, 2.0]), ([0.5], [0.5, 0.5]), ([0.0, 1.0], [0.0, 1.0])]
)
def test_one_radius_for_every_depth(radius, expected):
    assert tl.PairwiseWeights(radius).radii(2).tolist() == expected


BAD = {
    "radius": [-1.0, "wide", np.inf, [1.0, 2.0], [[1.0, 2.0, 3.0]], [], [1.0, 1.0, np.nan]],
    "solver": ["newton", 1],
    "margins": ["median", 0.5, (0.2, 0.3), (1.0, 0.5, 0.2), (np.nan, 0.5)],
    "sigma": [0.0, -1.0, np.nan, "wide"],
    "balance": ["yes"],
    "n_jobs": ["two"],
    "random_state": ["seed"],
}
BAD_OF_SOLVERS = [
    (tl.QuasiNewton, {"max_iter": 0}),
    (tl.QuasiNewton, {"tol": -1.0}),
    (tl.ProjectedGradient, {"step_size": 0.0}),
    *((tl.StochasticGradient, {name: -1})
      for name in ("n_steps", "step_size", "halvings", "n_checks")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values], ids=str
)
def test_bad_parameters_are_named_by_fit(make_features, name, value):
    learner = tl.PairwiseWeights(**{name: value})
    with pytest.raises(ValueError, match=name):
        learner.fit(make_features(20), Y)


@pytest.mark.parametrize(("kind", "settings"), BAD_OF_SOLVERS)
def test_bad_parameters_of_a_solver(make_features, kind, settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__}"):
        tl.PairwiseWeights(solver=kind(**settings)).fit(make_features(20), Y)


def test_learning_on_permuted_labels_finds_less():
    """With labels that mean nothing the objective falls, but less than with labels that do."""
    graphs, y = tl.make_synthetic(15, (1, 2, 3, 4), random_state=0)
    with pytest.raises(TypeError, match="pass the learner to a kernel"):
        tl.PairwiseWeights().fit(graphs, y)
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))
    pairs = PairFeatures.from_histograms(histograms.select_depths(1, 2))
    true = tl.PairwiseWeights().fit(pairs, y)
    drop = 1 - true.history_[-1] / true.history_[0]
    rng = np.random.default_rng(0)
    for _ in range(5):
        permuted = tl.PairwiseWeights().fit(pairs, rng.permutation(y))
        assert 1 - permuted.history_[-1] / permuted.history_[0] < 0.5 * drop
