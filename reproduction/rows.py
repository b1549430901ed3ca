"""Result rows: one JSON line each, appended whole, so that a stopped run resumes where it was."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from reproduction.frozen import source_of_library

# Rows keep the names they were written with; these are the names used since.
_OLD_FIELDS = {"form": "kernel", "radius": "weight_radius"}
_OLD_KERNELS = {
    "exponential": "wwl",
    "metric": "laplacian",
    "tanimoto-exponential": "tanimoto-rbf",
    "assignment": "wl-oa",
    "subtree": "wl-subtree",
    "subtree-cosine": "wl-subtree-cosine",
    "linear": "wwl-linear",
}


class RowFile:
    """An append-only file of JSON lines with a key that identifies a row."""

    # While it is open, no other process can open the same file: two runs would make every row
    # twice. With `shared`, others can: the runs have to divide the rows among them.

    def __init__(self, path: str | Path, key: Iterable[str], shared: bool = False) -> None:
        self.path, self.key, self.shared = Path(path), tuple(key), shared
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (0 if shared else fcntl.LOCK_NB))
        except OSError:
            self._file.close()
            raise RowFileError(
                f"{self.path} is in use: another run is adding rows to it."
            ) from None
        _drop_cut_line(self.path)
        if shared:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self.rows = read_rows(self.path)
        for number, row in enumerate(self.rows, start=1):
            missing = [name for name in self.key if name not in row]
            if missing:
                raise RowFileError(
                    f"{self.path}, row {number} has no {missing[0]!r}: it is not a row of this "
                    "experiment. Choose another folder, or remove the row."
                )
        self._known = {self._key_of(row) for row in self.rows}

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, so that another run may open it."""
        self._file.close()

    def _key_of(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key)

    def __contains__(self, row: dict[str, Any]) -> bool:
        return self._key_of(row) in self._known

    def append(self, row: dict[str, Any]) -> None:
        """Write one row to disk; a line that is cut short is dropped when the file is opened."""
        line = (
            json.dumps(row, sort_keys=True, default=lambda value: value.tolist()) + "\n"
        ).encode()
        if self.shared:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.write(line)
        self._file.flush()
        if self.shared:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self.rows.append(row)
        self._known.add(self._key_of(row))

    def add(
        self, key: dict[str, Any], make: Callable[..., dict[str, Any]], *arguments: Any
    ) -> None:
        """Append the row of a key with what ``make(*arguments)`` returns, unless it is there."""
        if key not in self:
            start = time.perf_counter()
            self.append({**key, **make(*arguments), **versions()})
            print(key, f"{time.perf_counter() - start:.1f} s", flush=True)


class RowFileError(ValueError):
    """A file that is in use, damaged, or of another experiment."""


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of a file, without a last line that was cut short or is being written."""
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
            f"{place} is damaged ({error}). Remove the line: it will be made again."
        ) from error
    if not isinstance(row, dict):
        raise RowFileError(f"{place} is not a JSON object. Remove the line.")
    if isinstance(row.get("choice"), dict):
        row["choice"] = _renamed(row["choice"])
    return _renamed(row) if "form" in row else row


def _renamed(record: dict[str, Any]) -> dict[str, Any]:
    """Return a row or its choice with the current names of fields and kernels."""
    renamed = {_OLD_FIELDS.get(name, name): value for name, value in record.items()}
    if renamed.get("kernel") in _OLD_KERNELS:
        renamed["kernel"] = _OLD_KERNELS[renamed["kernel"]]
    return renamed


def _drop_cut_line(path: Path) -> None:
    text = path.read_bytes()
    rest = text.rpartition(b"\n")[2]
    if rest:
        os.truncate(path, len(text) - len(rest))


def versions() -> dict[str, str | None]:
    """Return the versions that a row was made with; of the library also commit and defaults."""
    return {"python": platform.python_version(), **_packages(), **source_of_library()}


@cache
def _packages() -> dict[str, str]:
    names = ("treelens", "numpy", "scipy", "scikit-learn", "numba", "rdkit")
    return {name: version(name) for name in names}


Work = tuple[Callable[..., Any], tuple[Any, ...]]  # a function and its arguments


def run_all(works: Sequence[Work], n_jobs: int, title: str) -> Iterator[Any]:
    """Yield the results of all works in the order in which they finish, with progress on stderr."""
    start = time.monotonic()
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(function)(*arguments) for function, arguments in works
    )
    for done, result in enumerate(results, start=1):
        seconds = time.monotonic() - start
        left = seconds / done * (len(works) - done)
        line = f"{title}: {done}/{len(works)}, {seconds:.0f} s, about {left:.0f} s left"
        if done == len(works) or done % max(1, len(works) // 10) == 0:
            print(line, file=sys.stderr, flush=True)
        yield result
