"""How files are opened: no regular file, or one that unpacks to too much; numbers in them."""

from __future__ import annotations

import gzip
import os
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
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
    with pytest.raises(GraphDataError, match=f"{name} is a pipe, a socket or a device; expected"):
        read(tmp_path / name)


def test_folders_and_devices(tmp_path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(GraphDataError, match=r"folder\.csv is a folder; expected a regular file"):
        read_smiles(tmp_path / "folder.csv")
    (write_set(tmp_path / "set", "X", edge_labels=None) / "X_edge_labels.txt").mkdir()
    with pytest.raises(GraphDataError, match=r"X_edge_labels\.txt is a folder"):
        read_tudataset(tmp_path / "set")
    if Path("/dev/zero").exists():
        (tmp_path / "zero.csv").symlink_to("/dev/zero")
        with pytest.raises(GraphDataError, match="or a device"):
            read_smiles(tmp_path / "zero.csv")


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
