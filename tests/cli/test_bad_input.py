"""Bad input is one clear message; no file is lost; text acts on no terminal and no spreadsheet."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from cli.conftest import FORMULA, MOLECULES, QUICK, ok, refused, run, tiny_tu, write_csv
from treelens.cli.console import visible
from treelens.cli.main import app

LABELLED = "smiles,label"


def fit(path, tmp_path, *more):
    return run("fit", path, "--out", tmp_path / "m.treelens", *QUICK, *more)


@pytest.mark.parametrize(
    ("rows", "header", "options", "words"),
    [
        (MOLECULES, LABELLED, ["--target", "lable"], ["no column 'lable'", "mean 'label'?"]),
        ([("C", "C", 1)], "a_smiles,b_smiles,label", [], ["--smiles COLUMN", "'a_smiles', 'b_sm"]),
        ([("C", 1)], "formula,outcome", ["--smiles", "formula"], ["--target COLUMN", "'outcome'"]),
        (
            [(s, 5 + 7 * k) for k, (s, _) in enumerate(MOLECULES)],
            LABELLED,
            [],
            ["40 different values", "--task regression"],
        ),
        (
            [*MOLECULES, ("CCF", ""), ("CCCF", "NA")],
            LABELLED,
            ["--missing", "error"],
            ["missing in 2 of 42 rows", "row 41 (line 42)", "--missing skip"],
        ),
        (
            [(s if k % 10 > 2 else "C(C(", c) for k, (s, c) in enumerate(MOLECULES)],
            LABELLED,
            [],
            ["12 of 40 rows (30 %)", "row 1 (line 2) 'C(C('", "--max-invalid 0.31"],
        ),
        (
            [*MOLECULES, *MOLECULES[:4]],
            LABELLED,
            ["--duplicates", "error"],
            ["4 rows repeat", "--duplicates"],
        ),
    ],
)
def test_tables_that_cannot_be_learned_from(rows, header, options, words, tmp_path):
    refused(fit(write_csv(tmp_path / "x.csv", rows, header), tmp_path, *options), *words)


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b",,\n,\n", b"\0\xff\0"])
def test_an_empty_standard_input_is_called_that(content, model):
    done = CliRunner().invoke(app, ["predict", str(model), "-"], input=content)
    assert done.exit_code == 2
    assert "tandard input is " in done.stderr


def test_what_does_not_exist(molecules, tmp_path):
    refused(fit(tmp_path / "molecule.csv", tmp_path), "neither a file", "molecules.csv?")
    refused(fit("MUTAGG", tmp_path), "Did you mean MUTAG?")
    refused(run("predict", tmp_path / "no.treelens", molecules), "does not exist")
    refused(run("patterns", molecules), "cannot be read as a model file")


def test_errors_as_json_and_a_traceback_with_debug_only(molecules):
    done = run("fit", molecules, "--target", "x", "--json")
    assert done.code == done.data["exit_code"] == 2
    assert "no column 'x'" in done.data["error"]
    result = CliRunner().invoke(app, ["fit", str(molecules), "--target", "x", "--debug"])
    assert isinstance(result.exception, ValueError)


# --- what is read is not written over ---------------------------------------------------------


def test_a_place_that_cannot_be_written_is_found_before_the_work(molecules, tmp_path):
    for out, words in [
        (tmp_path / "no" / "m.treelens", "does not exist. Create it"),
        (tmp_path, "is a folder"),
        ("/dev/full", "is a device"),
    ]:
        done = run("fit", molecules, "--out", out, *QUICK)
        assert done.code == 1
        assert words in done.err
        assert "Fitting" not in done.err


def refused_untouched(folder: Path, *words: object) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    refused(run(*words), "would be lost. Choose another name.")
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("command", "which"),
    [("fit", "data"), ("predict", "model"), ("explain", "data"), ("patterns", "model")],
)
def test_commands_do_not_write_over_what_they_read(command, which, model, molecules, tmp_path):
    own = Path(shutil.copy(model, tmp_path / "own.treelens"))
    reads = {"fit": [molecules], "patterns": [own]}.get(command, [own, molecules])
    out = tmp_path / "other"
    out.symlink_to(own if which == "model" else molecules)
    refused_untouched(tmp_path, command, *reads, "--out", out)


def test_the_files_of_a_folder_and_of_a_data_set_are_read_as_well(tmp_path, monkeypatch):
    folder = tiny_tu(tmp_path / "MUTAG")
    labels = folder / "MUTAG_node_labels.txt"
    for source in (folder, folder / "MUTAG_A.txt", tmp_path):
        refused_untouched(tmp_path, "fit", source, "--out", labels, *QUICK)
    for _ in range(2):  # another file in that folder is fine, new and again
        ok("fit", folder, "--out", folder / "model.treelens", *QUICK)
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path))
    refused_untouched(tmp_path, "fit", "MUTAG", "--out", folder / "MUTAG_A.txt", *QUICK)


def test_the_demo_does_not_write_over_its_table_or_that_of_somebody_else(tmp_path):
    table = write_csv(tmp_path / "mine.csv", [("CCO", 1)], "smiles,value")
    refused(run("demo", "--out", table), "the report is a page, such as")
    done = run("demo", "--out", tmp_path / "mine.html")
    assert done.code == 1
    assert "mine.csv is another file already" in done.err
    assert table.read_text().startswith("smiles,value")
    assert not (tmp_path / "mine.html").exists()


# --- spreadsheets and terminals -----------------------------------------------------------------


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


def test_names_of_classes_and_files_do_nothing_to_a_terminal(strange_model, tmp_path):
    data = write_csv(tmp_path / "\x1b[2Jx.csv", [("CCO", "a"), ("C(C(", "b")])
    for words in (
        ("predict", strange_model, data),
        ("predict", strange_model, data, "--out", tmp_path / "out.csv"),
        ("patterns", strange_model),
        ("fit", data, *QUICK),
        ("fit", tmp_path / "\x1b[2Jy.csv"),
    ):
        done = run(*words)
        assert not set("\x1b\x07\r") & set(done.out + done.err), words
    assert "\\x1b]0;owned\\x07am\\nine\\r" in run("patterns", strange_model).out
    text = "naïve 化合物 ± 5 %\tC(=O)\n🧪"
    assert visible(text) == text
    assert visible("a\x9bb\u202ec\x7f\udce4") == "a\\x9bb\\u202ec\\x7f\\udce4"
