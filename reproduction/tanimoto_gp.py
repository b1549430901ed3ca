"""A Gaussian process on Tanimoto similarities: the plain rival of the learned kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize

_RANGE = (1e-5, 1e3)  # of amplitude and noise, as for our own processes
_STARTS = ((0.0, np.log(0.1)), (1.0, np.log(0.3)), (0.0, np.log(0.01)))


@dataclass
class TanimotoProcess:
    """A Gaussian process with the kernel ``amplitude T``; both numbers by marginal likelihood.

    Attributes
    ----------
    amplitude, noise : float
        Variances of the process and of the noise, on the scale of standardised targets.
    evidence : float
        Log marginal likelihood of the standardised targets, their columns' mean.
    """

    amplitude: float = 1.0
    noise: float = 0.1

    def fit(self, similarity: np.ndarray, y: np.ndarray) -> TanimotoProcess:
        """From Tanimoto similarities (n, n) of training molecules and targets (n, n_columns)."""
        self.mean, self.scale = y.mean(axis=0), float(y.std(axis=0).mean()) or 1.0
        z = (y - self.mean) / self.scale
        spectrum, basis = np.linalg.eigh(similarity)
        spectrum, turned = np.maximum(spectrum, 0.0), basis.T @ z  # (n,), (n, n_columns)
        power = (turned**2).mean(axis=1)

        def surprise(log_parameters: np.ndarray) -> float:
            amplitude, noise = np.exp(np.clip(log_parameters, *np.log(_RANGE)))
            variance = amplitude * spectrum + noise
            return 0.5 * float((power / variance + np.log(variance)).sum())

        found = min(
            (optimize.minimize(surprise, start, method="Nelder-Mead") for start in _STARTS),
            key=lambda result: result.fun,
        )
        self.amplitude, self.noise = np.exp(np.clip(found.x, *np.log(_RANGE))).tolist()
        self.evidence = -float(found.fun) - 0.5 * len(z) * float(np.log(2 * np.pi))
        variance = self.amplitude * spectrum + self.noise
        self._coefficients = basis @ (turned / variance[:, None])
        self._half = basis / np.sqrt(variance)
        own = (self._half**2).sum(axis=1)  # the diagonal of the inverse covariance
        self.left_out = self.mean + self.scale * (z - self._coefficients / own[:, None])
        return self

    def predict(self, similarity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (n_new, n_columns) and standard deviations (n_new,) of new measurements.

        ``similarity`` (n_new, n): with the training molecules.
        """
        kernel = self.amplitude * similarity
        mean = self.mean + self.scale * (kernel @ self._coefficients)
        left = self.amplitude - ((kernel @ self._half) ** 2).sum(axis=1)
        return mean, self.scale * np.sqrt(np.maximum(left, 0.0) + self.noise)
