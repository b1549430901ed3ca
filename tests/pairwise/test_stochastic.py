"""Lazy stochastic steps against the dense algorithm, step for step."""

from dataclasses import replace

import numpy as np
import pytest

from naive import learning as naive
from treelens.pairwise import _compiled_pairs
from treelens.pairwise._compiled_pairs import PairRows, StepRules, StepState
from treelens.pairwise.objective import AllPairsObjective, BallConstraint, Margins
from treelens.pairwise.solvers import StochasticGradient, draw_pairs, stochastic_gradient

MARGINS = Margins(alpha1=0.8, alpha2=0.6, sigma=0.15)


def problem(features, labels, balance=False):
    return AllPairsObjective(features, labels, MARGINS, balance)


def run(sums, constraint, n_steps, step_size=0.1, halvings=0, average=False, seed=0):
    """Return the weights and the number of steps, without checks."""
    settings = StochasticGradient(n_steps, None, halvings, average, n_checks=0, tol=0.0)
    weights, _, n_done = stochastic_gradient(sums, constraint, settings, step_size, seed)
    return weights, n_done


def fresh_state(features):
    return StepState.fresh(features.n_patterns, len(features.level_offsets) - 1)


def rules_of(features, radius, step_size, margins=(MARGINS.alpha1, MARGINS.alpha2)):
    radii = np.full(len(features.level_offsets) - 1, radius)
    return StepRules(features.level_offsets, radii, 1.0, *margins, MARGINS.sigma, step_size)


@pytest.mark.parametrize("radius", [0.2, 1.0, 1.7])
def test_lazy_equals_dense_over_ten_thousand_steps(features, labels, radius):
    ball = BallConstraint(features.level_offsets, np.full(3, radius))
    sums = problem(features, labels)
    draws = [
        draw
        for chunk in draw_pairs(sums, 10_000, np.random.default_rng(0), set())
        for draw in zip(*(part.tolist() for part in chunk), strict=True)
    ]
    theirs = naive.stochastic_steps(features, labels, draws, MARGINS, 0.5, ball.project)
    for average in (False, True):
        ours, n_done = run(sums, ball, 10_000, 0.5, average=average)
        assert n_done == len(draws) == 10_000
        np.testing.assert_allclose(ours, theirs[average], atol=1e-12)
        assert np.abs(ours - 1).max() > 0.1  # the steps did go somewhere


def test_scales_far_below_one_are_caught(features, labels):
    """A small ball and long steps shrink the scale at every step; it must not vanish."""
    sums = problem(features, labels)
    rules = rules_of(features, radius=1e-3, step_size=1.0, margins=(5.0, -5.0))
    state = fresh_state(features)
    rng = np.random.default_rng(0)
    first, second = rng.integers(20, size=(2, 5000), dtype=np.int32)
    _compiled_pairs.run_steps(
        PairRows.of(features), sums.codes, rules, state, first, second, np.ones(5000)
    )
    assert (state.scale >= 1e-7).all()
    for scale, part in zip(
        state.scale, np.split(state.u, features.level_offsets[1:-1]), strict=True
    ):
        assert scale * np.linalg.norm(part) == pytest.approx(1e-3, rel=1e-9)


@pytest.mark.interpreted
@pytest.mark.parametrize("balance", [True, False])
def test_the_mean_step_is_the_gradient(features, labels, balance):
    """Every ordered pair once, each from uniform weights and with room to move."""
    sums = problem(features, labels, balance)
    rules = rules_of(features, radius=100.0, step_size=1.0)
    first, second = (part.ravel().astype(np.int32) for part in np.indices((20, 20)))
    factors = 400 * naive.ordered_pair_weights(labels, balance)[first, second]
    total = np.zeros(features.n_patterns)
    for k in range(400):
        state = fresh_state(features)
        draw = first[k : k + 1], second[k : k + 1], factors[k : k + 1]
        _compiled_pairs.run_steps(PairRows.of(features), sums.codes, rules, state, *draw)
        total += state.u
    gradient = sums.value_and_gradient(np.ones(features.n_patterns))[1]
    np.testing.assert_allclose(-total / 400, gradient, atol=1e-15)


def test_draws_do_not_depend_on_where_checks_cut_them(features, labels):
    sums = problem(features, labels)
    whole = list(draw_pairs(sums, 1000, np.random.default_rng(0), set()))
    cut = list(draw_pairs(sums, 1000, np.random.default_rng(0), {1, 500, 999, 1000}))
    assert [len(chunk[0]) for chunk in cut] == [1, 499, 499, 1]
    np.testing.assert_array_equal(whole[0][0], np.concatenate([chunk[0] for chunk in cut]))


def test_every_stage_halves_the_step(features, labels, monkeypatch):
    taken = []
    run_steps = _compiled_pairs.run_steps

    def watched(pairs, codes, rules, state, first, second, factors):
        taken.extend([rules.step_size] * len(first))
        run_steps(pairs, codes, rules, state, first, second, factors)

    monkeypatch.setattr(_compiled_pairs, "run_steps", watched)
    ball = BallConstraint(features.level_offsets, np.ones(3))
    assert run(problem(features, labels), ball, 700, 0.4, halvings=2)[1] == 700
    assert taken == [0.4] * 100 + [0.2] * 200 + [0.1] * 400


@pytest.mark.interpreted
@pytest.mark.parametrize("n_steps", [1, 2, 5])
def test_more_stages_than_steps(features, labels, n_steps):
    """The mean must not be taken over an empty stage: here the last stage is the last steps."""
    sums = problem(features, labels)
    sums = replace(sums, margins=replace(MARGINS, alpha1=5.0, alpha2=-5.0))  # every step moves
    ball = BallConstraint(features.level_offsets, np.ones(3))
    last, mean = (
        run(sums, ball, n_steps, halvings=8, average=average, seed=1)[0]
        for average in (False, True)
    )
    assert np.abs(last - 1).max() > 0
    assert np.abs(mean - 1).max() > 0
    if n_steps == 1:
        np.testing.assert_allclose(mean, last, atol=1e-15)
