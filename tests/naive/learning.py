"""Plain-Python twins of the learning room's compiled loops, and its objective by definition."""

import numpy as np

from treelens.pairwise.objective import Margins
from treelens.patterns.histograms import PairFeatures


def row(features: PairFeatures, graph: int) -> dict[int, float]:
    """Pattern -> value of one graph."""
    entries = slice(features.rows.offsets[graph], features.rows.offsets[graph + 1])
    patterns = features.rows.indices[entries].tolist()
    return dict(zip(patterns, features.rows.values[entries].tolist(), strict=True))


def pair_feature(features: PairFeatures, i: int, j: int) -> np.ndarray:
    """``Z(i, j)`` written out, shape (n_patterns,)."""
    z = np.zeros(features.n_patterns)
    left, right = row(features, i), row(features, j)
    for pattern in left.keys() & right.keys():
        x, y = left[pattern], right[pattern]
        z[pattern] = min(x, y) if features.minimum else x * y
    return z * features.scale[i] * features.scale[j]


def all_pair_features(features: PairFeatures) -> np.ndarray:
    """``Z`` of all ordered pairs, shape (n_graphs, n_graphs, n_patterns)."""
    n = features.n_graphs
    return np.array([[pair_feature(features, i, j) for j in range(n)] for i in range(n)])


def hinge(distance: float, same: bool, margins: Margins) -> tuple[float, float]:
    """Smoothed hinge and its slope in the distance, piece by piece as they are defined."""
    sigma = margins.sigma
    if same:
        if distance <= margins.alpha2:
            return 0.0, 0.0
        if distance >= margins.alpha2 + sigma:
            return distance - margins.alpha2 - sigma / 2, 1.0
        return (distance - margins.alpha2) ** 2 / (2 * sigma), (distance - margins.alpha2) / sigma
    if distance >= margins.alpha1:
        return 0.0, 0.0
    if distance <= margins.alpha1 - sigma:
        return margins.alpha1 - sigma / 2 - distance, -1.0
    return (distance - margins.alpha1) ** 2 / (2 * sigma), (distance - margins.alpha1) / sigma


def ordered_pair_weights(labels: np.ndarray, balance: bool) -> np.ndarray:
    """Weights of all ordered pairs, shape (n_graphs, n_graphs), sum 1."""
    same = labels[:, None] == labels[None, :]
    if not balance:
        return np.full(same.shape, 1.0 / same.size)
    return np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())


def objective(
    z: np.ndarray,
    labels: np.ndarray,
    pair_weights: np.ndarray,
    weights: np.ndarray,
    margins: Margins,
) -> tuple[float, np.ndarray]:
    """Value and gradient, pair by pair, from ``Z`` written out (n_graphs, n_graphs, n_patterns)."""
    total, gradient = 0.0, np.zeros(len(weights))
    for i in range(len(labels)):
        for j in range(len(labels)):
            distance = margins.b - weights @ z[i, j]
            value, slope = hinge(distance, labels[i] == labels[j], margins)
            total += pair_weights[i, j] * value
            gradient -= pair_weights[i, j] * slope * z[i, j]
    return total, gradient


def stochastic_steps(
    features: PairFeatures,
    labels: np.ndarray,
    draws: list[tuple[int, int, float]],
    margins: Margins,
    step_size: float,
    project,
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 on dense vectors: the last weights and the mean of all."""
    weights = np.ones(features.n_patterns)
    total = np.zeros(features.n_patterns)
    for i, j, factor in draws:
        z = pair_feature(features, i, j)
        _, slope = hinge(margins.b - weights @ z, labels[i] == labels[j], margins)
        weights = project(weights + step_size * factor * slope * z)
        total += weights
    return weights, total / len(draws)
