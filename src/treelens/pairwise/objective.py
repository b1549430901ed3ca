"""The objective of learning: a weighted mean of pair losses over all pairs, with its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from treelens.pairwise import _compiled
from treelens.pairwise._compiled import PairArrays, PairLoss
from treelens.parallel import in_threads
from treelens.patterns.pairs import PairFeatures, dense_columns

# The pairs are divided among this many shares, whatever the number of threads, and the shares are
# added up in order: that is why the sums are the same, bit for bit, for every n_jobs.
N_SHARES = 8
_MIN_CURVATURE = 1e-3


@dataclass(frozen=True)
class Margins:
    """Where the hinges bend.

    Attributes
    ----------
    alpha1 : float
        Graphs with different labels should be at least this far apart.
    alpha2 : float
        Graphs with the same label should be at most this far apart; ``alpha2 <= alpha1``.
    sigma : float
        Width over which a hinge goes from slope 0 to slope 1.
    b : float
        The distance is ``b - <W, Z>``.
    """

    alpha1: float
    alpha2: float
    sigma: float
    b: float = 1.0


@dataclass(frozen=True)
class AllPairsObjective:
    """The mean loss over all ordered pairs of graphs, a graph with itself included.

    Attributes
    ----------
    pairs : PairArrays
    codes : ndarray of int32, shape (n_graphs,)
        Class of each graph, numbered from 0.
    loss : PairLoss
        Margins, and the weight of an unordered pair of either kind; a graph with itself counts
        half.
    n_jobs : int
    """

    pairs: PairArrays
    codes: np.ndarray
    loss: PairLoss
    n_jobs: int = 1

    @classmethod
    def from_features(
        cls,
        features: PairFeatures,
        codes: np.ndarray,
        margins: Margins,
        balance: bool,
        n_jobs: int = 1,
        pairs: PairArrays | None = None,
    ) -> AllPairsObjective:
        """Return the objective of pair features; ``pairs`` are their arrays, if at hand."""
        loss = PairLoss(
            margins.b, margins.alpha1, margins.alpha2, margins.sigma, *pair_weights(codes, balance)
        )
        return cls(pairs or pair_arrays(features), codes.astype(np.int32), loss, n_jobs)

    @property
    def n_patterns(self) -> int:
        return len(self.pairs.dense_of_pattern)

    def value(self, weights: np.ndarray) -> float:
        """Return the objective alone: half the work."""
        return self._pass(weights, False)[0]

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient, shape (n_patterns,)."""
        return self._pass(weights, True)

    def _pass(self, weights: np.ndarray, with_gradient: bool) -> tuple[float, np.ndarray]:
        gradients = np.zeros((N_SHARES, self.n_patterns if with_gradient else 0))

        def share(k: int) -> float:
            return _compiled.all_pairs_pass(
                k, N_SHARES, self.pairs, self.codes, weights, self.loss, with_gradient, gradients[k]
            )

        return sum(in_shares(share, self.n_jobs)), gradients.sum(axis=0)


def pair_arrays(features: PairFeatures) -> PairArrays:
    """Lay pair features out for the compiled passes, the most common patterns as dense columns."""
    lists = features.lists
    dense_of_pattern, dense = dense_columns(lists, lists.values, features.n_graphs)
    return PairArrays(
        features.rows.offsets, features.rows.indices, features.rows.values,
        lists.offsets, lists.indices, lists.values,
        dense_of_pattern, dense, features.scale, bool(features.minimum),
    )  # fmt: skip


def pair_weights(codes: np.ndarray, balance: bool) -> tuple[float, float]:
    """Return the weight of an unordered pair with different and with the same label.

    It stands for two ordered pairs; the weights of all n² ordered pairs sum to 1. Balanced,
    either kind has the total weight 1/2.
    """
    n_pairs = float(len(codes)) ** 2
    n_same = float((np.bincount(codes).astype(float) ** 2).sum())
    if not balance:
        return 2.0 / n_pairs, 2.0 / n_pairs
    return 1.0 / (n_pairs - n_same), 1.0 / n_same


def largest_pair_norm(features: PairFeatures) -> float:
    """Return ``max ||Z(i, j)||_2`` over all pairs, the Lipschitz constant of the loss.

    It is reached on the diagonal: ``combine(a, b)² <= combine(a, a) combine(b, b)`` for the
    minimum and for the product, and then Cauchy-Schwarz.
    """
    values = features.rows.values if features.minimum else features.rows.values**2
    graph = np.repeat(np.arange(features.n_graphs), np.diff(features.rows.offsets))
    squares = np.bincount(graph, weights=values**2, minlength=features.n_graphs)
    return float((features.scale**2 * np.sqrt(squares)).max(initial=0.0))


def curvature_guess(features: PairFeatures) -> np.ndarray:
    """Return the mean of ``Z(i, i)`` relative to its largest entry, shape (n_patterns,).

    It varies over the patterns much as the objective's curvature does, and so preconditions it.
    """
    values = features.rows.values if features.minimum else features.rows.values**2
    values = values * np.repeat(features.scale**2, np.diff(features.rows.offsets))
    sums = np.bincount(features.rows.indices, weights=values, minlength=features.n_patterns)
    return np.maximum(sums / max(sums.max(initial=0.0), np.finfo(float).tiny), _MIN_CURVATURE)


def in_shares(work: Callable[[int], Any], n_jobs: int) -> list[Any]:
    """Return ``work(k)`` for every share ``k``, computed in threads."""
    return in_threads(work, range(N_SHARES), n_jobs)
