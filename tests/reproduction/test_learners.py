"""The learner of the studies: presets, and settings that the library's own has no more."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.learners import StudyWeights
from sklearn.base import clone

import treelens as tl
from treelens.pairwise.settings import LearnerSettings
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary


@pytest.fixture(scope="module")
def study():
    """Graphs whose class one pattern decides: names, features and classes."""
    graphs, y = tl.make_synthetic(5, random_state=0)
    vocabulary, colors = PatternVocabulary.fit(graphs, 1)
    histograms = PatternHistograms.from_colors(vocabulary, colors).select_depths(1, 1)
    return PairFeatures.from_histograms(histograms), y


def test_it_has_every_setting_of_the_learning_room_with_its_default():
    ours = StudyWeights().get_params()
    assert ours.pop("preset") is None
    defaults = {name: f.default for name, f in LearnerSettings.__dataclass_fields__.items()}
    assert ours == defaults


def test_it_learns_what_the_librarys_own_learns(study):
    ours, theirs = StudyWeights(0.5).fit(*study), tl.PairwiseWeights(0.5).fit(*study)
    np.testing.assert_array_equal(ours.weights_, theirs.weights_)
    assert clone(StudyWeights(0.5, pairs="local")).get_params()["pairs"] == "local"


def test_the_papers_preset_says_how_little_it_moves(study):
    with pytest.warns(UserWarning, match="500 single-pair steps of 0.0001"):
        learner = StudyWeights(preset="paper", random_state=0).fit(*study)
    learned = learner.result_
    assert learned.n_iter == 500
    assert 0 < learned.moved.max() < 0.02
    assert (learned.margins.alpha1, learned.margins.alpha2, learned.margins.sigma) == (1, 0.5, 0.1)


def test_the_released_preset_drifts_within_its_box(study):
    """Both hinges are always active: weights drift until the box stops them."""
    features, y = study
    learner = StudyWeights(preset="released-code", random_state=0).fit(features, y)
    assert learner.n_iter_ == 500 * (len(y) // 2)
    assert 1.5 < learner.weights_.max() <= 2.0
    assert learner.flat_parameters()["constraint"] == "box"


def test_presets_that_are_not_known(study):
    with pytest.raises(ValueError, match="preset must be one of paper, released-code"):
        StudyWeights(preset="mine").fit(*study)
