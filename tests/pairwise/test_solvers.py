"""All solvers meet at the optimum that a generic convex solver finds."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from naive import learning as naive
from strategies import histograms_of, random_collection
from treelens.pairwise import solvers
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.objective import BallConstraint
from treelens.pairwise.solvers import (
    Certificate,
    CurvatureModel,
    projected_gradient,
    projected_quasi_newton,
)
from treelens.patterns.pairs import PairFeatures

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


def generic_optimum(dense, features, radius):
    """The least value by sequential quadratic programming."""
    n, offsets = features.n_patterns, features.level_offsets
    spheres = [
        {
            "type": "ineq",
            "fun": lambda w, a=a, b=b: radius**2 - ((w[a:b] - 1) ** 2).sum(),
            "jac": lambda w, a=a, b=b: np.concatenate(
                [np.zeros(a), -2 * (w[a:b] - 1), np.zeros(n - b)]
            ),
        }
        for a, b in itertools.pairwise(offsets.tolist())
    ]
    found = minimize(
        dense, np.ones(n), jac=True, method="SLSQP", bounds=[(0.0, None)] * n, constraints=spheres,
        options={"ftol": 1e-15, "maxiter": 2000},
    )  # fmt: skip
    return found.fun


@pytest.mark.parametrize("radius", RADII)
def test_solvers_meet_at_the_generic_optimum(small, radius):
    features, labels = small
    options = {"radius": radius}
    fast = learn_weights(features, labels, tol=1e-7, max_iter=2000, **options)
    plain = learn_weights(features, labels, solver="batch", tol=1e-7, max_iter=50_000, **options)
    optimum = generic_optimum(Dense(features, labels, fast.margins), features, radius)
    assert fast.converged
    assert plain.converged
    assert fast.history[-1] == pytest.approx(optimum, rel=1e-6)
    assert plain.history[-1] == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("small", ["wasserstein"], indirect=True)
def test_stochastic_meets_them_too(small):
    features, labels = small
    fast = learn_weights(features, labels, radius=0.1, tol=1e-9)
    slow = learn_weights(
        features, labels, radius=0.1, solver="stochastic", n_steps=25_000_000, step_size=0.02,
        halvings=13, n_checks=1, random_state=0, tol=1e-7,
    )  # fmt: skip
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


@pytest.mark.parametrize("solve", [projected_gradient, projected_quasi_newton])
def test_a_known_optimum_inside_and_outside(solve):
    rng = np.random.default_rng(0)
    ball = BallConstraint(np.array([0, 6]), np.array([1.0]))
    extra = (np.ones(6),) if solve is projected_quasi_newton else ()
    outside = 1 + rng.normal(size=6) * 5
    weights, certificate = solve(
        Quadratic(np.ones(6), outside), ball, np.ones(6), *extra, max_iter=500, tol=1e-10
    )
    assert certificate.converged
    np.testing.assert_allclose(weights, ball.project(outside), atol=1e-4)
    inside = 1 + 0.1 * rng.normal(size=6)
    target = Quadratic(np.geomspace(1, 1e3, 6), inside)
    weights, certificate = solve(target, ball, np.ones(6), *extra, max_iter=20_000, tol=1e-4)
    np.testing.assert_allclose(weights, inside, atol=1e-3)


# --- projected gradient ------------------------------------------------------------------------


def test_the_objective_falls_with_every_iteration() -> None:
    """Curvatures so different that the first step is far too long."""
    target = Quadratic(np.array([1.0, 50.0, 2500.0]), np.array([1.3, 0.8, 1.1]))
    weights, certificate = projected_gradient(target, BALL, np.ones(3), max_iter=30, tol=0.0)
    assert len(certificate.values) == 31
    assert (np.diff(certificate.values) <= 1e-14 * certificate.values[0]).all()
    np.testing.assert_allclose(BALL.project(weights), weights, atol=1e-12)


def test_at_the_optimum_nothing_is_done() -> None:
    target = Quadratic(np.ones(3), np.ones(3))
    weights, certificate = projected_gradient(target, BALL, np.ones(3), max_iter=10, tol=1e-6)
    assert weights.tolist() == [1.0, 1.0, 1.0]
    assert target.n_evaluations == 1
    assert certificate.converged


# --- quasi-Newton ------------------------------------------------------------------------------


def test_the_metric_pays_off():
    """A guess of the curvatures within a factor of two beats no guess."""
    rng = np.random.default_rng(0)
    curvature = np.geomspace(1e-3, 1e3, 60)
    target = 1 + 0.2 * rng.normal(size=60)
    wide = BallConstraint(np.array([0, 60]), np.array([9.0]))
    used = []
    for metric in (np.ones(60), curvature * rng.uniform(0.7, 1.4, 60)):
        quadratic = Quadratic(curvature, target)
        projected_quasi_newton(quadratic, wide, np.ones(60), metric, max_iter=400, tol=1e-8)
        used.append(quadratic.n_evaluations)
    assert used[1] < used[0] / 2


def test_a_search_that_fails_once_begins_anew_and_twice_ends_it(rng, monkeypatch):
    search, calls, failing = solvers._line_search, [], {3}

    def failing_search(*arguments):
        calls.append(arguments)
        return None if len(calls) in failing else search(*arguments)

    monkeypatch.setattr(solvers, "_line_search", failing_search)
    ball = BallConstraint(np.array([0, 6]), np.array([2.0]))
    problem = Quadratic(np.geomspace(1, 50, 6), 1 + 0.1 * rng.normal(size=6)), ball, np.ones(6)
    _, certificate = projected_quasi_newton(*problem, np.ones(6), max_iter=200, tol=1e-6)
    assert len(calls) > 3
    assert certificate.stopped
    calls.clear()
    failing |= {1}
    weights, _ = projected_quasi_newton(*problem, np.ones(6), max_iter=200, tol=1e-6)
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


# --- the certificate ---------------------------------------------------------------------------

TARGET = np.array([1.9, 1.0, 0.2])  # outside the ball of radius 1/2 around ones


def value_and_gradient(w):
    return float(((w - TARGET) ** 2).sum()), 2 * (w - TARGET)


@pytest.fixture
def certificate():
    return Certificate(BallConstraint(np.array([0, 3]), np.array([0.5])), tol=1e-3)


def optimum():
    shift = TARGET - 1.0
    return 1.0 + 0.5 * shift / np.linalg.norm(shift)


def test_the_bound_never_exceeds_the_optimum(certificate, rng):
    best = value_and_gradient(optimum())[0]
    for _ in range(200):
        point = certificate.constraint.project(1.0 + rng.normal(size=3))
        certificate.observe(point, *value_and_gradient(point))
        assert certificate.lower_bound <= best + 1e-12
    certificate.observe(optimum(), *value_and_gradient(optimum()))
    certificate.record(best)
    assert certificate.lower_bound == pytest.approx(best)
    assert certificate.converged  # at the optimum the gap closes


def test_it_stalls_only_after_a_good_while_without_progress(certificate):
    stopped = []
    for value in [*np.linspace(2.0, 1.0, 40), *np.ones(31)]:
        certificate.record(value)
        stopped.append(certificate.stopped)
    assert stopped.index(True) == 69  # 30 iterations after the last that brought something


def test_an_objective_of_zero_counts_as_reached():
    ball = BallConstraint(np.array([0, 3]), np.array([1.0]))
    certificate = Certificate(ball, tol=1e-4)
    certificate.observe(np.ones(3), 0.0, np.zeros(3))
    certificate.record(0.0)
    assert certificate.gaps == [0.0]
    assert certificate.converged
