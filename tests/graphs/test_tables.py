"""Tables as programs save them: encodings, workbooks, SDF with names; and rows without a target."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

from treelens import read_smiles
from treelens.graphs import opening
from treelens.graphs.blocks import SmilesBlocks
from treelens.graphs.errors import GraphDataError, MissingTargetsWarning
from treelens.graphs.sdf import read_sdf
from treelens.graphs.tables import read_table
from treelens.graphs.targets import as_target, is_missing

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install 'treelens[chem]'")

TEXT = "smiles,label,note\nCCO,1,café µM\nO,0,naïve\n"


# --- letters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_latin_letters_are_read_with_a_warning(tmp_path, encoding) -> None:
    (tmp_path / "x.csv").write_bytes(TEXT.encode(encoding))
    with pytest.warns(UserWarning, match=r"x\.csv is not UTF-8 \(byte 27\): it was read as Latin"):
        table = read_table(tmp_path / "x.csv")
    assert table.column("note", "x") == ["café µM", "naïve"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_unicode_as_spreadsheets_save_it(tmp_path, encoding, separator, recwarn) -> None:
    (tmp_path / "x.csv").write_bytes(TEXT.replace(",", separator).encode(encoding))
    assert read_table(tmp_path / "x.csv").column("note", "x") == ["café µM", "naïve"]
    assert not recwarn.list


def test_a_line_without_an_end_is_found_before_all_is_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(opening, "LONGEST_LINE", 100)
    monkeypatch.setattr(opening, "_BYTES_AT_ONCE", 7)
    for before in (0, 1, 5, 90, 200):
        head = "smiles,label\n" + "C,1\n" * before
        (tmp_path / "x.csv").write_text(head + "C" * 98 + ",1\nC,1\n")
        read_table(tmp_path / "x.csv")  # a hundred letters are a line
        (tmp_path / "x.csv").write_text(head + "C" * 99 + ",1\nC,1\n")
        with pytest.raises(GraphDataError, match=rf"line {before + 2}: the line is longer than 10"):
            read_table(tmp_path / "x.csv")


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


def test_a_workbook(tmp_path) -> None:
    rows = [["smiles", "label", None], ["CCO", 1.5, "a remark"], [None, None, None], ["O", None]]
    path = workbook(tmp_path / "x.xlsx", rows)
    table = read_table(path)
    assert (table.columns, table.rows) == (["smiles", "label"], [["CCO", "1.5"], ["O", ""]])
    assert table.place(1) == "row 2 (line 4)"
    with pytest.warns(MissingTargetsWarning, match=r"missing in 1 rows: row 2 \(line 4\)"):
        graphs, y = read_smiles(path, on_missing="skip")
    assert (len(graphs), y.tolist()) == (1, [1.5])


def test_sheets_beyond_the_first_are_told(tmp_path) -> None:
    path = workbook(tmp_path / "x.xlsx", [["smiles", "label"], ["C", 1]], sheets=3)
    with pytest.warns(UserWarning, match=r"has 3 sheets: the first, 'Sheet', was read"):
        read_table(path)


def test_what_is_no_workbook(tmp_path, monkeypatch) -> None:
    pytest.importorskip("openpyxl", reason="needs openpyxl")
    (tmp_path / "x.xlsx").write_bytes(b"smiles,label\nC,1\n")
    with pytest.raises(GraphDataError, match="cannot be read as an Excel workbook"):
        read_table(tmp_path / "x.xlsx")
    with pytest.raises(GraphDataError, match="is empty"):
        read_table(workbook(tmp_path / "y.xlsx", []))
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.xlsx")
    monkeypatch.setenv(opening.LIMIT_VARIABLE, "100")
    with pytest.raises(GraphDataError, match="was refused"):
        read_table(tmp_path / "y.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"treelens\[excel\]"):
        read_table(tmp_path / "y.xlsx")


# --- SDF --------------------------------------------------------------------------------------


def sdf_text(names: list[str]) -> str:
    blocks = []
    for n, name in enumerate(names):
        molecule = Chem.MolFromSmiles("C" * (n + 1))
        molecule.SetProp("_Name", name)
        blocks.append(Chem.MolToMolBlock(molecule) + f">  <value>\n{n}.5\n\n$$$$\n")
    return "".join(blocks)


@pytest.mark.parametrize("name", ["x.sdf", "x.sdf.gz"])
def test_names_and_properties_of_records(tmp_path, name) -> None:
    data = sdf_text(["one", "", "three"]).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    molecules, table = read_sdf(tmp_path / name, keep_hydrogens=False)
    assert [m.GetNumAtoms() for m in molecules] == [1, 2, 3]
    assert table.columns == ["name", "value"]
    assert table.rows == [["one", "0.5"], ["", "1.5"], ["three", "2.5"]]
    graphs, y = read_smiles(tmp_path / name, target="value", names="name")
    assert (graphs.names.tolist(), y.tolist()) == (["one", "", "three"], [0.5, 1.5, 2.5])


def test_records_without_names_have_no_such_column(tmp_path) -> None:
    (tmp_path / "x.sdf").write_text(sdf_text(["", ""]))
    assert read_sdf(tmp_path / "x.sdf", keep_hydrogens=False)[1].columns == ["value"]


# --- targets ----------------------------------------------------------------------------------


def test_rows_without_a_target_can_be_left_out(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("smiles,label\nC,1\nCC,\nCCC,n.d.\nCCCC,0\n")
    with pytest.raises(GraphDataError, match=r"missing in 2 rows.*on_missing='skip'"):
        read_smiles(path)
    with pytest.warns(MissingTargetsWarning, match=r"row 2 \(line 3\), row 3 \(line 4\)"):
        graphs, y = read_smiles(path, on_missing="skip")
    assert graphs.graph_data["row"].tolist() == [0, 3]
    assert y.tolist() == [1, 0]
    parts = [part.load() for part in SmilesBlocks(path, block_size=2, on_missing="skip")]
    assert [part.y.tolist() for part in parts] == [[1], [0]]
    assert all("is missing in 1 rows" in part.messages[0] for part in parts)
    path.write_text("smiles,label\nC,\n")
    with pytest.raises(GraphDataError, match="None is left"):
        read_smiles(path, on_missing="skip")
    with pytest.raises(ValueError, match="on_missing must be one of"):
        read_smiles(path, on_missing="drop")


def test_signs_that_may_be_classes_are_not_missing() -> None:
    assert not any(is_missing(text) for text in ("-", "+", "?", "0", "no", "unknown"))
    assert as_target(["+", "-"]).tolist() == ["+", "-"]
