"""Amplitude and noise given the shape of the kernel, against a search by SciPy."""

import numpy as np
import pytest
from scipy import optimize
from scipy.stats import multivariate_normal

from treelens.gp.rescaling import rescaled


@pytest.fixture
def drawn(rng):
    """Targets of a process whose amplitude is 2 and whose noise is .5; a ninth has known noise."""
    points = rng.normal(size=(150, 2))
    kernel = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
    known = np.arange(150) % 9 == 0
    fixed, noise = np.where(known, 0.4, 0.0), np.where(known, 0.0, rng.uniform(0.5, 2.0, 150))
    covariance = 2.0 * kernel + np.diag(0.5 * noise + fixed)
    return kernel, noise, fixed, rng.multivariate_normal(np.zeros(150), covariance, size=2).T


@pytest.mark.parametrize("start", [1e-4, 0.3, 100.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_both_factors_maximise_the_likelihood(drawn, start, dtype):
    kernel, noise, fixed, targets = drawn

    def objective(logs):
        covariance = np.exp(logs[0]) * kernel + np.diag(np.exp(logs[1]) * noise + fixed)
        process = multivariate_normal(np.zeros(150), covariance)
        return -process.logpdf(targets.T).mean()

    least = optimize.minimize(objective, [0.0, 0.0]).fun
    before = kernel.copy()
    of_kernel, of_noise = rescaled(kernel, start * noise, targets, fixed, dtype)
    assert objective(np.log([of_kernel, start * of_noise])) - least < 0.05
    np.testing.assert_array_equal(kernel, before)


def test_equal_targets_leave_everything_finite(drawn):
    kernel, noise, fixed, targets = drawn
    assert np.isfinite(rescaled(kernel, noise, 0.0 * targets, fixed)).all()
