"""A long prediction that is stopped at any moment is continued or refused, and never wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from cli.conftest import ALCOHOLS, AMINES, ok, refused, run, write_csv
from treelens.cli import predict
from treelens.estimators import named_models
from treelens.storage.files import PartialOutput

ROWS = [(f"n{k}", s) for k, s in enumerate([*ALCOHOLS, "", "C(C", "no", *AMINES])]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "new.csv", ROWS, "id,smiles")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(predict, "CHUNK_ROWS", 4)


class Killed(BaseException):
    """As if the process had ended here."""


def kill_at(monkeypatch, moment: int) -> None:
    """End the run at one of the moments when something is written, counted from 1."""
    moments = iter(range(1, 10_000))

    def around(function):
        def stopped(*given, **named):
            if next(moments) == moment:
                raise Killed
            found = function(*given, **named)
            if next(moments) == moment:
                raise Killed
            return found

        return stopped

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, around(getattr(os, name)))
    monkeypatch.setattr(PartialOutput, "__exit__", lambda self, *_: self._file.close())


def test_chunks_are_the_table_in_one_go(model, table, tmp_path, monkeypatch):
    out = tmp_path / "p.csv"
    args = ["predict", model, table, "--jobs", 1]
    done = ok(*args, "--out", out)
    assert "3 of 43 rows could not be read" in done.err
    assert not list(tmp_path.glob("*partial*"))
    printed = run(*args)
    assert printed.out == out.read_text()
    apart = tmp_path / "apart.csv"  # in processes
    ok("predict", model, table, "--jobs", 2, "--out", apart)
    pd.testing.assert_frame_equal(pd.read_csv(out), pd.read_csv(apart), rtol=1e-9)
    monkeypatch.setattr(predict, "CHUNK_ROWS", 5000)
    whole = tmp_path / "whole.csv"
    ok(*args, "--out", whole)
    pd.testing.assert_frame_equal(pd.read_csv(out), pd.read_csv(whole), rtol=1e-9)
    assert out.read_text().splitlines()[0] == whole.read_text().splitlines()[0]


def test_killed_at_every_moment_and_continued(model, table, tmp_path, monkeypatch):
    expected, out = tmp_path / "expected.csv", tmp_path / "p.csv"
    args = ["predict", model, table, "--jobs", 1, "--out"]
    ok(*args, expected)
    n_killed = 0
    for moment in range(1, 48, 3):
        with monkeypatch.context() as patch:
            kill_at(patch, moment)
            try:
                run(*args, out)
            except Killed:
                n_killed += 1
        done = ok(*args, out)
        assert "3 of 43 rows" in done.err
        assert out.read_bytes() == expected.read_bytes(), moment
        assert not list(tmp_path.glob("*partial*"))
        out.unlink()
    assert n_killed > 12


def stopped_early(model, table, out, monkeypatch) -> None:
    """Leave a run with some chunks done."""
    with monkeypatch.context() as patch:
        kill_at(patch, 14)
        with pytest.raises(Killed):
            run("predict", model, table, "--jobs", 1, "--out", out)
    assert list(out.parent.glob("*partial*"))


def test_another_model_table_or_option_is_refused(model, table, tmp_path, monkeypatch):
    out = tmp_path / "p.csv"
    stopped_early(model, table, out, monkeypatch)
    args = ["predict", model, table, "--out", out]
    refused(run(*args, "--id", "none"), "another model, table or options")
    before = table.read_text()
    table.write_text(before.replace("n5", "x5"))
    refused(run(*args), "another model, table or options")
    table.write_text(before)
    other = tmp_path / "other.treelens"
    other.write_bytes(model.read_bytes())
    done = ok("predict", other, table, "--out", out)  # the same content
    assert "Continuing after" in done.err


def test_a_table_that_changes_under_way_is_refused(model, table, tmp_path, monkeypatch):
    honest, calls = named_models.predict_molecules, []

    def changed(*given):
        calls.append(1)
        if len(calls) == 3:
            table.write_text(table.read_text() + "more,CCO\n")
        return honest(*given)

    monkeypatch.setattr(named_models, "predict_molecules", changed)
    done = run("predict", model, table, "--out", tmp_path / "p.csv", "--jobs", 1)
    refused(done, "was changed")
    assert not (tmp_path / "p.csv").exists()


def test_a_record_that_promises_too_much_or_cannot_be_read(model, table, tmp_path, monkeypatch):
    expected, out = tmp_path / "expected.csv", tmp_path / "p.csv"
    ok("predict", model, table, "--out", expected, "--jobs", 1)
    record, partial = (out.with_name(out.name + end) for end in (".partial.json", ".partial"))
    for damage in (
        lambda: record.write_text(json.dumps(json.loads(record.read_text()) | {"bytes": 10**6})),
        lambda: record.write_text("{"),
        lambda: partial.unlink(),
        lambda: record.unlink(),
    ):
        stopped_early(model, table, out, monkeypatch)
        damage()
        ok("predict", model, table, "--out", out, "--jobs", 1)
        assert out.read_bytes() == expected.read_bytes()
        out.unlink()


def test_two_runs_at_once(table, tmp_path):
    with PartialOutput(tmp_path / "p.csv", [table], {}) as first:
        first.append(b"a\n", 1)
        with PartialOutput(tmp_path / "p.csv", [table], {}) as second:
            assert second.n_rows == 1
            second.append(b"b\n", 1)
            with pytest.raises(ValueError, match="another run"):
                first.append(b"b\n", 1)
            second.finish()
    assert (tmp_path / "p.csv").read_bytes() == b"a\nb\n"
