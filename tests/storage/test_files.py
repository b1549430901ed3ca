"""Files written whole or not at all, whatever ends the process, and never over what is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from treelens.storage.files import checked_target, whole_file

posix = pytest.mark.skipif(os.name != "posix", reason="signals, links and forks of POSIX")

WRITING = """
import sys
from treelens.storage.files import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half of it")
    file.flush()
    print("ready", flush=True)
    sys.stdin.read()
    file.write(b", and the rest")
"""


def usual_signals() -> None:
    """A test run under nohup ignores SIGHUP, and its children would inherit that."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start_writing(path: Path) -> subprocess.Popen:
    words = [sys.executable, "-c", WRITING, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(words, **pipes, preexec_fn=usual_signals)
    assert process.stdout.readline() == "ready\n"
    return process


def parts_in(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith("part")]


# --- ends -------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_process_told_to_end_takes_its_part_along(tmp_path, name):
    target = tmp_path / "model"
    target.write_bytes(b"before")
    with start_writing(target) as process:
        assert len(parts_in(tmp_path)) == 1
        process.send_signal(getattr(signal, name))
        assert process.wait() == -getattr(signal, name)  # it still ends by the signal
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == b"before"


@posix
def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_live_one_has_is_not(tmp_path):
    target, other = tmp_path / "model", tmp_path / "model-2"
    for path in (target, other):
        with start_writing(path) as killed:
            killed.kill()
    not_ours = tmp_path / ".model-notes.part"
    not_ours.touch()
    assert len(parts_in(tmp_path)) == 3
    with start_writing(target) as alive:
        assert len(parts_in(tmp_path)) == 3  # that of the killed one is gone, a new one is there
        with whole_file(target) as file:
            file.write(b"meanwhile")
        assert len(parts_in(tmp_path)) == 3
        alive.communicate("")
    assert target.read_bytes() == b"half of it, and the rest"
    left = parts_in(tmp_path)
    assert len(left) == 2, "one belongs to another name, one to another program"
    assert not_ours in left


def test_threads_that_write_the_same_file_leave_each_other_alone(tmp_path):
    target, both = tmp_path / "model", threading.Barrier(2)
    errors = []

    def write(content: bytes) -> None:
        try:
            with whole_file(target) as file:
                both.wait(10)
                file.write(content)
                with whole_file(target) as again:
                    again.write(content)
                both.wait(10)
        except (OSError, threading.BrokenBarrierError) as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in (b"one", b"two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert target.read_bytes() in (b"one", b"two")
    assert list(tmp_path.iterdir()) == [target]


@posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_terminated_leaves_the_part_of_its_parent(tmp_path):
    target = tmp_path / "model"
    with whole_file(target) as file:
        child = os.fork()
        if child == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGTERM
        file.write(b"all of it")
    assert target.read_bytes() == b"all of it"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@posix
def test_the_handler_of_somebody_else_stays_in_charge(tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with whole_file(tmp_path / "model") as file:
            os.kill(os.getpid(), signal.SIGTERM)
            file.write(b"all of it")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]
    assert (tmp_path / "model").read_bytes() == b"all of it"


@pytest.mark.parametrize("name", ["ü" * 120, "x" * 250, "a[b]*?"])
def test_any_name_that_the_system_allows(tmp_path, name):
    for content in (b"one", b"two"):
        with whole_file(tmp_path / name) as file:
            file.write(content)
    assert (tmp_path / name).read_bytes() == b"two"


# --- what is read -----------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("link", ["itself", "symlink", "hardlink", "roundabout"])
def test_what_is_read_is_not_written_over(tmp_path, link):
    source = tmp_path / "data.csv"
    source.write_text("data")
    target = tmp_path / "out.csv"
    if link == "itself":
        target = source
    elif link == "symlink":
        target.symlink_to(source)
    elif link == "hardlink":
        target.hardlink_to(source)
    else:
        target = tmp_path / ".." / tmp_path.name / "data.csv"
    with pytest.raises(ValueError, match=r"the same file as .*data\.csv, which is read here"):
        checked_target(target, reads=["MUTAG", source])
    assert checked_target(tmp_path / "new.csv", reads=[source, tmp_path / "gone"]).name == "new.csv"
