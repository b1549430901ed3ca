"""How files are opened: no regular file, or one that unpacks to too much; numbers in them."""

from __future__ import annotations

import gzip
import os
import re
import socket
import threading
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.test_damaged_files import TU_FILES, zipped
from graphs.test_tudataset import write_set
from treelens import read_smiles, read_tudataset
from treelens.graphs import tables
from treelens.graphs.blocks import SmilesBlocks
from treelens.graphs.errors import GraphDataError
from treelens.graphs.targets import is_integer, is_number
from treelens.graphs.tudataset import number_table

pytest.importorskip("rdkit", reason="needs RDKit: pip install rdkit")


def read_blocks(path: Path) -> list:
    return [part.load() for part in SmilesBlocks(path)]


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
    [*((name, read_smiles) for name in ("x.csv", "x.csv.gz", "x.sdf", "x.parquet")),
     ("x.csv", read_blocks), ("x.csv.gz", read_blocks),
     ("x.zip", read_tudataset), ("X_A.txt", read_tudataset),
     *((f"X_{part}_labels.txt", lambda path: read_tudataset(path.parent))
       for part in ("graph", "node"))],
)  # fmt: skip
def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path, name, read) -> None:
    write_set(tmp_path, "X")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    message = within_seconds(lambda: read(tmp_path / name))
    assert f"{name} is a pipe, a socket or a device; expected a regular file" in message


def test_folders_sockets_and_devices(tmp_path, monkeypatch) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(GraphDataError, match=r"folder\.csv is a folder; expected a regular file"):
        read_smiles(tmp_path / "folder.csv")
    (write_set(tmp_path / "set", "X", edge_labels=None) / "X_edge_labels.txt").mkdir()
    with pytest.raises(GraphDataError, match=r"X_edge_labels\.txt is a folder"):
        read_tudataset(tmp_path / "set")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("x.csv")
        with pytest.raises(GraphDataError, match="is a pipe, a socket"):
            read_smiles("x.csv")
    if Path("/dev/zero").exists():
        (tmp_path / "zero.csv").symlink_to("/dev/zero")
        with pytest.raises(GraphDataError, match="or a device"):
            read_smiles(tmp_path / "zero.csv")


def test_links_to_files_are_files_and_loops_are_not(tmp_path) -> None:
    (tmp_path / "real.csv").write_text("smiles,label\nC,1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert len(read_smiles(tmp_path / "link.csv")[0]) == 1
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    for path in (tmp_path / "loop.csv", "a\0b.csv"):
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
    assert tables.read_bytes(path) == SWOLLEN
    monkeypatch.setenv("TREELENS_MAX_UNPACKED", str(len(SWOLLEN) - 1))
    with pytest.raises(GraphDataError, match="was refused"):
        tables.read_bytes(path)
    archive = tmp_path / "X.zip"
    archive.write_bytes(zipped({**TU_FILES, "graph_attributes": SWOLLEN}))
    monkeypatch.delenv("TREELENS_MAX_UNPACKED")
    with pytest.raises(GraphDataError, match="TREELENS_MAX_UNPACKED=BYTES"):
        read_tudataset(archive)
    monkeypatch.setenv("TREELENS_MAX_UNPACKED", str(2 * len(SWOLLEN)))
    assert len(read_tudataset(archive)[0]) == 2


def test_blocks_of_a_large_gz_need_no_limit(tmp_path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(SWOLLEN))
    part = next(iter(SmilesBlocks(path, block_size=3)))
    assert part.load().y.tolist() == [1, 1, 1]


def test_a_zip_that_lies_about_its_size_is_not_unpacked_whole(tmp_path) -> None:
    """The list of members says 2 bytes; unpacking at once would give 64 MiB before looking."""
    path = tmp_path / "X.zip"
    data = bytearray(zipped({**TU_FILES, "edge_labels": b"0\n" * (32 * 2**20)}))
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
    path.write_bytes(zipped(TU_FILES, method))
    with pytest.raises(GraphDataError, match="packed in an unusual way"):
        read_tudataset(path)


# --- numbers written as text: Python is the oracle, where it is not too kind --------------------

TEXTS = st.text(alphabet="0123456789+-_., ;eE\t٣", max_size=8)


@given(TEXTS)
def test_an_integer_is_what_python_writes_with_or_without_a_sign(text):
    plain = re.fullmatch(r"[+-]?\d+", text, re.ASCII) is not None
    expected = plain and str(abs(int(text))) == text.lstrip("+-")
    assert is_integer(text) == expected


@given(st.integers(-(2**70), 2**70), st.floats(allow_nan=False))
def test_integers_fit_into_64_bits_and_every_float_is_a_number(whole, number):
    assert is_integer(str(whole)) == (abs(whole) < 10**18)
    assert is_number(str(whole)) == (abs(whole) < 10**16)
    assert is_number(repr(number))


@given(
    st.lists(st.integers(-(10**18) + 1, 10**18 - 1), min_size=1, max_size=5),
    st.sampled_from([",", ";", " ", "\t", ", ", " ;  "]),
)
def test_tables_come_back_whatever_separates_the_columns(values, between):
    line = between.join(map(str, values))
    assert number_table(f"{line}\n{line}".encode(), "x").tolist() == [values, values]


@settings(max_examples=40)
@given(st.lists(st.from_regex(r"[+-]?[0-9]{1,4}", fullmatch=True), min_size=1, max_size=6))
def test_every_leading_zero_is_an_error(fields):
    data = ", ".join(fields).encode()
    if all(map(is_integer, fields)):
        assert number_table(data, "x").tolist() == [list(map(int, fields))]
    else:
        with pytest.raises(GraphDataError, match=r"x, line 1: .*leading zero"):
            number_table(data, "x")


@pytest.mark.parametrize("line", ["", "1,,2", "1 02", "1.0", "x", "1_0", "9" * 30, f"1, {2**63}"])
def test_lines_that_are_no_integers(line):
    with pytest.raises(GraphDataError, match="file, line 2: expected"):
        number_table(f"1\n{line}\n1".encode(), "file")
