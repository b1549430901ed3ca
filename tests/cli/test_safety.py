"""Nobody's files are written over, and text from files acts on no spreadsheet and no terminal."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pandas as pd
import pytest

from cli.conftest import FORMULA, QUICK, ok, run, tiny_tu, write_csv
from treelens.cli import main


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused_untouched(folder: Path, *words: object) -> None:
    before = contents(folder)
    done = run(*words)
    assert done.code == 2, done.err
    assert done.err.count("Error: ") == 1
    assert "would be lost. Choose another name." in done.err
    assert contents(folder) == before


# --- what is read is not written over ---------------------------------------------------------


@pytest.fixture
def own_model(model, tmp_path) -> Path:
    return Path(shutil.copy(model, tmp_path / "own.treelens"))


@pytest.mark.parametrize(
    ("command", "which"),
    [("fit", "data"), ("predict", "model"), ("explain", "data"), ("patterns", "model")],
)  # fmt: skip
def test_commands_do_not_write_over_what_they_read(command, which, own_model, molecules, tmp_path):
    reads = {"fit": [molecules], "patterns": [own_model]}.get(command, [own_model, molecules])
    out = tmp_path / "other"
    out.symlink_to(own_model if which == "model" else molecules)
    refused_untouched(tmp_path, command, *reads, "--out", out)


def test_the_files_of_a_folder_are_read_as_well(tmp_path):
    folder = tiny_tu(tmp_path / "TINY")
    labels = folder / "TINY_node_labels.txt"
    refused_untouched(tmp_path, "fit", folder, "--out", labels, *QUICK)
    refused_untouched(tmp_path, "fit", folder / "TINY_A.txt", "--out", labels, *QUICK)
    refused_untouched(tmp_path, "fit", tmp_path, "--out", folder / "TINY_A.txt", *QUICK)
    for _ in range(2):  # another file in that folder is fine, new and again
        ok("fit", folder, "--out", folder / "TINY_model.txt", *QUICK)
    missing = run("fit", tmp_path / "no" / "X_A.txt", "--out", folder / "TINY_model.txt", *QUICK)
    assert missing.code == 2
    assert "neither a file or folder" in missing.err


def test_a_data_set_called_by_name_is_not_written_over(tmp_path, monkeypatch):
    folder = tmp_path / "MUTAG"
    tiny_tu(folder)
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path))
    refused_untouched(tmp_path, "fit", "MUTAG", "--out", folder / "MUTAG_A.txt", *QUICK)


def test_the_demo_does_not_write_over_its_molecules(tmp_path, monkeypatch):
    for name in (main._MOLECULES, main._ACTIVITIES):
        (tmp_path / name).write_text("molecules")
    monkeypatch.setattr(main, "_rdkit_examples", lambda: tmp_path)
    refused_untouched(tmp_path, "demo", "--out", tmp_path / main._ACTIVITIES)


# --- spreadsheets -----------------------------------------------------------------------------


def test_tables_hold_no_formulas(strange_model, tmp_path):
    data = write_csv(tmp_path / "x.csv", [("CCO",), ("-2+3",), ("CCCCN",)], "smiles")
    ok("predict", strange_model, data, "--out", tmp_path / "out.csv")
    written = (tmp_path / "out.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(written, newline="")))
    assert rows[0]["class"] == f"'{FORMULA}"
    assert [row["smiles"] for row in rows] == ["CCO", "'-2+3", "CCCCN"]
    printed = run("predict", strange_model, data)
    assert f'CCO,"\'{FORMULA.replace(chr(34), chr(34) * 2)}"' in printed.out
    as_json = run("predict", strange_model, data, "--json").data["predictions"]
    assert as_json[0]["class"] == FORMULA  # a program gets what it is
    ok("patterns", strange_model, "--out", tmp_path / "patterns.csv")
    classes = set(pd.read_csv(tmp_path / "patterns.csv")["class"])
    assert f"'{FORMULA}" in classes
    assert FORMULA not in classes
