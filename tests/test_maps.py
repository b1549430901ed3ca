"""Maps of targets: there and back, and integrals over normal variables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from treelens.maps import Logarithm, Logit, SmoothScores
from treelens.targets import natural_bounds

RNG = np.random.default_rng(0)
SKEWED = np.exp(RNG.normal(size=400))
SCALES = {
    "log10": Logarithm("log10"),
    "ln": Logarithm("ln"),
    "logit": Logit(0.0, 100.0),
    "scores": SmoothScores.fit(SKEWED, 0.0),
}


def in_units(name):
    """Values that are well inside the bounds of a scale."""
    return np.linspace(2.0, 98.0, 30) if name == "logit" else np.quantile(SKEWED, (0.1, 0.4, 0.9))


@pytest.mark.parametrize("name", SCALES)
def test_inverse_undoes_forward_and_slopes_are_derivatives(name):
    scale, values = SCALES[name], in_units(name)
    np.testing.assert_allclose(scale.inverse(scale.forward(values)), values, rtol=1e-12)
    step = 1e-6 * values
    difference = (scale.forward(values + step) - scale.forward(values - step)) / (2 * step)
    np.testing.assert_allclose(scale.slope(values), difference, rtol=1e-6)
    assert (np.diff(scale.forward(np.sort(values))) > 0).all()


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("std", [0.05, 0.6])
def test_means_and_deviations_are_integrals(name, std):
    scale, middle = SCALES[name], float(SCALES[name].forward(in_units(name))[1])

    def moment(power):
        def density(z):
            value = scale.inverse(np.array([z]))[0]
            return value**power * stats.norm.pdf(z, middle, std)

        ends = middle - 10 * std, middle + 10 * std
        inside = getattr(scale, "scores", np.empty(0))
        breaks = inside[(inside > ends[0]) & (inside < ends[1])]
        return integrate.quad(density, *ends, points=breaks if len(breaks) else None, limit=300)[0]

    mean = scale.inverse_mean(np.array([middle]), np.array([std]))[0]
    deviation = scale.inverse_std(np.array([middle]), np.array([std]))[0]
    # A piecewise linear inverse has kinks, where quadrature by 32 nodes is less exact.
    rtol = 1e-2 if name == "scores" else 1e-5
    assert mean == pytest.approx(moment(1), rel=rtol)
    assert deviation == pytest.approx(np.sqrt(moment(2) - moment(1) ** 2), rel=3 * rtol)


@pytest.mark.parametrize("name", SCALES)
def test_covariances_are_those_of_draws(name):
    scale = SCALES[name]
    mean = scale.forward(in_units(name)[:3])
    factor = np.array([[0.3, 0.0, 0.0], [0.25, 0.1, 0.0], [-0.2, 0.2, 0.1]])
    cov = factor @ factor.T
    drawn = scale.inverse(mean + RNG.normal(size=(200_000, 3)) @ factor.T)
    found, expected = scale.inverse_cov(mean, cov), np.cov(drawn.T)
    size = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
    np.testing.assert_allclose(found / size, expected / size, atol=0.02)


def test_logits_stay_within_their_bounds_and_take_these():
    scale = Logit(0.0, 1.0)
    ends = scale.forward(np.array([0.0, 1.0]))
    assert np.isfinite(ends).all()
    np.testing.assert_allclose(scale.inverse(ends), [0.0, 1.0], atol=1e-12)
    assert scale.inverse(np.array([-40.0, 40.0])).tolist() == [0.0, 1.0]
    assert scale.allows(np.array([-0.1, 0.5, 1.1])).tolist() == [False, True, False]


def test_scores_are_nearly_normal_and_go_on_beyond_the_values():
    scores = SCALES["scores"].forward(SKEWED)
    assert stats.kstest(scores, "norm").pvalue > 0.2
    assert abs(stats.skew(scores)) < 0.3 < stats.skew(SKEWED)
    far = SCALES["scores"].forward(np.array([SKEWED.max(), 10 * SKEWED.max()]))
    assert far[1] > far[0] + 1.0
    assert SCALES["scores"].inverse(np.array([-50.0])).tolist() == [0.0]  # nothing is negative


def test_values_that_many_share_do_not_make_steep_scores():
    """A quarter of the values at an assay's limit: no density there grows without bound."""
    piled = np.concatenate([np.full(100, 3.0), 3.0 + RNG.exponential(20.0, size=300)])
    scale = SmoothScores.fit(piled)
    assert scale.slope(piled).max() * np.std(piled) < 50.0
    assert SmoothScores.fit(np.ones(10)) is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=60, unique=True))
@settings(max_examples=60, deadline=None)
def test_scores_of_any_numbers_ascend(values):
    scale = SmoothScores.fit(np.array(values))
    if scale is not None:
        scale.validate()
        scores = scale.forward(np.sort(values))
        assert (np.diff(scores) >= -1e-12 * np.abs(scores).max()).all()  # but for rounding


def test_bounds_are_those_that_values_suggest():
    assert natural_bounds(np.array([3.0, 99.0])) == (0.0, 100.0)
    assert natural_bounds(np.array([3.0, 9.0]))[0] == 0.0
    low, high = natural_bounds(np.array([-1.0, 99.0]))
    assert low < -1e6
    assert high > 1e6
