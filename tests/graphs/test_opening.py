"""How files are opened: what is no regular file, and what unpacks to more than it should."""

from __future__ import annotations

import gzip
import io
import os
import socket
import threading
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from treelens import read_smiles, read_tudataset
from treelens.graphs import opening
from treelens.graphs.blocks import SmilesBlocks, TUBlocks
from treelens.graphs.errors import GraphDataError

pytest.importorskip("rdkit", reason="needs RDKit: pip install rdkit")

TU = {"A": "1, 2\n", "graph_indicator": "1\n1\n", "graph_labels": "1\n", "node_labels": "0\n0\n"}


def write_set(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in TU.items():
        (folder / f"X_{part}.txt").write_text(text)
    return folder


def read_blocks(path: Path) -> list:
    return [part.load() for part in SmilesBlocks(path)]


def read_parts(path: Path) -> list:
    return [part.load() for part in TUBlocks(path.parent, "X")]


def within_seconds(call, seconds: float = 20.0) -> str:
    """The message of our error from a call that must not hang; a thread that does stays behind."""
    caught: list[str] = []

    def attempt() -> None:
        with pytest.raises(GraphDataError) as error:
            call()
        caught.append(str(error.value))

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    assert caught, "the call hangs, or gave no error of ours"
    return caught[0]


# --- what is no regular file ----------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("x.csv", read_smiles),
        ("x.csv.gz", read_smiles),
        ("x.sdf", read_smiles),
        ("x.parquet", read_smiles),
        ("x.csv", read_blocks),
        ("x.csv.gz", read_blocks),
        ("x.zip", read_tudataset),
        ("X_A.txt", read_tudataset),
        ("X_graph_labels.txt", lambda path: read_tudataset(path.parent)),
        ("X_node_labels.txt", lambda path: read_tudataset(path.parent)),
        ("X_node_labels.txt", read_parts),
    ],
)
def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path, name, read) -> None:
    write_set(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    message = within_seconds(lambda: read(tmp_path / name))
    assert f"{name} is a named pipe; expected a regular file" in message


def test_folders_sockets_and_devices(tmp_path, monkeypatch) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(GraphDataError, match=r"folder\.csv is a folder; expected a regular file"):
        read_smiles(tmp_path / "folder.csv")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("x.csv")
        with pytest.raises(GraphDataError, match="is a socket"):
            read_smiles("x.csv")
    if Path("/dev/zero").exists():
        (tmp_path / "zero.csv").symlink_to("/dev/zero")
        with pytest.raises(GraphDataError, match="is a device"):
            read_smiles(tmp_path / "zero.csv")


def test_a_label_file_that_is_a_folder_is_not_passed_over(tmp_path) -> None:
    write_set(tmp_path)
    (tmp_path / "X_edge_labels.txt").mkdir()
    for read in (read_tudataset, lambda path: list(TUBlocks(path, "X"))):
        with pytest.raises(GraphDataError, match=r"X_edge_labels\.txt is a folder"):
            read(tmp_path)


def test_links_to_files_are_files_and_loops_are_not(tmp_path) -> None:
    (tmp_path / "real.csv").write_text("smiles,label\nC,1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert len(read_smiles(tmp_path / "link.csv")[0]) == 1
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    for path in (tmp_path / "loop.csv", "x" * 5000 + ".csv", "a\0b.csv"):
        with pytest.raises(FileNotFoundError, match="is not a file that exists"):
            read_smiles(path)


# --- what unpacks to too much ---------------------------------------------------------------

SWOLLEN = b"smiles,label\n" + (b"C" * 125 + b",1\n") * (3 * 2**16)  # 24 MiB; gz: some 24 KiB


@pytest.mark.parametrize("name", ["x.csv.gz", "x.sdf.gz", "x.smi.gz"])
def test_a_gz_that_swells_is_refused_early(tmp_path, name) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(SWOLLEN))
    tracemalloc.start()
    with pytest.raises(GraphDataError, match=r"unpack to more than 8,547,500 .*TREELENS_MAX_UNP"):
        read_smiles(path, target=None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(SWOLLEN)


def test_the_limit_can_be_set(tmp_path, monkeypatch) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(SWOLLEN))
    monkeypatch.setenv("TREELENS_MAX_UNPACKED", str(len(SWOLLEN)))
    assert opening.read_bytes(path) == SWOLLEN
    monkeypatch.setenv("TREELENS_MAX_UNPACKED", str(len(SWOLLEN) - 1))
    with pytest.raises(GraphDataError, match="was refused"):
        opening.read_bytes(path)
    for wrong in ("2G", "-1", "1_000", "9" * 30):
        monkeypatch.setenv("TREELENS_MAX_UNPACKED", wrong)
        with pytest.raises(GraphDataError, match="must be a number of bytes; got"):
            opening.read_bytes(path)


def test_the_limit_of_a_zip_can_be_set(tmp_path, monkeypatch) -> None:
    path = tmp_path / "X.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, text in TU.items():
            archive.writestr(f"X_{part}.txt", text)
        archive.writestr("X_graph_attributes.txt", SWOLLEN)
    with pytest.raises(GraphDataError, match="TREELENS_MAX_UNPACKED=BYTES"):
        read_tudataset(path)
    monkeypatch.setenv("TREELENS_MAX_UNPACKED", str(2 * len(SWOLLEN)))
    assert len(read_tudataset(path)[0]) == 1


def test_blocks_of_a_large_gz_need_no_limit(tmp_path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(SWOLLEN))
    part = next(iter(SmilesBlocks(path, block_size=3)))
    assert part.load().y.tolist() == [1, 1, 1]


def test_a_zip_that_lies_about_its_size_is_not_unpacked_whole(tmp_path) -> None:
    """The list of members says 2 bytes; unpacking at once would give 64 MiB before looking."""
    path = tmp_path / "X.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, text in TU.items():
            data = b"0\n" * (32 * 2**20) if part == "node_labels" else text.encode()
            archive.writestr(f"X_{part}.txt", data)
    data = bytearray(path.read_bytes())
    for signature, size_at in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        start = data.rindex(signature)
        data[start + size_at : start + size_at + 4] = (2).to_bytes(4, "little")
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(GraphDataError, match="cannot be read as a zip"):
        read_tudataset(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zips_packed_in_unusual_ways_are_refused(tmp_path, method) -> None:
    path = tmp_path / "X.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for part, text in TU.items():
            archive.writestr(f"X_{part}.txt", text)
    with pytest.raises(GraphDataError, match=rf"packed in an unusual way \(method {method}"):
        read_tudataset(path)


def test_lines_in_blocks_are_bounded_and_otherwise_as_python_reads_them(
    tmp_path, monkeypatch
) -> None:
    for text in ("", "a", "a\n", "a\r\nb\rc\n\n\r\r\nd", "\r", "aaa\r\n", "aa\r\nb", "x\u2028y\n"):
        lines = list(opening.bounded_lines(io.StringIO(text, newline=""), tmp_path))
        assert lines == list(io.StringIO(text, newline="")), repr(text)
    monkeypatch.setattr(opening, "LONGEST_LINE", 100)
    (tmp_path / "x.csv").write_text("smiles,label\nC,1\n" + "C" * 200 + ",1\n")
    with pytest.raises(GraphDataError, match=r"x\.csv, line 3: the line is longer than 100"):
        read_blocks(tmp_path / "x.csv")
