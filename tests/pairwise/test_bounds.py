"""The theory: constants against pairs written out, stability against twin runs, and the gaps."""

import math

import numpy as np
import pytest

from naive import learning as naive
from strategies import histograms_of, random_collection
from treelens.pairwise.bounds import (
    LossConstants,
    StepPlan,
    any_solver_gap,
    constants_of,
    reachable_similarity,
    stability_gap,
    weight_stability,
)
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.objective import BallConstraint, Margins
from treelens.pairwise.solvers import stage_ends
from treelens.patterns.pairs import PairFeatures

MARGINS = Margins(alpha1=0.9, alpha2=0.3, sigma=0.2)


# --- constants --------------------------------------------------------------------------------


def losses_and_gradients(z, labels, weights, margins):
    """Loss (n_pairs,) and gradient (n_pairs, n_patterns) of all ordered pairs."""
    losses, gradients = [], []
    for i, j in np.ndindex(len(z), len(z)):
        distance = margins.b - z[i, j] @ weights
        loss, slope = naive.hinge(distance, labels[i] == labels[j], margins)
        losses.append(loss)
        gradients.append(-slope * z[i, j])
    return np.array(losses), np.array(gradients)


def test_no_pair_exceeds_the_constants(features, labels, rng):
    """At random weights of the constraint, far out and near the knots of the hinges."""
    radii = np.array([0.5, 1.0, 2.0])
    constants = constants_of(features, MARGINS, radii)
    allowed = BallConstraint(features.level_offsets, radii)
    z = naive.all_pair_features(features)
    points = [allowed.project(1 + rng.normal(size=features.n_patterns)) for _ in range(4)]
    points += [points[0] + 1e-3 * rng.normal(size=features.n_patterns)]
    gradients = []
    for weights in points:
        losses, gradient = losses_and_gradients(z, labels, weights, MARGINS)
        assert losses.max() <= constants.loss_bound
        assert np.linalg.norm(gradient, axis=1).max() <= constants.lipschitz * (1 + 1e-12)
        gradients.append(gradient)
    for a in range(len(points)):
        for b in range(a):
            change = np.linalg.norm(gradients[a] - gradients[b], axis=1).max()
            moved = np.linalg.norm(points[a] - points[b])
            assert change <= constants.smoothness * moved * (1 + 1e-9)


def test_constants_are_reached(features, labels):
    """They are the smallest that hold: a pair of graphs with itself reaches each of them."""
    z = naive.all_pair_features(features)
    norms = np.linalg.norm(z, axis=2)
    steep = Margins(alpha1=9.0, alpha2=-9.0, sigma=0.1)  # all hinges at slope 1
    losses, gradients = losses_and_gradients(z, labels, np.zeros(features.n_patterns), steep)
    constants = constants_of(features, steep, np.zeros(3))
    assert constants.pair_norm == pytest.approx(norms.max(), rel=1e-12)
    assert np.linalg.norm(gradients, axis=1).max() == pytest.approx(constants.lipschitz)
    assert losses.max() == pytest.approx(constants.loss_bound)  # d = b at weights 0


@pytest.mark.parametrize("b", [1.0, 2.0])
def test_loss_bound_is_the_papers_where_distances_are_not_negative(make_features, b):
    features, margins = make_features(10), Margins(alpha1=1.0, alpha2=0.5, sigma=0.1, b=b)
    expected = max(b - 0.05 - 0.5, 1.0 - 0.05)
    uniform = np.zeros(3)
    assert constants_of(features, margins, uniform).loss_bound == pytest.approx(expected)
    wide = constants_of(features, margins, np.full(3, 20.0))  # distances far below 0
    below = b - reachable_similarity(features, np.full(3, 20.0))
    assert wide.loss_bound == pytest.approx(1.0 - 0.05 - below)
    # Smoothing wider than the margins: the paper's formula, of the linear pieces, is too small.
    smooth = constants_of(features, Margins(alpha1=0.2, alpha2=0.8, sigma=1.0, b=1.0), uniform)
    assert smooth.loss_bound == pytest.approx(0.02)


def test_reachable_similarity_is_the_largest_one(features):
    """The linear minimiser of -Z, pair by pair, finds no more and reaches it."""
    radii = np.array([0.3, 0.6, 0.9])
    allowed = BallConstraint(features.level_offsets, radii)
    z = naive.all_pair_features(features).reshape(-1, features.n_patterns)
    largest = max(pair @ allowed.linear_minimizer(-pair) for pair in z)
    reachable = reachable_similarity(features, radii)
    assert reachable == pytest.approx(largest, rel=1e-9)


# --- stability: the same draws, one graph replaced ---------------------------------------------

N_GRAPHS, REPLACED = 20, 7
RADIUS = 0.8


@pytest.fixture
def histograms():
    """Twenty-one graphs: twenty to learn from and one to put in the place of another."""
    graphs = random_collection(np.random.default_rng(1), 21, max_nodes=12)
    return histograms_of(graphs)


@pytest.fixture
def codes():
    return np.random.default_rng(2).choice(3, size=21, p=[0.5, 0.3, 0.2])


def twin_features(histograms, kind="wasserstein"):
    """The first twenty graphs, and the same with one of them replaced by the last."""
    indices = np.arange(N_GRAPHS)
    other = np.where(indices == REPLACED, N_GRAPHS, indices)
    return [
        PairFeatures.from_histograms(histograms.select_graphs(i), kind) for i in (indices, other)
    ]


def learn(features, y, plan, **options):
    settings = {
        "solver": "stochastic", "margins": (MARGINS.alpha1, MARGINS.alpha2),
        "sigma": MARGINS.sigma, "balance": False, "radius": RADIUS, "n_steps": plan.n_steps,
        "step_size": plan.step_size, "halvings": 0, "average": False, "n_checks": 0, **options,
    }  # fmt: skip
    return learn_weights(features, y, **settings)


def divergence(histograms, codes, plan, seed, **options):
    first, second = twin_features(histograms)
    other = codes[:N_GRAPHS].copy()
    other[REPLACED] = codes[N_GRAPHS]
    here = learn(first, codes[:N_GRAPHS], plan, random_state=seed, **options)
    there = learn(second, other, plan, random_state=seed, **options)
    return float(np.linalg.norm(here.weights - there.weights))


@pytest.fixture
def constants(histograms):
    radii = np.full(3, RADIUS)
    here, there = (constants_of(f, MARGINS, radii) for f in twin_features(histograms))
    return max(here, there, key=lambda c: c.pair_norm)


def test_every_twin_run_obeys_the_bound_for_its_draws(histograms, codes, constants):
    """Not only in expectation: at most 2 mu L for every draw that holds the replaced graph."""
    plan = StepPlan.halving(300, 0.9 * constants.largest_step)
    for seed in range(5):
        drawn = np.random.default_rng(seed).integers(N_GRAPHS, size=(2, 300), dtype=np.int32)
        n_touching = int((drawn == REPLACED).any(axis=0).sum())
        limit = 2 * plan.step_size * constants.lipschitz * n_touching
        assert 0 < divergence(histograms, codes, plan, seed) <= limit


def test_steps_beyond_the_limit_are_refused():
    constants = LossConstants(0.4, lipschitz=0.4, smoothness=2.0, loss_bound=1.0)
    weight_stability(10, StepPlan.halving(5, 1.0), constants)  # the limit itself is allowed
    with pytest.raises(ValueError, match=r"2 / smoothness = 1; the step size is 1\.1"):
        weight_stability(10, StepPlan.halving(5, 1.1), constants)


@pytest.mark.parametrize("halvings", [0, 4])
def test_step_sum_of_a_schedule_step_by_step(halvings):
    ends = stage_ends(1000, halvings)
    total = sum(0.3 * 0.5 ** sum(end <= step for end in ends) for step in range(ends[-1]))
    plan = StepPlan.halving(1000, 0.3, halvings)
    assert plan.step_sum == pytest.approx(total)
    assert plan.n_steps == ends[-1]


# --- generalisation ---------------------------------------------------------------------------


def test_gaps_by_hand():
    spread = math.sqrt(2 / 100 * math.log(2 / 0.1))
    assert stability_gap(100, 0.01, 0.9, delta=0.1) == pytest.approx(0.02 + (1 + 0.9) * spread)
    expected = 2 * 1.5 * 0.4 / math.sqrt(50) + 0.9 / 101
    expected += 0.9 * math.sqrt(2 / 101 * math.log(10))
    assert any_solver_gap(101, 1.5, 0.4, 0.9, delta=0.1) == pytest.approx(expected)


def test_fixed_weights_need_one_side_only():
    """The pairs of a graph with itself cost M / n, and from 14 graphs on the slack covers it."""
    for n in (14, 100, 1000):
        assert any_solver_gap(n, 0.0, 0.4, 1.0) <= stability_gap(n, 0.0, 1.0)
    assert any_solver_gap(13, 0.0, 0.4, 1.0) > stability_gap(13, 0.0, 1.0)
