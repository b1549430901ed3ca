"""A map of the graphs: near on paper where the learned distance is small."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import eigsh

from treelens.kernels.weighted import WeightedKernel
from treelens.patterns.features import Features, select_features
from treelens.report.given import GivenGraphs
from treelens.svm.model import FittedSVM

_MOST_LANDMARKS = 1200
_MOST_POINTS = 6000
# The similarity whose distance is drawn: frequencies as they are, counts freed of graphs' sizes.
_SIMILARITY_OF_KIND = {
    "wasserstein": "wwl-linear",
    "optimal-assignment": "tanimoto",
    "subtree": "wl-subtree-cosine",
}


def map_of_graphs(model: FittedSVM, given: GivenGraphs, first: np.ndarray) -> dict:
    """Positions of the graphs, with what colours and labels them.

    Parameters
    ----------
    model : FittedSVM
    given : GivenGraphs
    first : ndarray of int
        Graphs that must be on the map, where it cannot hold all.
    """
    shown = _shown_graphs(len(given), first)
    features = select_features(given.said.graphs.features, shown)
    positions, share = place_graphs(model.kernel, features)
    placed = _on_grid(positions)
    return {
        "share_of_variance": share,
        "n_graphs": len(given),
        "index": shown,
        "x": placed[:, 0],
        "y": placed[:, 1],
        "predicted": given.predicted[shown],
        "class": None if given.codes is None else given.codes[shown],
        "probability": given.probabilities[shown, given.predicted[shown]].round(3),
    }


def place_graphs(kernel: WeightedKernel, features: Features) -> tuple[np.ndarray, float]:
    """Classical scaling of the learned distance to two dimensions.

    The squared length between two points follows the distance ``s(x,x) + s(y,y) - 2 s(x,y)`` of
    the weighted similarity ``s``; for kernels of relative frequencies that is twice the learned
    distance, as far as training knew the patterns. With many graphs, some serve as landmarks and
    the others are placed relative to these.

    Returns
    -------
    positions : ndarray, shape (n_graphs, 2)
    share : float
        How much of the variance of the landmarks the two dimensions show.
    """
    rng = np.random.default_rng(0)
    landmarks = np.sort(rng.permutation(features.pairs.n_graphs)[:_MOST_LANDMARKS])
    similarity = _similarities(kernel, features, landmarks)  # (n, n_landmarks)
    among = similarity[landmarks]
    column_means, mean = among.mean(axis=0), among.mean()
    centred = among - column_means - column_means[:, None] + mean
    values, vectors = _leading(centred)
    total = max(float(np.trace(centred)), np.finfo(float).tiny)
    rows = similarity - column_means - similarity.mean(axis=1)[:, None] + mean
    positions = rows @ (vectors / np.sqrt(np.maximum(values, 1e-12)))
    return positions, float(np.clip(values.sum() / total, 0.0, 1.0))


def _similarities(kernel: WeightedKernel, features: Features, landmarks: np.ndarray) -> np.ndarray:
    similarity = WeightedKernel(_SIMILARITY_OF_KIND[kernel.pair_feature], kernel.weights)
    return similarity.matrix(features, select_features(features, landmarks))


def _leading(centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two largest eigenvalues and their vectors, with signs that do not depend on luck."""
    n = len(centred)
    if n > 3:
        start = np.random.default_rng(0).standard_normal(n)
        found, directions = eigsh(centred, k=2, which="LA", v0=start)
    else:  # too few for an iterative solver
        found, directions = np.linalg.eigh(centred)
    order = np.argsort(-found, kind="stable")[:2]
    values, vectors = np.zeros(2), np.zeros((n, 2))
    values[: len(order)] = np.maximum(found[order], 0.0)
    vectors[:, : len(order)] = directions[:, order]
    strongest = np.abs(vectors).argmax(axis=0)
    signs = np.where(vectors[strongest, [0, 1]] < 0, -1.0, 1.0)
    return values, vectors * signs


def _on_grid(positions: np.ndarray, size: int = 1000) -> np.ndarray:
    """Whole numbers 0 to ``size``, both axes on one scale."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    scale = size / max(float((high - low).max()), 1e-12)
    centred = (positions - (low + high) / 2) * scale + size / 2
    return np.rint(centred).astype(int)


def _shown_graphs(n: int, first: np.ndarray) -> np.ndarray:
    if n <= _MOST_POINTS:
        return np.arange(n)
    others = np.setdiff1d(np.arange(n), first)
    extra = np.random.default_rng(0).permutation(others)[: max(0, _MOST_POINTS - len(first))]
    return np.sort(np.concatenate([first, extra]))
