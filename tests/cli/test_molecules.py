"""Molecules of a table: why some cannot be read, and what is told of the others."""

from __future__ import annotations

import pytest

from cli.conftest import write_csv
from treelens.cli import molecules
from treelens.cli.console import InputError
from treelens.cli.molecules import UNREADABLE, MoleculeFile, reasons, why_unreadable
from treelens.cli.reading import Reading


@pytest.mark.parametrize(
    ("smiles", "words"),
    [
        ("", "an empty cell"),
        ("C(C", "no SMILES: RDKit cannot parse it"),
        ("C\ud800", "no SMILES: RDKit cannot parse it"),
        ("CN(C)(C)C", "Explicit valence for atom # 1 N, 4, is greater than permitted"),
        ("c1cccc1", "Can't kekulize mol"),
        ("CCO", UNREADABLE),  # nothing is wrong with it
    ],
)
def test_why_a_cell_holds_no_molecule(smiles, words) -> None:
    assert words in why_unreadable(smiles)


def test_reasons_are_asked_for_no_more_than_so_many_rows(monkeypatch) -> None:
    monkeypatch.setattr(molecules, "_ROWS_WITH_A_REASON", 1)
    texts = ["C(", "CC", ""]
    assert reasons(texts, [0, 2]) == {0: "no SMILES: RDKit cannot parse it", 2: UNREADABLE}
    assert reasons(None, [4]) == {4: UNREADABLE}


def read(path, smiles=None, ids=None, reading=None):
    notes: list[str] = []
    return MoleculeFile(path).read(reading or Reading(), smiles, ids, [], notes.append), notes


def test_rows_that_cannot_be_read_are_left_out_without_a_word(tmp_path, recwarn) -> None:
    data = write_csv(tmp_path / "x.csv", [("a", "CCO"), ("b", "C("), ("c", "CN")], "id,smiles")
    found, notes = read(data)
    assert len(found["graphs"]) == 2
    assert found["n_rows"] == 3
    assert (found["smiles"], found["ids"]) == ("smiles", {"id": ["a", "b", "c"]})
    assert found["texts"] == ["CCO", "C(", "CN"]
    assert notes == []
    assert not recwarn.list


def test_what_standardizing_changed_is_told(tmp_path) -> None:
    data = write_csv(tmp_path / "x.csv", [("CCO",), ("CC[O-].[Na+]",)], "smiles")
    _, notes = read(data, reading=Reading(standardize="all"))
    assert "--standardize changed 1 of 2 molecules" in notes[-1]


def test_a_table_without_rows_and_an_sdf_with_a_column(tmp_path) -> None:
    with pytest.raises(InputError, match="has column names but no rows"):
        read(write_csv(tmp_path / "x.csv", [], "smiles,label"))
    with pytest.raises(InputError, match="--smiles x: an SDF holds the molecules themselves"):
        read(tmp_path / "x.sdf", smiles="x")
