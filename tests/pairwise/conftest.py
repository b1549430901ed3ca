"""Small labelled collections for the learners."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from strategies import histograms_of, random_collection
from treelens.patterns.histograms import PAIR_KINDS, PairFeatures


def features_of(
    n_graphs: int, kind: str = "wasserstein", depth: int = 2, seed: int = 1, max_nodes: int = 12
) -> PairFeatures:
    """Pair features of random graphs, depths 0 to ``depth``."""
    graphs = random_collection(np.random.default_rng(seed), n_graphs, max_nodes=max_nodes)
    return PairFeatures.from_histograms(histograms_of(graphs, depth), kind)


@pytest.fixture(params=PAIR_KINDS)
def features(request: pytest.FixtureRequest) -> PairFeatures:
    """Twenty graphs, with dense and with sparse patterns, of every kind of pair feature."""
    return features_of(20, request.param)


@pytest.fixture
def labels() -> np.ndarray:
    """Three classes of different size for twenty graphs."""
    return np.random.default_rng(2).choice(3, size=20, p=[0.5, 0.3, 0.2])


def generic_minimizer(objective: Any, start: np.ndarray, radius: float, offsets: Any) -> np.ndarray:
    """Minimise over ball and orthant of every depth by sequential quadratic programming."""

    def outside(w: np.ndarray, a: int, b: int) -> np.ndarray:
        return np.concatenate([np.zeros(a), -2 * (w[a:b] - 1), np.zeros(len(w) - b)])

    balls = [
        {
            "type": "ineq",
            "args": ends,
            "jac": outside,
            "fun": lambda w, a, b: radius**2 - ((w[a:b] - 1) ** 2).sum(),
        }
        for ends in pairwise(offsets)
    ]
    found = minimize(
        objective,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, None)] * len(start),
        constraints=balls,
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    return found.x


@pytest.fixture
def generic() -> Callable[..., np.ndarray]:
    return generic_minimizer


@pytest.fixture(name="make_features")
def features_maker() -> Callable[..., PairFeatures]:
    return features_of
