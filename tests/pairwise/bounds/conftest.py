"""Small labelled graphs whose pairs can be written out."""

from __future__ import annotations

import numpy as np
import pytest

from strategies import random_collection
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PAIR_KINDS, PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary


@pytest.fixture
def histograms() -> PatternHistograms:
    """Twenty-one graphs: twenty to learn from and one to put in the place of another."""
    graphs = random_collection(np.random.default_rng(1), 21, max_nodes=12)
    return PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))


@pytest.fixture(params=PAIR_KINDS)
def features(request: pytest.FixtureRequest, histograms: PatternHistograms) -> PairFeatures:
    return PairFeatures.from_histograms(histograms.select_graphs(np.arange(20)), request.param)


@pytest.fixture
def labels() -> np.ndarray:
    return np.random.default_rng(2).choice(3, size=21, p=[0.5, 0.3, 0.2])
