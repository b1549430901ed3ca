"""Result rows: one JSON line each, appended whole, so that a killed run resumes where it was."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any


class RowFile:
    """An append-only file of JSON lines, with a key that tells which rows are already there.

    Parameters
    ----------
    path : path
    key : sequence of str
        The fields that identify a row.
    """

    def __init__(self, path: str | Path, key: Iterable[str]) -> None:
        self.path = Path(path)
        self.key = tuple(key)
        _drop_cut_line(self.path)
        self.rows = read_rows(self.path)
        self._known = {self._key_of(row) for row in self.rows}

    def _key_of(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key)

    def __contains__(self, row: dict[str, Any]) -> bool:
        return self._key_of(row) in self._known

    def append(self, row: dict[str, Any]) -> None:
        """Write one row in a single system call, then make sure that it is on disk."""
        line = (json.dumps(row, sort_keys=True, default=plain) + "\n").encode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self.rows.append(row)
        self._known.add(self._key_of(row))


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file, less a last line that a crash cut short or that is being written."""
    path = Path(path)
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines() if line.strip()]


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


def plain(value: Any) -> Any:
    """numpy scalars and arrays as plain numbers and lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"cannot write {type(value).__name__} into a row")
