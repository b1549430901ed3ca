"""What stands behind DATA, and the files that reading it would read."""

from __future__ import annotations

import pytest

from cli.test_commands import tiny_tu
from treelens.cli.console import InputError
from treelens.cli.sources import files_behind, kind_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("x.csv", "table"), ("x.csv.gz", "table"), ("x.TSV", "table"), ("x.smi", "table"),
        ("x.xlsx", "table"), ("x.sdf", "sdf"), ("x.sdf.gz", "sdf"), ("x.zip", "tu"),
        ("X_A.txt", "tu"),
    ],
)  # fmt: skip
def test_files_are_told_by_their_endings(name, kind, tmp_path) -> None:
    (tmp_path / name).write_text("")
    assert kind_of(str(tmp_path / name)) == kind


def test_a_folder_is_a_data_set_and_a_known_name_a_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert kind_of(str(tmp_path)) == "tu"
    assert kind_of("MUTAG") == "name"
    (tmp_path / "MUTAG").mkdir()
    assert kind_of("MUTAG") == "tu"  # what is here comes first


def test_what_is_missing_is_guessed_at(tmp_path) -> None:
    (tmp_path / "molecules.csv").write_text("")
    place = tmp_path / "molecule.csv"
    with pytest.raises(InputError, match="neither a file or folder that exists nor a known") as e:
        kind_of(str(place))
    assert f"Did you mean {tmp_path / 'molecules.csv'}?" in str(e.value)
    with pytest.raises(InputError, match=r"Did you mean MUTAG\?"):
        kind_of("mutagg")
    with pytest.raises(InputError) as e:
        kind_of(str(tmp_path / "nowhere" / "qqqq"))
    assert "Did you mean" not in str(e.value)


def test_an_ending_that_tells_nothing(tmp_path) -> None:
    (tmp_path / "x.docx").write_text("")
    with pytest.raises(InputError, match=r"has an ending that tells nothing: .*\.csv"):
        kind_of(str(tmp_path / "x.docx"))


def test_the_files_behind_a_folder_and_behind_one_of_its_files(tmp_path) -> None:
    folder = tiny_tu(tmp_path / "TINY")
    there = set(folder.iterdir())
    for source in (tmp_path, folder, folder / "TINY_A.txt"):
        found = set(files_behind(str(source)))
        assert there <= found
        assert all(file.parent == folder for file in found)


def test_a_table_stands_for_itself_and_nothing_for_nothing(tmp_path, monkeypatch) -> None:
    table = tmp_path / "x.csv"
    table.write_text("")
    assert list(files_behind(str(table))) == [table]
    assert list(files_behind(str(tmp_path / "none.csv"))) == []


def test_the_files_behind_a_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path / "data"))
    (tmp_path / "data" / "tu").mkdir(parents=True)
    archive = tmp_path / "data" / "tu" / "MUTAG.zip"
    archive.write_bytes(b"")
    assert list(files_behind("MUTAG")) == [archive]
