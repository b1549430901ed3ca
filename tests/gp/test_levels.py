"""Sums by groups of levels: of parts of the graphs, and in the place of lists."""

from dataclasses import replace

import numpy as np
import pytest

from strategies import random_collection
from treelens.gp.data import CountedView, TrainingData
from treelens.gp.evidence import Evidence
from treelens.gp.levels import LevelSums
from treelens.gp.posterior import ScaledTargets
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PairFeatures


@pytest.fixture(scope="module")
def data():
    """Graphs with labels and attributes; some have no nodes of the first label."""
    rng = np.random.default_rng(0)
    graphs = random_collection(rng, 300, max_nodes=6)
    values = rng.normal(size=(graphs.n_nodes, 2))
    graphs = replace(graphs, node_attributes=values, attribute_names=("x", "y"))
    forest, colors = PatternForest.fit(graphs, 2, ("labels", "labels+edges"), attributes=True)
    targets = ScaledTargets.standardized(rng.normal(size=(300, 1)), np.ones(300), None)
    return TrainingData((CountedView(forest, forest.count(colors)),), targets)


def _shared(data, positions):
    (view,) = data.views
    features = PairFeatures.of_counts(view.histograms.select_graphs(positions))
    return LevelSums.of(features, view.hierarchy.group_of, positions=positions)


def test_sums_of_some_graphs_are_those_of_their_own_counts(data):
    positions = np.sort(np.random.default_rng(1).permutation(300)[:250])
    some = positions[3::2]
    found = _shared(data, positions).among(some)
    expected = _shared(data, some)
    for name in ("groups", "table", "diagonals"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("learned", ["uniform", "depths", "branches"])
@pytest.mark.parametrize("depth", [1, 2])
def test_shared_sums_change_no_evidence_and_no_kernel(data, learned, depth):
    positions = np.arange(0, 300, 2)
    assert _shared(data, np.arange(250)).among(np.arange(300)) is None
    view = replace(data.views[0], shared=_shared(data, positions))
    sharing = replace(data, views=(view,))
    results = []
    for each in (data, sharing):
        problem, (present,) = each.problem(positions[5:], depth)
        (term,) = problem.terms
        assert (term.levels is None) == (each is data)
        rng = np.random.default_rng(2)
        deviations = rng.normal(size=len(present)) * (learned == "branches")
        deviations[data.views[0].source.n_deviating :] = 0.0
        logits = rng.normal(size=term.n_groups)
        own = term.start._replace(level_logits=logits, deviations=deviations[present])
        parameters = problem.start._replace(terms=(own,))
        value, gradient = Evidence(problem)(parameters, learned)
        n_first = len(problem.vector(parameters, "depths"))
        free = np.concatenate([np.ones(n_first, bool), present])
        spread = np.zeros(len(free))
        spread[np.flatnonzero(free)[: len(gradient)]] = gradient
        results.append((value, spread, problem.kernel_matrix(parameters)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
