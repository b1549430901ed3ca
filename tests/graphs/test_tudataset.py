"""The TU reader: real data sets, the traps they set, and what bad files get."""

from __future__ import annotations

import importlib.util
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from treelens import read_tudataset
from treelens.graphs.errors import DegreeLabelsWarning, GraphDataError

# Graph 1: a labelled path of three; graph 2: no nodes; graph 3: two nodes, no edge.
GOOD = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n",
    "graph_indicator": "1\n1\n1\n3\n3\n",
    "graph_labels": "1\n-1\n7\n",
    "node_labels": "4\n5\n4\n6\n6\n",
    "edge_labels": "0\n0\n9\n9\n",
}


def write_set(folder: Path, name: str = "TINY", **changes: str | bytes | None) -> Path:
    """Write the good files with some replaced, or left out where None."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in {**GOOD, **changes}.items():
        if text is not None:
            data = text if isinstance(text, bytes) else text.encode()
            (folder / f"{name}_{part}.txt").write_bytes(data)
    return folder


def zip_of(folder: Path, path: Path, prefix: str = "TINY/") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, prefix + file.name)
    return path


def assert_is_good(graphs, y) -> None:
    assert y.dtype == np.int64
    assert y.tolist() == [1, -1, 7]
    assert [graph.node_labels for graph in graphs] == [(4, 5, 4), (), (6, 6)]
    assert [graph.edges for graph in graphs] == [((0, 1), (1, 2)), (), ()]
    assert graphs[0].edge_labels == (0, 9)


# --- traps that real files set --------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"A": "1,2\n2,1\n2,3\n3,2\n"},
        {"A": "1 , 2 \n2,1\n2,\t3\n 3, 2"},
        {"A": "1 2\n2 1\n2\t3\n3 2\n"},
        {part: text.replace("\n", "\r\n") for part, text in GOOD.items()},
        {part: text + "\n\n" for part, text in GOOD.items()},
        {part: text.rstrip() for part, text in GOOD.items()},
        {part: "\ufeff" + text for part, text in GOOD.items()},
        {"A": GOOD["A"] * 2, "edge_labels": GOOD["edge_labels"] * 2},
        {"A": "2, 1\n3, 2\n", "edge_labels": "0\n9\n"},
    ],
    ids=["8,1", "loose", "blanks", "CRLF", "blank end", "no end", "BOM", "twice", "one way"],
)
def test_forms_that_mean_the_same(tmp_path, changes) -> None:
    assert_is_good(*read_tudataset(write_set(tmp_path / "TINY", **changes)))


def test_nodes_of_a_graph_need_not_stand_together(tmp_path) -> None:
    folder = write_set(
        tmp_path,
        graph_indicator="3\n1\n1\n3\n1\n",
        A="2, 3\n3, 5\n",
        node_labels="6\n4\n5\n6\n4\n",
        edge_labels="0\n9\n",
    )
    assert_is_good(*read_tudataset(folder))


def test_two_columns_of_labels_become_tuples(tmp_path) -> None:
    folder = write_set(
        tmp_path, node_labels="1, 2\n1, 3\n1, 2\n0, 0\n0, 0\n", edge_labels="1,1\n1,1\n1,2\n1,2\n"
    )
    graphs, _ = read_tudataset(folder)
    assert graphs[0].node_labels == ((1, 2), (1, 3), (1, 2))
    assert graphs[0].edge_labels == ((1, 1), (1, 2))


def test_no_node_labels_gives_degrees_and_says_so_once(tmp_path) -> None:
    folder = write_set(tmp_path, node_labels=None)
    with pytest.warns(DegreeLabelsWarning) as caught:
        graphs, _ = read_tudataset(folder)
    assert len(caught) == 1
    assert [graph.node_labels for graph in graphs] == [(1, 2, 1), (), (0, 0)]


def test_no_edge_labels(tmp_path) -> None:
    graphs, _ = read_tudataset(write_set(tmp_path, edge_labels=None))
    assert graphs.edge_alphabet is None


def test_self_loop(tmp_path) -> None:
    folder = write_set(tmp_path, A="1, 1\n1, 2\n", edge_labels=None)
    graphs, _ = read_tudataset(folder)
    assert graphs[0].edges == ((0, 0), (0, 1))


# --- files that are wrong -------------------------------------------------------------------

BAD = [
    ({"A": "1, 2\n2, 4\n"}, r"TINY_A.txt, line 2: .*2 - 4 joins two graphs.*graph 1, index 0"),
    ({"A": "1, 2\n2, 99\n"}, r"TINY_A.txt, line 2: .*graph 1, index 0.* node 99, which does not"),
    ({"A": "0, 1\n"}, r"TINY_A.txt, line 1: .*node 0, which does not exist.*nodes are 1 to 5"),
    ({"A": "1, 2\n2, 1, 3\n"}, r"TINY_A.txt, line 2: expected 2 integers, found 3 in '2, 1, 3'"),
    ({"A": "1, 2, 3\n"}, r"TINY_A.txt, line 1: expected 2 integers, found 3"),
    ({"A": "1, 2\n2\n"}, r"TINY_A.txt, line 2: expected 2 integers, found 1"),
    ({"A": "1, 2\n2,"}, r"TINY_A.txt, line 2: expected 2 integers, found ''"),
    ({"A": "1, 2\n\n2, 1\n"}, r"TINY_A.txt, line 2: expected 2 integers"),
    ({"A": "1, 2\n2, x\n"}, r"TINY_A.txt, line 2: expected 2 integers, found 'x'"),
    ({"A": "1, 2\n2, 1.5\n"}, r"TINY_A.txt, line 2: .*found '1.5'"),
    ({"A": "1, 2\n2, 99999999999999999999\n"}, r"TINY_A.txt, line 2: .*beyond 64 bits"),
    ({"A": "1, 2\n2, " + "9" * 5000}, r"TINY_A.txt, line 2: "),
    ({"A": "1.0, 2.0\n2.0, 1.0\n"}, r"TINY_A.txt, line 1: .*found '1.0'"),
    ({"A": "1, 2\n2, 0_1\n"}, r"TINY_A.txt, line 2: .*found '0_1'"),
    ({"A": "1, 2\n2, 1\0 3\n"}, r"TINY_A.txt, line 2: "),
    ({"A": "\ufeff\n"}, r"TINY_A.txt is empty"),
    ({"graph_labels": "1\n01\n2\n"}, r"labels.txt, line 2: .*found '01' .with a leading zero"),
    ({"graph_labels": "1\nTrue\n2\n"}, r"graph_labels.txt, line 2: .*found 'True'"),
    ({"graph_labels": "1\n1e1\n2\n"}, r"graph_labels.txt, line 2: .*found '1e1'"),
    ({"graph_labels": "1, 0\n2, 0\n3, 0\n"}, r"graph_labels.txt, line 1: .*one integer, found 2"),
    ({"node_labels": "4\n5\n4\n6\n-06\n"}, r"node_labels.txt, line 5 .*found '-06'"),
    ({"A": b"1, 2\n2, \xff\n"}, r"TINY_A.txt, line 2: "),
    ({"A": ""}, r"TINY_A.txt is empty"),
    ({"A": "\r\n \n"}, r"TINY_A.txt is empty"),
    ({"graph_indicator": ""}, r"TINY_graph_indicator.txt is empty"),
    ({"graph_indicator": "1\n1\n1\n3\nthree\n"}, r"graph_indicator.txt, line 5: .*found 'three'"),
    ({"graph_indicator": "1\n1\n1\n3\n4\n"}, r"line 5: node 5 belongs to graph 4.*1 to 3"),
    ({"graph_indicator": "0\n1\n1\n3\n3\n"}, r"line 1: node 1 belongs to graph 0"),
    ({"graph_indicator": "1\n1\n"}, r"TINY_A.txt, line 3: .*node 3, which does not exist"),
    ({"graph_labels": ""}, r"TINY_graph_labels.txt is empty.*at least one graph"),
    ({"graph_labels": "1\n-1\n"}, r"graph_indicator.txt, line 4: node 4 belongs to graph 3"),
    ({"graph_labels": "1\nyes\n0\n"}, r"TINY_graph_labels.txt, line 2: .*one integer.*'yes'"),
    ({"node_labels": "4\n5\n4\n6\n"}, r"has 4 lines.* has 5.*line 5 \(node 5 of graph 3, index 2"),
    ({"node_labels": GOOD["node_labels"] + "1\n"}, r"node_labels.txt has 6 lines.* has 5"),
    ({"node_labels": "4\n5\nC\n6\n6\n"}, r"node_labels.txt, line 3 \(node 3 of graph 1.*'C'"),
    ({"node_labels": "4\n5\nnan\n6\n6\n"}, r"node_labels.txt, line 3 .*'nan'"),
    ({"node_labels": "4\n5, 1\n4\n6\n6\n"}, r"node_labels.txt, line 2 .*one integer, found 2"),
    ({"edge_labels": "0\n0\n9\n"}, r"has 3 lines.* has 4.*line 4 \(edge 3 - 2 of graph 1, index 0"),
    ({"edge_labels": "0\n0\n9\n8\n"}, r"edge_labels.txt, lines 3 and 4: .*two labels, 9 and 8"),
    ({"edge_labels": "0\n0\nx\n9\n"}, r"edge_labels.txt, line 3 \(edge 2 - 3 of graph 1.*'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), BAD, ids=[words[:45] for _, words in BAD])
@pytest.mark.parametrize("zipped", [False, True], ids=["folder", "zip"])
def test_bad_files_name_the_place(tmp_path, changes, words, zipped) -> None:
    path = write_set(tmp_path / "TINY", **changes)
    if zipped:
        path = zip_of(path, tmp_path / "TINY.zip")
    with pytest.raises(GraphDataError, match=words) as caught:
        read_tudataset(path)
    assert str(tmp_path) in str(caught.value)


# --- real data sets -------------------------------------------------------------------------

# name, graphs, mean nodes, mean edges, sizes of the classes, node labels, edge labels
REAL = [
    ("MUTAG", 188, 17.93, 19.79, [63, 125], 7, 4),
    ("PTC_MR", 344, 14.29, 14.69, [192, 152], 18, 4),
    ("PTC_DGCNN", 344, 25.56, 25.96, [192, 152], 19, None),
    ("PROTEINS", 1113, 39.06, 72.82, [663, 450], 3, None),
    ("NCI1", 4110, 29.87, 32.30, [2053, 2057], 37, None),
    ("ENZYMES", 600, 32.63, 62.14, [100] * 6, 3, None),
    ("DD", 1178, 284.32, 715.66, [691, 487], 82, None),
]


@pytest.mark.parametrize("expected", REAL, ids=[row[0] for row in REAL])
def test_real_data_sets_have_their_published_sizes(data_folder, expected) -> None:
    name, n_graphs, mean_nodes, mean_edges, classes, n_labels, n_edge_labels = expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graphs, y = read_tudataset(data_folder / "tu" / f"{name}.zip")
    assert len(graphs) == len(y) == n_graphs
    assert round(graphs.n_nodes / n_graphs, 2) == mean_nodes
    assert round(graphs.n_edges / n_graphs, 2) == mean_edges
    assert np.unique(y, return_counts=True)[1].tolist() == classes
    assert len(graphs.node_alphabet) == n_labels
    assert (graphs.edge_alphabet and len(graphs.edge_alphabet)) == n_edge_labels


def test_nci1_has_its_isolated_nodes(data_folder) -> None:
    graphs, _ = read_tudataset(data_folder / "tu" / "NCI1.zip")
    assert np.count_nonzero(np.diff(graphs.neighbor_offsets) == 0) == 428


def test_mutag_class_codes_stay_as_they_are(mutag) -> None:
    graphs, y = mutag
    assert np.unique(y).tolist() == [-1, 1]
    assert graphs.edge_alphabet == (0, 1, 2, 3)


def test_cuneiform_has_labels_of_two_columns() -> None:
    grakel = importlib.util.find_spec("grakel")
    if grakel is None or grakel.origin is None:
        pytest.skip("needs the Cuneiform files that the grakel wheel carries")
    graphs, _ = read_tudataset(Path(grakel.origin).parent / "tests" / "data" / "Cuneiform")
    assert len(graphs) == 267
    assert {len(label) for label in graphs.node_alphabet} == {2}
