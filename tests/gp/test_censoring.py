"""Limits: sites against numerical integration, gradients, extremes, and nothing where none are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from naive import censoring as naive
from strategies import random_collection
from treelens.gp import _compiled
from treelens.gp.censoring import CensoredEvidence, Limits, fit_sites
from treelens.gp.choice import log_densities
from treelens.gp.data import CountedView, TrainingData
from treelens.gp.evidence import EvidenceParameters
from treelens.gp.posterior import Conditioned, ExactPosterior, ScaledTargets
from treelens.gp.terms import TermParameters
from treelens.patterns.forest import PatternForest


def _log_z(limits, mean, covariance, sites):
    spread = covariance + np.diag(sites.variance)
    return stats.multivariate_normal.logpdf(sites.mean, mean, spread) + sites.log_ratio(limits)


def _posterior(mean, covariance, sites):
    """Moments of f given the sites."""
    gain = covariance @ np.linalg.inv(covariance + np.diag(sites.variance))
    return mean + gain @ (sites.mean - mean), np.diag(covariance - gain @ covariance)


@pytest.mark.parametrize("limit", [-4.0, -1.0, 0.0, 1.5, 6.0, 40.0])
@pytest.mark.parametrize("sign", [-1, 1])
def test_one_limit_is_exact(limit, sign):
    mean, covariance, noise = np.array([0.3]), np.array([[1.4]]), 0.2
    limits = Limits(np.array([limit]), np.array([sign]), np.array([noise]))
    sites = fit_sites(limits, mean, covariance)
    z = sign * (0.3 - limit) / np.sqrt(1.6)
    assert _log_z(limits, mean, covariance, sites) == pytest.approx(special.log_ndtr(z), abs=1e-6)

    def weight(f, power):  # relative to its largest value, which may underflow
        log = stats.norm.logpdf(f, 0.3, np.sqrt(1.4)) + special.log_ndtr(
            sign * (f - limit) / np.sqrt(noise)
        )
        return f**power * np.exp(log - special.log_ndtr(z))

    middle = _posterior(mean, covariance, sites)[0][0]
    around = {"limit": 500, "points": [middle]}
    first, second = (
        integrate.quad(weight, middle - 12, middle + 12, (power,), **around)[0] for power in (1, 2)
    )
    found = _posterior(mean, covariance, sites)
    assert found[0][0] == pytest.approx(first, abs=2e-5)
    assert found[1][0] == pytest.approx(second - first**2, abs=2e-5)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.floats(-6, 3),
    st.floats(-8, 8),
    st.floats(0, 0.9999),
)
def test_extremes_stay_finite_and_converge(seed, n, log_noise, log_limit, correlation):
    """Far limits on either side, little noise, nearly equal graphs."""
    rng = np.random.default_rng(seed)
    covariance = correlation * np.ones((n, n)) + (1 - correlation) * np.eye(n)
    values = rng.normal(size=n) * np.exp(log_limit)
    limits = Limits(values, rng.choice([-1, 1], n), np.full(n, 10.0**log_noise))
    sites = fit_sites(limits, np.zeros(n), covariance)
    assert all(np.isfinite(part).all() for part in sites)
    assert (sites.variance >= 0.999 * limits.noise).all()
    if log_noise > -4 and log_limit < 3:  # beyond, rounding is all that still changes
        mean, precision = _compiled.matched_sites(*limits, *sites[2:], 1e-6)
        spread = sites.cavity_variance
        np.testing.assert_allclose(
            precision * spread, spread / sites.variance, rtol=0.01, atol=1e-3
        )
        assert (
            np.abs(mean * precision - sites.mean / sites.variance) * np.sqrt(spread)
            <= 0.01 * (1 + np.abs(mean) * precision * np.sqrt(spread))
        ).all()
    assert np.isfinite(_log_z(limits, np.zeros(n), covariance, sites))


def test_many_equal_limits_on_equal_graphs_converge_to_one_truth():
    """A hundred copies of a graph, all above zero: one number decides all, by quadrature."""
    n, noise = 100, 0.05
    covariance = np.ones((n, n)) + 1e-9 * np.eye(n)
    limits = Limits(np.zeros(n), np.ones(n, dtype=int), np.full(n, noise))
    sites = fit_sites(limits, np.full(n, -0.5), covariance)
    f = np.linspace(-6, 6, 40001)
    weight = np.exp(stats.norm.logpdf(f, -0.5, 1) + n * special.log_ndtr(f / np.sqrt(noise)))
    mean = (f * weight).sum() / weight.sum()
    assert _posterior(np.full(n, -0.5), covariance, sites)[0][0] == pytest.approx(mean, abs=0.05)


@pytest.mark.interpreted
def test_hazard_keeps_its_digits_far_out():
    """Against the asymptotic series far out, scipy elsewhere."""
    z = np.array([-1e9, -3e4, -300.0])
    ratio, beyond = np.transpose([_compiled.hazard(x) for x in z])
    np.testing.assert_allclose(ratio, -z - 1 / z + 2 / z**3, rtol=1e-13)
    np.testing.assert_allclose(beyond, -1 / z + 2 / z**3 - 10 / z**5, rtol=1e-12)
    z = np.array([-30.0, -6.0001, -5.9999, -3.0, 0.0, 3.0, 9.0, 50.0])
    ratio, beyond = np.transpose([_compiled.hazard(x) for x in z])
    expected = np.sqrt(2 / np.pi) / special.erfcx(-z / np.sqrt(2))
    np.testing.assert_allclose(ratio, expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(beyond, z + expected, rtol=1e-9)


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(3))
def test_sites_agree_with_their_twin(seed):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(6, 7))
    covariance, mean = half @ half.T / 7 + 0.05 * np.eye(6), rng.normal(size=6)
    limits = Limits(rng.normal(size=6), rng.choice([-1, 1], 6), rng.uniform(0.05, 1.0, 6))
    sites = fit_sites(limits, mean, covariance)
    expected, precision = naive.propagate(*limits, mean, covariance)
    np.testing.assert_allclose(1 / sites.variance, precision, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sites.mean / sites.variance, expected * precision, atol=1e-4)
    again = fit_sites(limits, mean, covariance, sites)
    np.testing.assert_allclose(again.mean, sites.mean, rtol=1e-4)


def _censored(seed, n=16):
    """A problem with limits, and parameters of all patterns."""
    rng = np.random.default_rng(seed)
    graphs = random_collection(rng, n, 7)
    forest, colors = PatternForest.fit(graphs, 2, ("labels",))
    limits, weights = rng.choice([-1, 0, 0, 0, 1], size=n), rng.uniform(0.5, 2.0, n)
    targets = ScaledTargets(rng.normal(size=(n, 1)), np.zeros(1), 1.0, weights, limits)
    view = CountedView(forest, forest.count(colors))
    problem, _ = TrainingData((view,), targets).problem(np.arange(n))
    patterns = TermParameters(
        np.log([1.3, 0.2, 1.0, 1.7]) + 0.1 * rng.normal(size=4),
        rng.normal(size=problem.terms[0].n_groups),
        rng.normal(size=problem.terms[0].n_patterns),
    )
    return problem, EvidenceParameters((patterns,), np.log(0.3) + 0.1 * rng.normal())


@pytest.mark.parametrize("learned", ["uniform", "depths", "branches"])
@pytest.mark.parametrize("seed", [0, 1])
def test_gradient_agrees_with_differences(seed, learned):
    problem, parameters = _censored(seed)
    value, gradient = CensoredEvidence(problem)(parameters, learned)
    assert CensoredEvidence(problem).value(parameters) == pytest.approx(value, abs=1e-6)
    start, step = problem.vector(parameters, learned), 1e-4
    assert len(start) == len(gradient)
    for k in range(len(gradient)):
        at = [start.copy(), start.copy()]
        at[0][k] += step
        at[1][k] -= step
        moved = (problem.replaced(parameters, x, learned) for x in at)
        up, down = (CensoredEvidence(problem).value(each) for each in moved)
        assert gradient[k] == pytest.approx((up - down) / (2 * step), abs=2e-4)


def test_the_evidence_is_that_of_the_measurements():
    """Against the probability of all limits given the exact values, by scipy's integration."""
    problem, parameters = _censored(2)
    limits = problem.limits
    noise = np.diag(parameters.noise * problem.noise_factors)
    matrix = problem.kernel_matrix(parameters) + noise
    exact, few = limits == 0, limits != 0
    y, sign = problem.targets[:, 0], limits[few]
    solved = np.linalg.solve(matrix[np.ix_(exact, exact)], matrix[np.ix_(exact, few)])
    mean = solved.T @ y[exact]
    left = matrix[np.ix_(few, few)] - matrix[np.ix_(few, exact)] @ solved
    spread = left * np.outer(sign, sign)
    held = stats.multivariate_normal.cdf(
        sign * (mean - y[few]), np.zeros(few.sum()), spread, abseps=1e-8, releps=1e-6
    )
    density = stats.multivariate_normal.logpdf(
        y[exact], np.zeros(exact.sum()), matrix[np.ix_(exact, exact)]
    )
    constant = 0.5 * problem.n_graphs * np.log(2 * np.pi)
    found = problem.prior_value(parameters) - CensoredEvidence(problem).value(parameters)
    assert found - constant == pytest.approx(np.log(held) + density, abs=0.02)


def test_limits_that_are_certain_to_hold_say_nothing():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(9, 12))
    kernel = half @ half.T / 12 + 0.1 * np.eye(9)
    values, limits = rng.normal(size=(9, 1)), np.array([0, 0, 1, 0, 0, -1, 0, 0, 0])
    values[2], values[5] = -60.0, 60.0
    targets, exact = ScaledTargets(values, np.zeros(1), 1.0, np.ones(9), limits), limits == 0
    assert targets.select(exact).limits is None
    found = Conditioned.fit(targets, kernel.copy(), 0.2)
    posterior = found.posterior
    plain = kernel[np.ix_(exact, exact)].copy()
    without = ExactPosterior.fit(plain, np.full(7, 0.2), values[exact])
    rows = rng.normal(size=(4, 9))
    np.testing.assert_allclose(
        rows @ posterior.coefficients, rows[:, exact] @ without.coefficients, atol=1e-4
    )
    left_out = found.leave_one_out()
    expected = without.leave_one_out(values[exact])
    np.testing.assert_allclose(left_out.mean[exact], expected.mean, atol=1e-4)
    np.testing.assert_allclose(left_out.variance[exact], expected.variance, atol=1e-4)
    # Of a limit, the prediction from all others, with the noise of a measurement.
    mean = kernel[2, exact] @ without.coefficients[:, 0]
    variance = kernel[2, 2] + 0.2 - without.reduction(kernel[[2]][:, exact])[0]
    assert left_out.mean[2, 0] == pytest.approx(mean, abs=1e-4)
    assert left_out.variance[2] == pytest.approx(variance, abs=1e-4)


def test_densities_of_limits_are_probabilities():
    values, mean, variance = np.zeros((3, 1)), np.full((3, 1), 0.7), np.full(3, 2.0)
    found = log_densities(values, mean, variance, np.array([0, 1, -1]))
    above = stats.norm.sf(0.0, 0.7, np.sqrt(2.0))
    np.testing.assert_allclose(
        found, [stats.norm.logpdf(0.0, 0.7, np.sqrt(2.0)), np.log(above), np.log(1 - above)]
    )
