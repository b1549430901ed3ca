"""Landmarks: half by chance, half where the others are in doubt."""

from __future__ import annotations

import numpy as np

import treelens as tl
from treelens.kernels.weighted import WeightedKernel
from treelens.patterns.features import Features
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.landmarks import hard_landmarks, landmark_positions


def test_half_of_the_landmarks_are_the_graphs_in_doubt(mutag):
    graphs, y = mutag
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))
    pairs = PairFeatures.from_histograms(histograms, "wasserstein", unit=False)
    features, codes = Features(pairs, pairs.diagonal()), (y == y.max()).astype(int)
    kernel, weight = WeightedKernel("wwl", None, 1.0, 1.0), np.ones(len(y))

    def landmarks(n: int) -> np.ndarray:
        rng = np.random.default_rng(3)
        return hard_landmarks(features, codes, weight, kernel, n, rng)

    np.testing.assert_array_equal(landmarks(len(y)), np.arange(len(y)))
    picked = landmarks(40)
    assert len(np.unique(picked)) == 40
    drawn = landmark_positions(len(y), 20, np.random.default_rng(3))
    assert np.isin(drawn, picked).all()
    half = tl.GraphSVC("wwl", 2, 0, 1.0, 10.0, approximation="nystroem", n_components=len(y)).fit(
        graphs, y
    )
    margins = np.where(codes == 1, 1, -1) * half.decision_function(graphs)
    others = np.setdiff1d(picked, drawn)
    assert margins[others].mean() < margins[np.setdiff1d(np.arange(len(y)), picked)].mean() - 0.3


def test_landmarks_are_drawn_once_each_and_ascend():
    for n_graphs, n_landmarks in ((10, 4), (10, 10), (3, 8), (5, 0)):
        found = landmark_positions(n_graphs, n_landmarks, np.random.default_rng(0))
        assert len(found) == min(n_graphs, n_landmarks)
        assert (np.diff(found) > 0).all()
        assert ((found >= 0) & (found < n_graphs)).all()
