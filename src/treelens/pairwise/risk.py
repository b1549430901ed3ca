"""The measured side: the mean loss over the pairs of given graphs."""

from __future__ import annotations

import numpy as np

from treelens.pairwise._compiled import PairLoss
from treelens.pairwise.losses import smooth_hinge_same
from treelens.pairwise.objective import AllPairsObjective, Margins, pair_arrays, pair_weights
from treelens.patterns.pairs import PairFeatures


def mean_pair_loss(
    features: PairFeatures,
    codes: np.ndarray,
    weights: np.ndarray,
    margins: Margins,
    *,
    balance: bool = False,
    diagonal: bool = True,
) -> float:
    """The mean loss over ordered pairs of graphs.

    Parameters
    ----------
    features : PairFeatures
    codes : ndarray of int, shape (n_graphs,)
        Class of each graph.
    weights : ndarray, shape (n_patterns,)
    margins : Margins
    balance : bool
        Whether pairs of either kind, same label and different, weigh one half.
    diagonal : bool
        Whether a graph with itself is a pair. The learner's objective counts those; for the loss
        on new pairs, of two graphs drawn apart, leave them out.
    """
    if balance and not diagonal:
        raise ValueError("balance=True needs diagonal=True: its weights count all ordered pairs.")
    loss = PairLoss(
        margins.b, margins.alpha1, margins.alpha2, margins.sigma, *pair_weights(codes, balance)
    )
    movable = np.ones(features.n_patterns, dtype=bool)
    objective = AllPairsObjective(pair_arrays(features), codes.astype(np.int32), loss, movable)
    mean = objective.value(weights)
    if diagonal:
        return mean
    n_graphs = features.n_graphs
    own = smooth_hinge_same(margins.b - features.diagonal(weights), margins.alpha2, margins.sigma)
    return float((n_graphs * mean - own.mean()) / (n_graphs - 1))
