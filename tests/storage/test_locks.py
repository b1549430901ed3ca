"""Locks: one process at a time, several holders within it, and nothing left behind."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from treelens.storage import locks
from treelens.storage.locks import InUseError, hold_lock, is_file_of, try_lock

HOLDING = """
import sys
from treelens.storage.locks import hold_lock
hold_lock(sys.argv[1], "the rows")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.fixture
def other(path: Path):
    """Another process that holds the lock."""
    words = [sys.executable, "-c", HOLDING, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_another_process_is_named_and_a_killed_one_lets_go(path: Path, other) -> None:
    with pytest.raises(InUseError, match=rf"the rows .* another run \(process {other.pid}\)"):
        hold_lock(path, "the rows")
    descriptor = os.open(path, os.O_RDWR)
    assert not try_lock(descriptor)
    os.close(descriptor)
    other.kill()
    other.wait()
    assert path.exists()  # left behind, and no harm
    hold_lock(path, "the rows")()
    assert not path.exists()


def test_the_lock_is_free_when_all_have_let_go(path: Path) -> None:
    first, second = hold_lock(path, "x"), hold_lock(path.parent / "." / "lock", "x")
    assert path.read_text() == f"{os.getpid()}\n"
    first()
    assert path.exists()
    second()
    assert not path.exists()
    second()  # once more does nothing
    hold_lock(path, "x")()


def test_a_lock_that_was_removed_under_our_hands_is_made_anew(path: Path, monkeypatch) -> None:
    """Whoever held it may remove it between our opening and locking it."""
    real, seen = try_lock, []

    def slow(descriptor: int) -> bool:
        if not seen:
            path.unlink()
        seen.append(descriptor)
        return real(descriptor)

    monkeypatch.setattr(locks, "try_lock", slow)
    let_go = hold_lock(path, "x")
    assert len(seen) == 2
    assert path.exists()
    let_go()


def test_a_lock_that_comes_and_goes_is_given_up(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(locks, "is_file_of", lambda descriptor, path: False)
    with pytest.raises(InUseError, match="comes and goes; try again"):
        hold_lock(path, "x")


def test_is_file_of(path: Path) -> None:
    path.write_text("a")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert is_file_of(descriptor, path)
        path.with_name("new").write_text("b")
        path.with_name("new").replace(path)
        assert not is_file_of(descriptor, path)
        path.unlink()
        assert not is_file_of(descriptor, path)
    finally:
        os.close(descriptor)


def failing(number: int):
    def fail(descriptor: int) -> bool:
        raise OSError(number, os.strerror(number))

    return fail


def test_where_there_are_no_locks_a_warning_says_so(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(locks, "try_lock", failing(errno.ENOLCK))
    with pytest.warns(UserWarning, match="the rows lies where files cannot be locked"):
        let_go = hold_lock(path, "the rows")
    let_go()


def test_other_errors_are_errors(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(locks, "try_lock", failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output") as caught:
        hold_lock(path, "x")
    assert caught.value.errno == errno.EIO
