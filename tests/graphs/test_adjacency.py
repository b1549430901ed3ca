"""Adjacency matrices: dense and sparse ones say the same, and bad ones say what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from treelens.graphs.adjacency import edges_of_matrix, is_adjacency
from treelens.graphs.errors import GraphDataError


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix, np.array])
def test_every_kind_of_matrix_gives_the_same_edges(rng, kind):
    matrix = (rng.random((6, 6)) < 0.4) * rng.integers(-2, 3, (6, 6))
    nodes, edges = edges_of_matrix(kind(matrix), 0)
    assert nodes == list(range(6))
    assert sorted(edges) == [(i, j) for i in range(6) for j in range(6) if matrix[i, j]]


def test_stored_zeros_are_no_edges_and_duplicates_add_up():
    rows, columns = [0, 0, 1, 1], [1, 1, 0, 0]
    matrix = sparse.coo_array(([1, -1, 2, 3], (rows, columns)), shape=(2, 2))
    assert edges_of_matrix(matrix, 0)[1] == [(1, 0)]


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (np.zeros((2, 3)), r"Graph 4: .*square; got shape \(2, 3\)"),
        ([[0, 1], [1]], "Graph 4: .*square"),
        (np.array([["a", "b"], ["c", "d"]]), "Graph 4: .*must hold numbers"),
        ([[0.0, np.nan], [0.0, 0.0]], "Graph 4: .*NaN: write 0"),
    ],
    ids=["not square", "ragged", "texts", "nan"],
)
def test_matrices_that_cannot_be_read(structure, message):
    with pytest.raises(GraphDataError, match=message):
        edges_of_matrix(structure, 4)


def test_what_is_taken_for_a_matrix():
    assert is_adjacency(np.zeros((1, 1)))
    assert is_adjacency([[0, 1], [1, 0]])
    assert not is_adjacency([(0, 1), (1, 0)])  # edges
    assert not is_adjacency([])
