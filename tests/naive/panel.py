"""A joint Gaussian process over cells, as one would write it with loops."""

import numpy as np


def covariance(kernels, shared, left, right):
    """Between cells, pairs of (graph, endpoint)."""
    return np.array(
        [
            [sum(b[t, s] * k[g, h] for k, b in zip(kernels, shared, strict=True)) for h, s in right]
            for g, t in left
        ]
    )


def predict(kernels, shared, noise, cells, values, new):
    """Means and covariances of new cells given measured ones; kernels are among all graphs."""
    among = covariance(kernels, shared, cells, cells)
    among += np.diag([noise[t] for _, t in cells])
    across = covariance(kernels, shared, new, cells)
    gain = np.linalg.solve(among, across.T).T
    left = covariance(kernels, shared, new, new) - gain @ across.T
    return gain @ values, left


def objective(kernels, shared, noise, cells, values):
    """Minus the log evidence, up to a constant; ``noise`` is of cells."""
    among = covariance(kernels, shared, cells, cells) + np.diag(noise)
    return 0.5 * (values @ np.linalg.solve(among, values) + np.linalg.slogdet(among)[1])


def predict_through(kernels, shared, landmarks, cells, values, noise, new):
    """As :func:`predict`, the covariance of cells projected on landmarks; ``noise`` is of cells."""
    among = covariance(kernels, shared, landmarks, landmarks)
    across = covariance(kernels, shared, cells, landmarks)
    weighed = across.T / noise
    inverse = np.linalg.inv(among + weighed @ across)
    ours = covariance(kernels, shared, new, landmarks)
    left = covariance(kernels, shared, new, new) - ours @ np.linalg.solve(among, ours.T)
    return ours @ inverse @ weighed @ values, left + ours @ inverse @ ours.T
