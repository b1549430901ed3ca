"""DATA on the command line: what it is, and the files that reading it would read."""

from __future__ import annotations

import pytest

from cli.conftest import tiny_tu
from treelens.cli.data import files_behind, kind_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [("x.csv", "table"), ("x.csv.gz", "table"), ("x.TSV", "table"), ("x.smi", "table"),
     ("x.xlsx", "table"), ("x.sdf", "sdf"), ("x.sdf.gz", "sdf"), ("x.zip", "tu"),
     ("X_A.txt", "tu")],
)  # fmt: skip
def test_files_are_known_by_their_endings(name, kind, tmp_path):
    (tmp_path / name).write_text("")
    assert kind_of(str(tmp_path / name)) == kind


def test_folders_names_smiles_and_standard_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert kind_of(str(tmp_path)) == "tu"
    assert kind_of("MUTAG") == "name"
    assert kind_of("-") == "stdin"
    assert kind_of("CC(=O)Oc1ccccc1C(=O)O") == "smiles"
    (tmp_path / "MUTAG").mkdir()
    assert kind_of("MUTAG") == "tu"  # what is here comes first


@pytest.mark.parametrize("place", ["molecule.csv", "mutagg", "nowhere/qqqq", "x.docx"])
def test_what_is_missing_is_guessed_at(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "molecules.csv").write_text("")
    (tmp_path / "x.docx").write_text("")
    guess = {"molecule.csv": "molecules.csv?", "mutagg": "MUTAG?", "x.docx": ".csv"}.get(place, "")
    with pytest.raises(ValueError) as caught:
        kind_of(place)
    assert guess in str(caught.value)
    assert ("Did you mean" in str(caught.value)) == guess.endswith("?")


def test_the_files_behind_a_source(tmp_path, monkeypatch):
    folder = tiny_tu(tmp_path / "TINY")
    there = set(folder.iterdir())
    for source in (tmp_path, folder, folder / "TINY_A.txt"):
        found = set(files_behind(str(source)))
        assert there <= found
        assert all(file.parent == folder for file in found)
    table = tmp_path / "x.csv"
    table.write_text("")
    assert list(files_behind(str(table))) == [table]
    assert list(files_behind(str(tmp_path / "none.csv"))) == []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path / "data"))
    (tmp_path / "data" / "tu").mkdir(parents=True)
    archive = tmp_path / "data" / "tu" / "MUTAG.zip"
    archive.write_bytes(b"")
    assert list(files_behind("MUTAG")) == [archive]
