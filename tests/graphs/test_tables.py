"""Tables as programs save them: encodings, workbooks, SDF with names; and rows without a target."""

from __future__ import annotations

import pytest

from treelens import read_smiles
from treelens.graphs import opening
from treelens.graphs.blocks import SmilesBlocks
from treelens.graphs.errors import GraphDataError, MissingTargetsWarning
from treelens.graphs.tables import read_table_blocks, read_text_table
from treelens.graphs.targets import as_target, is_missing

TEXT = "smiles,label,note\nCCO,1,café µM\nO,0,naïve\n"


# --- letters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_latin_letters_are_read_with_a_warning(tmp_path, encoding) -> None:
    (tmp_path / "x.csv").write_bytes(TEXT.encode(encoding))
    with pytest.warns(UserWarning, match=r"x\.csv is not UTF-8: it was read as Latin"):
        table = read_text_table(tmp_path / "x.csv")
    assert table.column("note", "x") == ["café µM", "naïve"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_unicode_as_spreadsheets_save_it(tmp_path, encoding, separator, recwarn) -> None:
    (tmp_path / "x.csv").write_bytes(TEXT.replace(",", separator).encode(encoding))
    assert read_text_table(tmp_path / "x.csv").column("note", "x") == ["café µM", "naïve"]
    assert not recwarn.list


def test_a_line_without_an_end_is_found_before_all_is_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(opening, "LONGEST_LINE", 100)
    for before in (0, 1, 5, 90, 200):
        head = "smiles,label\n" + "C,1\n" * before
        (tmp_path / "x.csv").write_text(head + "C" * 98 + ",1\nC,1\n")
        read_text_table(tmp_path / "x.csv")  # a hundred letters are a line
        (tmp_path / "x.csv").write_text(head + "C" * 99 + ",1\nC,1\n")
        with pytest.raises(GraphDataError, match=rf"line {before + 2}: the line is longer than 10"):
            read_text_table(tmp_path / "x.csv")


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


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig", "utf-8"])
def test_blocks_have_the_encodings_of_the_whole(tmp_path, encoding, recwarn) -> None:
    (tmp_path / "x.csv").write_bytes((TEXT + "C,1,é").encode(encoding))
    (block,) = read_table_blocks(tmp_path / "x.csv", 10)
    assert block == read_text_table(tmp_path / "x.csv")
    assert block.column("note", "") == ["café µM", "naïve", "é"]


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
    assert all("is missing in 1 rows" in str(part.messages[0]) for part in parts)
    path.write_text("smiles,label\nC,\n")
    with pytest.raises(GraphDataError, match="None is left"):
        read_smiles(path, on_missing="skip")
    with pytest.raises(ValueError, match="on_missing must be one of"):
        read_smiles(path, on_missing="drop")


def test_signs_that_may_be_classes_are_not_missing() -> None:
    assert not any(is_missing(text) for text in ("-", "+", "?", "0", "no", "unknown"))
    assert as_target(["+", "-"]).tolist() == ["+", "-"]
