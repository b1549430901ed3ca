"""All solvers meet at the optimum that a generic convex solver finds."""

import numpy as np
import pytest

from naive import learning as naive
from strategies import histograms_of, random_collection
from treelens.pairwise import solvers
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.objective import BallConstraint
from treelens.pairwise.solvers import (
    CurvatureModel,
    Minimization,
    projected_gradient,
    projected_quasi_newton,
)
from treelens.patterns.histograms import PairFeatures

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RADII = (0.2, 1.0, 2.5)  # inside the orthant, on its border, across it
BALL = BallConstraint(np.array([0, 2, 3]), np.array([1.0, 2.0]))


@pytest.fixture(scope="module", params=["wasserstein", "subtree"])
def small(request):
    """Ten graphs of two classes with all that a problem needs."""
    histograms = histograms_of(random_collection(np.random.default_rng(3), 10), 1)
    return PairFeatures.from_histograms(histograms, request.param), np.arange(10) % 2


class Dense:
    """The same objective from Z written out: the oracle shares no code with the solvers."""

    def __init__(self, features, labels, margins):
        self.z = naive.all_pair_features(features)
        self.same = labels[:, None] == labels[None, :]
        self.pair_weights = naive.ordered_pair_weights(labels, balance=True)
        self.margins = margins

    def __call__(self, weights):
        m = self.margins
        distance = m.b - self.z @ weights
        inside = np.where(self.same, distance - m.alpha2, m.alpha1 - distance)
        parabola = np.clip(inside, 0, m.sigma) ** 2 / (2 * m.sigma)
        value = parabola + np.maximum(inside - m.sigma, 0)
        slope = np.clip(inside, 0, m.sigma) / m.sigma * np.where(self.same, -1, 1)
        gradient = np.tensordot(self.pair_weights * slope, self.z, axes=2)
        return float((self.pair_weights * value).sum()), gradient


@pytest.mark.parametrize("radius", RADII)
def test_solvers_meet_at_the_generic_optimum(small, radius, generic):
    features, labels = small
    options = {"radius": radius}
    fast = learn_weights(features, labels, tol=1e-7, max_iter=2000, **options)
    plain = learn_weights(features, labels, solver="batch", tol=1e-7, max_iter=50_000, **options)
    dense, start = Dense(features, labels, fast.margins), np.ones(features.n_patterns)
    optimum = dense(generic(dense, start, radius, features.level_offsets.tolist()))[0]
    for learned in (fast, plain):
        assert learned.converged
        assert learned.history[-1] == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("kind", ["wasserstein", "subtree"])
@pytest.mark.parametrize("seed", range(6))
def test_rounding_does_not_decide_whether_it_converged(seed, kind):
    """A tolerance beyond what rounding allows: the objective is at its optimum all the same."""
    histograms = histograms_of(random_collection(np.random.default_rng(seed), 10), 1)
    features, labels = PairFeatures.from_histograms(histograms, kind), np.arange(10) % 2
    for radius in RADII:
        learned = learn_weights(features, labels, radius=radius, tol=1e-12, max_iter=2000)
        assert learned.converged
        assert learned.gaps[-1] < 1e-7


def test_without_progress_far_from_the_optimum_it_has_not_converged():
    problem = Minimization(Quadratic(np.ones(3), np.zeros(3)), BALL, tol=1e-3)
    for _ in range(40):
        problem.record(problem.evaluate(np.ones(3))[0])
    assert problem.stopped
    assert not problem.converged


@pytest.mark.parametrize("small", ["wasserstein"], indirect=True)
def test_stochastic_meets_them_too(small):
    features, labels = small
    fast = learn_weights(features, labels, radius=0.1, tol=1e-9)
    slow = learn_weights(
        features,
        labels,
        radius=0.1,
        solver="stochastic",
        n_steps=25_000_000,
        step_size=0.02,
        halvings=13,
        n_checks=1,
        random_state=0,
        tol=1e-7,
    )
    assert slow.history[-1] == pytest.approx(fast.history[-1], rel=1e-6)


@pytest.mark.parametrize("radius", RADII)
def test_the_gap_bounds_the_distance_to_the_optimum(small, radius):
    features, labels = small
    best = learn_weights(features, labels, radius=radius, tol=1e-10, max_iter=3000).history[-1]
    learned = learn_weights(features, labels, radius=radius, tol=1e-5)
    excess = learned.history / best - 1
    assert (learned.gaps >= excess - 1e-9).all()
    assert (np.diff(learned.history) <= 0).all()


def test_a_step_size_makes_the_batch_solver_plain(small):
    """With a constant step the iterates are those of the textbook."""
    features, labels = small
    learned = learn_weights(
        features, labels, solver="batch", radius=0.5, step_size=0.3, max_iter=5, tol=0.0
    )
    dense = Dense(features, labels, learned.margins)
    ball = BallConstraint(features.level_offsets, learned.radii)
    weights = np.ones(features.n_patterns)
    for _ in range(5):
        weights = ball.project(weights - 0.3 * dense(weights)[1])
    np.testing.assert_allclose(learned.weights, weights, atol=1e-13)
    assert learned.n_iter == 5


class Quadratic:
    """``0.5 sum_v curvature_v (w_v - target_v)²``."""

    def __init__(self, curvature, target):
        self.curvature, self.target = curvature, target
        self.n_evaluations = 0

    def __call__(self, weights):
        self.n_evaluations += 1
        away = weights - self.target
        return 0.5 * float(self.curvature @ away**2), self.curvature * away


def solve(solver, target, ball, max_iter, tol):
    problem = Minimization(target, ball, tol, max_iter)
    n = int(ball.level_offsets[-1])
    extra = (np.ones(n),) if solver is projected_quasi_newton else ()
    return solver(problem, np.ones(n), *extra), problem


@pytest.mark.parametrize("solver", [projected_gradient, projected_quasi_newton])
def test_a_known_optimum_inside_and_outside(solver):
    rng = np.random.default_rng(0)
    ball = BallConstraint(np.array([0, 6]), np.array([1.0]))
    outside = 1 + rng.normal(size=6) * 5
    weights, problem = solve(solver, Quadratic(np.ones(6), outside), ball, 500, 1e-10)
    assert problem.converged
    np.testing.assert_allclose(weights, ball.project(outside), atol=1e-4)
    inside = 1 + 0.1 * rng.normal(size=6)
    target = Quadratic(np.geomspace(1, 1e3, 6), inside)
    np.testing.assert_allclose(solve(solver, target, ball, 20_000, 1e-4)[0], inside, atol=1e-3)
    start = Quadratic(np.ones(6), np.ones(6))  # the start is the optimum: nothing is done
    weights, problem = solve(solver, start, ball, 10, 1e-6)
    assert weights.tolist() == [1.0] * 6
    assert start.n_evaluations == 1
    assert problem.converged


# --- quasi-Newton ------------------------------------------------------------------------------


def test_a_search_that_fails_once_begins_anew_and_twice_ends_it(rng, monkeypatch):
    search, calls, failing = solvers._line_search, [], {3}

    def failing_search(*arguments):
        calls.append(arguments)
        return None if len(calls) in failing else search(*arguments)

    monkeypatch.setattr(solvers, "_line_search", failing_search)
    ball = BallConstraint(np.array([0, 6]), np.array([2.0]))
    target = Quadratic(np.geomspace(1, 50, 6), 1 + 0.1 * rng.normal(size=6))
    _, problem = solve(projected_quasi_newton, target, ball, 200, 1e-6)
    assert len(calls) > 3
    assert problem.stopped
    calls.clear()
    failing |= {1}
    weights, _ = solve(projected_quasi_newton, target, ball, 200, 1e-6)
    assert len(calls) == 1  # with no curvature learned there is nothing to forget
    assert np.array_equal(weights, np.ones(6))


def test_curvature_model_obeys_the_secant_equation(rng):
    root = rng.normal(size=(12, 12))
    hessian = root @ root.T + np.eye(12)
    model = CurvatureModel(np.exp(rng.normal(size=12)))
    for _ in range(5):
        step = rng.normal(size=12)
        model.learn(step, hessian @ step)
    np.testing.assert_allclose(model.times(step), hessian @ step, rtol=1e-8)
    vectors = rng.normal(size=(20, 12))
    assert all(vector @ model.times(vector) > 0 for vector in vectors)


# --- the gap -----------------------------------------------------------------------------------


def test_the_bound_never_exceeds_the_optimum(rng):
    ball, target = BallConstraint(np.array([0, 3]), np.array([0.5])), np.array([1.9, 1.0, 0.2])
    problem = Minimization(Quadratic(np.full(3, 2.0), target), ball, tol=1e-3)
    optimum = ball.project(target)  # of a round objective
    best = problem.objective(optimum)[0]
    for _ in range(200):
        problem.evaluate(ball.project(1.0 + rng.normal(size=3)))
        assert problem.lower_bound <= best + 1e-12
    problem.record(problem.evaluate(optimum)[0])
    assert problem.lower_bound == pytest.approx(best)
    assert problem.converged  # at the optimum the gap closes


def test_it_stalls_only_after_a_good_while_without_progress():
    problem, stopped = Minimization(Quadratic(np.ones(3), np.ones(3)), BALL, tol=1e-3), []
    for value in [*np.linspace(2.0, 1.0, 40), *np.ones(31)]:
        problem.record(value)
        stopped.append(problem.stopped)
    assert stopped.index(True) == 69  # 30 iterations after the last that brought something


def test_an_objective_of_zero_counts_as_reached():
    problem = Minimization(lambda weights: (0.0, np.zeros(3)), BALL, tol=1e-4)
    problem.record(problem.evaluate(np.ones(3))[0])
    assert problem.gaps == [0.0]
    assert problem.converged
