"""Bad input: one clear message that says what to do next, exit code 2, no traceback."""

from __future__ import annotations

import gzip
import random

import pytest

from cli.conftest import AMINES, MOLECULES, QUICK, refused, run, write_csv


def fit(path, tmp_path, *more):
    return run("fit", path, "--out", tmp_path / "m.treelens", *QUICK, *more)


def test_a_missing_column_lists_those_that_exist(molecules, tmp_path):
    refused(
        fit(molecules, tmp_path, "--target", "lable"),
        "no column 'lable'", "Did you mean 'label'?", "'smiles', 'label'",
    )  # fmt: skip
    refused(fit(molecules, tmp_path, "--smiles", "structure"), "no column 'structure'")


def test_columns_that_must_be_named(tmp_path):
    two = write_csv(tmp_path / "two.csv", [("C", "C", 1)], "a_smiles,b_smiles,label")
    refused(fit(two, tmp_path), "several columns", "--smiles COLUMN", "'a_smiles', 'b_smiles'")
    none = write_csv(tmp_path / "none.csv", [("C", 1)], "formula,outcome")
    refused(fit(none, tmp_path), "no column with 'smiles' in the name", "'formula', 'outcome'")
    refused(fit(none, tmp_path, "--smiles", "formula"), "--target COLUMN", "'outcome'")


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file(content, tmp_path):
    (tmp_path / "empty.csv").write_text(content, encoding="utf-8")
    refused(fit(tmp_path / "empty.csv", tmp_path), "is empty")


def test_a_file_with_column_names_only(tmp_path):
    refused(fit(write_csv(tmp_path / "x.csv", []), tmp_path), "column names but no rows")


def test_floats_look_like_regression(tmp_path):
    rows = [(s, 5 + 0.13 * i) for i, (s, _) in enumerate(MOLECULES)]
    data = write_csv(tmp_path / "x.csv", rows)
    refused(fit(data, tmp_path), "measurement", "40 different values", "--task regression")
    counts = write_csv(tmp_path / "y.csv", [(s, 7 * i) for i, (s, _) in enumerate(MOLECULES)])
    refused(fit(counts, tmp_path), "measurement")


def test_a_missing_class(tmp_path):
    data = write_csv(tmp_path / "x.csv", [*MOLECULES, ("CCF", ""), ("CCCF", "NA")])
    done = fit(data, tmp_path, "--missing", "error")
    refused(
        done, "missing in 2 of 42 rows", "row 41 (line 42)", "Correct or remove", "--missing skip"
    )
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
    refused(fit(data, tmp_path, "--duplicates", "all"), "not one of 'merge', 'first', 'keep'")


def test_a_bom_semicolons_and_windows_lines_are_read(tmp_path):
    lines = ["SMILES;Label", *(f"{s};{c}" for s, c in MOLECULES)]
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    done = fit(tmp_path / "x.csv", tmp_path, "--json")
    assert done.code == 0, done.err
    assert done.data["data"]["n_graphs"] == 40


def test_a_damaged_gzip(tmp_path):
    noise = random.Random(0).randbytes(5000)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(noise)[:3000])
    refused(fit(tmp_path / "cut.csv.gz", tmp_path), "cannot be unpacked", "Fetch it again")


def test_what_does_not_exist(molecules, tmp_path):
    refused(fit(tmp_path / "molecule.csv", tmp_path), "neither a file", "molecules.csv?")
    refused(fit("MUTAGG", tmp_path), "Did you mean MUTAG?", "treelens datasets list")
    (tmp_path / "x.docx").write_bytes(b"PK")
    refused(fit(tmp_path / "x.docx", tmp_path), "has an unknown ending", ".csv")
    refused(run("predict", tmp_path / "no.treelens", molecules), "does not exist")
    refused(run("patterns", molecules), "cannot be read as a model file")


@pytest.mark.parametrize(
    ("option", "value"),
    [("--depth", "deep"), ("--depth", "-1"), ("--depth", "1.5"), ("--weight-radius", "nan"),
     ("--kernel", "best"), ("--jobs", "0")],
)  # fmt: skip
def test_options_with_a_wrong_value(option, value, molecules, tmp_path):
    out = tmp_path / "m.treelens"
    done = run("fit", molecules, "--out", out, "--method", "svc", f"{option}={value}")
    refused(done, option, value, "xpected")


def test_errors_as_json(molecules):
    done = run("fit", molecules, "--target", "x", "--json")
    assert done.code == 2
    assert done.data["exit_code"] == 2
    assert "no column 'x'" in done.data["error"]


def test_a_traceback_with_debug_only(molecules):
    from typer.testing import CliRunner

    from treelens.cli.main import app

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
    assert done.code == 2
    error = next(line for line in done.err.splitlines() if line.startswith("Error: "))
    assert "2 of 5 rows have a molecule and a target ('value')" in error
    assert "rows without a label, left out: 2" in error
    assert "too few to learn from" in error
    assert "class" not in error
