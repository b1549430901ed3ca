"""A fitted SVM: outputs, votes, calibration."""

from types import SimpleNamespace

import numpy as np

from treelens.graphs.synthetic import make_random_graphs
from treelens.kernels.weighted import WeightedKernel
from treelens.patterns.features import PatternExtractor
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.model import FittedSVM
from treelens.svm.solver import calibrated_probabilities, decisions_of, margins_of

GRAPHS = make_random_graphs(6, n_nodes=(4, 8), n_labels=3, random_state=0)
VOCABULARY, _ = PatternVocabulary.fit(GRAPHS, 2)


def decides(outputs: np.ndarray, weights=None) -> SimpleNamespace:
    return SimpleNamespace(
        kernel=WeightedKernel("wwl", weights, 1.0), outputs=lambda features, n_jobs: outputs
    )


CALIBRATION = np.eye(3), np.zeros(3)


def fitted(decision, first_depth: int = 0) -> FittedSVM:
    """Of training graphs and choice nothing is needed to decide."""
    patterns = PatternExtractor(PatternForest.of_vocabulary(VOCABULARY), first_depth, "wasserstein")
    return FittedSVM(np.arange(3), patterns, decision, None, CALIBRATION, None, None)


def test_several_classes_are_decided_by_votes(rng) -> None:
    outputs = rng.normal(size=(6, 3))
    voted = fitted(decides(outputs)).decide(GRAPHS)
    np.testing.assert_array_equal(voted.decisions, decisions_of(outputs))
    np.testing.assert_array_equal(voted.margins, margins_of(outputs))


def test_probabilities_come_from_margins_not_from_votes(rng) -> None:
    outputs = rng.normal(size=(6, 3))
    said = fitted(decides(outputs)).decide(GRAPHS)
    expected = calibrated_probabilities(said.margins, *CALIBRATION)
    np.testing.assert_array_equal(said.probabilities, expected)
    np.testing.assert_allclose(said.probabilities.sum(axis=1), 1.0)


def test_uniform_weights_are_ones_from_the_first_depth_on() -> None:
    outputs = np.zeros((6, 3))
    offsets = VOCABULARY.level_offsets
    for first in (0, 1, 2):
        weights = fitted(decides(outputs), first).weights
        assert weights.tolist() == [1.0] * int(offsets[-1] - offsets[first])
    own = np.full(int(offsets[-1]), 0.5)
    assert fitted(decides(outputs, weights=own)).weights is own
