"""Nearest graphs by weighted Tanimoto similarity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treelens.kernels import _compiled
from treelens.kernels.gram import interleaved, pair_sums
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
    """The ``k`` most similar of ``others``, or all of them where there are fewer.

    ``left_out`` (n_graphs,) is the position of each graph among the others, if it is one of them:
    it is not its own neighbour.
    """
    sums = pair_sums(graphs.pairs, others.pairs, weights, n_jobs=n_jobs)
    n_graphs, n_others = sums.shape
    if left_out is None:
        left_out, n_near = np.full(n_graphs, -1), min(k, n_others)
    else:
        n_near = min(k, n_others - 1)
    near = np.empty((n_graphs, n_near), dtype=np.int64)
    alike = np.empty((n_graphs, n_near))
    interleaved(
        lambda first, step: _compiled.nearest_rows(
            first, step, sums, graphs.diagonal, others.diagonal, left_out, near, alike
        ),
        n_jobs,
    )
    return Nearest(near, alike)
