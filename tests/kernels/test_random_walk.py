"""Random walks pair by pair: product graphs, linear systems and convergence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import paths as naive
from strategies import collections, random_collection
from treelens import as_graph_collection
from treelens.graphs.collection import GraphCollection
from treelens.kernels import _compiled
from treelens.kernels.random_walk import (
    check_convergence,
    spectral_radius,
    walk_diagonal,
    walk_kernel,
    walked_graphs,
)
from treelens.patterns.paths import read_labels
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted


def walked(graphs: GraphCollection, edge_labels: bool = False) -> _compiled.WalkedGraphs:
    _, codes = read_labels(graphs, PatternVocabulary.empty(0, edge_labels))
    return walked_graphs(graphs, codes)


def complete_graph(n: int, label: str = "C") -> tuple:
    return [(i, j) for i in range(n) for j in range(i)], dict.fromkeys(range(n), label)


def dense_collection(
    rng: np.random.Generator, n_graphs: int, n_nodes: int, n_labels: int
) -> GraphCollection:
    """Random graphs of about equal size in which half of all pairs of nodes are joined."""
    graphs = []
    for n in rng.integers(n_nodes - 3, n_nodes + 1, n_graphs):
        edges = list(map(tuple, np.argwhere(np.triu(rng.random((n, n)) < 0.5, 1)).tolist()))
        labels = rng.choice(list("ABCDEFGH"[:n_labels]), n).tolist()
        graphs.append((edges, dict(enumerate(labels))))
    return as_graph_collection(graphs)


@given(collections(min_nodes=0, edge_labels=True, directed=None), st.booleans())
def test_steps_match_the_naive_twin(graphs, edge_labels):
    side = walked(graphs, edge_labels)
    n_edge_labels = int(side.edge_codes.max(initial=0)) + 1
    for i, a in enumerate(graphs):
        for j, b in enumerate(graphs):
            matching = _compiled.matching_nodes(side, i, side, j)
            product = naive.product_adjacency(a, b, edge_labels)
            assert matching[2][-1] == len(product)
            ours = expected = np.ones(len(product))
            for _ in range(3):  # nodes are in another order, so walks from each are sorted
                found = np.empty_like(ours)
                _compiled.walk_step(side, i, side, j, n_edge_labels, matching, ours, found)
                ours, expected = found, product @ expected
                np.testing.assert_array_equal(np.sort(ours), np.sort(expected))


def check_kernel(graphs: GraphCollection, edge_labels: bool, *setting) -> None:
    """Compare with the product graphs written out; ``setting`` is the length and the decay."""
    side, (max_length, decay) = walked(graphs, edge_labels), setting
    expected = naive.random_walk_kernel(graphs, graphs, decay, max_length, edge_labels)
    kernel = walk_kernel(side, None, *setting)
    assert np.array_equal(kernel, kernel.T)
    for found in (kernel, walk_kernel(side, side, *setting)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(walk_diagonal(side, *setting), np.diag(expected), rtol=1e-12)


@given(collections(directed=None), st.floats(0.01, 0.95))
def test_solved_sums_match_a_dense_solver(graphs, share):
    side = walked(graphs)
    radius = max(spectral_radius(side, i) for i in range(len(graphs)))
    decay = share / max(radius, 1.0)
    if graphs.directed:
        check_convergence(side, decay)  # raises nothing
    check_kernel(graphs, False, None, decay)


@given(
    graphs=collections(min_nodes=0, edge_labels=True, directed=None),
    edge_labels=st.booleans(),
    max_length=st.integers(0, 5),
)
def test_bounded_sums_match_the_series_on_product_graphs(graphs, edge_labels, max_length):
    check_kernel(graphs, edge_labels, max_length, 0.3)


def test_labels_of_one_side_only_do_not_count(rng):
    known, new = random_collection(rng, 6, labels="CNO"), random_collection(rng, 5, labels="NOSP")
    vocabulary, codes = read_labels(known, PatternVocabulary.empty(0, True))
    side = walked_graphs(known, codes)
    other = walked_graphs(new, read_labels(new, vocabulary)[1])
    expected = naive.random_walk_kernel(new, known, 0.2, 4, True)
    np.testing.assert_allclose(walk_kernel(other, side, 4, 0.2), expected, rtol=1e-12)


def test_threads_change_no_bit_of_counts_too_large_to_be_exact(rng):
    graphs = dense_collection(rng, 5, 12, 2)
    side, other = walked(graphs), walked(graphs[:3])
    alone, cross = walk_kernel(side, None, 13, 0.1), walk_kernel(side, other, 13, 0.1)
    assert alone.max() * 10.0**13 > 2.0**53
    for n_jobs in (2, 3):
        assert np.array_equal(walk_kernel(side, None, 13, 0.1, n_jobs), alone)
        assert np.array_equal(walk_kernel(side, other, 13, 0.1, n_jobs), cross)


@given(collections(min_nodes=0, directed=None))
def test_spectral_radii_match_a_dense_solver(graphs):
    side = walked(graphs)
    for i, graph in enumerate(graphs):
        product = naive.product_adjacency(graph, graph)
        if graph.directed:  # eigenvalues of such matrices are not accurate: compare long walks
            powers = np.linalg.matrix_power(product, 64).sum(), np.linalg.matrix_power(product, 128)
            expected = (powers[1].sum() / powers[0]) ** (1 / 64) if powers[0] else 0.0
            assert spectral_radius(side, i) == pytest.approx(expected, rel=0.05)
            continue
        values = np.linalg.eigvalsh(product)
        assert spectral_radius(side, i) == pytest.approx(values.max(initial=0.0), abs=1e-10)


def test_a_radius_is_that_of_long_walks_however_many_short_ones_there_are():
    """Every node leads to all later ones, the last to a ring: the number of walks stays bounded."""
    edges = [(u, v) for v in range(9) for u in range(v)] + [(8, 9), (9, 10), (10, 8)]
    side = walked(as_graph_collection([(edges, dict.fromkeys(range(11), "C"))], directed=True))
    assert walk_kernel(side, None, 8, 1.0)[0, 0] > 1e4
    assert spectral_radius(side, 0) == pytest.approx(1.0, rel=1e-9)


def test_convergence_is_judged_by_the_radius_and_not_by_degrees():
    # The bound on the radius is the square of the largest degree, here 4: no walk is overlooked.
    with pytest.raises(ValueError, match=r"spectral radius 16"):
        check_convergence(walked(as_graph_collection([complete_graph(5)])), 0.2)
    star = [(0, i) for i in range(1, 10)], dict.fromkeys(range(10), "C")
    both = walked(as_graph_collection([star, complete_graph(5)]))
    with pytest.raises(ValueError, match=r"graph 1 with itself has spectral radius 16.*0\.0625"):
        check_convergence(both, 0.5)
    # A complete graph on n equal nodes has radius n - 1, its product with itself the square.
    large = walked(as_graph_collection([complete_graph(n) for n in (9, 12)]))
    assert [spectral_radius(large, i) for i in range(2)] == pytest.approx([64.0, 121.0])
    side = walked(as_graph_collection([star]))  # radius 3 * 3, largest degree 9
    check_convergence(side, 0.11)
    with pytest.raises(ValueError, match=r"decay=0\.12 \(the lambda .* Use decay < 0\.111111"):
        check_convergence(side, 0.12)


def test_decay_at_the_very_limit_is_an_error_and_not_a_wrong_number():
    side = walked(as_graph_collection([complete_graph(3)]))
    with pytest.raises(ValueError, match="smaller decay"):
        walk_kernel(side, None, None, 0.25)
