"""Classes by Laplace's approximation, to be held against regression on labels.

The labels of a Gaussian process classifier are not normal given the latent function, so its
posterior has no closed form; Laplace's approximation replaces it by the normal distribution at its
mode (Rasmussen and Williams 2006, section 3.4). `GraphClassifier` regresses on labels of +1 and -1
instead. Both are given the same learned kernel here; the scale of the latent function, which means
something else to either, is chosen anew by the approximate evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit

_MOST_STEPS = 100
_TOLERANCE = 1e-9
AMPLITUDES = tuple(float(a) for a in np.logspace(-1, 3, 13))


@dataclass(frozen=True)
class LaplacePosterior:
    """Where the latent function is, given the labels.

    Attributes
    ----------
    gradient : ndarray, shape (n,)
        Of the log likelihood at the mode: the mean of a new graph is ``k @ gradient``.
    root : ndarray, shape (n,)
        Square root of minus the second derivatives.
    factor : ndarray, shape (n, n)
        Lower Cholesky factor of ``I + root K root``.
    evidence : float
        The approximate log marginal likelihood.
    amplitude : float
        What the kernel is multiplied by.
    """

    gradient: np.ndarray
    root: np.ndarray
    factor: np.ndarray
    evidence: float
    amplitude: float

    def probability(self, rows: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Of +1, for new graphs with kernel values ``rows`` (n_new, n) and ``own`` (n_new,)."""
        rows, own = self.amplitude * rows, self.amplitude * own
        mean = rows @ self.gradient
        reduced = solve_triangular(self.factor, (rows * self.root).T, lower=True)
        variance = np.maximum(own - (reduced**2).sum(axis=0), 0.0)
        # The logistic function averaged over a normal distribution, to good accuracy (MacKay 1992).
        return expit(mean / np.sqrt(1.0 + np.pi * variance / 8.0))


def laplace_posterior(kernel: np.ndarray, signs: np.ndarray, amplitude: float) -> LaplacePosterior:
    """Newton's method for the mode under a logistic likelihood.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
    signs : ndarray, shape (n,)
        Labels of +1 and -1.
    amplitude : float
    """
    scaled = amplitude * kernel
    latent = np.zeros(len(signs))
    objective = -np.inf
    for _ in range(_MOST_STEPS):
        probability = expit(latent)
        curvature = probability * (1.0 - probability)
        root = np.sqrt(curvature)
        factor = cholesky(np.eye(len(signs)) + root[:, None] * scaled * root, lower=True)
        gradient = 0.5 * (signs + 1.0) - probability
        pulled = curvature * latent + gradient
        solved = cho_solve((factor, True), root * (scaled @ pulled))
        weights = pulled - root * solved
        latent = scaled @ weights
        last, objective = objective, _log_posterior(weights, latent, signs)
        if objective - last < _TOLERANCE:
            break
    evidence = objective - float(np.log(np.diagonal(factor)).sum())
    return LaplacePosterior(0.5 * (signs + 1.0) - expit(latent), root, factor, evidence, amplitude)


def best_laplace(kernel: np.ndarray, signs: np.ndarray) -> LaplacePosterior:
    """The amplitude of the largest approximate evidence."""
    candidates = (laplace_posterior(kernel, signs, amplitude) for amplitude in AMPLITUDES)
    return max(candidates, key=lambda posterior: posterior.evidence)


def _log_posterior(weights: np.ndarray, latent: np.ndarray, signs: np.ndarray) -> float:
    fit = -float(np.logaddexp(0.0, -signs * latent).sum())
    return fit - 0.5 * float(weights @ latent)
