"""Local factors of variances: they are found where errors are local, and only there."""

import numpy as np
import pytest

from treelens.gp.panel_spread import LocalSpread, local_surprise, most_likely_factors
from treelens.storage.state import UnstorableError, from_state, to_state


def _regions(n=400, noisy=4.0, seed=0):
    """Graphs of two regions, which are alike within; errors of the first have more variance."""
    rng = np.random.default_rng(seed)
    region = np.arange(n) % 2
    variances = np.where(region == 0, noisy, 1.0)
    variances = variances / variances.mean()
    errors = rng.normal(size=n) * np.sqrt(variances)
    similarity = np.where(region[:, None] == region, 0.9, 0.1) + 0.05 * rng.uniform(size=(n, n))
    np.fill_diagonal(similarity, 0.0)
    return region, variances, errors, similarity


def test_noisy_regions_have_wider_intervals():
    region, _, errors, similarity = _regions()
    around = local_surprise(similarity, errors**2)
    level, slope = most_likely_factors(errors, np.ones(len(errors)), around, 1)
    assert slope > 0.3
    found = LocalSpread(level, slope, errors**2).factors(similarity)
    ratio = found[region == 0].mean() / found[region == 1].mean()
    assert 1.5 < ratio < 8.0
    # the same, but errors that do not depend on the region
    _, _, errors, similarity = _regions(noisy=1.0)
    around = local_surprise(similarity, errors**2)
    level, slope = most_likely_factors(errors, np.ones(len(errors)), around, 1)
    assert slope < 0.3
    assert level < 0.1


def test_level_and_slope_are_the_most_likely():
    _, _, errors, similarity = _regions(seed=1)
    around = np.log(local_surprise(similarity, errors**2))
    at = most_likely_factors(errors, np.full(len(errors), 0.5), np.exp(around), 1)

    def objective(level, slope):
        variance = 0.5 * np.exp(level + slope * around)
        fit = 0.5 * (np.log(variance) + errors**2 / variance).sum()
        return fit + 0.5 * (level**2 + slope**2) / 0.25

    steps = [(0.02, 0.0), (-0.02, 0.0), (0.0, 0.02), (0.0, -0.02)]
    assert all(objective(at[0] + a, at[1] + b) > objective(*at) for a, b in steps)
    # nothing becomes narrower on the whole
    assert most_likely_factors(0.1 * errors, np.ones(len(errors)), np.ones(len(errors)), 1)[0] == 0


def test_files_keep_them():
    spread = LocalSpread(0.1, 0.5, np.array([1.0, 2.0]))
    tree, arrays = to_state(spread, {"LocalSpread": LocalSpread})
    found = from_state(tree, arrays, {"LocalSpread": LocalSpread})
    assert (found.level, found.slope, found.surprise.tolist()) == (0.1, 0.5, [1.0, 2.0])
    with pytest.raises(UnstorableError, match="from 0"):
        to_state(LocalSpread(-1.0, 0.5, np.ones(2)), {"LocalSpread": LocalSpread})
