"""The search on features: the same settings win as on the kernel, and nothing held out leaks in."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.estimators.weights import linear_learner
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.approximate_search import ApproximateSearch
from treelens.svm.search import SCORES, KernelSearch, grid, staged_search
from treelens.svm.search_result import Candidate
from treelens.svm.task import Task

GRID = grid(["wwl"], [1, 2], [0.0, 1.0], [1.0, 10.0], [0.1, 10.0])
NEAR = ["random-binning", "nystroem"]


@pytest.fixture(scope="module")
def data():
    graphs, y = tl.make_synthetic(12, random_state=0)
    return graphs, (y > 0).astype(int)


def search_of(data, approximation, codes=None, n_components=256):
    graphs, own = data
    task = Task(
        graphs, np.unique(own), own if codes is None else codes, edge_labels=False, first_depth=0,
        learner=linear_learner(0), scoring="accuracy", class_weight=None, cv=5, seed=0,
        approximation=approximation, n_components=n_components,
    )  # fmt: skip
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))
    return ApproximateSearch(task, histograms), task, histograms


@pytest.mark.parametrize("approximation", NEAR)
def test_scores_are_near_those_of_the_kernel_on_the_same_splits(data, approximation):
    search, task, histograms = search_of(data, approximation)
    uniform = [c for c in GRID if c.weight_radius == 0 and c.gamma == 1.0]
    found = search.run(uniform)
    exact = KernelSearch(
        histograms.select_graphs(np.arange(len(task.codes))), search.codes, search.splits,
        task.learner, 0, search.sample_weight, SCORES["accuracy"],
    ).run(uniform, race=False)  # fmt: skip
    for candidate in uniform:
        assert len(found.scores[candidate]) == len(search.splits)  # nobody leaves this race
        assert found.mean(candidate) == pytest.approx(exact.mean(candidate), abs=0.15)
    assert found.decisions == {}  # a sample's, which no model file has a place for


def test_radii_are_tried_at_every_cost_of_the_best_setting_alone(data):
    search, *_ = search_of(data, "unary")
    candidates = [c._replace(kernel="wl-oa", gamma=None) for c in GRID if c.gamma == 1.0]
    result, winner = staged_search(search, candidates)
    leader = result.best(lambda c: c.weight_radius == 0)
    learned = {c for c in result.scores if c.weight_radius > 0}
    assert learned == {c for c in candidates if c.weight_radius > 0 and c.depth == leader.depth}
    assert {c.C for c in learned} == {0.1, 10.0}
    assert winner in result.scores


def test_bins_that_would_see_too_little_are_not_tried(data):
    few, *_ = search_of(data, "random-binning", n_components=64)
    coarse, fine = (Candidate(0.0, 1, "wwl", gamma, 1.0) for gamma in (1.0, 10.0))
    assert set(few.run([coarse, fine]).scores) == {fine}
    only, *_ = search_of(data, "random-binning", n_components=64)
    assert set(only.run([coarse]).scores) == {coarse}  # if the user wants no other


@pytest.mark.parametrize("approximation", NEAR)
def test_what_calibrates_was_held_out_and_is_of_the_features(data, approximation):
    search, *_ = search_of(data, approximation)
    chosen = GRID[0]._replace(gamma=10.0)
    result = search.run([chosen])
    held_out = search.calibrating(chosen, result)
    assert len(held_out.codes) == sum(len(validation) for _, validation in search.splits)
    assert held_out.decisions.shape == (len(held_out.codes), 1)
    n_splits = 1 if approximation == "random-binning" else len(result.scores[chosen])
    assert len(search.splits) == n_splits


def test_labels_of_held_out_graphs_change_no_decision(data):
    chosen = Candidate(1.0, 2, "wwl", 10.0, 1.0)
    search, *_ = search_of(data, "nystroem")
    search.splits = search.splits[:1]
    validation = search.splits[0][1]
    plain = search.calibrating(chosen, search.run([chosen])).decisions
    turned, *_ = search_of(data, "nystroem")
    turned.splits = search.splits
    turned.codes = turned.codes.copy()
    turned.codes[validation] = 1 - turned.codes[validation]
    np.testing.assert_array_equal(plain, turned.calibrating(chosen, turned.run([chosen])).decisions)
