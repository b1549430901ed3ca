"""Stability against twin runs: the same draws, one graph replaced."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.pairwise.constants import LossConstants, constants_of
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.objective import Margins
from treelens.pairwise.risk import mean_pair_loss
from treelens.pairwise.stability import StepPlan, loss_stability, weight_stability
from treelens.pairwise.stochastic import Schedule
from treelens.patterns.pairs import PairFeatures

N_GRAPHS, REPLACED = 20, 7
MARGINS = Margins(alpha1=0.9, alpha2=0.3, sigma=0.3)
RADIUS = 0.8


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


def divergence(histograms, labels, plan, seed, **options):
    first, second = twin_features(histograms)
    other = labels[:N_GRAPHS].copy()
    other[REPLACED] = labels[N_GRAPHS]
    here = learn(first, labels[:N_GRAPHS], plan, random_state=seed, **options)
    there = learn(second, other, plan, random_state=seed, **options)
    return float(np.linalg.norm(here.weights - there.weights))


@pytest.fixture
def constants(histograms):
    radii = np.full(3, RADIUS)
    here, there = (constants_of(f, MARGINS, radii) for f in twin_features(histograms))
    return max(here, there, key=lambda c: c.pair_norm)


def test_every_twin_run_obeys_the_bound_for_its_draws(histograms, labels, constants):
    """Not only in expectation: at most 2 mu L for every draw that holds the replaced graph."""
    plan = StepPlan.constant(300, 0.9 * constants.largest_step)
    for seed in range(5):
        drawn = np.random.default_rng(seed).integers(N_GRAPHS, size=(2, 300), dtype=np.int32)
        n_touching = int((drawn == REPLACED).any(axis=0).sum())
        limit = 2 * plan.step_size * constants.lipschitz * n_touching
        assert 0 < divergence(histograms, labels, plan, seed) <= limit


@pytest.mark.parametrize(
    "options", [{}, {"halvings": 3, "average": True}, {"n_epochs": 12}, {"constraint": "box"}]
)
def test_mean_divergence_is_below_the_bound(histograms, labels, constants, options):
    plan = StepPlan.constant(100, 0.05)
    schedule = Schedule(100, options.get("n_epochs"), 0.05, options.get("halvings", 0), True, 0)
    bound = weight_stability(N_GRAPHS, StepPlan.of_schedule(schedule, N_GRAPHS), constants)
    measured = [divergence(histograms, labels, plan, seed, **options) for seed in range(10)]
    assert 0 < np.mean(measured) <= bound


def test_formulas():
    constants = LossConstants(0.4, lipschitz=0.4, smoothness=1.6, loss_bound=1.0)
    plan = StepPlan.constant(500, 1e-4)
    assert weight_stability(188, plan, constants) == pytest.approx(4 * 1e-4 * 500 * 0.4 / 188)
    assert loss_stability(188, plan, constants) == pytest.approx(4 * 1e-4 * 500 * 0.4**2 / 188)


def test_steps_beyond_the_limit_are_refused():
    constants = LossConstants(0.4, lipschitz=0.4, smoothness=2.0, loss_bound=1.0)
    weight_stability(10, StepPlan.constant(5, 1.0), constants)  # the limit itself is allowed
    with pytest.raises(ValueError, match=r"2 / smoothness = 1; the step size is 1\.1"):
        weight_stability(10, StepPlan.constant(5, 1.1), constants)


@pytest.mark.parametrize(("n_epochs", "halvings"), [(None, 0), (None, 4), (3, 2)])
def test_step_sum_of_a_schedule_step_by_step(n_epochs, halvings):
    schedule = Schedule(1000, n_epochs, 0.3, halvings, True, 0)
    ends = schedule.stage_ends(21)
    total = sum(0.3 * 0.5 ** sum(end <= step for end in ends) for step in range(ends[-1]))
    plan = StepPlan.of_schedule(schedule, 21)
    assert plan.step_sum == pytest.approx(total)
    assert plan.n_steps == ends[-1]


def test_a_run_planned_for_an_accuracy_reaches_it(histograms, labels, constants):
    features, y = twin_features(histograms)[0], labels[:N_GRAPHS]
    options = {"margins": (MARGINS.alpha1, MARGINS.alpha2), "sigma": MARGINS.sigma}
    best = learn_weights(features, y, radius=RADIUS, balance=False, tol=1e-8, **options)
    accuracy = 0.3 * (best.history[0] - best.history[-1])
    plan = StepPlan.reaching(float(np.linalg.norm(best.moved)), accuracy, constants)
    losses = [
        mean_pair_loss(features, y, learn(features, y, plan, average=True,
                                          random_state=seed).weights, MARGINS)
        for seed in range(5)
    ]  # fmt: skip
    assert np.mean(losses) - best.history[-1] <= accuracy
    assert plan.step_size <= constants.largest_step


def test_nothing_to_reach_takes_no_steps():
    constants = LossConstants(0.4, lipschitz=0.4, smoothness=2.0, loss_bound=1.0)
    assert StepPlan.reaching(0.0, 0.0, constants).n_steps == 0
    with pytest.raises(ValueError, match="accuracy must be positive"):
        StepPlan.reaching(1.0, 0.0, constants)
