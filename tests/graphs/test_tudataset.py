"""The TU reader: real data sets, the traps they set, and what bad files get."""

import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from treelens import read_tudataset
from treelens.errors import DamagedFileWarning, GraphDataError, IgnoredDataWarning

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
    ],
    ids=["8,1", "loose", "blanks", "CRLF", "blank end", "no end", "BOM", "twice"],
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


def test_edges_listed_in_one_direction_are_directed_unless_told_otherwise(tmp_path) -> None:
    folder = write_set(tmp_path / "TINY", A="2, 1\n3, 2\n", edge_labels="0\n9\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_is_good(*read_tudataset(folder, directed=False))
    with pytest.warns(UserWarning, match="directed=False"):
        graphs, _ = read_tudataset(folder)
    assert graphs.directed
    assert (graphs[0].edges, graphs[0].edge_labels) == (((1, 0), (2, 1)), (0, 9))
    both_ways, _ = read_tudataset(write_set(tmp_path / "TINY"), directed=True)
    assert both_ways[0].edges == ((0, 1), (1, 0), (1, 2), (2, 1))


def test_two_columns_of_labels_become_tuples(tmp_path) -> None:
    folder = write_set(
        tmp_path, node_labels="1, 2\n1, 3\n1, 2\n0, 0\n0, 0\n", edge_labels="1,1\n1,1\n1,2\n1,2\n"
    )
    graphs, _ = read_tudataset(folder)
    assert graphs[0].node_labels == ((1, 2), (1, 3), (1, 2))
    assert graphs[0].edge_labels == ((1, 1), (1, 2))


# --- files that are wrong -------------------------------------------------------------------

BAD = [
    ({"A": "1, 2\n2, 4\n"}, r"TINY_A.txt, line 2: expected two nodes of one graph, found 2, 4"),
    ({"A": "1, 2\n2, 99\n"}, r"TINY_A.txt, line 2: expected nodes of 1 to 5.* found 2, 99"),
    ({"A": "1, 2\n2, 1, 3\n"}, r"TINY_A.txt, line 2: expected 2 integers, found 3 in '2, 1, 3'"),
    ({"graph_labels": "1, 0\n2, 0\n3, 0\n"}, r"graph_labels.txt, line 1: .*one integer, found 2"),
    ({"A": ""}, r"TINY_A.txt is empty"),
    ({"graph_indicator": "1\n1\n1\n3\n4\n"}, r"line 5: expected a graph of 1 to 3.* found 4"),
    ({"graph_indicator": "1\n1\n"}, r"TINY_A.txt, line 3: expected nodes of 1 to 2"),
    ({"node_labels": "4\n5\n4\n6\n"}, r"has 4 lines.* has 5"),
    ({"edge_labels": "0\n0\n9\n"}, r"edge_labels.txt has 3 lines.* has 4"),
    ({"edge_labels": "0\n0\n9\n8\n"}, r"edge_labels.txt, .*Edge 1 - 2 of graph 0 .* 8 and 9"),
]


@pytest.mark.parametrize(("changes", "words"), BAD, ids=[words[:45] for _, words in BAD])
def test_bad_files_name_the_place(tmp_path, changes, words) -> None:
    folder = write_set(tmp_path / "TINY", **changes)
    for path in (folder, zip_of(folder, tmp_path / "TINY.zip")):
        with pytest.raises(GraphDataError, match=words) as caught:
            read_tudataset(path)
        assert str(tmp_path) in str(caught.value)


# --- files that may be damaged --------------------------------------------------------------

CHAIN = [(i, i + 1) for i in range(1, 300)]
LONG = {
    "A": "".join(f"{u}, {v}\n{v}, {u}\n" for u, v in CHAIN if u % 3),
    "graph_indicator": "".join(f"{(i + 2) // 3}\n" for i in range(1, 301)),
    "graph_labels": "1\n" * 100,
    "node_labels": "12\n" * 300,
    "edge_labels": None,
}


def long_with(part: str, old: str, new: str) -> dict[str, str | None]:
    assert LONG[part].count(old) == 1
    return LONG | {part: LONG[part].replace(old, new)}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (long_with("A", "\n100, 101\n", "\n100, 102\n"), r"_A.txt: 2 of 400 .* 100 - 102 in line"),
        (long_with("A", "\n100, 101\n", "\n"), r"1 of 399 edges.* directed=True .* 101 - 100 in"),
        (LONG | {"graph_labels": "1\n" * 101}, "graph_labels.txt has 101 lines, .* is 100"),
        (LONG | {"node_labels": "12\n" * 299 + "1"}, "node_labels.txt ends within a line"),
    ],
    ids=["digit", "line", "class", "cut off"],
)
def test_what_is_rare_in_sound_files_is_a_warning(tmp_path, files, words) -> None:
    with pytest.warns(DamagedFileWarning, match=words) as caught:
        graphs, _ = read_tudataset(write_set(tmp_path, **files))
    assert len(caught) == 1
    assert len(graphs) >= 100


@pytest.mark.parametrize(("share", "directed"), [(0.01, False), (0.02, False), (0.2, True)])
def test_lines_that_are_missing_are_counted(tmp_path, share, directed) -> None:
    lines = LONG["A"].splitlines()
    keep = np.random.default_rng(0).permutation(len(lines))[round(share * len(lines)) :]
    some = [lines[k] for k in sorted(keep)]
    n_one_way = sum(", ".join(line.split(", ")[::-1]) not in some for line in some)
    folder = write_set(tmp_path / "TINY", **LONG | {"A": "\n".join(some) + "\n"})
    words = f"{n_one_way} of {len(some)} edges are listed in one direction only"
    with pytest.warns(UserWarning, match=f"{words}.* directed={not directed} if") as told:
        assert read_tudataset(folder)[0].directed == directed
    assert issubclass(told[0].category, DamagedFileWarning) != directed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for settled in (True, False):
            assert read_tudataset(folder, directed=settled)[0].directed == settled


@pytest.mark.parametrize(
    "name", ["TINY_edge_labels.TXT", "tiny_Edge_Labels.txt", "TINY_edge_lebels.txt"]
)
def test_labels_under_nearly_the_right_name_are_an_error(tmp_path, name) -> None:
    folder = write_set(tmp_path / "TINY")
    (folder / "TINY_edge_labels.txt").rename(folder / name)
    for path in (folder, zip_of(folder, tmp_path / "TINY.zip")):
        with pytest.raises(GraphDataError, match=f"{name} beside .*TINY_edge_labels.txt would be"):
            read_tudataset(path)


def test_a_member_that_the_directory_of_a_zip_lost(tmp_path) -> None:
    archive = zip_of(write_set(tmp_path / "TINY"), tmp_path / "TINY.zip")
    data = bytearray(archive.read_bytes())
    entries = [i for i in range(len(data)) if data[i : i + 4] == b"PK\1\2"]
    swallowed = entries[2] - entries[1]  # the second becomes a comment of the first
    data[entries[0] + 32 : entries[0] + 34] = swallowed.to_bytes(2, "little")
    archive.write_bytes(data)
    with pytest.raises(GraphDataError, match="a member is lost"):
        read_tudataset(archive)


def test_attributes_of_graphs_are_not_read_and_a_warning_says_so(tmp_path) -> None:
    folder = write_set(tmp_path / "TINY", graph_attributes="0.5\n" * 5)
    with pytest.warns(IgnoredDataWarning, match="TINY_graph_attributes.txt") as caught:
        assert_is_good(*read_tudataset(folder))
    assert (len(caught), caught[0].filename) == (1, __file__)


# --- folders and archives -------------------------------------------------------------------


def test_folder_zip_parent_and_edge_file(tmp_path) -> None:
    folder = write_set(tmp_path / "outer" / "TINY")
    archive = zip_of(folder, tmp_path / "TINY.zip")
    flat = zip_of(folder, tmp_path / "flat.zip", prefix="")
    before = sorted(tmp_path.rglob("*"))
    for path in (folder, str(folder), folder.parent, folder / "TINY_A.txt", archive, flat):
        assert_is_good(*read_tudataset(path))
    assert sorted(tmp_path.rglob("*")) == before  # nothing was unpacked


def test_other_files_and_mac_leftovers_are_passed_over(tmp_path) -> None:
    folder = write_set(tmp_path / "TINY")
    (folder / "README.txt").write_text("about")
    archive = zip_of(folder, tmp_path / "TINY.zip")
    with zipfile.ZipFile(archive, "a") as more:
        more.writestr("__MACOSX/TINY/._TINY_A.txt", b"\0\1")
        more.writestr("TINY/._TINY_A.txt", b"\0\1")
    assert_is_good(*read_tudataset(archive))


def test_several_sets_in_one_folder(tmp_path) -> None:
    write_set(tmp_path / "both" / "ONE", "ONE")
    write_set(tmp_path / "both" / "TWO", "TWO")
    with pytest.raises(GraphDataError, match=r"several data sets \(ONE/ONE_A.txt, TWO/TWO_A.txt\)"):
        read_tudataset(tmp_path / "both")
    write_set(tmp_path / "ONE", "ONE")
    write_set(tmp_path / "ONE", "TWO", graph_labels="")
    assert_is_good(*read_tudataset(tmp_path / "ONE"))  # the one that is named as the folder


def test_nothing_there(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone does not exist"):
        read_tudataset(tmp_path / "gone")
    with pytest.raises(GraphDataError, match="has no TU data set"):
        read_tudataset(tmp_path)
    for part in ("graph_indicator", "graph_labels"):
        folder = write_set(tmp_path / part, **{part: None})
        with pytest.raises(FileNotFoundError, match=f"TINY_{part}.txt is missing"):
            read_tudataset(folder)


def test_doubles_and_encryption(tmp_path) -> None:
    folder = write_set(tmp_path / "TINY")
    archive = zip_of(folder, tmp_path / "double.zip")
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(archive, "a") as more:
        more.writestr("TINY/TINY_A.txt", "1, 2\n")
    with pytest.raises(GraphDataError, match="is there twice"):
        read_tudataset(archive)

    locked = bytearray(zip_of(folder, tmp_path / "locked.zip").read_bytes())
    for signature, flag_at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(signature) + flag_at] |= 1
    (tmp_path / "locked.zip").write_bytes(locked)
    with pytest.raises(GraphDataError, match="is encrypted"):
        read_tudataset(tmp_path / "locked.zip")


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
    if name == "NCI1":
        assert np.count_nonzero(np.diff(graphs.neighbor_offsets) == 0) == 428  # isolated nodes
