"""Known patterns of a graph, and the sums that they and the unseen ones make."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.explain.expansion import FoundPatterns
from treelens.graphs.synthetic import make_random_graphs
from treelens.kernels.table import KERNELS


@pytest.fixture(params=["wwl", "tanimoto", "wl-subtree"])
def decision(request, fit_decision):
    graphs = make_random_graphs(16, n_nodes=(4, 9), n_labels=3, random_state=1)
    return fit_decision(graphs, np.arange(16) % 2, request.param, random_weights=True)


@pytest.fixture
def others():
    return make_random_graphs(5, n_nodes=(4, 9), n_labels=4, random_state=2)  # one label is new


def test_counts_are_those_of_the_nodes(decision, others) -> None:
    for index in range(len(others)):
        found = decision.find(others[index : index + 1])
        n_known = np.count_nonzero(found.colors >= 0)
        assert found.counts.sum() == n_known
        assert (found.counts > 0).all()
        assert (np.diff(found.patterns) > 0).all()
        assert found.out_of_vocabulary == pytest.approx(1 - n_known / found.colors.size)


def test_one_of_several_graphs_is_found_as_if_alone(decision, others) -> None:
    together = decision.extractor.look_at(others, decision.weights)
    for index in range(len(others)):
        alone, among = decision.find(others[index : index + 1]), decision.found_in(together, index)
        for one, other in zip(alone, among, strict=True):
            np.testing.assert_array_equal(one, other)


def test_known_and_unseen_make_up_the_graphs_own_sum(decision, others) -> None:
    seen = decision.extractor.look_at(others, decision.weights)
    some_unseen = False
    for index in range(len(others)):
        found = decision.found_in(seen, index)
        whole = found.own_terms(decision.weights).sum() + found.own_unseen
        assert whole == pytest.approx(seen.features.diagonal[index])
        assert (found.own_unseen > 0) <= (found.out_of_vocabulary > 0)
        some_unseen |= found.own_unseen > 0
    assert some_unseen == bool((seen.histograms.out_of_vocabulary() > 0).any())


def test_a_training_graph_has_nothing_unseen(decision) -> None:
    graphs = make_random_graphs(16, n_nodes=(4, 9), n_labels=3, random_state=1)
    found = decision.find(graphs[3:4])
    assert found.out_of_vocabulary == 0.0
    assert found.own_unseen == 0.0
    assert found.own_terms(decision.weights).sum() == pytest.approx(decision.diagonal[3])


def test_products_square_what_minima_take_as_it_is() -> None:
    parts = (np.zeros((1, 2), dtype=int), np.array([1]), np.array([3.0]), np.array([0, 2]))
    weights = np.array([9.0, 0.5])
    minima = FoundPatterns(*parts, True, 2.0, 0.0, 0.0)
    products = FoundPatterns(*parts, False, 2.0, 0.0, 0.0)
    assert minima.own_terms(weights).tolist() == [0.5 * 3.0 * 4.0]
    assert products.own_terms(weights).tolist() == [0.5 * 9.0 * 4.0]


def test_ids_begin_at_the_first_depth_in_use(fit_decision) -> None:
    graphs = make_random_graphs(10, n_nodes=(4, 9), n_labels=3, random_state=1)
    decision = fit_decision(graphs, np.arange(10) % 2, first_depth=1)
    n_labels = decision.vocabulary.level_offsets[1]
    assert decision.pattern_ids(np.array([0, 2])).tolist() == [n_labels, n_labels + 2]
    assert decision.level_depths.tolist() == [1, 2]
    assert KERNELS[decision.kernel].pair_feature == decision.extractor.kind
    assert decision.facts_of_training(np.array([3, 4]))["class_label"].tolist() == [1, 0]
