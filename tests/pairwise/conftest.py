"""Small labelled collections for the learners."""

from collections.abc import Callable

import numpy as np
import pytest

from strategies import histograms_of, random_collection
from treelens.patterns.pairs import PAIR_KINDS, PairFeatures


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


@pytest.fixture(name="make_features")
def features_maker() -> Callable[..., PairFeatures]:
    return features_of
