"""Expectation propagation for limits, one site after the other, in plain numpy."""

import numpy as np
from scipy import special, stats


def hazard(z):
    """``phi(z) / Phi(z)``."""
    return np.exp(stats.norm.logpdf(z) - special.log_ndtr(z))


def propagate(values, signs, noise, mean, covariance, n_sweeps=100):
    """Means and precisions of the sites of limits under a normal prior.

    The posterior is computed anew after every site.
    """
    n = len(values)
    precision, natural = np.full(n, 1e-6), np.zeros(n)
    for _ in range(n_sweeps):
        for i in range(n):
            inverse = np.linalg.inv(covariance)
            spread = np.linalg.inv(inverse + np.diag(precision))
            at = spread @ (inverse @ mean + natural)
            variance = 1.0 / (1.0 / spread[i, i] - precision[i])
            cavity = variance * (at[i] / spread[i, i] - natural[i])
            total = variance + noise[i]
            z = signs[i] * (cavity - values[i]) / np.sqrt(total)
            h = hazard(z)
            new_mean = cavity + signs[i] * variance * h / np.sqrt(total)
            new_variance = variance - variance**2 * h * (z + h) / total
            precision[i] = 1.0 / new_variance - 1.0 / variance
            natural[i] = new_mean / new_variance - cavity / variance
    return natural / precision, precision
