"""From candidates to a model: one path for both schemes, the parts of which fit together."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.kernels.weighted import WeightedKernel
from treelens.svm.approximation import BY_FEATURES
from treelens.svm.fitting import EXACT, count_training, fit_chosen
from treelens.svm.search_result import Candidate
from treelens.svm.svm import fit_svm
from treelens.svm.task import Task

CANDIDATE = Candidate(0.0, 2, "wwl", 10.0, 1.0)


@pytest.fixture(scope="module")
def data():
    graphs, y = tl.make_synthetic(8, random_state=0)
    return graphs, (y > 0).astype(int)


def task_of(data, approximation=None, **more):
    graphs, codes = data
    settings = {
        "edge_labels": False, "first_depth": 0, "learner": tl.PairwiseWeights(random_state=0),
        "scoring": "accuracy", "class_weight": None, "cv": 2, "seed": 0, **more,
    }  # fmt: skip
    return Task(
        graphs, np.unique(codes), codes, approximation=approximation, n_components=32, **settings
    )


def test_the_exact_scheme_fits_the_machine_on_the_kernel_of_all_graphs(data):
    graphs, codes = data
    model, learner = fit_chosen(task_of(data), [CANDIDATE], EXACT)
    assert learner is None
    kernel = tl.WassersteinWL(2, gamma=10.0, include_depth_zero=True).fit_transform(graphs)
    svm = fit_svm(kernel, codes, 2, 1.0, np.ones(len(codes)))
    # The kernel differs by a factor, which C is relative to.
    np.testing.assert_allclose(model.decide(graphs).decisions, svm.decide(kernel), atol=1e-6)
    assert model.choice.best_params["n_candidates"] == 1
    assert "approximation" not in model.choice.best_params


@pytest.mark.parametrize("approximation", ["random-binning", "nystroem"])
def test_the_other_scheme_says_what_its_scores_are_of(data, approximation):
    model, _ = fit_chosen(task_of(data, approximation), [CANDIDATE], BY_FEATURES)
    exactly = approximation == "random-binning"
    best = model.choice.best_params
    assert best["approximation"] == approximation
    assert best["scored_on"] == ("the exact kernel" if exactly else "the features")
    probabilities = model.decide(data[0]).probabilities
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_patterns_of_one_graph_are_dropped_but_count_for_its_norm(data):
    """Its similarity with itself is what it would be had they been kept."""
    task = task_of(data, "nystroem")
    model, _ = fit_chosen(task, [CANDIDATE], BY_FEATURES)
    _, everything = count_training(task, [CANDIDATE])
    assert (everything.support == 1).any(), "or this shows nothing"
    assert model.patterns.vocabulary.n_patterns == (everything.support > 1).sum()
    seen = model.decide(data[0]).graphs.features
    np.testing.assert_allclose(seen.diagonal, 1.0)  # of relative frequencies
    assert isinstance(model.kernel, WeightedKernel)


def test_a_radius_above_zero_brings_a_learner_that_saw_all_graphs(data):
    chosen = CANDIDATE._replace(weight_radius=1.0)
    model, learner = fit_chosen(task_of(data), [chosen], EXACT)
    np.testing.assert_array_equal(model.weights, learner.weights_)
    assert model.choice.learned is learner.result_
    assert model.choice.learner == learner.flat_parameters()
    assert learner.solver == "quasi-newton"  # not the rough one of the search
