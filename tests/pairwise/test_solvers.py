"""All solvers meet at the optimum that a generic convex solver finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from naive import learning as naive
from strategies import random_collection
from treelens.pairwise.batch import projected_gradient
from treelens.pairwise.certificate import Certificate
from treelens.pairwise.constraints import CONSTRAINT_SETS
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.quasi_newton import projected_quasi_newton
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# (constraint, radius): inside the orthant, on its border, across it, and the box.
SETS = [("ball", 0.2), ("ball", 1.0), ("ball", 2.5), ("box", 0.5)]


@pytest.fixture(scope="module", params=["wasserstein", "subtree"])
def small(request):
    """Ten graphs of two classes with all that a problem needs."""
    graphs = random_collection(np.random.default_rng(3), 10)
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 1))
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


def generic_optimum(dense, features, constraint, radius):
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
    upper = None if constraint == "ball" else 1 + radius
    lower = 0.0 if constraint == "ball" else max(0.0, 1 - radius)
    found = minimize(
        dense, np.ones(n), jac=True, method="SLSQP", bounds=[(lower, upper)] * n,
        constraints=spheres if constraint == "ball" else (),
        options={"ftol": 1e-15, "maxiter": 2000},
    )  # fmt: skip
    return found.fun


@pytest.mark.parametrize(("constraint", "radius"), SETS)
def test_solvers_meet_at_the_generic_optimum(small, constraint, radius):
    features, labels = small
    options = {"constraint": constraint, "radius": radius}
    fast = learn_weights(features, labels, tol=1e-7, max_iter=2000, **options)
    plain = learn_weights(features, labels, solver="batch", tol=1e-7, max_iter=50_000, **options)
    optimum = generic_optimum(Dense(features, labels, fast.margins), features, constraint, radius)
    assert fast.converged
    assert plain.converged
    assert fast.history[-1] == pytest.approx(optimum, rel=1e-6)
    assert plain.history[-1] == pytest.approx(optimum, rel=1e-6)


def test_stochastic_meets_them_too(small):
    features, labels = small
    fast = learn_weights(features, labels, radius=0.1, tol=1e-9)
    slow = learn_weights(
        features, labels, radius=0.1, solver="stochastic", n_steps=25_000_000, step_size=0.02,
        halvings=13, n_checks=1, random_state=0, tol=1e-7,
    )  # fmt: skip
    assert slow.history[-1] == pytest.approx(fast.history[-1], rel=1e-6)


@pytest.mark.parametrize(("constraint", "radius"), SETS)
def test_the_gap_bounds_the_distance_to_the_optimum(small, constraint, radius):
    features, labels = small
    options = {"constraint": constraint, "radius": radius}
    best = learn_weights(features, labels, tol=1e-10, max_iter=3000, **options).history[-1]
    learned = learn_weights(features, labels, tol=1e-5, **options)
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
    ball = CONSTRAINT_SETS["ball"](features.level_offsets, learned.radii)
    weights = np.ones(features.n_patterns)
    for _ in range(5):
        weights = ball.project(weights - 0.3 * dense(weights)[1])
    np.testing.assert_allclose(learned.weights, weights, atol=1e-13)
    assert learned.n_iter == 5


class Quadratic:
    """``0.5 sum_v curvature_v (w_v - target_v)²``."""

    def __init__(self, curvature, target):
        self.curvature, self.target = curvature, target
        self.n_patterns = len(target)
        self.n_evaluations = 0

    def value(self, weights):
        return self.value_and_gradient(weights)[0]

    def value_and_gradient(self, weights):
        self.n_evaluations += 1
        away = weights - self.target
        return 0.5 * float(self.curvature @ away**2), self.curvature * away


@pytest.mark.parametrize("solve", [projected_gradient, projected_quasi_newton])
def test_a_known_optimum_inside_and_outside(solve):
    rng = np.random.default_rng(0)
    ball = CONSTRAINT_SETS["ball"](np.array([0, 6]), np.array([1.0]))
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


def test_an_objective_of_zero_counts_as_reached():
    ball = CONSTRAINT_SETS["ball"](np.array([0, 3]), np.array([1.0]))
    certificate = Certificate(ball, tol=1e-4)
    certificate.observe(np.ones(3), 0.0, np.zeros(3))
    certificate.record(0.0)
    assert certificate.gaps == [0.0]
    assert certificate.converged
