"""Learners on trial: the library's own with one thing changed, or with what only studies ask for.

They have the ``fit`` of :class:`~treelens.PairwiseWeights` and the parameters that a search sets:
the radius, and the tolerance to which it learns.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from treelens.pairwise.constraints import CENTER
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.result import LearnedWeights
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

# What a preset of the learner fixes, by name.
PRESETS: dict[str, dict[str, Any]] = {
    # The numbers of the paper, to the letter: 500 single pairs, step 1e-4.
    "paper": {
        "solver": "stochastic", "constraint": "ball", "margins": (1.0, 0.5), "sigma": 0.1,
        "b": 1.0, "balance": False, "pairs": "all", "min_support": 1,
        "n_steps": 500, "n_epochs": None, "step_size": 1e-4, "halvings": 0, "average": False,
    },
    # What the program released with the paper does: both hinges are always active, so the
    # weights drift until the box stops them.
    "released-code": {
        "radius": 1.0, "solver": "stochastic", "constraint": "box", "margins": (5.0, -5.0),
        "sigma": 0.1, "b": 1.0, "balance": False, "pairs": "all", "min_support": 1,
        "n_epochs": 500, "step_size": 0.01, "halvings": 0, "average": False,
    },
}  # fmt: skip


class StudyWeights(BaseEstimator):
    """:class:`~treelens.PairwiseWeights` with every choice that the learning room has.

    Parameters
    ----------
    radius : float or sequence of float, default=1.0
    preset : {None, "paper", "released-code"}, default=None
        Override the others by the paper's literal numbers (they hardly move the weights; a warning
        says how little), or by what the program released with it does.
    n_jobs : int, default=1
    random_state : int or None, default=None
    **settings :
        See :class:`treelens.pairwise.settings.LearnerSettings`: among them a box as ``constraint``,
        local ``pairs`` and ``n_epochs``.
    """

    def __init__(self, radius: Any = 1.0, *, preset: str | None = None, n_jobs: int = 1,
                 random_state: Any = None, solver: str = "quasi-newton", constraint: str = "ball",
                 margins: Any = "quantile", sigma: Any = "auto", b: float = 1.0,
                 balance: bool = True, pairs: str = "all", n_neighbors: int = 10,
                 min_support: int = 1, max_iter: int = 200, tol: float = 1e-4,
                 n_steps: int = 1_000_000, n_epochs: int | None = None,
                 step_size: float | None = None, halvings: int = 8, average: bool = True,
                 n_checks: int = 10) -> None:  # fmt: skip
        given = {name: value for name, value in locals().items() if name != "self"}
        for name, value in given.items():
            setattr(self, name, value)

    def flat_parameters(self) -> dict[str, Any]:
        """All settings, with what the preset fixes."""
        if self.preset is not None and self.preset not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {self.preset!r}.")
        given = {**self.get_params(deep=False), **PRESETS.get(self.preset, {})}
        del given["preset"]
        return given

    def fit(self, features: PairFeatures, y: Any) -> StudyWeights:
        """Learn the weights."""
        options = self.flat_parameters()
        options["random_state"] = check_random_state(self.random_state).randint(2**31 - 1)
        with warnings.catch_warnings():
            if self.preset is not None:  # what it does is given, wherever it ends
                warnings.simplefilter("ignore", ConvergenceWarning)
            learned = learn_weights(features, y, **options)
        self.result_, self.weights_ = learned, learned.weights
        self.history_, self.gaps_ = learned.history, learned.gaps
        self.converged_, self.n_iter_ = learned.converged, learned.n_iter
        if self.preset == "paper":
            _warn_how_little(learned)
        return self


def _warn_how_little(learned: LearnedWeights) -> None:
    moved = ", ".join(f"{distance:.2g}" for distance in learned.moved)
    low, high = learned.weights.min(), learned.weights.max()
    warnings.warn(
        f"preset='paper' takes {learned.n_iter} single-pair steps of {learned.step_size:g}: "
        f"the weights of the depths moved by {moved} in norm (radius "
        f"{learned.radii.max():g}) and lie in [{low:.6f}, {high:.6f}], which is uniform for "
        "all purposes. preset=None converges.",
        UserWarning,
        stacklevel=3,
    )


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
        learner = StudyWeights(
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
        learner = StudyWeights(
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
