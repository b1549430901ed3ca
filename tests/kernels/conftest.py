"""Graphs, their features and the exact kernels that approximations are held against."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from treelens.graphs.synthetic import make_random_graphs
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import kernel_matrix
from treelens.patterns.features import Features, PatternExtractor
from treelens.patterns.vocabulary import PatternVocabulary

GAMMA = 2.0


class Case(NamedTuple):
    """Training and new graphs, weights, and the exact kernel between all and training."""

    everything: Features
    training: Features
    weights: np.ndarray
    offset: float
    kernel: np.ndarray  # (n_all, n_training)


@pytest.fixture
def make_case():
    """A function from a kernel to a :class:`Case`; new graphs have patterns training lacks."""

    def make(kernel: str) -> Case:
        graphs = make_random_graphs(60, (5, 15), n_labels=3, random_state=0)
        vocabulary, _ = PatternVocabulary.fit(graphs[:40], 2)
        extractor = PatternExtractor(vocabulary, 0, KERNELS[kernel].pair_feature)
        weights = np.random.default_rng(1).uniform(0.2, 1.8, vocabulary.n_patterns)
        everything = extractor.features(graphs, weights)
        training = extractor.features(graphs[:40], weights)
        offset = float(training.diagonal.max())
        sums = pair_sums(everything.pairs, training.pairs, weights)
        matrix = kernel_matrix(kernel, sums, everything.diagonal, training.diagonal, offset, GAMMA)
        return Case(everything, training, weights, offset, matrix)

    return make
