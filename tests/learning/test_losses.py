"""The hinges: their pieces, their joints, their slopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import learning as naive
from treelens.learning import losses
from treelens.learning.objective import Margins

ALPHA1, ALPHA2, SIGMA = 3.0, 2.0, 1.5
MARGINS = Margins(ALPHA1, ALPHA2, SIGMA)
DISTANCES = st.floats(-10, 10)


def different(d):
    return losses.smooth_hinge_different(d, ALPHA1, SIGMA)


def same(d):
    return losses.smooth_hinge_same(d, ALPHA2, SIGMA)


def different_slope(d):
    return losses.smooth_hinge_different_slope(d, ALPHA1, SIGMA)


def same_slope(d):
    return losses.smooth_hinge_same_slope(d, ALPHA2, SIGMA)


@given(DISTANCES)
def test_pieces_are_those_of_the_definition(d):
    for is_same, value, slope in ((True, same, same_slope), (False, different, different_slope)):
        expected = naive.hinge(d, is_same, MARGINS)
        np.testing.assert_allclose([value(d), slope(d)], expected, rtol=1e-12, atol=1e-12)


@given(DISTANCES)
def test_slopes_by_finite_differences(d):
    h = 1e-6
    for value, slope in ((same, same_slope), (different, different_slope)):
        assert (value(d + h) - value(d - h)) / (2 * h) == pytest.approx(slope(d), abs=1e-5)


@pytest.mark.parametrize(
    ("value", "slope", "knots"),
    [
        (different, different_slope, (ALPHA1, ALPHA1 - SIGMA)),
        (same, same_slope, (ALPHA2, ALPHA2 + SIGMA)),
    ],
)
def test_continuous_with_continuous_slope_at_the_knots(value, slope, knots):
    for knot in knots:
        for function in (value, slope):
            below, at, above = (function(np.float64(knot + e)) for e in (-1e-9, 0.0, 1e-9))
            assert below == pytest.approx(at, abs=2e-9)
            assert above == pytest.approx(at, abs=2e-9)


@given(DISTANCES)
def test_smoothing_goes_to_the_hinge(d):
    """Never above the hinge, at most half the width below it, and equal in the limit."""
    plain = losses.hinge_different(d, ALPHA1), losses.hinge_same(d, ALPHA2)
    for hinge, smooth in zip(plain, (different(d), same(d)), strict=True):
        assert hinge - SIGMA / 2 - 1e-12 <= smooth <= hinge + 1e-12
    tiny = losses.smooth_hinge_same(d, ALPHA2, 1e-9)
    assert tiny == pytest.approx(plain[1], abs=1e-8)


def test_plain_slopes_on_either_side_of_the_kink():
    d = np.array([1.0, 2.0, 3.0, 4.0])
    assert losses.hinge_different_slope(d, ALPHA1).tolist() == [-1, -1, 0, 0]
    assert losses.hinge_same_slope(d, ALPHA2).tolist() == [0, 0, 1, 1]
