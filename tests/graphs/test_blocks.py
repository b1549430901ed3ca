"""Graphs in blocks: of any size, read several times, and named where they are wrong."""

import pickle

import numpy as np
import pytest

import treelens as tl
from chem.test_molecule_table import write
from strategies import make_random_graphs
from treelens.chem.blocks import SmilesBlocks
from treelens.errors import GraphDataError, InvalidMoleculesWarning, NotGraphsError
from treelens.graphs.blocks import Block, CollectionBlocks, loaded, parts_of
from treelens.graphs.convert import as_single_graph, holds_blocks

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
    for blocks in (CollectionBlocks(GRAPHS, Y, size), SmilesBlocks("x.csv", block_size=size)):
        with pytest.raises(ValueError, match="block_size must be a number of graphs, at least 1"):
            list(blocks)


@pytest.mark.parametrize(
    "y", [np.zeros((7, 1)), [1, 2], set(range(7)), np.ma.array(Y, mask=Y > 3)], ids=str
)
def test_classes_that_do_not_fit(y) -> None:
    with pytest.raises(GraphDataError, match=r"CollectionBlocks: .*y"):
        list(CollectionBlocks(GRAPHS, y))
    with pytest.raises(GraphDataError, match=r"Block 1 \(counted from 0\): .*y"):
        list(parts_of([(GRAPHS, Y), (GRAPHS, y)]))


@pytest.mark.parametrize(
    "block", [GRAPHS, "CCO", (GRAPHS,), ("CCO", [1]), 3, (GRAPHS, Y, Y), ([3, 4], [0, 1])]
)
def test_what_is_no_block_is_named_by_its_number(block) -> None:
    with pytest.raises(NotGraphsError, match=r"Block 1 \(counted from 0\)"):
        list(parts_of([(GRAPHS, Y), block]))


def test_blocks_and_graphs_are_recognised() -> None:
    for blocks in ([(GRAPHS, Y)], [Block(GRAPHS, None)], CollectionBlocks(GRAPHS)):
        assert holds_blocks(blocks)
    grakel = ([(0, 1)], {0: "a", 1: "b"})
    for other in ("x", b"x", GRAPHS, 3, None, list(GRAPHS), [grakel], [], iter([(GRAPHS, Y)])):
        assert not holds_blocks(other)


def test_blocks_in_the_place_of_graphs_are_called_so(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("smiles,label\nCCO,1\nO,0\n" + "torn,apart,row\n")  # read no further
    table, inside = SmilesBlocks(path, block_size=1), CollectionBlocks(GRAPHS, Y, 3)
    for given in (table, inside, list(inside), next(iter(inside)), [(GRAPHS, Y)]):
        for take in (tl.as_graph_collection, as_single_graph):
            with pytest.raises(NotGraphsError, match="got blocks"):
                take(given)


SMILES = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCl", "C1CC1", "CO", "CN", "CCCC", "OCCO"]


def test_a_block_travels_with_its_messages(tmp_path) -> None:
    table = write(tmp_path / "x.csv", [("CCO", 1), ("C(", 0), ("CN", ""), ("CC", 0)])
    first, *_ = SmilesBlocks(table, block_size=2, on_invalid="skip", on_missing="skip")
    (message,) = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(first)).load())).messages
    assert isinstance(message, InvalidMoleculesWarning)
    assert "C(" in str(message)


def test_tables_that_cannot_be_read_in_blocks(tmp_path) -> None:
    with pytest.raises(GraphDataError, match=r"x.xlsx cannot be read in blocks"):
        list(SmilesBlocks(tmp_path / "x.xlsx"))
    for wrong in ({"on_missing": "ignore"}, {"on_invalid": "warn"}, {"atom_label": "colour"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            SmilesBlocks("x.csv", **wrong)


def test_smiles_are_read_in_blocks_as_they_are_at_once(tmp_path) -> None:
    path = write(tmp_path / "x.csv", zip(SMILES, "01" * 5, strict=True))
    graphs, y = tl.read_smiles(path)
    blocks = list(loaded(SmilesBlocks(path, block_size=3)))
    assert [len(block.graphs) for block in blocks] == [3, 3, 3, 1]
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
    rows = np.concatenate([block.graphs.graph_data["row"] for block in blocks])
    assert rows.tolist() == graphs.graph_data["row"].tolist()
    names = [graph.node_labels for block in blocks for graph in block.graphs]
    assert names == [graph.node_labels for graph in graphs]


def test_a_bad_row_is_named_by_its_number_in_the_file(tmp_path) -> None:
    smiles = [*SMILES[:7], "not a molecule", *SMILES[7:]]
    path = write(tmp_path / "x.csv", zip(smiles, "01010101010", strict=True))
    with pytest.raises(GraphDataError, match=r"row 8 \(line 9\) 'not a molecule'"):
        list(loaded(SmilesBlocks(path, block_size=3)))
    with pytest.warns(InvalidMoleculesWarning, match=r"row 8 \(line 9\)"):
        blocks = list(loaded(SmilesBlocks(path, block_size=3, on_invalid="skip")))
    rows = np.concatenate([block.graphs.graph_data["row"] for block in blocks])
    assert rows.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10]
    with pytest.warns(InvalidMoleculesWarning):  # block 7 has no molecule left, and is left out
        blocks = list(loaded(SmilesBlocks(path, block_size=1, on_invalid="skip")))
    assert len(blocks) == len(SMILES)
