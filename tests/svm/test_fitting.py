"""From candidates to a fitted model."""

import numpy as np
import pytest

import treelens as tl
from treelens.svm.fitting import Task, fit_chosen
from treelens.svm.search import Candidate
from treelens.svm.solver import fit_svm

CANDIDATE = Candidate(0.0, 2, "wwl", 10.0, 1.0)


@pytest.fixture(scope="module")
def data():
    graphs, y = tl.make_synthetic(8, random_state=0)
    return graphs, (y > 0).astype(int)


def task_of(data, **more):
    graphs, codes = data
    settings = {
        "edge_labels": False, "first_depth": 0, "learner": tl.PairwiseWeights(random_state=0),
        "scoring": "accuracy", "class_weight": None, "cv": 2, "seed": 0, **more,
    }  # fmt: skip
    return Task(graphs, np.unique(codes), codes, **settings)


def test_the_svm_is_fitted_to_the_kernel_of_all_graphs(data):
    graphs, codes = data
    model, learner = fit_chosen(task_of(data), [CANDIDATE])
    assert learner is None
    kernel = tl.WassersteinWL(2, gamma=10.0, include_depth_zero=True).fit_transform(graphs)
    svm = fit_svm(kernel, codes, 2, 1.0, np.ones(len(codes)))
    # The kernel differs by a factor, which C is relative to.
    np.testing.assert_allclose(model.decide(graphs).decisions, svm.decide(kernel), atol=1e-6)
    assert model.choice.best_params["n_candidates"] == 1


def test_a_radius_above_zero_brings_a_learner_that_saw_all_graphs(data):
    chosen = CANDIDATE._replace(weight_radius=1.0)
    model, learner = fit_chosen(task_of(data), [chosen])
    np.testing.assert_array_equal(model.weights, learner.weights_)
    assert model.choice.learned is learner.result_
    assert model.choice.learner == learner.flat_parameters()
    assert learner.solver == "quasi-newton"  # not the rough one of the search
