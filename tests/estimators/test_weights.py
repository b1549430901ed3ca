"""PairwiseWeights as an estimator: parameters, clones, pickles, messages."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils._param_validation import InvalidParameterError

import treelens as tl
from strategies import random_collection
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.settings import SOLVER_KINDS, LearnerSettings
from treelens.patterns.histograms import PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary


@pytest.fixture(scope="module")
def features():
    graphs = random_collection(np.random.default_rng(1), 30)
    return PairFeatures.from_histograms(
        PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))
    )


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(2).choice(["no", "yes", "maybe"], size=30)


def test_attributes_are_those_of_the_result(features, y):
    learner = tl.PairwiseWeights(radius=0.5).fit(features, y)
    expected = learn_weights(features, y, radius=0.5)
    np.testing.assert_array_equal(learner.weights_, expected.weights)
    np.testing.assert_array_equal(learner.history_, expected.history)
    np.testing.assert_array_equal(learner.gaps_, expected.gaps)
    assert (learner.converged_, learner.n_iter_) == (expected.converged, expected.n_iter)
    assert learner.converged_ is True
    assert learner.result_.margins == expected.margins


@pytest.mark.parametrize("solver", SOLVER_KINDS)
def test_defaults_are_those_of_learn_weights(solver):
    ours = tl.PairwiseWeights(solver=solver).flat_parameters()
    defaults = {name: f.default for name, f in LearnerSettings.__dataclass_fields__.items()}
    differing = {"n_jobs", "solver"}  # one thread is None in scikit-learn
    assert {n: x for n, x in ours.items() if n not in differing} == {
        n: defaults[n] for n in ours if n not in differing
    }
    assert ours["solver"] == solver


@pytest.mark.parametrize("solver", ["quasi-newton", tl.ProjectedGradient(max_iter=7, tol=0.5)])
def test_flat_parameters_and_back(solver):
    learner = tl.PairwiseWeights(2.0, solver=solver, margins=(0.6, 0.4))
    flat = learner.flat_parameters()
    assert tl.PairwiseWeights.from_flat({**flat, "of a later version": 1}).flat_parameters() == flat


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVER_KINDS)
def test_clone_pickle_and_seed(features, y, solver):
    limits = {"n_steps": 2000} if solver == "stochastic" else {"max_iter": 30}
    learner = tl.PairwiseWeights(solver=SOLVER_KINDS[solver](**limits), random_state=3)
    fitted = clone(learner).fit(features, y)
    again = clone(learner).set_params(n_jobs=2).fit(features, y)
    np.testing.assert_array_equal(fitted.weights_, again.weights_)
    back = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(fitted.weights_, back.weights_)
    assert back.flat_parameters() == fitted.flat_parameters()
    assert not hasattr(learner, "weights_")


BAD = [
    {"radius": [-1.0, "wide"]},
    {"solver": ["newton", 1]},
    {"margins": ["median", 0.5]},
    {"sigma": [0.0, -1.0, "wide"]},
    {"balance": ["yes"]},
    {"n_jobs": ["two"]},
    {"random_state": ["seed"]},
]


@pytest.mark.parametrize("parameters", list(ParameterGrid(BAD)), ids=str)
def test_bad_parameters_are_named_by_fit(features, y, parameters):
    (name,) = parameters
    learner = tl.PairwiseWeights(**parameters)
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of PairwiseWeights"):
        learner.fit(features, y)


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
