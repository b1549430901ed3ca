"""Tables as programs save them, rows without a target; files that are none, or unpack to too much.

Numbers written as text: Python is the oracle, where it is not too kind.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.test_damaged_files import TU_FILES, zipped
from graphs.test_tudataset import write_set
from treelens import read_smiles, read_tudataset
from treelens.chem.blocks import SmilesBlocks
from treelens.errors import GraphDataError, MissingTargetsWarning
from treelens.graphs import tables
from treelens.graphs.tables import read_table_blocks, read_text_table
from treelens.graphs.target_columns import is_integer, is_number

pytest.importorskip("rdkit", reason="needs RDKit: pip install rdkit")

TEXT = "smiles,label,note\nCCO,1,café µM\nO,0,naïve\n"


# --- letters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_letters_as_programs_save_them(tmp_path, encoding, separator, recwarn) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes((TEXT + "C,1,é").replace(",", separator).encode(encoding))
    table = read_text_table(path)
    assert table.column("note", "x") == ["café µM", "naïve", "é"]
    assert [("is not UTF-8" in str(w.message)) for w in recwarn] == [True] * (encoding == "cp1252")
    (block,) = read_table_blocks(path, 10)
    assert block == table


@pytest.mark.parametrize("name", ["x.smi", "x.csv"])
def test_only_line_ends_end_lines(tmp_path, name) -> None:
    """Not the separators of Unicode, which Python's splitlines takes for line ends."""
    header = "" if name == "x.smi" else "smiles name\n".replace(" ", ",")
    between = " " if name == "x.smi" else ","
    text = header + "".join(f"C{between}a\u2028b\x85c\x0bd{end}" for end in ("\n", "\r\n"))
    (tmp_path / name).write_bytes(text.encode())
    table = read_text_table(tmp_path / name)
    assert table.column("smiles", "") == ["C", "C"]
    assert len(set(table.column("name", ""))) == 1
    (block,) = read_table_blocks(tmp_path / name, 10)
    assert block == table


# --- workbooks --------------------------------------------------------------------------------


def workbook(path: Path, rows: list[list[object]], sheets: int = 1) -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for n in range(1, sheets):
        book.create_sheet(f"more {n}")
    book.save(path)
    return path


def rewritten(path: Path, change: Callable[[str], str]) -> Path:
    """Change the XML of the sheet of a workbook."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    members[sheet] = change(members[sheet].decode()).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_workbook(tmp_path) -> None:
    rows = [["smiles", "label", None], ["CCO", 1.5, "a remark"], [None, None, None], ["O", None]]
    path = workbook(tmp_path / "x.xlsx", rows)
    table = read_text_table(path)
    assert (table.columns, table.rows) == (["smiles", "label"], [["CCO", "1.5"], ["O", ""]])
    assert table.place(1) == "row 2 (line 4)"
    with pytest.warns(MissingTargetsWarning, match=r"missing in 1 of 2 rows: row 2 \(line 4\)"):
        graphs, y = read_smiles(path, on_missing="skip")
    assert (len(graphs), y.tolist()) == (1, [1.5])
    with pytest.warns(UserWarning, match="has 3 sheets"):
        assert read_text_table(workbook(path, rows, sheets=3)) == table


def test_the_sheet_of_a_workbook(tmp_path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Read me"
    book.active.append(["made by"])
    for title, smiles in (("Assay 1", "CCO"), ("Assay 2", "CCN")):
        sheet = book.create_sheet(title)
        sheet.append([None])
        sheet.append(["Ligand SMILES", "label"])
        sheet.append([smiles, 1])
    path = tmp_path / "x.xlsx"
    book.save(path)
    with pytest.warns(UserWarning, match=r"3 sheets .*'Assay 1', the first with a column of SMI"):
        assert read_text_table(path).rows == [["CCO", "1"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_text_table(path, "Assay 2").rows == [["CCN", "1"]]
        assert read_text_table(path, "Read me").columns == ["made by"]
        graphs, _ = read_smiles(path, smiles="Ligand SMILES", sheet="Assay 2")
    assert graphs[0].node_labels == ("C", "C", "N")
    with pytest.raises(GraphDataError, match=r"no sheet 'assay 2'. Did you mean 'Assay 2'?"):
        read_text_table(path, "assay 2")
    (tmp_path / "x.csv").write_text("smiles,label\nC,1\n")
    with pytest.raises(GraphDataError, match="is no Excel workbook and has no sheets"):
        read_text_table(tmp_path / "x.csv", "Assay 1")


@pytest.mark.parametrize("claimed", ["A1:B31", "A1", "A1:XFD1048576"])
def test_what_a_workbook_says_about_its_size_is_not_believed(tmp_path, claimed) -> None:
    path = workbook(tmp_path / "x.xlsx", [["smiles", "label"], *[["C", k] for k in range(120)]])

    def changed(text: str) -> str:
        assert '<dimension ref="A1:B121"' in text
        return text.replace('ref="A1:B121"', f'ref="{claimed}"')

    rewritten(path, changed)
    assert len(read_text_table(path).rows) == 120


def test_a_cell_in_the_last_corner_costs_nothing(tmp_path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl")
    path = workbook(tmp_path / "x.xlsx", [["smiles", "label"], ["C", 1], ["CC", 2]])
    book = openpyxl.load_workbook(path)
    book.active["XFD1048576"] = "a remark"
    book.save(path)
    table = read_text_table(path)
    assert (table.columns, table.rows) == (["smiles", "label"], [["C", "1"], ["CC", "2"]])


def test_rows_and_cells_that_are_out_of_order_are_not_lost(tmp_path) -> None:
    """The library that reads workbooks would leave them out, and say nothing."""
    rows = [["smiles", "label"], *[["C" * k, k] for k in range(1, 31)]]

    def backwards(text: str) -> str:
        head, data, tail = re.split("(<row.*</row>)", text)
        return head + "".join(reversed(re.findall("<row.*?</row>", data))) + tail

    def last_cell_first(text: str) -> str:
        return re.sub('(<c r="A7".*?</c>)(<c r="B7".*?</c>)', r"\2\1", text)

    for change, words in ((backwards, "row 30 of"), (last_cell_first, "row 7 of")):
        path = rewritten(workbook(tmp_path / "x.xlsx", rows), change)
        with pytest.raises(GraphDataError, match=f"{words} the sheet.*save it again"):
            read_text_table(path)
    path = rewritten(path, lambda text: re.sub(' r="[A-Z]*[0-9]+"', "", text))  # they may lack it
    assert path.exists()


def test_what_is_no_workbook(tmp_path, monkeypatch) -> None:
    pytest.importorskip("openpyxl", reason="needs openpyxl")
    (tmp_path / "x.xlsx").write_bytes(b"smiles,label\nC,1\n")
    with pytest.raises(GraphDataError, match="cannot be read as an Excel workbook"):
        read_text_table(tmp_path / "x.xlsx")
    with pytest.raises(GraphDataError, match="is empty"):
        read_text_table(workbook(tmp_path / "y.xlsx", []))
    with pytest.raises(FileNotFoundError):
        read_text_table(tmp_path / "none.xlsx")
    monkeypatch.setenv(tables.LIMIT_VARIABLE, "100")
    with pytest.raises(GraphDataError, match="was refused"):
        read_text_table(tmp_path / "y.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match="pip install openpyxl"):
        read_text_table(tmp_path / "y.xlsx")


# --- targets ----------------------------------------------------------------------------------


def test_rows_without_a_target_can_be_left_out(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("smiles,label\nC,1\nCC,\nCCC,n.d.\nCCCC,0\n")
    with pytest.raises(GraphDataError, match=r"missing in 2 of 4 rows.*on_missing='skip'"):
        read_smiles(path)
    with pytest.warns(MissingTargetsWarning, match=r"row 2 \(line 3\), row 3 \(line 4\)"):
        graphs, y = read_smiles(path, on_missing="skip")
    assert graphs.graph_data["row"].tolist() == [0, 3]
    assert y.tolist() == [1, 0]
    parts = [part.load() for part in SmilesBlocks(path, block_size=2, on_missing="skip")]
    assert [part.y.tolist() for part in parts] == [[1], [0]]
    assert all("is missing in 1 of 2 rows" in str(part.messages[0]) for part in parts)
    path.write_text("smiles,label\nC,\n")
    with pytest.raises(GraphDataError, match="None is left"):
        read_smiles(path, on_missing="skip")
    with pytest.raises(ValueError, match="on_missing must be one of"):
        read_smiles(path, on_missing="drop")


# --- what is no regular file ----------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize(
    ("name", "read"),
    [
        *((name, read_smiles) for name in ("x.csv", "x.csv.gz", "x.sdf", "x.parquet")),
        ("x.csv", lambda path: list(SmilesBlocks(path))),
        ("x.zip", read_tudataset),
        ("X_A.txt", read_tudataset),
    ],
)
def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path, name, read) -> None:
    write_set(tmp_path, "X")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(
        GraphDataError, match=f"{name} is a pipe, a socket or a device: give the path"
    ):
        read(tmp_path / name)


def test_folders_and_devices(tmp_path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(
        GraphDataError, match=r"folder\.csv is a folder: give the path of an ordinary file"
    ):
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
