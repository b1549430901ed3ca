"""Nearest graphs by weighted Tanimoto similarity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treelens.kernels.gram import pair_sums
from treelens.patterns.features import Features


class Nearest(NamedTuple):
    """Nearest graphs of each graph, the most similar first."""

    positions: np.ndarray  # (n_graphs, k)
    similarity: np.ndarray  # (n_graphs, k), from 0 to 1


def nearest_graphs(
    graphs: Features,
    others: Features,
    weights: np.ndarray,
    k: int,
    left_out: np.ndarray | None = None,
    n_jobs: int = 1,
) -> Nearest:
    """Return the ``k`` most similar of ``others``, or all of them where there are fewer.

    Of others that are as similar the first comes first. ``left_out`` (n_graphs,) is the position of
    each graph among the others, if it is one of them: it is not its own neighbour.
    """
    similarity = pair_sums(graphs.pairs, others.pairs, weights, n_jobs=n_jobs)
    k = min(k, similarity.shape[1] - (left_out is not None))
    near = np.empty((len(similarity), k), dtype=np.int64)
    for i, row in enumerate(similarity):
        union = graphs.diagonal[i] + others.diagonal - row
        np.divide(row, union, out=row, where=union > 0.0)
        row[union <= 0.0] = 1.0
        np.minimum(row, 1.0, out=row)
        if left_out is not None:
            row[left_out[i]] = -1.0
        found = np.flatnonzero(row >= np.partition(row, -k)[-k]) if k else near[i]
        near[i] = found[np.argsort(-row[found], kind="stable")[:k]]
    return Nearest(near, np.take_along_axis(similarity, near, axis=1))
