"""How far the loss on new pairs can lie above the loss on the training pairs.

Two bounds of the gap ``R(W) - R_n(W)``: the paper's, from the stability of the stochastic
algorithm, and one for the weights of any solver, since it holds for all weights of the constraint
at once. Both hold with probability ``1 - delta`` over the draw of the n training graphs.

Both are about the *loss of pairs*, the mean over pairs of new graphs of the smoothed hinges that
weights are learned with. They say nothing of how many graphs a classifier gets wrong.
"""

from __future__ import annotations

import math


def stability_gap(n_graphs: int, k_n: float, loss_bound: float, delta: float = 0.05) -> float:
    """The paper's Theorem 3: ``2 k_n + (n k_n + M) sqrt((2 / n) log(2 / delta))``.

    Parameters
    ----------
    n_graphs : int
    k_n : float
        Stability of the loss; see :func:`treelens.pairwise.stability.loss_stability`. 0 for weights
        that do not depend on the data.
    loss_bound : float
        ``M``, the largest loss of a pair.
    delta : float
        The bound fails with at most this probability.

    Notes
    -----
    The last line of the paper's proof has ``log(1 / delta)``; the statement, and this function,
    have ``log(2 / delta)``. The proof also treats the n pairs of a graph with itself as if they
    were pairs of two graphs, which can cost ``M / n``; the difference between the two logarithms,
    which a one-sided inequality would save, pays for that from 14 graphs on at ``delta = 0.05``.

    Examples
    --------
    >>> round(stability_gap(200, k_n=0.0, loss_bound=1.0), 3)
    0.192
    """
    _check(n_graphs, delta)
    spread = math.sqrt(2.0 / n_graphs * math.log(2.0 / delta))
    return 2.0 * k_n + (n_graphs * k_n + loss_bound) * spread


def any_solver_gap(
    n_graphs: int, radius: float, lipschitz: float, loss_bound: float, delta: float = 0.05
) -> float:
    """A bound for all weights within ``radius`` of uniform ones at once, however they were found.

    ``2 radius L / sqrt(m) + M / n + M sqrt((2 / n) log(1 / delta))`` with ``m = floor(n / 2)``.

    Parameters
    ----------
    n_graphs : int
    radius : float
        Of a ball that holds the constraint set: ``sqrt(sum of the squared radii of the depths)``.
    lipschitz, loss_bound : float
        Constants of the loss.
    delta : float

    Notes
    -----
    The mean over pairs of two graphs is a mean, over all ways to pair the graphs off, of means over
    m independent pairs, so the expected largest gap is at most that of m independent pairs; that is
    at most twice the Rademacher complexity of the loss, which contraction and Cauchy-Schwarz bound
    by ``radius L / sqrt(m)``. Replacing a graph changes the largest gap by at most ``2 M / n``:
    McDiarmid's inequality gives the last term. Pairs of a graph with itself add ``M / n``.

    Examples
    --------
    >>> round(any_solver_gap(200, radius=1.0, lipschitz=0.5, loss_bound=1.0), 3)
    0.278
    """
    _check(n_graphs, delta)
    if n_graphs < 2:
        raise ValueError(f"n_graphs must be at least 2 to make a pair, got {n_graphs!r}.")
    complexity = 2.0 * radius * lipschitz / math.sqrt(n_graphs // 2)
    spread = math.sqrt(2.0 / n_graphs * math.log(1.0 / delta))
    return complexity + loss_bound / n_graphs + loss_bound * spread


def _check(n_graphs: int, delta: float) -> None:
    if n_graphs < 1:
        raise ValueError(f"n_graphs must be at least 1, got {n_graphs!r}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be a probability between 0 and 1, got {delta!r}.")
