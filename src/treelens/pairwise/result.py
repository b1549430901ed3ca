"""What learning hands on: the weights, and how well they were found."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from treelens.array_checks import check_array, check_positive
from treelens.pairwise.objective import Margins


@dataclass(frozen=True)
class LearnedWeights:
    """Weights of all patterns, with the record of the solver that found them.

    Attributes
    ----------
    weights : ndarray, shape (n_patterns,)
    history : ndarray, shape (n_checks,)
        Objective at the start and after every iteration (stochastic: at every check).
    gaps : ndarray, shape (n_checks,)
        Upper bound of the distance to the optimum, relative to the objective.
    converged : bool
        Whether the last gap is within the tolerance.
    n_iter : int
        Iterations; stochastic: steps.
    margins : Margins
        The margins, smoothing and offset that were used.
    moved : ndarray, shape (n_depths,)
        ``||w_h - 1||_2`` of every depth.
    radii : ndarray, shape (n_depths,)
    pair_norm : float
        ``max ||Z(i, j)||_2``; the loss of a pair has this Lipschitz constant in the weights and
        the smoothness ``pair_norm ** 2 / sigma``.
    solver : str
        The solver that ran; ``"none"`` where there was nothing to learn.
    step_size : float or None
        Of the stochastic solver.
    """

    weights: np.ndarray
    history: np.ndarray
    gaps: np.ndarray
    converged: bool
    n_iter: int
    margins: Margins
    moved: np.ndarray
    radii: np.ndarray
    pair_norm: float
    solver: str
    step_size: float | None = None

    def validate(self) -> None:
        check_positive(self.margins.sigma, "sigma")
        for name in ("weights", "moved", "radii"):
            check_array(getattr(self, name), name, np.float64, (None,), 0.0)
        for name in ("history", "gaps"):
            check_array(getattr(self, name), name, np.float64, (None,))
        if len(self.moved) != len(self.radii) or min(self.pair_norm, self.step_size or 0.0) < 0:
            raise ValueError("moved and radii must be of the same length, norm and step positive")


def distance_moved(weights: np.ndarray, level_offsets: np.ndarray) -> np.ndarray:
    """How far the weights of every depth are from 1, shape (n_depths,)."""
    parts = itertools.pairwise(level_offsets)
    return np.array([np.linalg.norm(weights[start:stop] - 1.0) for start, stop in parts])
