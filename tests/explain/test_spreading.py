"""From patterns to nodes and edges, against a tree that is really unfolded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import explain as naive
from treelens.explain.spreading import Arcs, spread_over_edges, spread_over_nodes

pytestmark = pytest.mark.interpreted


def _random_graph(seed: int, n: int = 7) -> list[list[int]]:
    """Neighbour lists with a self-loop and an isolated node."""
    rng = np.random.default_rng(seed)
    joined = np.triu(rng.random((n, n)) < 0.35, 1)
    joined = joined | joined.T
    joined[1, 1] = True
    joined[n - 1, :] = joined[:, n - 1] = False
    return [np.flatnonzero(row).tolist() for row in joined]


def _arcs(neighbors: list[list[int]]) -> Arcs:
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in neighbors])])
    return Arcs(offsets, np.array([v for row in neighbors for v in row], dtype=np.int64))


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), first_depth=st.integers(0, 1), n_depths=st.integers(1, 4))
def test_spreading_follows_the_unfolded_tree(seed, first_depth, n_depths):
    neighbors = _random_graph(seed)
    shares = np.random.default_rng(seed).normal(size=(n_depths, len(neighbors)))
    arcs = _arcs(neighbors)
    nodes = spread_over_nodes(shares, first_depth + np.arange(len(shares)), arcs)
    np.testing.assert_allclose(
        nodes, naive.spread_over_nodes(shares, first_depth, neighbors), atol=1e-12
    )
    assert nodes.sum() == pytest.approx(shares.sum(), abs=1e-12)
    edges = spread_over_edges(shares, first_depth + np.arange(len(shares)), arcs)
    expected = naive.spread_over_edges(shares, first_depth, neighbors)
    np.testing.assert_allclose(edges, list(expected.values()), atol=1e-12)
    deep = shares[max(0, 1 - first_depth) :, [bool(row) for row in neighbors]]
    assert edges.sum() == pytest.approx(deep.sum(), abs=1e-12)


def test_a_star_is_shared_by_centre_and_leaves():
    star = _arcs([[1, 2], [0], [0]])
    nodes = spread_over_nodes(np.array([[1.0, 0, 0]]), np.array([1]), star)
    np.testing.assert_allclose(nodes, [0.5, 0.25, 0.25])
    np.testing.assert_allclose(
        spread_over_edges(np.array([[1.0, 0, 0]]), np.array([1]), star), [0.5, 0.5]
    )


def test_a_graph_without_edges():
    lonely = Arcs(np.zeros(3, dtype=int), np.empty(0, dtype=int))
    shares = np.array([[1.0, -2.0], [0.5, 0.5]])
    np.testing.assert_allclose(
        spread_over_nodes(shares, np.arange(len(shares)), lonely), [1.5, -1.5]
    )
    assert len(spread_over_edges(shares, np.arange(len(shares)), lonely)) == 0
