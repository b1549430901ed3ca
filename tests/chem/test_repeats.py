"""Replicates of molecules: whether they lie apart by a size or by a share of the value."""

import numpy as np
import pytest

from treelens.chem.repeats import merged_measurements
from treelens.targets import Targets

N, SHARE, SIZE = 40, 0.1, 2.0


def two_of_each(spread: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Values of molecules from 1 to 10,000, each measured twice, and the first row of each."""
    rng = np.random.default_rng(seed)
    true, noise = np.repeat(np.logspace(1.0, 4.0, N), 2), rng.normal(size=2 * N)
    values = true * np.exp(SHARE * noise) if spread == "share" else true + SIZE * noise
    return values, np.repeat(2 * np.arange(N), 2)


@pytest.mark.parametrize("spread", ["share", "size"])
def test_noise_is_that_of_replicates_on_any_scale(spread):
    values, groups = two_of_each(spread)
    merged, clear, found = merged_measurements(Targets(values), groups)
    assert clear.all()
    assert found.relative == (spread == "share")
    expected = SHARE * merged.values if spread == "share" else np.full(N, SIZE)
    np.testing.assert_allclose(merged.noise * np.sqrt(2.0), expected, rtol=0.4)
    assert ("%" in found.in_words(None)) == found.relative


def test_small_values_keep_their_say_on_a_logarithm():
    """A noise of one size would be hundreds of times a value near the smallest."""
    values, groups = two_of_each("share")
    merged, _, _ = merged_measurements(Targets(values), groups)
    asked = Targets(merged.values, noise=merged.noise, transform="ln").learned_noise()
    np.testing.assert_allclose(asked, asked[0])
    assert asked[0] == pytest.approx(SHARE / np.sqrt(2.0), rel=0.4)


def test_a_scale_that_is_named_and_values_below_zero_have_a_noise_of_one_size():
    values, groups = two_of_each("share")
    for targets in (Targets(values, transform="none"), Targets(values - values.min())):
        _, _, found = merged_measurements(targets, groups)
        assert not found.relative
