"""Normal scores: ranks on the scale of a normal distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from treelens.maps import NormalScores
from treelens.storage.state import from_state, to_state


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_scores_are_those_of_mean_ranks_and_go_both_ways(numbers):
    numbers = np.array(numbers, dtype=float)
    scores = NormalScores.fit(numbers)
    expected = norm.ppf((rankdata(numbers) - 0.5) / len(numbers))
    np.testing.assert_allclose(scores.forward(numbers), expected, atol=1e-12)
    np.testing.assert_allclose(scores.inverse(scores.forward(numbers)), numbers, atol=1e-9)
    np.testing.assert_allclose(
        scores.forward(numbers + 100.0), expected.max(), atol=1e-12
    )  # flat beyond the largest


def test_of_many_numbers_some_are_kept():
    numbers = np.random.default_rng(0).lognormal(size=5000)
    scores = NormalScores.fit(numbers)
    assert len(scores.values) == 200
    expected = norm.ppf((rankdata(numbers) - 0.5) / len(numbers))
    found = scores.forward(numbers)
    assert np.abs(found - expected).max() < 0.3
    assert np.abs(found - expected).mean() < 0.01
    assert (found.min(), found.max()) == pytest.approx((expected.min(), expected.max()))


def test_a_map_that_does_not_ascend_is_refused():
    tree, arrays = to_state(
        NormalScores(np.array([1.0, 2.0]), np.array([0.0, 1.0])), {"NormalScores": NormalScores}
    )
    assert from_state(tree, arrays, {"NormalScores": NormalScores}).values.tolist() == [1.0, 2.0]
    arrays = {name: array[::-1].copy() for name, array in arrays.items()}
    with pytest.raises(ValueError, match="ascend"):
        from_state(tree, arrays, {"NormalScores": NormalScores})


def test_slopes_are_those_between_knots_and_none_beyond():
    scores = NormalScores.fit(np.array([1.0, 2.0, 4.0, 8.0]))
    inside = np.array([1.5, 2.0, 3.9, 7.0])
    expected = (scores.forward(inside + 1e-6) - scores.forward(inside)) / 1e-6
    np.testing.assert_allclose(scores.slope(inside), expected, rtol=1e-5)
    assert scores.slope(np.array([0.0, 9.0])).tolist() == [0.0, 0.0]
    assert NormalScores.fit(np.ones(3)).slope(np.array([1.0])).tolist() == [0.0]
