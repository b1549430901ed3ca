"""A long prediction that is stopped at any moment is continued or refused, and never wrong."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import psutil
import pytest

from cli.conftest import ALCOHOLS, AMINES, ok, refused, run, write_csv
from treelens.chem import predicted_rows
from treelens.cli import predicting
from treelens.storage import partial
from treelens.storage.partial import PartialOutput

ROWS = [(f"n{k}", s) for k, s in enumerate([*ALCOHOLS, "", "C(C", "no", *AMINES])]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "new.csv", ROWS, "id,smiles")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(predicting, "CHUNK_ROWS", 4)


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

    for name in ("fsync", "replace", "open", "unlink"):
        monkeypatch.setattr(os, name, around(getattr(os, name)))

    def only_close(file, *_, **__):  # as the system does, which ends the lock
        file.close()

    monkeypatch.setattr(partial, "_close", only_close)


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
    monkeypatch.setattr(predicting, "CHUNK_ROWS", 5000)
    whole = tmp_path / "whole.csv"
    ok(*args, "--out", whole)
    pd.testing.assert_frame_equal(pd.read_csv(out), pd.read_csv(whole), rtol=1e-9)
    assert out.read_text().splitlines()[0] == whole.read_text().splitlines()[0]


def test_killed_at_every_moment_and_continued(model, table, tmp_path, monkeypatch):
    expected, out = tmp_path / "expected.csv", tmp_path / "p.csv"
    args = ["predict", model, table, "--jobs", 1, "--out"]
    ok(*args, expected)
    n_killed = 0
    for moment in range(1, 60, 2):
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
    assert n_killed > 24


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
    honest, calls = predicted_rows.predict_molecules, []

    def changed(*given):
        calls.append(1)
        if len(calls) == 3:
            table.write_text(table.read_text() + "more,CCO\n")
        return honest(*given)

    monkeypatch.setattr(predicted_rows, "predict_molecules", changed)
    done = run("predict", model, table, "--out", tmp_path / "p.csv", "--jobs", 1)
    refused(done, "was changed")
    assert not (tmp_path / "p.csv").exists()


def files_of(out: Path) -> tuple[Path, Path]:
    """The file that is written in chunks, and its record."""
    return out.with_name(out.name + ".partial"), out.with_name(out.name + ".partial.json")


def test_a_run_whose_last_line_was_cut_off_is_continued(model, table, tmp_path, monkeypatch):
    expected, out = tmp_path / "expected.csv", tmp_path / "p.csv"
    ok("predict", model, table, "--out", expected, "--jobs", 1)
    data, record = files_of(out)
    stopped_early(model, table, out, monkeypatch)
    with record.open("ab") as file:
        file.write(b'{"rows": 8, "by')
    with data.open("ab") as file:
        file.write(b"9,half a row")
    assert "Continuing after" in ok("predict", model, table, "--out", out, "--jobs", 1).err
    assert out.read_bytes() == expected.read_bytes()
    assert not list(tmp_path.glob("*partial*"))


def test_where_nothing_is_left_to_continue_a_run_begins_again(model, table, tmp_path, monkeypatch):
    expected, out = tmp_path / "expected.csv", tmp_path / "p.csv"
    ok("predict", model, table, "--out", expected, "--jobs", 1)
    data, record = files_of(out)
    stopped_early(model, table, out, monkeypatch)
    data.unlink()
    done = ok("predict", model, table, "--out", out, "--jobs", 1)
    assert "Continuing after" not in done.err
    assert out.read_bytes() == expected.read_bytes()
    for empty in (data, record):
        empty.touch()
        ok("predict", model, table, "--out", out, "--jobs", 1)
        assert out.read_bytes() == expected.read_bytes()
        assert not list(tmp_path.glob("*partial*"))


def test_a_record_whose_first_line_was_cut_off_has_nothing_done(table, tmp_path):
    out = tmp_path / "p.csv"
    _, record = files_of(out)
    with PartialOutput(out, [table], {"smiles": None}):
        line = record.read_bytes()
    assert line.endswith(b"\n")
    for end in range(len(line)):
        record.write_bytes(line[:end])
        with PartialOutput(out, [table], {"smiles": None}) as sink:
            assert sink.n_rows == 0
            sink.append(b"a\n", 1)
            sink.finish()
        assert out.read_bytes() == b"a\n"
        assert not list(tmp_path.glob("*partial*"))


@pytest.mark.parametrize("is_stopped", [True, False])
def test_no_open_file_is_removed_or_renamed_on_windows(is_stopped, table, tmp_path, monkeypatch):
    opened, honest = [], partial._opened

    def remembered(path):
        found = honest(path)
        opened.append(found[0])
        return found

    def checked(function):
        def of_closed(path, *given, **named):
            if any(file.name == str(path) and not file.closed for file in opened):
                raise PermissionError(errno.EACCES, "used by another process", str(path))
            return function(path, *given, **named)

        return of_closed

    monkeypatch.setattr(partial, "_ON_WINDOWS", True)
    monkeypatch.setattr(partial, "_opened", remembered)
    for name in ("unlink", "replace"):
        monkeypatch.setattr(os, name, checked(getattr(os, name)))
    with suppress(KeyboardInterrupt), PartialOutput(tmp_path / "p.csv", [table], {}) as sink:
        if is_stopped:
            raise KeyboardInterrupt
        sink.append(b"a\n", 1)
        sink.finish()
    assert len(opened) == 2
    assert not list(tmp_path.glob("*partial*"))
    assert (tmp_path / "p.csv").exists() != is_stopped


RECORD = {"rows": 4, "bytes": 10, "key": {}}


@pytest.mark.parametrize(
    "record",
    ["[]\n", "{}\n", "null\n", '{"mine', "\0\n", "[" * 10_000 + "\n", '{"mine": 1}\n']
    + [json.dumps(RECORD | {x: bad}) + "\n" for x in ("rows", "bytes") for bad in (-1, "4", True)],
)
@pytest.mark.parametrize("data", [None, "mine"])
def test_a_record_of_no_run_is_refused_and_kept(record, data, model, table, tmp_path):
    out = tmp_path / "p.csv"
    places = files_of(out)
    places[1].write_text(record)
    if data is not None:
        places[0].write_text(data)
    refused(run("predict", model, table, "--out", out, "--jobs", 1), "is not the record of a run")
    assert places[1].read_text() == record
    assert places[0].exists() == (data is not None)
    assert data is None or places[0].read_text() == data


def test_a_record_that_promises_too_much_is_refused(model, table, tmp_path, monkeypatch):
    out = tmp_path / "p.csv"
    stopped_early(model, table, out, monkeypatch)
    data, _ = files_of(out)
    before = data.read_bytes()[:-1]
    data.write_bytes(before)
    refused(run("predict", model, table, "--out", out), "fewer than the", "Remove it")
    assert data.read_bytes() == before


def test_a_file_without_a_record_is_not_written_over(model, table, tmp_path):
    data, record = files_of(tmp_path / "p.csv")
    data.write_text("mine")
    done = run("predict", model, table, "--out", tmp_path / "p.csv", "--jobs", 1)
    refused(done, "has no record p.csv.partial.json")
    assert data.read_text() == "mine"
    assert not record.exists()


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("content", ["mine", "", None])
def test_nothing_is_written_through_links(which, content, model, table, tmp_path):
    place, target = files_of(tmp_path / "p.csv")[which], tmp_path / "other"
    if content is not None:
        target.write_text(content)
    place.symlink_to(target)
    refused(run("predict", model, table, "--out", tmp_path / "p.csv", "--jobs", 1), "is a link")
    assert place.is_symlink()
    assert (target.read_text() if target.exists() else None) == content
    assert not files_of(tmp_path / "p.csv")[1 - which].exists()


def test_a_file_that_another_program_touches_is_not_given_its_name(table, tmp_path):
    out = tmp_path / "p.csv"
    data, _ = files_of(out)
    with PartialOutput(out, [table], {}) as sink:
        sink.append(b"a\n", 1)
        data.write_text("mine, and longer")
        for step in (lambda: sink.append(b"b\n", 1), sink.finish):
            with pytest.raises(ValueError, match="another program"):
                step()
        data.unlink()
        data.write_text("a\n")  # as long as it was
        with pytest.raises(ValueError, match="another program"):
            sink.finish()
    assert not out.exists()
    assert data.read_text() == "a\n"


# --- two runs -------------------------------------------------------------------------------------


def test_the_second_of_two_runs_changes_nothing(table, tmp_path):
    out = tmp_path / "p.csv"
    for n_before in (0, 1):  # rows that the first has done
        with PartialOutput(out, [table], {}) as first:
            for _ in range(n_before):
                first.append(b"a\n", 1)
            with (
                pytest.raises(ValueError, match="is being written by another run"),
                PartialOutput(out, [table], {}),
            ):
                raise AssertionError("two runs had the same file")
            first.append(b"b\n", 1)
            first.finish()
        assert out.read_bytes() == b"a\n" * n_before + b"b\n"
        assert not list(tmp_path.glob("*partial*"))


def test_the_second_of_two_runs_is_refused_before_it_reads_anything(table, tmp_path):
    out, gone = tmp_path / "p.csv", tmp_path / "gone.csv"
    with (
        PartialOutput(out, [table], {}),
        pytest.raises(ValueError, match="is being written by another run"),
        PartialOutput(out, [gone], {}),
    ):
        raise AssertionError("two runs had the same file")
    out.with_name("p.csv.partial").unlink()
    files_of(out)[1].unlink()
    with pytest.raises(FileNotFoundError), PartialOutput(out, [gone], {}):
        raise AssertionError("a table that does not exist was read")
    assert not list(tmp_path.glob("*partial*"))


def test_a_run_that_ended_between_opening_and_locking(table, tmp_path, monkeypatch):
    """The second has opened the record of the first, which then ends: it needs one of its own."""
    out, honest = tmp_path / "p.csv", partial._opened
    first = PartialOutput(out, [table], {}).__enter__()
    n_opened = 0

    def opened(path):
        nonlocal n_opened
        n_opened += 1
        found = honest(path)
        if n_opened == 1:
            first.finish()
            first.__exit__(None)
        return found

    monkeypatch.setattr(partial, "_opened", opened)
    with PartialOutput(out, [table], {}) as second:
        assert n_opened == 3
        second.append(b"b\n", 1)
        second.finish()
    assert out.read_bytes() == b"b\n"
    assert not list(tmp_path.glob("*partial*"))


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_a_folder_without_locks_is_said(table, tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(partial.fcntl, "flock", no_locks)
    with ExitStack() as stack:
        with pytest.warns(UserWarning, match="has no locks"):
            sink = stack.enter_context(PartialOutput(tmp_path / "p.csv", [table], {}))
        sink.append(b"a\n", 1)
        sink.finish()
    assert (tmp_path / "p.csv").read_bytes() == b"a\n"


class Msvcrt:
    """Windows' locks of bytes: a second one is refused until the file of the first is closed."""

    LK_NBLCK = 2

    def __init__(self):
        self.locked: list[tuple[int, int]] = []

    def locking(self, number, mode, n_bytes):
        assert mode == self.LK_NBLCK
        found = os.fstat(number)
        own = found.st_ino, os.lseek(number, 0, os.SEEK_CUR)
        assert own[1] >= found.st_size  # what is locked cannot be read, not even by its owner
        if own in self.locked:
            raise PermissionError(errno.EACCES, "Permission denied")
        self.locked.append(own)


def test_two_runs_exclude_each_other_on_windows(table, tmp_path, monkeypatch):
    monkeypatch.setattr(partial, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(partial, "msvcrt", Msvcrt(), raising=False)
    with (
        PartialOutput(tmp_path / "p.csv", [table], {}) as first,
        pytest.raises(ValueError, match="is being written by another run"),
        PartialOutput(tmp_path / "p.csv", [table], {}),
    ):
        raise AssertionError("two runs had the same file")
    assert first.n_rows == 0


# --- a killed run ---------------------------------------------------------------------------------

IN_SMALL_CHUNKS = """
from treelens.cli import predicting
from treelens.cli.main import main

predicting.CHUNK_ROWS = 4
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("seconds", [0, 2])
def test_processes_end_with_the_run_that_is_killed(seconds, model, tmp_path):
    rows = [(f"n{k}", s) for k, s in enumerate(ALCOHOLS * 500)]
    table = write_csv(tmp_path / "new.csv", rows, "id,smiles")
    words = ["predict", model, table, "--jobs", 2, "--out", tmp_path / "p.csv"]
    process = subprocess.Popen([sys.executable, "-c", IN_SMALL_CHUNKS, *map(str, words)])
    children = []
    while len(children) < 2:  # its processes, not what keeps track of them
        assert process.poll() is None
        time.sleep(0.02)
        children = psutil.Process(process.pid).children(recursive=True)
    time.sleep(seconds)
    children = psutil.Process(process.pid).children(recursive=True)
    assert process.poll() is None, "it should still be at work"
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    for left in alive:
        left.kill()
    assert not alive
