"""Standard input: read and predicted in parts, with what a file of the same rows gives."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.conftest import ALCOHOLS, AMINES, Finished, refused, write_csv
from treelens.cli import predicting
from treelens.cli.main import app
from treelens.graphs.tables import decoded_lines

SMILES = [*ALCOHOLS, "C(C", *AMINES, "CCO.Cl"]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(predicting, "CHUNK_ROWS", 4)


def predicted(given: bytes | io.RawIOBase, model: Path, *more: str) -> Finished:
    arguments = ["predict", str(model), "-", "--jobs", "1", *more]
    return Finished(CliRunner().invoke(app, arguments, input=given))


def test_a_stream_gives_what_a_file_gives(model, tmp_path):
    table = write_csv(tmp_path / "x.csv", [(s,) for s in SMILES], "smiles")
    arguments = ["predict", str(model), str(table), "--jobs", "1"]
    whole = Finished(CliRunner().invoke(app, arguments))
    for given, more in (
        (table.read_bytes(), []),
        (table.read_bytes(), ["--format", "csv"]),
        (b"\xef\xbb\xbf" + table.read_bytes(), []),
        (table.read_text().encode("utf-16"), []),
    ):
        done = predicted(given, model, *more)
        assert done.out == whole.out
        assert done.err == whole.err  # counts, ranges and notes of all parts together


def test_lines_of_smiles_need_no_header(model):
    lines = "\n".join(f"{s} n{k}" for k, s in enumerate(SMILES)).encode()
    done = predicted(lines, model, "--format", "smi")
    assert done.out == predicted(lines, model).out
    assert [line.split(",")[1] for line in done.out.splitlines()[1:4]] == ["n0", "n1", "n2"]


class Slow(io.BytesIO):
    """Lines that know how many of them were asked for."""

    n_read = 0

    def __next__(self) -> bytes:
        self.n_read += 1
        return super().__next__()


def test_lines_are_read_when_they_are_needed():
    file = Slow(b"CCO\nCCN\n" + "Sm\xf6rg\n".encode("cp1252") + b"CC\n")
    lines = decoded_lines(file)
    assert next(lines) == "CCO\n"
    assert file.n_read < 3
    assert list(lines) == ["CCN\n", "Smörg\n", "CC\n"]


def test_json_has_all_rows(model):
    lines = "\n".join(SMILES).encode()
    found = json.loads(predicted(lines, model, "--json").out)
    assert len(found["predictions"]) == found["n_rows"] == len(SMILES)


def test_a_format_is_for_standard_input(model, molecules):
    done = CliRunner().invoke(app, ["predict", str(model), str(molecules), "--format", "csv"])
    refused(Finished(done), "--format is for DATA on standard input")
    refused(predicted(b"\n \n", model, "--format", "smi"), "Standard input is empty")
