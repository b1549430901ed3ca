"""learn_weights: its result, its warnings and its errors."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from strategies import histograms_of
from treelens.graphs.build import build_collection
from treelens.graphs.synthetic import TRAINING_SUBSTRUCTURES, make_synthetic
from treelens.pairwise.learn import learn_weights
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PAIR_KINDS, PairFeatures
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
