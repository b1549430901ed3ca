"""Arrays that compiled loops would follow out of bounds are refused, and the place is named."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.graphs.checks import (
    check_edge_codes,
    check_neighbors,
    check_node_codes,
    check_offsets,
    whole_numbers,
)
from treelens.graphs.errors import GraphDataError

# A path of three nodes, a lonely node, and two joined ones.
NODE_OFFSETS = np.array([0, 3, 4, 6])
NEIGHBOR_OFFSETS = np.array([0, 1, 3, 4, 4, 5, 6])
NEIGHBORS = np.array([1, 0, 2, 1, 1, 0])


@pytest.mark.parametrize(
    ("values", "dtype", "words"),
    [
        ([[1, 2]], np.int32, r"codes must have one axis; got the shape \(1, 2\)"),
        (3, np.int32, r"one axis; got the shape \(\)"),
        ([1.0, 2.0], np.int32, "codes must hold integers; got float64"),
        ([True, False], np.int32, "codes must hold integers; got bool"),
        ([0, 2**31], np.int32, "codes holds 2147483648, which is no int32"),
        ([-(2**31) - 1, 0], np.int32, "codes holds -2147483649, which is no int32"),
        (np.array([2**63], dtype=np.uint64), np.int64, "which is no int64"),
    ],
)
def test_what_are_no_whole_numbers(values, dtype, words) -> None:
    with pytest.raises(GraphDataError, match=words):
        whole_numbers(values, "codes", dtype)


@pytest.mark.parametrize("values", [[0, 2**31 - 1], [-(2**31)], np.array([7], dtype=np.uint64)])
def test_the_ends_of_what_fits_are_kept(values) -> None:
    found = whole_numbers(values, "codes", np.int32)
    assert found.tolist() == list(values)


def test_nothing_is_an_array_of_the_kind_asked_for() -> None:
    assert whole_numbers([], "codes", np.int32).dtype == np.int32


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ([], "node_offsets is empty: it must begin with 0"),
        ([1, 2], "node_offsets begins with 1"),
        ([0, 3, 2, 5], "falls from 3 to 2 at graph 1: it must ascend"),
        ([0, -1], "falls from 0 to -1 at graph 0"),
    ],
)
def test_offsets_that_lead_astray(offsets, words) -> None:
    with pytest.raises(GraphDataError, match=words):
        check_offsets(np.array(offsets, dtype=int), "node_offsets", "graph")


def test_offsets_may_stand_still() -> None:
    check_offsets(np.array([0, 0, 2, 2]), "node_offsets", "graph")
    check_offsets(np.array([0]), "node_offsets", "graph")


def test_sound_neighbours() -> None:
    check_neighbors(NODE_OFFSETS, NEIGHBOR_OFFSETS, NEIGHBORS)
    nobody = np.zeros(3, dtype=int)
    check_neighbors(np.array([0, 2]), nobody, np.empty(0, dtype=int))


@pytest.mark.parametrize(
    ("arc", "neighbor", "words"),
    [
        (2, 3, "Node 1 of graph 0 has the neighbour 3, but the nodes of that graph are 0 to 2"),
        (4, 2, "Node 0 of graph 2 has the neighbour 2, but the nodes of that graph are 0 to 1"),
        (5, -1, "Node 1 of graph 2 has the neighbour -1"),
        (1, 2, "Node 1 of graph 0 has the neighbours 2 and then 2: they must ascend, each once"),
    ],
)
def test_neighbours_that_lead_astray(arc, neighbor, words) -> None:
    wrong = NEIGHBORS.copy()
    wrong[arc] = neighbor
    with pytest.raises(GraphDataError, match=words):
        check_neighbors(NODE_OFFSETS, NEIGHBOR_OFFSETS, wrong)


def test_neighbours_may_fall_where_another_node_begins() -> None:
    """From node to node, over a node without any, and from graph to graph."""
    offsets = np.array([0, 2, 2, 3, 4])
    check_neighbors(np.array([0, 3, 4]), offsets, np.array([0, 2, 0, 0]))


@pytest.mark.parametrize("code", [-1, 2])
def test_codes_outside_an_alphabet(code: int) -> None:
    codes = np.array([0, 1, 0, 1, 0, code])
    with pytest.raises(GraphDataError, match=f"Node 1 of graph 2 has the label code {code}; node"):
        check_node_codes(codes, 2, NODE_OFFSETS)
    codes = np.array([0, 1, code, 0, 0, 0])
    with pytest.raises(GraphDataError, match=f"node 1 of graph 0 has the label code {code}; edge"):
        check_edge_codes(codes, 2, NODE_OFFSETS, NEIGHBOR_OFFSETS)


def test_every_code_of_an_alphabet_is_fine() -> None:
    check_node_codes(np.array([0, 1, 2, 2, 1, 0]), 3, NODE_OFFSETS)
    check_edge_codes(np.array([2, 1, 0, 0, 1, 2]), 3, NODE_OFFSETS, NEIGHBOR_OFFSETS)
    check_node_codes(np.empty(0, dtype=int), 0, np.array([0]))
