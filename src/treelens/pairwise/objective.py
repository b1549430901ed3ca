"""The learner's objective: a weighted mean of pair losses, with its gradient.

Two sums over pairs behind one small interface: all n² ordered pairs, never written out, and a list
of chosen pairs (nearest neighbours). Solvers ask for a value and a gradient and know nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from treelens.pairwise import _compiled, _compiled_pairs
from treelens.pairwise._compiled import PairArrays, PairLoss
from treelens.parallel import in_threads
from treelens.patterns.pairs import PairFeatures, dense_columns

# The pairs are dealt out to so many shares, whatever the number of threads, and the shares are
# added up in order: that is why the sums are the same, bit for bit, for every n_jobs.
N_SHARES = 8
_LEAST_CURVATURE = 1e-3


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


class Objective(Protocol):
    """A convex function of the weights."""

    @property
    def n_patterns(self) -> int: ...

    def value(self, weights: np.ndarray) -> float: ...

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]: ...


class _SumInShares:
    """What both objectives share: the shares of a sum over pairs, added up in order."""

    movable: np.ndarray
    n_jobs: int

    def _share(
        self, k: int, weights: np.ndarray, with_gradient: bool, gradient: np.ndarray
    ) -> float:
        """The value of share ``k``; adds its part to ``gradient``."""
        raise NotImplementedError

    @property
    def n_patterns(self) -> int:
        return len(self.movable)

    def value(self, weights: np.ndarray) -> float:
        """The objective alone: half the work."""
        return self._pass(weights, False)[0]

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its gradient, shape (n_patterns,)."""
        return self._pass(weights, True)

    def _pass(self, weights: np.ndarray, with_gradient: bool) -> tuple[float, np.ndarray]:
        gradients = np.zeros((N_SHARES, self.n_patterns if with_gradient else 0))
        values = in_shares(
            lambda k: self._share(k, weights, with_gradient, gradients[k]), self.n_jobs
        )
        gradient = gradients.sum(axis=0)
        return sum(values), np.where(self.movable, gradient, 0.0) if with_gradient else gradient


@dataclass(frozen=True)
class AllPairsObjective(_SumInShares):
    """The mean loss over all ordered pairs of graphs, a graph with itself included.

    Attributes
    ----------
    pairs : PairArrays
    codes : ndarray of int32, shape (n_graphs,)
        Class of each graph, numbered from 0.
    loss : PairLoss
        Margins, and the weight of an unordered pair of either kind; a graph with itself counts
        half.
    movable : ndarray of bool, shape (n_patterns,)
        Patterns whose weight may change; the gradient of the others is 0.
    n_jobs : int
    """

    pairs: PairArrays
    codes: np.ndarray
    loss: PairLoss
    movable: np.ndarray
    n_jobs: int = 1

    def _share(
        self, k: int, weights: np.ndarray, with_gradient: bool, gradient: np.ndarray
    ) -> float:
        return _compiled.all_pairs_pass(
            k, N_SHARES, self.pairs, self.codes, weights, self.loss, with_gradient, gradient
        )


@dataclass(frozen=True)
class ListedPairsObjective(_SumInShares):
    """The weighted mean loss over a list of pairs; see :class:`AllPairsObjective`.

    Attributes
    ----------
    first, second : ndarray of int32, shape (n_pairs,)
    pair_weights : ndarray, shape (n_pairs,)
        Their sum is 1.
    """

    pairs: PairArrays
    codes: np.ndarray
    loss: PairLoss
    movable: np.ndarray
    first: np.ndarray
    second: np.ndarray
    pair_weights: np.ndarray
    n_jobs: int = 1

    def _share(
        self, k: int, weights: np.ndarray, with_gradient: bool, gradient: np.ndarray
    ) -> float:
        return _compiled_pairs.listed_pairs_pass(
            k, N_SHARES, self.pairs, self.codes, self.first, self.second, self.pair_weights,
            weights, self.loss, with_gradient, gradient,
        )  # fmt: skip


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
    """Weight of an unordered pair with different and with the same label.

    It stands for two ordered pairs; the weights of all n² ordered pairs sum to 1. Balanced,
    either kind has the total weight 1/2.
    """
    n_pairs = float(len(codes)) ** 2
    n_same = float((np.bincount(codes).astype(float) ** 2).sum())
    if not balance:
        return 2.0 / n_pairs, 2.0 / n_pairs
    return 1.0 / (n_pairs - n_same), 1.0 / n_same


def largest_pair_norm(features: PairFeatures) -> float:
    """``max ||Z(i, j)||_2`` over all pairs: the loss is that steep in the weights, at most.

    It is reached on the diagonal: ``combine(a, b)² <= combine(a, a) combine(b, b)`` for the
    minimum and for the product, and then Cauchy-Schwarz.
    """
    values = features.rows.values if features.minimum else features.rows.values**2
    graph = np.repeat(np.arange(features.n_graphs), np.diff(features.rows.offsets))
    squares = np.bincount(graph, weights=values**2, minlength=features.n_graphs)
    return float((features.scale**2 * np.sqrt(squares)).max(initial=0.0))


def curvature_guess(features: PairFeatures) -> np.ndarray:
    """How much each pattern adds to the similarities, relative to the most present one.

    The mean of ``Z(i, i)``: its spread over the patterns follows that of the objective's
    curvatures well enough to even them out. Shape (n_patterns,).
    """
    values = features.rows.values if features.minimum else features.rows.values**2
    values = values * np.repeat(features.scale**2, np.diff(features.rows.offsets))
    sums = np.bincount(features.rows.indices, weights=values, minlength=features.n_patterns)
    return np.maximum(sums / max(sums.max(initial=0.0), np.finfo(float).tiny), _LEAST_CURVATURE)


def in_shares(work: Callable[[int], Any], n_jobs: int) -> list[Any]:
    """``work(k)`` for every share ``k``, in threads."""
    return in_threads(work, range(N_SHARES), n_jobs)
