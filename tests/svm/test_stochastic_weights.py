"""Weights learned from drawn pairs, without all pairs at hand."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.estimators.weights import linear_learner
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.stochastic_weights import learn_weights_linearly


def test_weights_are_learned_without_all_pairs(mutag):
    """With more graphs than the margins' sample the margins come from the sample."""
    graphs, y = mutag
    many = graphs[np.tile(np.arange(len(y)), 6)]
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(many, 1))
    learner = learn_weights_linearly(
        histograms, np.tile(y, 6), "wasserstein", 1.0, linear_learner(0), 0
    )
    whole = tl.PairwiseWeights(1.0).fit(
        tl.WassersteinWL(depth=1, include_depth_zero=True).fit(many)._fitted.pairs, np.tile(y, 6)
    )
    assert learner.result_.margins.alpha1 == pytest.approx(whole.result_.margins.alpha1, abs=0.02)
    assert np.corrcoef(learner.weights_, whole.weights_)[0, 1] > 0.95
