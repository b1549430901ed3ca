"""The full random-walk series: product graphs, linear systems and convergence."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import paths as naive
from strategies import collections, random_collection
from treelens import as_graph_collection
from treelens.graphs.collection import GraphCollection
from treelens.kernels import _compiled_walks
from treelens.kernels.random_walk import (
    check_convergence,
    geometric_diagonal,
    geometric_kernel,
    spectral_radius,
    walked_graphs,
)
from treelens.patterns.paths import read_labels
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted


def walked(graphs: GraphCollection, edge_labels: bool = False) -> _compiled_walks.WalkedGraphs:
    _, codes = read_labels(graphs, PatternVocabulary.empty(0, edge_labels))
    return walked_graphs(graphs, codes)


def complete_graph(n: int, label: str = "C") -> tuple:
    return [(i, j) for i in range(n) for j in range(i)], dict.fromkeys(range(n), label)


@settings(deadline=None)  # the first example may compile
@given(collections(min_nodes=0, edge_labels=True), st.booleans())
def test_product_graphs_match_the_naive_twin(graphs, edge_labels):
    side = walked(graphs, edge_labels)
    for i, a in enumerate(graphs):
        for j, b in enumerate(graphs):
            offsets, targets = _compiled_walks.product_graph(side, i, side, j)
            expected = naive.product_adjacency(a, b, edge_labels)
            assert offsets.tolist() == [0, *np.cumsum(expected.sum(axis=1))]
            assert [sorted(targets[x:y]) for x, y in pairwise(offsets)] == [
                np.flatnonzero(row).tolist() for row in expected
            ]


@settings(deadline=None)
@given(collections(), st.floats(0.01, 0.95))
def test_solved_sums_match_a_dense_solver(graphs, share):
    side = walked(graphs)
    radius = max(spectral_radius(side, i) for i in range(len(graphs)))
    decay = share / max(radius, 1.0)
    expected = naive.random_walk_kernel(graphs, graphs, decay, None)
    kernel = geometric_kernel(side, None, decay)
    np.testing.assert_allclose(kernel, expected, rtol=1e-12)
    np.testing.assert_allclose(geometric_kernel(side, side, decay), expected, rtol=1e-12)
    np.testing.assert_allclose(geometric_diagonal(side, decay), np.diag(expected), rtol=1e-12)
    assert np.array_equal(kernel, kernel.T)


def test_a_system_that_is_not_positive_definite_gives_nan():
    side = walked(as_graph_collection([complete_graph(3)]))
    offsets, targets = _compiled_walks.product_graph(side, 0, side, 0)
    assert np.isnan(_compiled_walks.sum_of_solution(offsets, targets, 0.3, 1e-9))


@settings(deadline=None)
@given(collections(min_nodes=0))
def test_spectral_radii_match_a_dense_solver(graphs):
    side = walked(graphs)
    for i, graph in enumerate(graphs):
        values = np.linalg.eigvalsh(naive.product_adjacency(graph, graph))
        assert spectral_radius(side, i) == pytest.approx(values.max(initial=0.0), abs=1e-10)


def test_large_spectral_radii_are_exact(rng):
    # A complete graph on n equal nodes has radius n - 1, its product with itself the square.
    side = walked(as_graph_collection([complete_graph(n) for n in (9, 12)]))
    assert [spectral_radius(side, i) for i in range(2)] == pytest.approx([64.0, 121.0])


def test_convergence_is_judged_by_the_radius_and_not_by_degrees():
    star = [(0, i) for i in range(1, 10)], dict.fromkeys(range(10), "C")
    side = walked(as_graph_collection([star]))  # radius 3 * 3, largest degree 9
    check_convergence(side, 0.11)
    with pytest.raises(ValueError, match=r"decay=0\.12 \(the lambda .* Use decay < 0\.111111"):
        check_convergence(side, 0.12)


def test_the_error_names_the_graph_that_sets_the_limit():
    side = walked(as_graph_collection([complete_graph(n) for n in (2, 5, 3)]))
    with pytest.raises(ValueError, match=r"graph 1 with itself has spectral radius 16.*0\.0625"):
        check_convergence(side, 0.5)


def test_the_graph_with_the_largest_degree_need_not_set_the_limit():
    star = [(0, i) for i in range(1, 10)], dict.fromkeys(range(10), "C")  # radius 9, bound 81
    side = walked(as_graph_collection([star, complete_graph(5)]))
    with pytest.raises(ValueError, match="graph 1 with itself has spectral radius 16"):
        check_convergence(side, 0.5)


def test_a_pair_converges_where_both_graphs_do(rng):
    graphs = random_collection(rng, 12, max_nodes=8, density=0.4)
    side = walked(graphs)
    radii = [spectral_radius(side, i) for i in range(len(graphs))]
    for i, a in enumerate(graphs):
        for j, b in enumerate(graphs):
            values = np.linalg.eigvalsh(naive.product_adjacency(a, b))
            assert values.max(initial=0.0) <= np.sqrt(radii[i] * radii[j]) + 1e-9


def test_decay_at_the_very_limit_is_an_error_and_not_a_wrong_number():
    side = walked(as_graph_collection([complete_graph(3)]))
    with pytest.raises(ValueError, match="smaller decay"):
        geometric_kernel(side, None, 0.25)
