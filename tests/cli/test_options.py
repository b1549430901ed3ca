"""DATA and options: what they are, the files behind them, and parameters of the library."""

from __future__ import annotations

from inspect import signature
from typing import get_args

import pytest

from cli.conftest import tiny_tu
from treelens.cli.fit import fit_cli
from treelens.cli.options import Training, files_behind, kind_of
from treelens.svm.search import SCORES


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


def test_options_become_parameters():
    scoring = signature(fit_cli).parameters["scoring"].annotation
    assert set(get_args(get_args(scoring)[0])) == {"auto", *SCORES}
    found = Training(depth="0", descriptors="no").gp_settings("depths")
    assert (found["depth"], found["weights"], found["descriptors"]) == (0, "depths", False)
    found = Training(depth="1,2", seed=3).svc_settings("wwl, tanimoto", "0,2.5")
    assert (found["kernel"], found["depth"]) == (["wwl", "tanimoto"], [1, 2])
    assert (found["weight_radius"], found["random_state"]) == ([0.0, 2.5], 3)


@pytest.mark.parametrize("text", ["-1", "1,-2", "nan", "inf", "x", "", "1,,2", "1.5"])
def test_numbers_that_are_none(text):
    for settings in (Training(depth=text).svc_settings, Training(depth=text).gp_settings):
        with pytest.raises(ValueError, match=f"--depth {text}: expected auto, or whole numbers"):
            settings()
