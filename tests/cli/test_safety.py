"""Nobody's files are written over, and text from files acts on no spreadsheet and no terminal."""

from __future__ import annotations

import csv
import io
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, QUICK, run, write_csv
from cli.test_commands import tiny_tu
from treelens.cli import demo
from treelens.cli.console import visible
from treelens.storage.csv_text import csv_text, harmless


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused_untouched(folder: Path, *words: object) -> None:
    before = contents(folder)
    done = run(*words)
    assert done.code == 2, done.err
    assert done.err.count("Error: ") == 1
    assert "which is read here and would be lost. Choose another name." in done.err
    assert contents(folder) == before


# --- what is read is not written over ---------------------------------------------------------


@pytest.fixture
def own_model(model, tmp_path) -> Path:
    return Path(shutil.copy(model, tmp_path / "own.treelens"))


@pytest.fixture(params=["same", "symlink", "hardlink"])
def alias(request, tmp_path):
    """Another way to name a file."""

    def name(path: Path) -> Path:
        other = tmp_path / "other"
        if request.param == "symlink":
            other.symlink_to(path)
        elif request.param == "hardlink":
            other.hardlink_to(path)
        return path if request.param == "same" else other

    return name


def test_fit_does_not_write_over_its_data(alias, molecules, tmp_path):
    refused_untouched(tmp_path, "fit", molecules, "--out", alias(molecules), *QUICK)


@pytest.mark.parametrize("command", ["predict", "explain"])
@pytest.mark.parametrize("which", ["model", "data"])
def test_commands_do_not_write_over_what_they_read(
    command, which, alias, own_model, molecules, tmp_path
):
    out = alias(own_model if which == "model" else molecules)
    refused_untouched(tmp_path, command, own_model, molecules, "--out", out)


def test_patterns_does_not_write_over_its_model(alias, own_model, tmp_path):
    refused_untouched(tmp_path, "patterns", own_model, "--out", alias(own_model))


def test_the_files_of_a_folder_are_read_as_well(tmp_path):
    folder = tiny_tu(tmp_path / "TINY")
    labels = folder / "TINY_node_labels.txt"
    refused_untouched(tmp_path, "fit", folder, "--out", labels, *QUICK)
    refused_untouched(tmp_path, "fit", folder / "TINY_A.txt", "--out", labels, *QUICK)
    for _ in range(2):  # another file in that folder is fine, new and again
        done = run("fit", folder, "--out", folder / "TINY_model.txt", *QUICK)
        assert done.code == 0, done.err
    missing = run("fit", tmp_path / "no" / "X_A.txt", "--out", folder / "TINY_model.txt", *QUICK)
    assert missing.code == 2
    assert "neither a file or folder" in missing.err


def test_a_set_one_folder_down_is_read_as_well(tmp_path):
    folder = tiny_tu(tmp_path / "TINY")
    refused_untouched(tmp_path, "fit", tmp_path, "--out", folder / "TINY_A.txt", *QUICK)


def test_a_data_set_called_by_name_is_not_written_over(tmp_path, monkeypatch):
    folder = tmp_path / "MUTAG"
    tiny_tu(folder)
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path))
    refused_untouched(tmp_path, "fit", "MUTAG", "--out", folder / "MUTAG_A.txt", *QUICK)


def test_the_demo_does_not_write_over_its_molecules(tmp_path, monkeypatch):
    for name in (demo._MOLECULES, demo._ACTIVITIES):
        (tmp_path / name).write_text("molecules")
    monkeypatch.setattr(demo, "_rdkit_examples", lambda: tmp_path)
    refused_untouched(tmp_path, "demo", "--out", tmp_path / demo._ACTIVITIES)


# --- spreadsheets -----------------------------------------------------------------------------

FORMULA = '=HYPERLINK("http://example.org","x")'


@pytest.fixture(scope="module")
def strange_model(tmp_path_factory) -> Path:
    """Classes whose names are a formula and a text with terminal escapes."""
    path = tmp_path_factory.mktemp("strange") / "model.treelens"
    y = [FORMULA] * len(ALCOHOLS) + ["\x1b]0;owned\x07am\nine\r"] * len(AMINES)
    model = tl.GraphSVC("wwl-linear", 1, 0, C=1.0, cv=2, progress=False)
    model.fit(tl.as_graph_collection(ALCOHOLS + AMINES), y).save(path)
    return path


def test_predictions_hold_no_formulas(strange_model, tmp_path):
    data = write_csv(tmp_path / "x.csv", [("CCO",), ("-2+3",), ("CCCCN",)], "smiles")
    assert run("predict", strange_model, data, "--out", tmp_path / "out.csv").code == 0
    written = (tmp_path / "out.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(written, newline="")))
    assert rows[0]["class"] == f"'{FORMULA}"
    assert [row["smiles"] for row in rows] == ["CCO", "'-2+3", "CCCCN"]
    printed = run("predict", strange_model, data)
    assert f'CCO,"\'{FORMULA.replace(chr(34), chr(34) * 2)}"' in printed.out
    as_json = run("predict", strange_model, data, "--json").data["predictions"]
    assert as_json[0]["class"] == FORMULA  # a program gets what it is


def test_the_table_of_patterns_holds_no_formulas(strange_model, tmp_path):
    assert run("patterns", strange_model, "--out", tmp_path / "out.csv").code == 0
    table = pd.read_csv(tmp_path / "out.csv")
    assert f"'{FORMULA}" in set(table["leans_to"])
    assert FORMULA not in set(table["leans_to"])


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1",
                                  "\n=1", "\uff1d1", "-", "+", "-1e5x", "--1", "+-1"])  # fmt: skip
def test_text_that_begins_like_a_formula_is_marked(text):
    assert harmless(text) == "'" + text


@pytest.mark.parametrize("text", ["CCO", "[Na+].[Cl-]", "C=C", "-1", "+1", "-0.5", "+1.5e-3", ".5",
                                  "", "a-b", "'quoted", -1.5, None, 3])  # fmt: skip
def test_numbers_smiles_and_other_text_stay(text):
    assert harmless(text) is text


def test_numbers_of_a_table_are_written_bit_for_bit():
    table = pd.DataFrame({"x": [0.1 + 0.2, -1e-300], "n": [1, -2], "name": ["a", None]})
    assert csv_text(table, index=False) == table.to_csv(index=False, lineterminator="\n")


def test_columns_and_lone_surrogates():
    table = pd.DataFrame({"=1": ["a\udc80"]}, index=pd.Index(["@x"], name="id"))
    assert csv_text(table, index=True) == "id,'=1\n'@x,a\\udc80\n"


# --- terminals --------------------------------------------------------------------------------


def test_names_of_classes_do_nothing_to_a_terminal(strange_model, tmp_path):
    data = write_csv(tmp_path / "x.csv", [("CCO",), ("CCCCN",)], "smiles")
    known = '"' + FORMULA.replace('"', '""') + '"'
    for words in (
        ("predict", strange_model, data),
        ("predict", strange_model, data, "--out", tmp_path / "out.csv"),
        ("patterns", strange_model),
        ("compare", strange_model, strange_model, write_csv(tmp_path / "y.csv", [
            (s, "\x1b[2Jx" if s in AMINES else known) for s in ALCOHOLS + AMINES])),
    ):  # fmt: skip
        done = run(*words)
        assert done.code == 0, done.err
        assert not set("\x1b\x07\r") & set(done.out + done.err), words
    assert "\\x1b]0;owned\\x07am\\nine\\r" in run("patterns", strange_model).out


def test_errors_and_notes_do_nothing_to_a_terminal(model, tmp_path):
    done = run("fit", tmp_path / "\x1b[2Jx.csv")
    assert done.code == 2
    assert "\x1b" not in done.err
    assert "\\x1b[2Jx.csv" in done.err
    data = write_csv(tmp_path / "\x1b[2Jx.csv", [("CCO", "a"), ("C(C(", "b")], "smiles,label")
    done = run("fit", data, *QUICK)
    assert "\x1b" not in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_file_name_that_is_no_text_can_be_printed(model, tmp_path):
    """A name in another encoding than the system's comes as lone surrogates."""
    data = write_csv(tmp_path / "x.csv", [("CCO",)], "smiles")
    done = run("predict", model, data, "--out", tmp_path / "out\udce4.csv")
    assert done.code == 0, done.err
    assert "out\\udce4.csv" in done.out


def test_what_can_be_seen_stays():
    text = "naïve 化合物 ± 5 %\tC(=O)\n🧪"
    assert visible(text) == text
    assert visible("a\x9bb\u202ec\x7f") == "a\\x9bb\\u202ec\\x7f"
