"""learn_weights and PairwiseWeights: results, warnings, errors, parameters, clones."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import treelens as tl
from strategies import histograms_of
from treelens.graphs.build import build_collection
from treelens.graphs.datasets import TRAINING_SUBSTRUCTURES, make_synthetic
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.solvers import SOLVER_KINDS
from treelens.patterns.histograms import PAIR_KINDS, PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

SOLVERS = [
    {"solver": "quasi-newton"},
    {"solver": "batch", "max_iter": 20},
    {"solver": "stochastic", "n_steps": 5000, "random_state": 0},
]
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def study():
    """Training graphs of the synthetic study, whose classes differ in one pattern."""
    graphs, y = make_synthetic(10, TRAINING_SUBSTRUCTURES, random_state=0)
    vocabulary, colors = PatternVocabulary.fit(graphs, 2)
    return vocabulary, PatternHistograms.from_colors(vocabulary, colors).select_depths(1, 2), y


@quiet
@pytest.mark.parametrize("options", SOLVERS)
@pytest.mark.parametrize("radius", [0.3, 2.0])
def test_weights_are_feasible_and_better_than_uniform(features, labels, options, radius):
    learned = learn_weights(features, labels, radius=radius, **options)
    assert learned.history[-1] < learned.history[0]
    assert len(learned.history) == len(learned.gaps)
    assert (learned.weights >= 0).all()
    assert (learned.moved <= radius * (1 + 1e-9)).all()
    parts = np.split(learned.weights - 1, features.level_offsets[1:-1])
    np.testing.assert_allclose(learned.moved, [np.linalg.norm(part) for part in parts])
    assert learned.margins.alpha1 >= learned.margins.alpha2
    assert learned.margins.sigma > 0


@quiet
@pytest.mark.parametrize("options", SOLVERS)
def test_same_seed_same_bits_on_any_number_of_threads(features, labels, options):
    one = learn_weights(features, labels, **options)
    for n_jobs in (2, 5):
        other = learn_weights(features, labels, n_jobs=n_jobs, **options)
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.history, other.history)


def test_the_order_and_names_of_classes_do_not_matter(features, labels):
    numbers = learn_weights(features, labels)
    words = learn_weights(features, np.array(["zebra", "ant", "mole"])[labels])
    np.testing.assert_array_equal(numbers.weights, words.weights)


@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_the_pattern_that_makes_the_class_rises_most(study, kind):
    """In the synthetic study, by the default margins; others fall."""
    vocabulary, histograms, y = study
    features = PairFeatures.from_histograms(histograms, kind)
    learned = learn_weights(features, y)
    names = vocabulary.feature_names(first_depth=1)
    assert names[np.argmax(learned.weights)] == "1:0(0,1,2)"
    assert learned.weights.max() > 1.3
    assert learned.weights.min() < 0.9
    assert learned.converged
    np.testing.assert_allclose(learned.moved, 1.0, atol=1e-6)  # the radius is used


@quiet
@pytest.mark.interpreted
@pytest.mark.parametrize("options", SOLVERS)
def test_one_radius_per_depth(features, labels, options):
    learned = learn_weights(features, labels, radius=[0.0, 0.2, 1.0], **options)
    assert learned.moved[0] == 0.0
    assert 0 < learned.moved[1] <= 0.2 + 1e-9
    assert learned.moved[2] > 0.2


def test_radius_zero_is_uniform_at_once(features, labels):
    learned = learn_weights(features, labels, radius=0)
    assert (learned.weights == 1.0).all()
    assert learned.converged
    assert (learned.n_iter, learned.solver) == (0, "none")


def test_not_arriving_warns_and_arriving_does_not(features, labels):
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        stopped = learn_weights(features, labels, solver="batch", max_iter=1)
    assert not stopped.converged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arrived = learn_weights(features, labels, tol=1e-3)
    assert arrived.converged
    assert arrived.gaps[-1] <= 1e-3 < arrived.gaps[-2]  # and it stopped there


def test_without_checks_there_is_no_history(features, labels):
    learned = learn_weights(features, labels, solver="stochastic", n_steps=1000, n_checks=0)
    assert learned.history.size == learned.gaps.size == 0
    assert not learned.converged


def features_from(sizes, edges, node_labels):
    graphs = build_collection(sizes, np.array(edges).reshape(-1, 2), node_labels)
    return PairFeatures.from_histograms(histograms_of(graphs, 1))


@pytest.mark.interpreted
def test_no_shared_pattern_falls_back_to_uniform():
    apart = features_from([2, 1, 1], [[0, 1]], list("CCNO"))
    with pytest.warns(UserWarning, match="no two graphs share a pattern"):
        learned = learn_weights(apart, [0, 0, 1])
    assert (learned.weights == 1.0).all()
    assert learned.solver == "none"


@pytest.mark.interpreted
def test_two_graphs():
    two = features_from([3, 3], [[0, 1], [1, 2], [3, 4], [4, 5]], list("CCOCCN"))
    with pytest.warns(UserWarning, match="No two of the 2 graphs share a label"):
        learned = learn_weights(two, ["a", "b"], margins=(1.0, 0.5))
    assert learned.weights[0] < 1  # C, which both hold
    assert learned.converged


# --- PairwiseWeights ------------------------------------------------------------------------------

Y = np.random.default_rng(2).choice(["no", "yes", "maybe"], size=20)


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
    *(
        (tl.StochasticGradient, {name: -1})
        for name in ("n_steps", "step_size", "halvings", "n_checks")
    ),
]


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


def test_graphs_in_the_place_of_pair_features_are_refused():
    with pytest.raises(TypeError, match="pass the learner to a kernel"):
        tl.PairwiseWeights().fit(*tl.make_synthetic(2, random_state=0))
