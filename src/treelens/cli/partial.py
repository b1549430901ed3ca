"""An output file that is written chunk by chunk, and continued after an interruption.

Chunks are appended to ``OUT.partial``; ``OUT.partial.json`` records how many rows and bytes are
done, and of which models and table. When all rows are done, ``OUT.partial`` becomes ``OUT``. What
was appended after the last record is cut off by the next run, and a lock on ``OUT.partial``, which
the system releases when a process ends, keeps a second run out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from treelens.cli.console import InputError

_CHUNK = 2**20


class PartialOutput:
    """A context manager around one run; leaving it early keeps what was recorded.

    Parameters
    ----------
    out : Path
        The file to write.
    reads : sequence of Path
        The models and the table: a run over other contents is refused.
    settings : mapping
        Everything else that the output depends on.
    """

    def __init__(self, out: Path, reads: Sequence[Path], settings: Mapping[str, Any]) -> None:
        self.out, self.reads = out, list(reads)
        self.path = out.with_name(out.name + ".partial")
        self.record = out.with_name(out.name + ".partial.json")
        self.stamps = self._stamps()
        self.key = {**settings, "files": [_digest(path) for path in reads]}
        self.n_rows = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> PartialOutput:
        while True:
            file = open(self.path, "a+b")
            if not _locked(file):
                file.close()
                raise InputError(
                    f"{self.path} is being written by another run. Wait for it to end, or choose "
                    "another --out."
                )
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                    break
            file.close()  # another run has just finished with it
        self._file = file
        try:
            self.n_rows = self._resumed(file)
        except BaseException:
            file.close()
            raise
        return self

    def _resumed(self, file: IO[bytes]) -> int:
        """Cut off what was not recorded, and return how many rows are done."""
        done: dict[str, Any] = {}
        with suppress(FileNotFoundError, ValueError):
            done = json.loads(self.record.read_text())
        size = file.seek(0, os.SEEK_END)
        if not done or not done.get("rows") or size < done["bytes"]:
            file.truncate(0)
            return 0
        if done["key"] != self.key:
            raise InputError(
                f"{self.path} was left by a run with another model, table or options. Remove it "
                "to begin again, or choose another --out."
            )
        file.truncate(done["bytes"])
        return int(done["rows"])

    def append(self, data: bytes, n_rows: int) -> None:
        """Write a chunk, then the record that it is done."""
        assert self._file is not None
        if self._stamps() != self.stamps:
            raise InputError(
                "A model or the table was changed while its rows were predicted. Remove "
                f"{self.path} and begin again."
            )
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.n_rows += n_rows
        done = {"rows": self.n_rows, "bytes": self._file.tell(), "key": self.key}
        new = self.record.with_name(self.record.name + ".new")
        new.write_text(json.dumps(done))
        os.replace(new, self.record)

    def finish(self) -> None:
        """Give the file its name, in one step."""
        assert self._file is not None
        if os.name == "nt":  # no open file can be renamed
            self._file.close()
        os.replace(self.path, self.out)
        self.record.unlink(missing_ok=True)

    def __exit__(self, kind: Any, *_: Any) -> None:
        assert self._file is not None
        self._file.close()
        if kind is not None and not self.n_rows:  # nothing to continue
            self.path.unlink(missing_ok=True)
            self.record.unlink(missing_ok=True)

    def _stamps(self) -> list[tuple[int, int]]:
        found = [path.stat() for path in self.reads]
        return [(stat.st_size, stat.st_mtime_ns) for stat in found]


def _locked(file: IO[bytes]) -> bool:
    """Whether no other process has the file; this one has it now."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
