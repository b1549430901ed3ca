"""Graphs in blocks: cut anywhere, read again and again, and named where they are wrong."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import treelens as tl
from treelens.graphs.blocks import (
    CollectionBlocks,
    GraphPart,
    SmilesBlocks,
    as_part,
    check_block_size,
    check_blocks,
    holds_blocks,
    loaded,
    parts_of,
)
from treelens.graphs.errors import (
    GraphDataError,
    InvalidMoleculesWarning,
    MissingTargetsWarning,
    NotGraphsError,
)
from treelens.graphs.synthetic import make_random_graphs

GRAPHS = make_random_graphs(7, random_state=0)
Y = np.arange(7)


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_blocks_of_any_size_hold_every_graph_once(size: int) -> None:
    blocks = CollectionBlocks(GRAPHS, Y, size)
    for _ in range(2):  # one pass after the other
        read = [part.load() for part in blocks]
        assert [graph for block in read for graph in block.graphs] == list(GRAPHS)
        assert np.concatenate([block.y for block in read]).tolist() == Y.tolist()
        assert max(len(block.graphs) for block in read) <= size


@pytest.mark.parametrize("size", [0, -1, 2.0, None, "10"])
def test_what_is_no_number_of_graphs(size) -> None:
    with pytest.raises(ValueError, match="block_size must be a number of graphs of at least 1"):
        check_block_size(size)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((7, 1)), "one class or value per graph, one-dimensional"),
        ([1, 2], "7 graphs but 2 targets"),
    ],
)
def test_classes_that_do_not_fit(y, message) -> None:
    with pytest.raises(GraphDataError, match=f"CollectionBlocks: .*{message}"):
        list(CollectionBlocks(GRAPHS, y))
    with pytest.raises(GraphDataError, match=rf"Block 2 \(counted from 0\): .*{message}"):
        as_part((GRAPHS, y), 2)


@pytest.mark.parametrize("block", [GRAPHS, "CCO", (GRAPHS,), ("CCO", [1]), 3, (GRAPHS, Y, Y)])
def test_what_is_no_block_is_named_by_its_number(block) -> None:
    with pytest.raises(NotGraphsError, match=r"Block 1 \(counted from 0\) is"):
        list(parts_of([(GRAPHS, Y), block]))


def test_graphs_that_cannot_be_read_name_their_block() -> None:
    with pytest.raises(GraphDataError, match=r"Block 0 \(counted from 0\): "):
        as_part(([3, 4], [0, 1]), 0)


@pytest.mark.parametrize("given", ["x", b"x", GRAPHS, 3, None])
def test_what_are_no_blocks(given) -> None:
    with pytest.raises(NotGraphsError, match="Expected blocks"):
        check_blocks(given)
    assert not holds_blocks(given)


def test_an_iterator_can_be_read_once_only() -> None:
    with pytest.raises(NotGraphsError, match="this iterator can be read once"):
        check_blocks(iter([(GRAPHS, Y)]))
    check_blocks([(GRAPHS, Y)])
    check_blocks(CollectionBlocks(GRAPHS))


def test_blocks_are_told_from_graphs() -> None:
    assert holds_blocks([(GRAPHS, Y)])
    assert holds_blocks([GraphPart(GRAPHS, None)])
    assert holds_blocks(CollectionBlocks(GRAPHS))
    assert not holds_blocks(list(GRAPHS))
    assert not holds_blocks([([(0, 1)], {0: "a", 1: "b"})])  # a graph, as GraKeL has them
    assert not holds_blocks([])


# --- molecules --------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    pytest.importorskip("rdkit")
    path = tmp_path / "x.csv"
    path.write_text("smiles,label\nCCO,1\nC(,0\nCN,\nCC,0\n")
    return path


def test_messages_are_of_the_kind_that_reading_at_once_has(table) -> None:
    options = {"on_invalid": "skip", "on_missing": "skip"}
    with warnings.catch_warnings(record=True) as at_once:
        warnings.simplefilter("always")
        tl.read_smiles(table, **options)
    with warnings.catch_warnings(record=True) as in_blocks:
        warnings.simplefilter("always")
        blocks = list(loaded(SmilesBlocks(table, block_size=2, **options)))
    kinds = {InvalidMoleculesWarning, MissingTargetsWarning}
    assert {w.category for w in at_once} == {w.category for w in in_blocks} == kinds
    assert [block.y.tolist() for block in blocks] == [[1], [0]]


def test_a_block_travels_with_its_messages(table) -> None:
    first, *_ = SmilesBlocks(table, block_size=2, on_invalid="skip", on_missing="skip")
    (message,) = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(first)).load())).messages
    assert isinstance(message, InvalidMoleculesWarning)
    assert "C(" in str(message)


def test_tables_that_cannot_be_read_in_blocks(tmp_path) -> None:
    with pytest.raises(GraphDataError, match=r"x.xlsx cannot be read in blocks"):
        list(SmilesBlocks(tmp_path / "x.xlsx"))
    with pytest.raises(ValueError, match="on_missing"):
        SmilesBlocks("x.csv", on_missing="ignore")
