"""Learners on trial: the library's own with one thing changed, for the study of formulations.

They have the ``fit`` of :class:`~treelens.PairwiseWeights` and the parameters that a search sets:
the radius, and the tolerance to which it learns.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from treelens.estimators.weights import PairwiseWeights
from treelens.learning.constraints import CENTER
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary


class DepthScaledWeights(BaseEstimator):
    """A radius for every depth: ``radius * depth_factor**h`` at depth ``h``.

    Parameters
    ----------
    radius : float
        Of depth 0.
    depth_factor : float
        Below 1 shallow patterns move most, above 1 deep ones.
    tol, max_iter, random_state
        Of :class:`~treelens.PairwiseWeights`.

    Attributes
    ----------
    weights_ : ndarray, shape (n_patterns,)
    radii_ : ndarray, shape (n_depths,)
    """

    def __init__(
        self,
        radius: float = 1.0,
        *,
        depth_factor: float = 0.5,
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.depth_factor = depth_factor
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, features: PairFeatures, y: Any) -> DepthScaledWeights:
        """Learn the weights; depths are counted from the first that ``features`` have."""
        depths = np.arange(len(features.level_offsets) - 1)
        learner = PairwiseWeights(
            self.radius * self.depth_factor**depths,
            tol=self.tol, max_iter=self.max_iter, random_state=self.random_state,
        ).fit(features, y)  # fmt: skip
        self.radii_ = learner.result_.radii
        self.weights_ = learner.weights_
        return self


class SmoothedWeights(BaseEstimator):
    """Weights of rare patterns drawn toward those of their parents, after learning.

    Parameters
    ----------
    radius : float
    parents : ndarray of int
        As :func:`pattern_parents` gives them; the patterns of ``features`` must be the first ones,
        from depth 0 on.
    strength : float
        A pattern in so many training graphs goes half of the way.
    tol, max_iter, random_state
        Of :class:`~treelens.PairwiseWeights`.

    Attributes
    ----------
    weights_ : ndarray, shape (n_patterns,)
    """

    def __init__(
        self,
        radius: float = 1.0,
        *,
        parents: np.ndarray,
        strength: float = 5.0,
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.parents = parents
        self.strength = strength
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, features: PairFeatures, y: Any) -> SmoothedWeights:
        """Learn the weights, then smooth them."""
        learner = PairwiseWeights(
            self.radius, tol=self.tol, max_iter=self.max_iter, random_state=self.random_state
        ).fit(features, y)
        support = np.diff(features.lists.offsets)
        self.weights_ = smoothed_weights(
            learner.weights_, support, self.parents, features.level_offsets, self.strength
        )
        return self


def smoothed_weights(
    weights: np.ndarray,
    support: np.ndarray,
    parents: np.ndarray,
    level_offsets: np.ndarray,
    strength: float,
) -> np.ndarray:
    """``(n_v w_v + k w_parent) / (n_v + k)`` from shallow to deep; depth 0 is drawn toward 1.

    Parameters
    ----------
    weights, support : ndarray, shape (n_patterns,)
        ``w``, and the number ``n`` of training graphs that hold a pattern.
    parents : ndarray of int, shape (at least n_patterns,)
        -1 at depth 0.
    level_offsets : ndarray, shape (n_depths + 1,)
    strength : float
        The constant ``k``.

    Examples
    --------
    >>> learned, support = np.array([2.0, 3.0]), np.array([5, 1])
    >>> smoothed_weights(learned, support, np.array([-1, 0]), np.array([0, 1, 2]), 1.0).round(3)
    array([1.833, 2.417])
    """
    smooth = weights.astype(float)
    for start, stop in pairwise(level_offsets.tolist()):
        level = slice(start, stop)
        parent = smooth[parents[level]] if start > 0 else CENTER
        n = support[level]
        smooth[level] = (n * weights[level] + strength * parent) / (n + strength)
    return smooth


def pattern_parents(vocabulary: PatternVocabulary) -> np.ndarray:
    """The pattern that the same node had one depth earlier; -1 at depth 0.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> pattern_parents(PatternVocabulary.fit(graphs, depth=1)[0]).tolist()
    [-1, -1, 0, 0, 1]
    """
    offsets = vocabulary.level_offsets
    roots = np.full(offsets[1], -1, dtype=np.int64)
    levels = zip(offsets[:-1], vocabulary.levels, strict=False)
    return np.concatenate([roots, *(start + level.own for start, level in levels)])
