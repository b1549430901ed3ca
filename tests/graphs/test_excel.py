"""The first sheet of a workbook as a table, and what is no workbook."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from treelens import read_smiles
from treelens.graphs import opening
from treelens.graphs.errors import GraphDataError, MissingTargetsWarning
from treelens.graphs.tables import read_text_table


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
    table = read_text_table(path)
    assert (table.columns, table.rows) == (["smiles", "label"], [["CCO", "1.5"], ["O", ""]])
    assert table.place(1) == "row 2 (line 4)"
    with pytest.warns(MissingTargetsWarning, match=r"missing in 1 rows: row 2 \(line 4\)"):
        graphs, y = read_smiles(path, on_missing="skip")
    assert (len(graphs), y.tolist()) == (1, [1.5])


@pytest.mark.parametrize("claimed", ["A1:B31", "A1", "A1:XFD1048576"])
def test_what_a_workbook_says_about_its_size_is_not_believed(tmp_path, claimed) -> None:
    path = workbook(tmp_path / "x.xlsx", [["smiles", "label"], *[["C", k] for k in range(120)]])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert b'<dimension ref="A1:B121"' in members[sheet]
    members[sheet] = members[sheet].replace(b'ref="A1:B121"', f'ref="{claimed}"'.encode())
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert len(read_text_table(path).rows) == 120


def test_a_cell_in_the_last_corner_costs_nothing(tmp_path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl")
    book = openpyxl.Workbook()
    for row in (["smiles", "label"], ["C", 1], ["CC", 2]):
        book.active.append(row)
    book.active["XFD1048576"] = "a remark"
    book.save(tmp_path / "x.xlsx")
    table = read_text_table(tmp_path / "x.xlsx")
    assert (table.columns, table.rows) == (["smiles", "label"], [["C", "1"], ["CC", "2"]])


def test_sheets_beyond_the_first_are_told(tmp_path) -> None:
    path = workbook(tmp_path / "x.xlsx", [["smiles", "label"], ["C", 1]], sheets=3)
    with pytest.warns(UserWarning, match=r"has 3 sheets: the first, 'Sheet', was read"):
        read_text_table(path)


def test_what_is_no_workbook(tmp_path, monkeypatch) -> None:
    pytest.importorskip("openpyxl", reason="needs openpyxl")
    (tmp_path / "x.xlsx").write_bytes(b"smiles,label\nC,1\n")
    with pytest.raises(GraphDataError, match="cannot be read as an Excel workbook"):
        read_text_table(tmp_path / "x.xlsx")
    with pytest.raises(GraphDataError, match="is empty"):
        read_text_table(workbook(tmp_path / "y.xlsx", []))
    with pytest.raises(FileNotFoundError):
        read_text_table(tmp_path / "none.xlsx")
    monkeypatch.setenv(opening.LIMIT_VARIABLE, "100")
    with pytest.raises(GraphDataError, match="was refused"):
        read_text_table(tmp_path / "y.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match="pip install openpyxl"):
        read_text_table(tmp_path / "y.xlsx")
