"""The learners of the studies: the paper's numbers, and the released program."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.methods import ReleasedCodeWeights, study_learner
from sklearn.base import clone

import treelens as tl
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary


@pytest.fixture(scope="module")
def study():
    """Features and classes of graphs whose class one pattern decides."""
    graphs, y = tl.make_synthetic(5, random_state=0)
    vocabulary, colors = PatternVocabulary.fit(graphs, 1)
    histograms = PatternHistograms.from_colors(vocabulary, colors).select_depths(1, 1)
    return PairFeatures.from_histograms(histograms), y


def test_without_a_preset_it_is_the_librarys(study):
    ours = study_learner(0.5, tol=1e-3, max_iter=60)
    assert (ours.solver.tol, ours.solver.max_iter) == (1e-3, 60)
    theirs = tl.PairwiseWeights(0.5, solver=tl.QuasiNewton(tol=1e-3, max_iter=60))
    np.testing.assert_array_equal(ours.fit(*study).weights_, theirs.fit(*study).weights_)


def test_the_papers_numbers_hardly_move_the_weights(study):
    learned = study_learner(preset="paper", random_state=0, tol=1e-3).fit(*study).result_
    assert (learned.n_iter, learned.step_size) == (500, 1e-4)
    assert 0 < learned.moved.max() < 0.02
    assert (learned.margins.alpha1, learned.margins.alpha2, learned.margins.sigma) == (1, 0.5, 0.1)


def test_the_released_program_drifts_within_its_box(study):
    learner = study_learner(preset="released-code", random_state=0)
    assert isinstance(clone(learner).set_params(radius=3.0), ReleasedCodeWeights)
    weights = learner.fit(*study).weights_
    assert 1.5 < weights.max() <= 2.0
    assert weights.min() >= 0.0
    np.testing.assert_array_equal(weights, clone(learner).fit(*study).weights_)


def test_presets_that_are_not_known():
    with pytest.raises(ValueError, match="preset must be paper or released-code"):
        study_learner(preset="mine")
