"""Bad input: one clear message that says what to do next, exit code 2, no traceback."""

from __future__ import annotations

import gzip
import random

import pytest
from typer.testing import CliRunner

from cli.conftest import MOLECULES, QUICK, refused, run, write_csv
from treelens.cli.main import app

LABELLED = "smiles,label"


def fit(path, tmp_path, *more):
    return run("fit", path, "--out", tmp_path / "m.treelens", *QUICK, *more)


@pytest.mark.parametrize(
    ("rows", "header", "options", "words"),
    [
        (MOLECULES, LABELLED, ["--target", "lable"], ["no column 'lable'", "mean 'label'?"]),
        (MOLECULES, LABELLED, ["--smiles", "structure"], ["no column 'structure'"]),
        ([("C", "C", 1)], "a_smiles,b_smiles,label", [], ["--smiles COLUMN", "'a_smiles', 'b_sm"]),
        ([("C", 1)], "formula,outcome", [], ["no column with 'smiles' in the name", "'formula'"]),
        ([("C", 1)], "formula,outcome", ["--smiles", "formula"], ["--target COLUMN", "'outcome'"]),
        ([(s, 5 + 7 * k) for k, (s, _) in enumerate(MOLECULES)], LABELLED, [],
         ["40 different values", "--task regression"]),
        ([*MOLECULES, ("CCF", ""), ("CCCF", "NA")], LABELLED, ["--missing", "error"],
         ["missing in 2 of 42 rows", "row 41 (line 42)", "--missing skip"]),
        ([(s if k % 10 > 2 else "C(C(", c) for k, (s, c) in enumerate(MOLECULES)], LABELLED, [],
         ["12 of 40 rows (30 %)", "row 1 (line 2) 'C(C('", "--max-invalid 0.31"]),
        ([*MOLECULES, *MOLECULES[:4]], LABELLED, ["--duplicates", "error"],
         ["4 rows repeat", "--duplicates"]),
        ([("CCO", 1.25), ("CCCO", 2.75), ("CCN", "n/a"), ("C(C", 3.5)], "smiles,value",
         ["--max-invalid", 0.5], ["2 of 4 rows have a molecule and a target", "left out: 1"]),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_learned_from(rows, header, options, words, tmp_path):
    refused(fit(write_csv(tmp_path / "x.csv", rows, header), tmp_path, *options), *words)


def test_rows_that_are_left_out_are_told(tmp_path):
    rows = [*MOLECULES, ("C(C(", "amine"), ("CCF", ""), MOLECULES[0], (MOLECULES[4][0], "amine")]
    data = write_csv(tmp_path / "x.csv", rows)
    done = fit(data, tmp_path, "--json")
    assert done.code == 0, done.err
    assert done.data["data"]["classes"] == {"alcohol": 19, "amine": 20}  # a tie: no class
    for words in ("2 rows repeat the molecule", "missing in 1 of 44 rows: row 42 (line 43)",
                  "row 5 (line 6): alcohol, row 44 (line 45): amine"):  # fmt: skip
        assert any(words in note for note in done.data["notes"]), words
    for how, n_graphs in (("first", 40), ("keep", 42)):
        assert (
            fit(data, tmp_path, "--duplicates", how, "--json").data["data"]["n_graphs"] == n_graphs
        )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("x.csv", b"\n\n", "is empty"), ("x.csv", b"\xef\xbb\xbf", "is empty"),
     ("x.csv", b"smiles,label\n", "names but no rows"), ("x.docx", b"PK", "has an unknown ending"),
     ("x.csv.gz", gzip.compress(random.Random(0).randbytes(5000))[:3000], "cannot be unpacked")],
)  # fmt: skip
def test_files_that_hold_nothing_to_read(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    refused(fit(tmp_path / name, tmp_path), words)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf", b",,\n,\n", b"\0\xff\0"])
def test_an_empty_standard_input_is_called_that(content, model):
    done = CliRunner().invoke(app, ["predict", str(model), "-"], input=content)
    assert done.exit_code == 2
    assert "tandard input is " in done.stderr


def test_what_does_not_exist(molecules, tmp_path):
    refused(fit(tmp_path / "molecule.csv", tmp_path), "neither a file", "molecules.csv?")
    refused(fit("MUTAGG", tmp_path), "Did you mean MUTAG?", "treelens datasets list")
    refused(run("predict", tmp_path / "no.treelens", molecules), "does not exist")
    refused(run("patterns", molecules), "cannot be read as a model file")


def test_errors_as_json_and_a_traceback_with_debug_only(molecules):
    done = run("fit", molecules, "--target", "x", "--json")
    assert done.code == done.data["exit_code"] == 2
    assert "no column 'x'" in done.data["error"]
    result = CliRunner().invoke(app, ["fit", str(molecules), "--target", "x", "--debug"])
    assert isinstance(result.exception, ValueError)


def test_a_place_that_cannot_be_written_is_found_before_the_work(molecules, tmp_path):
    for out, words in [(tmp_path / "no" / "m.treelens", "does not exist. Create it"),
                       (tmp_path, "is a folder"), ("/dev/full", "is a device")]:  # fmt: skip
        done = run("fit", molecules, "--out", out, *QUICK)
        assert done.code == 1
        assert words in done.err
        assert "Fitting" not in done.err
