"""Result rows: one JSON line each, appended whole, so that a killed run resumes where it was."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from treelens.json_values import unpacked

# Rows keep the words they were written with; these are what some were called then.
_OLD_FIELDS = {"form": "kernel"}
_OLD_CHOICES = {"form": "kernel", "radius": "weight_radius"}
_OLD_KERNELS = {
    "exponential": "wwl",
    "metric": "laplacian",
    "tanimoto-exponential": "tanimoto-rbf",
    "assignment": "wl-oa",
    "subtree": "wl-subtree",
    "subtree-cosine": "wl-subtree-cosine",
    "linear": "wwl-linear",
}
_locked: dict[Path, int] = {}  # files that this process writes, until it ends


class RowFile:
    """An append-only file of JSON lines, with a key that tells which rows are already there.

    Until this process ends, no other one can open the same file as a ``RowFile``: two runs would
    make every row twice.

    Parameters
    ----------
    path : path
    key : sequence of str
        The fields that identify a row.
    """

    def __init__(self, path: str | Path, key: Iterable[str]) -> None:
        self.path = Path(path)
        self.key = tuple(key)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _lock(self.path.resolve())
        _drop_cut_line(self.path)
        self.rows = read_rows(self.path)
        for number, row in enumerate(self.rows, start=1):
            self._check_key(row, number)
        self._known = {self._key_of(row) for row in self.rows}

    def _check_key(self, row: dict[str, Any], number: int) -> None:
        missing = [name for name in self.key if name not in row]
        if missing:
            raise RowFileError(
                f"{self.path}, row {number}: {missing[0]!r} is missing, so this is no row of this "
                "experiment. Choose another folder, or remove the row."
            )

    def _key_of(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key)

    def __contains__(self, row: dict[str, Any]) -> bool:
        return self._key_of(row) in self._known

    def append(self, row: dict[str, Any]) -> None:
        """Write one row, whole or not at all, and make sure that it is on disk."""
        line = (json.dumps(row, sort_keys=True, default=unpacked) + "\n").encode()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            _append_whole(descriptor, line)
        finally:
            os.close(descriptor)
        self.rows.append(row)
        self._known.add(self._key_of(row))


class InUseError(OSError):
    """A file of rows that another process writes to."""


def _lock(path: Path) -> None:
    if path in _locked:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InUseError(
            f"{path} is being written by another run. Wait until it has ended, stop it, or choose "
            "another folder."
        ) from None
    _locked[path] = descriptor


class RowFileError(ValueError):
    """A file that does not hold rows, or whose rows were damaged; the message names the line."""


def _append_whole(descriptor: int, line: bytes) -> None:
    """All of a line, or on any error, a full disk or Ctrl-C, nothing of it."""
    before = os.fstat(descriptor).st_size
    try:
        rest = memoryview(line)
        while rest:  # a system call may write less than it was given
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, before)
        raise


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file, less a last line that a crash cut short or that is being written."""
    path = Path(path)
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [
        _row(line, f"{path}, line {number}")
        for number, line in enumerate(whole.split(b"\n"), start=1)
        if line.strip()
    ]


def _row(line: bytes, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise RowFileError(
            f"{place} is damaged ({error}). Remove the line: what it held will be made again."
        ) from error
    if not isinstance(row, dict):
        raise RowFileError(f"{place} is no row: expected a JSON object. Remove the line.")
    return in_new_words(row)


def in_new_words(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the names that fields, chosen settings and kernels have now.

    Examples
    --------
    >>> in_new_words({"fold": 0, "choice": {"form": "exponential", "radius": 1.0}})
    {'fold': 0, 'choice': {'kernel': 'wwl', 'weight_radius': 1.0}}
    """
    row = _renamed(row, _OLD_FIELDS)
    if isinstance(row.get("choice"), dict):
        row["choice"] = _renamed(row["choice"], _OLD_CHOICES)
    return row


def _renamed(record: dict[str, Any], fields: dict[str, str]) -> dict[str, Any]:
    if not fields.keys() & record.keys():
        return record
    renamed = {fields.get(name, name): value for name, value in record.items()}
    renamed["kernel"] = _OLD_KERNELS.get(renamed.get("kernel"), renamed.get("kernel"))
    return renamed


def _drop_cut_line(path: Path) -> None:
    """Take off a last line that a crash cut short: its row will be made again."""
    if not path.exists():
        return
    text = path.read_bytes()
    rest = text.rpartition(b"\n")[2]
    if rest:
        with path.open("rb+") as handle:
            handle.truncate(len(text) - len(rest))


def versions() -> dict[str, str]:
    """What a row was made with."""
    names = ("treelens", "numpy", "scipy", "scikit-learn", "numba")
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return version(name)
    except PackageNotFoundError:  # run from a source tree
        import treelens

        return treelens.__version__ if name == "treelens" else "unknown"
