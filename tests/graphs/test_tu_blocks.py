"""The TU format in blocks: as at once, or an error that names the file and the line."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from treelens import load_dataset, read_tudataset
from treelens.graphs import blocks as blocks_module
from treelens.graphs.blocks import TUBlocks, loaded
from treelens.graphs.errors import GraphDataError, IgnoredDataWarning

GOOD = {
    "A": "1, 2\n2, 1\n2, 3\n4, 5\n6, 7\n",
    "graph_indicator": "1\n1\n1\n2\n2\n4\n4\n",
    "graph_labels": "1\n-1\n7\n1\n",
    "node_labels": "4\n5\n4\n6\n6\n4\n5\n",
    "edge_labels": "0\n0\n9\n3\n0\n",
}


def write_set(folder: Path, **changes: str | bytes) -> Path:
    for part, text in {**GOOD, **changes}.items():
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"TINY_{part}.txt").write_bytes(data)
    return folder


def read(folder: Path, block_size: int, directed: bool | None = False) -> list:
    blocks = TUBlocks(folder, "TINY", block_size=block_size, directed=directed)
    return [part.load() for part in blocks]


@pytest.mark.parametrize("block_size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {part: text.replace("\n", "\r\n") for part, text in GOOD.items()},
        {part: text + "\n \n" for part, text in GOOD.items()},
        {part: text.rstrip() for part, text in GOOD.items()},
        {part: "\ufeff" + text for part, text in GOOD.items()},
        {"A": GOOD["A"].replace(", ", ";")},
        {"node_labels": "".join(f"{x}, 1\n" for x in GOOD["node_labels"].split())},
    ],
    ids=["plain", "CRLF", "blank end", "no end", "BOM", "semicolons", "two columns"],
)
def test_blocks_are_what_is_read_at_once(tmp_path, monkeypatch, changes, block_size) -> None:
    monkeypatch.setattr(blocks_module, "_LINES_AT_ONCE", 1 + block_size % 3)
    write_set(tmp_path, **changes)
    for directed in (False, True):
        graphs, y = read_tudataset(tmp_path, directed=directed)
        blocks = read(tmp_path, block_size, directed)
        assert [graph for block in blocks for graph in block.graphs] == list(graphs)
        assert [label for block in blocks for label in block.y] == y.tolist()


def test_blocks_do_not_guess_whether_edges_have_a_direction(tmp_path) -> None:
    with pytest.raises(GraphDataError, match=r"TINY_A.txt, line 3: .*directed=True"):
        read(write_set(tmp_path), 100, directed=None)


BAD = [
    ({"graph_indicator": "2\n2\n1\n1\n1\n4\n4\n"}, r"_indicator.txt, line 3: it does not belong"),
    ({"graph_labels": "1, 0\n-1, 0\n7, 0\n1, 0\n"}, r"_labels.txt, line 1: .*one integer, found 2"),
    ({"graph_labels": "1\n-1\n7 3\n1\n"}, r"graph_labels.txt, line 3: .*one integer, found 2"),
    ({"graph_labels": "1\n1_0\n7\n1\n"}, r"graph_labels.txt, line 2: .*found '1_0'"),
    ({"graph_labels": "1\n01\n7\n1\n"}, r"graph_labels.txt, line 2: .*found '01'"),
    ({"graph_labels": "1\n\u0661\n7\n1\n"}, r"graph_labels.txt, line 2: "),
    ({"graph_labels": "1\n9223372036854775808\n7\n1\n"}, r"graph_labels.txt, line 2: "),
    ({"graph_labels": "1\n" + "9" * 5000 + "\n7\n1\n"}, r"graph_labels.txt, line 2: "),
    ({"graph_labels": b"1\n\xff\n7\n1\n"}, r"graph_labels.txt, line 2: "),
    ({"graph_labels": "1\n\n7\n1\n"}, r"graph_labels.txt, line 2: .*found (''|a blank line)"),
    ({"graph_labels": ""}, r"graph_labels.txt is empty"),
    ({"A": "1, 2\n2, 4\n2, 3\n4, 5\n6, 7\n"}, r"_A.txt, line 2: the edge joins two graphs"),
    ({"A": "1, 2\n2, 1\n2, 3\n4, 5\n6, 5\n"}, r"_A.txt, line 5: "),
    ({"A": "1,, 2\n2, 1\n2, 3\n4, 5\n6, 7\n"}, r"_A.txt, line 1: expected 2 integers, found ''"),
    ({"A": "1 2 3\n2, 1\n2, 3\n4, 5\n6, 7\n"}, r"_A.txt, line 1: expected 2 .*found 3"),
    ({"node_labels": "4\n5\n4, 1\n6\n6\n4\n5\n"}, r"node_labels.txt, line 3: expected one integer"),
    ({"node_labels": "4\n5\n4\n6\n6, 1\n4\n5\n"}, r"node_labels.txt, line 5: expected one integer"),
    ({"node_labels": "4\n5\n4\n"}, r"node_labels.txt, line 3: the file ends \d lines early"),
    ({"edge_labels": "0\n1\n9\n3\n0\n"}, r"graphs 1 to .*Edge 0 - 1 of graph 0 .*two labels"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), BAD, ids=[words[:40] for _, words in BAD])
@pytest.mark.parametrize("n_lines", [1, 2, 2**16])
def test_bad_files_name_the_file_and_the_line(
    tmp_path, monkeypatch, changes, words, n_lines
) -> None:
    monkeypatch.setattr(blocks_module, "_LINES_AT_ONCE", n_lines)
    with pytest.raises(GraphDataError, match=words) as caught:
        read(write_set(tmp_path, **changes), block_size=3)
    assert str(tmp_path) in str(caught.value)


def test_tu_files_are_read_in_blocks_as_they_are_at_once(data_folder, tmp_path) -> None:
    with zipfile.ZipFile(data_folder / "tu" / "MUTAG.zip") as archive:
        archive.extractall(tmp_path)
    graphs, y = load_dataset("MUTAG")
    blocks = list(loaded(TUBlocks(tmp_path / "MUTAG", block_size=50)))
    assert [len(block.graphs) for block in blocks] == [50, 50, 50, 38]
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
    assert [graph for block in blocks for graph in block.graphs] == list(graphs)


def test_tu_files_out_of_order_are_refused(tmp_path) -> None:
    write_set(tmp_path, A="4, 5\n1, 2\n2, 1\n2, 3\n6, 7\n")
    with pytest.raises(GraphDataError, match=r"TINY_A.txt, line 2: .*in the order of the graphs"):
        read(tmp_path, 1)
    write_set(tmp_path, A=GOOD["A"] + "6, 9\n")
    with pytest.raises(GraphDataError, match=r"TINY_A.txt, line 6: .*more lines than the graphs"):
        read(tmp_path, 1)


def test_attributes_come_block_by_block(tmp_path) -> None:
    numbers = np.arange(14.0).reshape(7, 2)
    weights = np.arange(5.0)
    write_set(
        tmp_path,
        node_attributes="\n".join(f"{x}, {y}" for x, y in numbers),
        edge_attributes="\n".join(map(str, weights)),
    )
    blocks = [block.graphs for block in read(tmp_path, 1)]
    np.testing.assert_array_equal(np.concatenate([b.node_attributes for b in blocks]), numbers)
    whole, _ = read_tudataset(tmp_path, directed=False)
    for name in ("node_attributes", "edge_attributes", "neighbors"):
        parts = np.concatenate([getattr(block, name) for block in blocks])
        np.testing.assert_array_equal(parts, getattr(whole, name))
    write_set(tmp_path, graph_attributes="0.5\n" * 4)
    with pytest.warns(IgnoredDataWarning, match="TINY_graph_attributes.txt"):
        read(tmp_path, 1)
