"""Walks of bounded length without named sequences: products, tensors, and the choice of one."""

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
from treelens.kernels import _compiled_common_walks, common_walks
from treelens.kernels._compiled_walks import WalkedGraphs
from treelens.kernels.common_walks import (
    grouped_graphs,
    product_diagonal,
    product_kernel,
    tensor_kernel,
)
from treelens.kernels.random_walk import walked_graphs
from treelens.patterns.paths import WalkVocabulary, read_labels
from treelens.patterns.vocabulary import PatternVocabulary

LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def walked(graphs: GraphCollection, edge_labels: bool = False) -> WalkedGraphs:
    _, codes = read_labels(graphs, PatternVocabulary.empty(0, edge_labels))
    return walked_graphs(graphs, codes)


def products(left: WalkedGraphs, right: WalkedGraphs | None, *settings) -> np.ndarray:
    return product_kernel(
        grouped_graphs(left), None if right is None else grouped_graphs(right), *settings
    )


every_way = pytest.mark.parametrize("kernel_of", [products, tensor_kernel])


def dense_collection(
    rng: np.random.Generator, n_graphs: int, n_nodes: int, n_labels: int
) -> GraphCollection:
    """Random graphs of about equal size in which half of all pairs of nodes are joined."""
    graphs = []
    for n in rng.integers(n_nodes - 3, n_nodes + 1, n_graphs):
        edges = list(map(tuple, np.argwhere(np.triu(rng.random((n, n)) < 0.5, 1)).tolist()))
        labels = rng.choice(list(LABELS[:n_labels]), n).tolist()
        graphs.append((edges, dict(enumerate(labels))))
    return as_graph_collection(graphs)


# --- against the naive twins ------------------------------------------------------------------


@pytest.mark.interpreted
@settings(deadline=None)  # the first example may compile
@given(collections(min_nodes=0, edge_labels=True), st.booleans())
def test_blocks_and_groups_match_the_naive_twin(graphs, edge_labels):
    found = grouped_graphs(walked(graphs, edge_labels))
    for i, graph in enumerate(graphs):
        blocks, groups = naive.blocks_and_groups(graph, edge_labels)
        b = slice(found.block_offsets[i], found.block_offsets[i + 1])
        assert sorted(found.block_sizes[b]) == sorted(len(nodes) for nodes in blocks.values())
        assert (np.diff(found.block_labels[b]) > 0).all()
        g = range(found.group_offsets[i], found.group_offsets[i + 1])
        assert (np.diff(found.group_keys[g.start : g.stop]) > 0).all()
        assert len(g) == len(groups)
        n_arcs = sorted(len(arcs) for arcs in groups.values())
        assert sorted(np.diff(found.group_arcs)[g.start : g.stop]) == n_arcs


@pytest.mark.interpreted
@settings(deadline=None)
@given(st.lists(st.integers(0, 3), max_size=5), st.integers(0, 4), st.integers(0, 4), st.data())
def test_sums_of_outer_products_match_the_naive_twin(sizes, height, width, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    a, b = rng.integers(0, 3, (offsets[-1], height)), rng.integers(0, 3, (offsets[-1], width))
    found = np.full((len(sizes), height * width), 7.0)
    _compiled_common_walks.outer_sums(
        0, len(sizes), offsets, a.astype(float), b.astype(float), found
    )
    assert np.array_equal(found, naive.outer_sums(offsets.tolist(), a, b))


@every_way
@settings(deadline=None)
@given(
    graphs=collections(min_nodes=0, edge_labels=True),
    edge_labels=st.booleans(),
    max_length=st.integers(0, 5),
)
def test_both_ways_give_the_series_on_product_graphs(kernel_of, graphs, edge_labels, max_length):
    side = walked(graphs, edge_labels)
    expected = naive.random_walk_kernel(graphs, graphs, 0.3, max_length, edge_labels)
    kernel = kernel_of(side, None, max_length, 0.3)
    np.testing.assert_allclose(kernel, expected, rtol=1e-12)
    np.testing.assert_allclose(kernel_of(side, side, max_length, 0.3), expected, rtol=1e-12)
    diagonal = product_diagonal(grouped_graphs(side), max_length, 0.3)
    np.testing.assert_allclose(diagonal, np.diag(expected), rtol=1e-12)
    assert np.array_equal(kernel, kernel.T)


@every_way
def test_both_ways_equal_the_named_sequences_on_dense_graphs(rng, kernel_of):
    graphs = dense_collection(rng, 12, 25, 3)
    features = WalkVocabulary.fit(graphs, 7, 0.1)[1].pair_features().rows
    rows = np.zeros((12, features.indices.max() + 1))
    for i, (a, b) in enumerate(pairwise(features.offsets)):
        rows[i, features.indices[a:b]] = features.values[a:b]
    np.testing.assert_allclose(kernel_of(walked(graphs), None, 7, 0.1), rows @ rows.T, rtol=1e-10)


@pytest.mark.interpreted
@every_way
def test_labels_of_one_side_only_count_for_nothing(rng, kernel_of):
    known, new = random_collection(rng, 6, labels="CNO"), random_collection(rng, 5, labels="NOSP")
    vocabulary, codes = read_labels(known, PatternVocabulary.empty(0, True))
    side = walked_graphs(known, codes)
    other = walked_graphs(new, read_labels(new, vocabulary)[1])
    expected = naive.random_walk_kernel(new, known, 0.2, 4, True)
    np.testing.assert_allclose(kernel_of(other, side, 4, 0.2), expected, rtol=1e-12)


# --- threads and memory -----------------------------------------------------------------------


@every_way
def test_threads_change_no_bit_of_counts_too_large_to_be_exact(rng, monkeypatch, kernel_of):
    monkeypatch.setattr(common_walks, "_TILE", 4)
    graphs = dense_collection(rng, 15, 30, 2)
    side, other = walked(graphs), walked(graphs[:7])
    alone, cross = kernel_of(side, None, 13, 0.1, 1), kernel_of(side, other, 13, 0.1, 1)
    assert alone.max() * 10.0**13 > 2.0**53
    for n_jobs in (2, 3, 5):
        assert np.array_equal(kernel_of(side, None, 13, 0.1, n_jobs), alone)
        assert np.array_equal(kernel_of(side, other, 13, 0.1, n_jobs), cross)


@pytest.mark.interpreted
def test_tensors_in_small_parts_are_the_whole(rng, monkeypatch):
    graphs = random_collection(rng, 9, labels="CN")
    side = walked(graphs, edge_labels=True)
    whole = tensor_kernel(side, None, 5, 0.3)
    sizes = []
    count = common_walks._sequence_counts

    def watched(*arguments):
        counts = count(*arguments)
        sizes.append(counts.size)
        return counts

    monkeypatch.setattr(common_walks, "_sequence_counts", watched)
    monkeypatch.setattr(common_walks, "_TENSOR_NUMBERS", 10 * 4**3)
    np.testing.assert_allclose(tensor_kernel(side, None, 5, 0.3), whole, rtol=1e-12)
    assert max(sizes) <= 10 * 4**3 < sum(sizes)


# --- the choice -------------------------------------------------------------------------------
