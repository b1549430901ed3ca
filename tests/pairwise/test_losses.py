"""The hinges: their pieces and their joints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import learning as naive
from treelens.pairwise import losses
from treelens.pairwise.objective import Margins

ALPHA1, ALPHA2, SIGMA = 3.0, 2.0, 1.5
MARGINS = Margins(ALPHA1, ALPHA2, SIGMA)
DISTANCES = st.floats(-10, 10)


def different(d):
    return losses.smooth_hinge_different(d, ALPHA1, SIGMA)


def same(d):
    return losses.smooth_hinge_same(d, ALPHA2, SIGMA)


@given(DISTANCES)
def test_pieces_are_those_of_the_definition(d):
    for is_same, value in ((True, same), (False, different)):
        expected, slope = naive.hinge(d, is_same, MARGINS)
        assert value(d) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        h = 1e-6
        assert (value(d + h) - value(d - h)) / (2 * h) == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize(
    ("value", "knots"),
    [(different, (ALPHA1, ALPHA1 - SIGMA)), (same, (ALPHA2, ALPHA2 + SIGMA))],
)
def test_continuous_with_continuous_slope_at_the_knots(value, knots):
    for knot in knots:
        below, at, above = (value(np.float64(knot + e)) for e in (-1e-6, 0.0, 1e-6))
        assert below == pytest.approx(at, abs=2e-6)
        assert (above - at) == pytest.approx(at - below, abs=2e-12)


@given(DISTANCES)
def test_smoothing_goes_to_the_hinge(d):
    """Never above the hinge, at most half the width below it, and equal in the limit."""
    plain = max(ALPHA1 - d, 0.0), max(d - ALPHA2, 0.0)
    for hinge, smooth in zip(plain, (different(d), same(d)), strict=True):
        assert hinge - SIGMA / 2 - 1e-12 <= smooth <= hinge + 1e-12
    tiny = losses.smooth_hinge_same(d, ALPHA2, 1e-9)
    assert tiny == pytest.approx(plain[1], abs=1e-8)
