"""Learners of the studies: the library's, with the paper's numbers, or as the released program."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from treelens.estimators.weights import PairwiseWeights
from treelens.patterns.pairs import PairFeatures

# The numbers of the paper, to the letter: 500 single pairs, step 1e-4.
PAPER: dict[str, Any] = {
    "solver": "stochastic", "margins": (1.0, 0.5), "sigma": 0.1, "balance": False,
    "n_steps": 500, "step_size": 1e-4, "halvings": 0, "average": False, "n_checks": 0,
}  # fmt: skip


def study_learner(
    radius: float = 1.0, *, preset: str | None = None, random_state: Any = None, **settings: Any
) -> PairwiseWeights | ReleasedCodeWeights:
    """Return a learner.

    Parameters
    ----------
    radius : float
    preset : {None, "paper", "released-code"}
        The paper's literal numbers (they hardly move the weights), or what the program released
        with the paper does.
    random_state : int or None
    **settings
        Of :class:`~treelens.PairwiseWeights` and of its solver, side by side.
    """
    if preset == "released-code":
        return ReleasedCodeWeights(radius, random_state=random_state)
    if preset not in (None, "paper"):
        raise ValueError(f"preset must be paper or released-code, got {preset!r}.")
    fixed = PAPER if preset == "paper" else {}
    return PairwiseWeights.from_flat(
        {"radius": radius, "random_state": random_state, **settings, **fixed}
    )


class ReleasedCodeWeights(BaseEstimator):
    """Weights as the program released with the paper learns them.

    It runs 500 epochs over disjoint pairs with step 0.01 and keeps every weight in [0, 2]. Its
    margins are 5 and -5, so that both hinges are always active and a step does not depend on the
    weights: they drift until the box stops them. ``radius`` has no effect.
    """

    N_EPOCHS, STEP_SIZE = 500, 0.01

    def __init__(self, radius: float = 1.0, *, random_state: Any = None) -> None:
        self.radius = radius
        self.random_state = random_state

    def fit(self, features: PairFeatures, y: Any) -> ReleasedCodeWeights:
        """Learn the weights."""
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        y, rows, half = np.asarray(y), features.rows, features.n_graphs // 2
        bounds = list(zip(rows.offsets[:-1].tolist(), rows.offsets[1:].tolist(), strict=True))
        patterns = [rows.indices[a:b] for a, b in bounds]
        values = [rows.values[a:b] for a, b in bounds]
        combine = np.minimum if features.minimum else np.multiply
        weights, other = np.ones(features.n_patterns), np.zeros(features.n_patterns)
        for _ in range(self.N_EPOCHS):
            order = rng.permutation(features.n_graphs)
            for i, j in zip(order[:half].tolist(), order[half : 2 * half].tolist(), strict=True):
                other[patterns[j]] = values[j]
                z = combine(values[i], other[patterns[i]]) * features.scale[i] * features.scale[j]
                step = self.STEP_SIZE if y[i] == y[j] else -self.STEP_SIZE
                weights[patterns[i]] = (weights[patterns[i]] + step * z).clip(0.0, 2.0)
                other[patterns[j]] = 0.0
        self.weights_ = weights
        return self
