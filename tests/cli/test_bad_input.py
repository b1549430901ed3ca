"""Bad input: one clear message that says what to do next, exit code 2, no traceback."""

from __future__ import annotations

import gzip
import random

import pytest
from typer.testing import CliRunner

from cli.conftest import AMINES, MOLECULES, QUICK, refused, run, write_csv
from treelens.cli.main import app


def fit(path, tmp_path, *more):
    return run("fit", path, "--out", tmp_path / "m.treelens", *QUICK, *more)


def test_columns_that_are_missing_or_must_be_named(molecules, tmp_path):
    refused(
        fit(molecules, tmp_path, "--target", "lable"),
        "no column 'lable'", "Did you mean 'label'?", "'smiles', 'label'",
    )  # fmt: skip
    refused(fit(molecules, tmp_path, "--smiles", "structure"), "no column 'structure'")
    two = write_csv(tmp_path / "two.csv", [("C", "C", 1)], "a_smiles,b_smiles,label")
    refused(fit(two, tmp_path), "several columns", "--smiles COLUMN", "'a_smiles', 'b_smiles'")
    none = write_csv(tmp_path / "none.csv", [("C", 1)], "formula,outcome")
    refused(fit(none, tmp_path), "no column with 'smiles' in the name", "'formula', 'outcome'")
    refused(fit(none, tmp_path, "--smiles", "formula"), "--target COLUMN", "'outcome'")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("x.csv", b"", "is empty"), ("x.csv", b"\n\n", "is empty"),
     ("x.csv", b"\xef\xbb\xbf", "is empty"), ("x.csv", b"smiles,label\n", "names but no rows"),
     ("x.docx", b"PK", "has an unknown ending"),
     ("x.csv.gz", gzip.compress(random.Random(0).randbytes(5000))[:3000], "cannot be unpacked")],
)  # fmt: skip
def test_files_that_hold_nothing_to_read(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    refused(fit(tmp_path / name, tmp_path), words)


@pytest.mark.parametrize("step", [0.13, 7])
def test_many_numbers_look_like_regression(step, tmp_path):
    data = write_csv(tmp_path / "x.csv", [(s, 5 + step * i) for i, (s, _) in enumerate(MOLECULES)])
    refused(fit(data, tmp_path), "measurement", "40 different values", "--task regression")


def test_a_missing_class(tmp_path):
    data = write_csv(tmp_path / "x.csv", [*MOLECULES, ("CCF", ""), ("CCCF", "NA")])
    refused(
        fit(data, tmp_path, "--missing", "error"),
        "missing in 2 of 42 rows", "row 41 (line 42)", "Correct or remove", "--missing skip",
    )  # fmt: skip
    numbers = [(s, 0.5 + i) for i, (s, _) in enumerate(MOLECULES)] + [("CCF", "abc")]
    done = run("fit", write_csv(tmp_path / "y.csv", numbers), "--missing", "error")
    refused(done, "row 41 (line 42) 'abc'")
    done = fit(data, tmp_path, "--json")
    assert done.data["data"]["n_graphs"] == 40
    assert "missing in 2 of 42 rows: row 41 (line 42), row 42" in done.data["notes"][0]


def test_many_unreadable_molecules(tmp_path):
    rows = [(s if i % 10 > 2 else "C(C(", c) for i, (s, c) in enumerate(MOLECULES)]
    data = write_csv(tmp_path / "x.csv", rows)
    refused(
        fit(data, tmp_path), "12 of 40 rows (30 %)", "row 1 (line 2) 'C(C('", "--max-invalid 0.31"
    )
    done = fit(data, tmp_path, "--max-invalid", "0.31", "--json")
    assert done.code == 0, done.err
    assert done.data["data"]["n_left_out"] == 12
    assert "12 of 40 rows" in done.data["notes"][0]


def test_duplicate_rows_are_told_and_can_be_dropped(tmp_path):
    rows = [*MOLECULES, *MOLECULES[:3], (MOLECULES[4][0], "amine")]
    data = write_csv(tmp_path / "x.csv", rows)
    done = fit(data, tmp_path, "--json")
    assert done.code == 0, done.err
    assert "4 rows repeat the molecule of another row" in done.err
    assert "different classes: row 5 (line 6): alcohol, row 44 (line 45): amine" in done.err
    assert done.data["data"]["classes"] == {"alcohol": 19, "amine": 20}  # a tie: no class
    for how, n_graphs in (("first", 40), ("keep", 44)):
        done = fit(data, tmp_path, "--duplicates", how, "--json")
        assert done.data["data"]["n_graphs"] == n_graphs
    refused(fit(data, tmp_path, "--duplicates", "error"), "4 rows repeat", "--duplicates")


def test_a_bom_semicolons_and_windows_lines_are_read(tmp_path):
    lines = ["SMILES;Label", *(f"{s};{c}" for s, c in MOLECULES)]
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    done = fit(tmp_path / "x.csv", tmp_path, "--json")
    assert done.code == 0, done.err
    assert done.data["data"]["n_graphs"] == 40


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


def test_only_one_kind_of_molecule_is_fine_to_predict(model, tmp_path):
    data = write_csv(tmp_path / "x.csv", [(s, "amine") for s in AMINES])
    assert run("predict", model, data).code == 0


@pytest.mark.parametrize("rest", ["", "n/a"])
def test_too_few_rows_left_are_neither_classes_nor_numbers(rest, tmp_path):
    rows = [("CCO", 1.25), ("CCCO", 2.75), ("CCN", rest), ("CCCN", rest), ("C(C", 3.5)]
    data = write_csv(tmp_path / "few.csv", rows, "smiles,value")
    done = run("fit", data, "--out", tmp_path / "m.treelens", "--max-invalid", 0.5)
    refused(done, "2 of 5 rows have a molecule and a target ('value')", "too few to learn from",
            "rows without a label, left out: 2")  # fmt: skip
    error = next(line for line in done.err.splitlines() if line.startswith("Error: "))
    assert "class" not in error
