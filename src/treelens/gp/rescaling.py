"""Amplitude and noise, fitted again on more graphs than weights were learned from.

Graphs that contradict each other are rarer in a sample than in all of the data, so the noise of a
sample is a little too small. Given the shape of the kernel two numbers are left, and each step of
their search takes one factor of the covariance and half an inverse. Curvature is the average of the
observed and the expected one (Gilmour, Thompson and Cullis 1995), which takes two solves.
"""

from __future__ import annotations

import numpy as np

from treelens.gp.posterior import (
    ExactPosterior,
    inverse_of_triangle,
    solve_factored,
    squares_of_rows,
)

_MOST_STEPS = 5
_SMALL_GAIN = 1e-4  # nats per graph: with no more to be gained, the search ends
_LONGEST = 4.0  # of a step, in logarithms
_SURE = 0.5  # a shorter one is so near the minimum that it needs no second look


def rescaled(
    kernel: np.ndarray,
    noise: np.ndarray,
    targets: np.ndarray,
    fixed: np.ndarray,
    dtype: type = np.float64,
    n_jobs: int = 1,
) -> tuple[float, float]:
    """Return the most likely factors of a covariance and of noise variances.

    ``kernel`` (n, n) is without noise, ``noise`` (n,) are the variances, ``fixed`` (n,) those that
    no factor changes, and ``targets`` (n, p).
    """
    logs, least, step = np.zeros(2), np.inf, np.zeros(2)  # of amplitude and noise
    for _ in range(_MOST_STEPS):
        tried = logs + step
        value, wanted, gain = _quadratic_model(
            float(np.exp(tried[0])) * kernel.astype(dtype),
            np.exp(tried[1]) * noise,
            targets,
            fixed,
            n_jobs,
        )
        if value > least:
            step = 0.25 * step
            continue
        logs, least = tried, value
        if gain < _SMALL_GAIN * len(noise):
            break
        step = wanted * min(1.0, _LONGEST / float(np.abs(wanted).max()))
        if np.abs(step).max() < _SURE:
            logs = logs + step
            break
    return float(np.exp(logs[0])), float(np.exp(logs[1]))


def _quadratic_model(
    kernel: np.ndarray, noise: np.ndarray, targets: np.ndarray, fixed: np.ndarray, n_jobs: int
) -> tuple[float, np.ndarray, float]:
    """Minus the log evidence, the step to where a model of it is least, and the gain expected."""
    posterior = ExactPosterior.fit(kernel, noise + fixed, targets, n_jobs)
    value = -posterior.log_evidence(targets)
    alpha, (n, n_columns) = posterior.coefficients, targets.shape
    of_noise = noise[:, None] * alpha  # (n, n_columns), the noise covariance times alpha
    of_kernel = targets - of_noise - fixed[:, None] * alpha
    parts = np.stack([of_kernel, of_noise], axis=1)  # (n, 2, n_columns)
    solved = solve_factored(posterior.factor, parts.reshape(n, -1), n_jobs).reshape(parts.shape)
    fits = np.einsum("nip,np->i", parts, alpha) / n_columns
    curvature = 0.5 * np.einsum("nip,njp->ij", parts, solved) / n_columns
    precision = squares_of_rows(inverse_of_triangle(posterior.factor, n_jobs))
    trace, rest = float(noise @ precision), float(fixed @ precision)
    slopes = 0.5 * (np.array([n - trace - rest, trace]) - fits)
    step = -np.linalg.pinv(curvature, hermitian=True) @ slopes  # targets may all be zero
    if fits[1] > np.exp(1.0) * trace:  # far too little noise: there the model is too cautious
        step = np.array([0.0, np.log(fits[1] / trace)])
    return value, step, -0.5 * float(slopes @ step)
