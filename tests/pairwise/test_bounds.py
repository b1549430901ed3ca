"""The theory: constants, stability against twin runs, gaps, and the bound of a fitted model."""

import json
import math

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import treelens as tl
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
from treelens.patterns.histograms import PairFeatures

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
        "solver": "stochastic",
        "margins": (MARGINS.alpha1, MARGINS.alpha2),
        "sigma": MARGINS.sigma,
        "balance": False,
        "radius": RADIUS,
        "n_steps": plan.n_steps,
        "step_size": plan.step_size,
        "halvings": 0,
        "average": False,
        "n_checks": 0,
        **options,
    }
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


# --- a fitted model -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study():
    return tl.make_synthetic(5, random_state=0)


def fitted(study, learner=None, weight_radius=1.0, kernel="wwl"):
    model = tl.GraphSVC(
        kernel, 2, weight_radius, gamma=1.0, C=10.0, learner=learner, random_state=0
    )
    return model.fit(*study)


def test_uniform_weights_leave_the_part_that_does_not_depend_on_learning(study):
    bound = fitted(study, weight_radius=0.0).generalization_bound(delta=0.1)
    n, largest = bound["n_graphs"], bound["constants"]["loss_bound"]
    assert n == len(study[1])
    assert bound["stability"]["k_n"] == bound["stability"]["weights"] == 0
    expected = largest * math.sqrt(2 / n * math.log(2 / 0.1))
    assert bound["stability"]["gap"] == pytest.approx(expected)
    assert bound["any_solver"]["radius"] == 0


@pytest.mark.parametrize("kernel", ["wwl", "tanimoto", "wl-subtree"])
def test_quasi_newton_is_bounded_for_any_solver_alone(study, kernel):
    model = fitted(study, kernel=kernel)
    bound = model.generalization_bound()
    assert bound["stability"]["gap"] is None
    assert "takes no single-pair steps" in bound["stability"]["reason"]
    assert bound["gap"] == bound["any_solver"]["gap"]
    assert bound["loss"] == pytest.approx(model.learner_.history_[-1], rel=1e-9)
    assert bound["any_solver"]["radius"] == pytest.approx(math.sqrt(3))
    factor = bound["constants"]["pair_factor"]
    weights = naive.ordered_pair_weights(np.asarray(study[1]), balance=True)
    assert factor == pytest.approx(weights.max() * weights.size)
    assert bound["constants"]["lipschitz"] == pytest.approx(
        factor * model.learner_.result_.pair_norm
    )
    assert any("training distances" in caveat for caveat in bound["caveats"])


def test_the_papers_numbers_by_its_formula(study):
    solver = tl.StochasticGradient(500, 1e-4, halvings=0, average=False, n_checks=0)
    learner = tl.PairwiseWeights(solver=solver, margins=(1.0, 0.5), sigma=0.1, balance=False)
    bound = fitted(study, learner).generalization_bound()
    constants, stability = bound["constants"], bound["stability"]
    n, beta = bound["n_graphs"], constants["pair_norm"]
    k_n = 4 * 1e-4 * 500 * beta**2 / n
    assert constants["lipschitz"] == beta  # no balancing there
    assert constants["smoothness"] == pytest.approx(beta**2 / 0.1)
    assert stability["weights"] == pytest.approx(4 * 1e-4 * 500 * beta / n)
    assert stability["k_n"] == pytest.approx(k_n)
    spread = math.sqrt(2 / n * math.log(2 / 0.05))
    assert stability["gap"] == pytest.approx(2 * k_n + (n * k_n + constants["loss_bound"]) * spread)
    assert bound["gap"] == min(stability["gap"], bound["any_solver"]["gap"])
    assert len(bound["caveats"]) == 1  # margins and factors are fixed beforehand


def test_steps_that_are_too_large_give_a_reason(study):
    learner = tl.PairwiseWeights(
        solver=tl.StochasticGradient(n_steps=1000, step_size=1e3, n_checks=0)
    )
    bound = fitted(study, learner).generalization_bound()
    assert bound["stability"]["gap"] is None
    assert "the step size is 1000" in bound["stability"]["reason"]
    assert bound["gap"] == bound["any_solver"]["gap"]


def test_many_steps_are_capped_by_the_size_of_the_ball(study):
    solver = tl.StochasticGradient(n_steps=100_000, step_size=0.05, halvings=0, n_checks=0)
    learner = tl.PairwiseWeights(solver=solver)
    bound = fitted(study, learner).generalization_bound()
    assert bound["stability"]["step_sum"] == pytest.approx(5000)
    assert bound["stability"]["weights"] == pytest.approx(2 * math.sqrt(3))


def test_caveat_about_the_choice_only_where_there_was_one(study):
    one = fitted(study).generalization_bound()
    assert not any("candidates" in caveat for caveat in one["caveats"])
    several = tl.GraphSVC("wwl", [1, 2], 0.5, gamma=1.0, C=10.0, random_state=0)
    bound = several.fit(*study).generalization_bound()
    assert any("2 candidates" in caveat for caveat in bound["caveats"])


def test_bound_is_plain_data_and_survives_saving(study, tmp_path):
    model = fitted(study)
    model.save(tmp_path / "model.zip")
    bound = model.generalization_bound()
    assert json.loads(json.dumps(bound)) == bound
    assert tl.load(tmp_path / "model.zip").generalization_bound() == bound


def test_bad_use(study):
    with pytest.raises(NotFittedError):
        tl.GraphSVC().generalization_bound()
    model = fitted(study, weight_radius=0.0)
    for delta in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="delta must be a probability"):
            model.generalization_bound(delta)
    gaps = [model.generalization_bound(delta)["gap"] for delta in (1e-9, 0.01, 0.2)]
    assert np.isfinite(gaps[0])
    assert (np.diff(gaps) < 0).all()  # a bound that may fail more often is tighter
