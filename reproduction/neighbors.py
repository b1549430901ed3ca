"""Nearest neighbours under a given distance, with ties shared out instead of left to chance."""

from __future__ import annotations

import numpy as np

_DIGITS = 10  # distances that differ by less are equal: the rest is rounding


def neighbor_accuracy(
    distances: np.ndarray, train_codes: np.ndarray, test_codes: np.ndarray, k: int
) -> float:
    """Share of test graphs that the vote of their ``k`` nearest training graphs puts right.

    Graphs at exactly the distance of the ``k``-th share the places that are left, and classes with
    equally many votes share the answer, so the result does not depend on the order of the graphs.

    Parameters
    ----------
    distances : ndarray, shape (n_test, n_train)
    train_codes, test_codes : ndarray of int
    k : int

    Examples
    --------
    >>> distances = np.array([[0.1, 0.2, 0.9], [0.5, 0.5, 0.7]])
    >>> neighbor_accuracy(distances, np.array([0, 1, 1]), np.array([0, 1]), k=1)
    0.75
    """
    distances = np.round(distances, _DIGITS)
    limit = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]  # (n_test, 1)
    members = np.eye(int(max(train_codes.max(), test_codes.max())) + 1)[train_codes]
    nearer, level = distances < limit, distances == limit
    places = k - nearer.sum(axis=1, keepdims=True)
    votes = nearer @ members + places / level.sum(axis=1, keepdims=True) * (level @ members)
    winners = np.round(votes, _DIGITS) == np.round(votes, _DIGITS).max(axis=1, keepdims=True)
    right = winners[np.arange(len(test_codes)), test_codes] / winners.sum(axis=1)
    return float(right.mean())
