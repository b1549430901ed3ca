"""A file that is written in chunks, and continued where an earlier run was stopped."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_NOT_THROUGH_LINKS = getattr(os, "O_NOFOLLOW", 0)
_ON_WINDOWS = os.name == "nt"  # where no open file can be renamed or removed
_LOCKED_BYTE = 2**31 - 1  # on Windows, where what is locked cannot be read: far behind the record
_FIRST_LINE = b'{"rows": 0, "bytes": 0, "key": {'  # how every record begins
_BEGIN_AGAIN = "to begin again, or choose another --out."


class _Done(NamedTuple):
    """What a run has done: the last whole line of its record."""

    rows: int
    bytes: int
    key: dict[str, Any]


class PartialOutput:
    """A file written chunk by chunk, which the next run continues where this one was stopped.

    Chunks are appended to ``OUT.partial``. Each adds a line to the record ``OUT.partial.json``: how
    many rows and bytes are done, of which models and table. What was appended after the last whole
    line is cut off by the next run. When all rows are done, ``OUT.partial`` becomes ``OUT``.

    The record is made before anything else and removed after all else, and as long as it is open it
    is locked, so no two runs write at once. A run over other contents of ``reads`` (models, table)
    or with other settings is refused, and so are files that no run has left there.
    """

    def __init__(self, out: Path, reads: Sequence[Path], settings: Mapping[str, Any]) -> None:
        self.out, self.reads, self.settings = out, list(reads), settings
        self.path = out.with_name(out.name + ".partial")
        self.record_path = out.with_name(out.name + ".partial.json")
        self.n_rows = self._n_bytes = 0

    def __enter__(self) -> PartialOutput:
        from pooch import file_hash

        with ExitStack() as undo:
            self._record, is_new = _locked(self.record_path, self.out)
            undo.callback(_close, self._record, self.record_path, is_new)
            self.stamps = self._stamps()
            self.key = {**self.settings, "files": [file_hash(str(path)) for path in self.reads]}
            done, n_record_bytes = self._last_done()
            self._data, is_new = _opened(self.path)
            undo.callback(_close, self._data, self.path, is_new)
            if self._is_continued(done):
                assert done is not None
                self.n_rows, self._n_bytes = done.rows, done.bytes
            else:
                n_record_bytes = 0
            _cut(self._data, self._n_bytes)
            _cut(self._record, n_record_bytes)
            self._append_to_record()  # from here on, OUT.partial is known as that of a run
            undo.pop_all()
        return self

    def _last_done(self) -> tuple[_Done | None, int]:
        """Return the last whole line of the record, and where it ends."""
        text = self._record.read()
        n_bytes = text.rfind(b"\n") + 1
        begins = text.startswith(_FIRST_LINE) or _FIRST_LINE.startswith(text)
        if not n_bytes and begins:  # empty, or the first line was cut off: nothing is done yet
            return None, 0
        try:
            done = _Done(**json.loads(text[:n_bytes].splitlines()[-1]))
            if type(done.rows) is not int or type(done.bytes) is not int or min(done[:2]) < 0:
                raise TypeError
        except (ValueError, TypeError, IndexError, RecursionError) as error:
            raise ValueError(
                f"{self.record_path} is not the record of a run that was stopped. Move or remove "
                f"it (and {self.path.name}, if that was left by such a run) {_BEGIN_AGAIN}"
            ) from error
        return done, n_bytes

    def _is_continued(self, done: _Done | None) -> bool:
        """Return whether there are rows to continue after; raise where they cannot be used."""
        n_bytes = os.fstat(self._data.fileno()).st_size
        if done is None and n_bytes:
            raise ValueError(
                f"{self.path} was not left by a run that was stopped: it has no record "
                f"{self.record_path.name}. Move or remove it, or choose another --out."
            )
        if done is None or not (n_bytes and done.rows):
            return False
        if done.key != self.key:
            raise ValueError(
                f"{self.path} was left by a run with another model, table or options. Remove it "
                f"{_BEGIN_AGAIN}"
            )
        if n_bytes < done.bytes:
            raise ValueError(
                f"{self.path} has {n_bytes:,} bytes, fewer than the {done.bytes:,} that its record "
                f"{self.record_path.name} promises. Remove it {_BEGIN_AGAIN}"
            )
        return True

    def append(self, data: bytes, n_rows: int) -> None:
        """Append a chunk and record that it is done."""
        self._check_untouched()
        if self._stamps() != self.stamps:
            raise ValueError(
                "A model or the table was changed while its rows were predicted. Remove "
                f"{self.path} and begin again."
            )
        _write(self._data, data)
        self.n_rows += n_rows
        self._n_bytes += len(data)
        self._append_to_record()

    def finish(self) -> None:
        """Give the file its name, in one step."""
        self._check_untouched()
        if _ON_WINDOWS:
            self._data.close()
        os.replace(self.path, self.out)
        # last: until then, its lock keeps other runs away
        _close(self._record, self.record_path, remove=True)

    def __exit__(self, kind: object, *_: Any) -> None:
        """Keep what was recorded, where there is something to continue."""
        is_vain = kind is not None and not self.n_rows
        _close(self._data, self.path, remove=is_vain)
        _close(self._record, self.record_path, remove=is_vain)

    def _append_to_record(self) -> None:
        done = _Done(self.n_rows, self._n_bytes, self.key)
        _write(self._record, json.dumps(done._asdict()).encode("ascii") + b"\n")

    def _check_untouched(self) -> None:
        """Raise where anything else has changed the file; a lock is advice that some ignore."""
        unchanged = os.fstat(self._data.fileno()).st_size == self._n_bytes
        if not (unchanged and _is_at(self._data, self.path)):
            raise ValueError(
                f"{self.path} was changed, moved or removed by another program. Remove it "
                f"{_BEGIN_AGAIN}"
            )

    def _stamps(self) -> list[tuple[int, int]]:
        return [(found.st_size, found.st_mtime_ns) for found in map(Path.stat, self.reads)]


def _locked(path: Path, out: Path) -> tuple[BinaryIO, bool]:
    """Open and lock a file; also return whether it was made here."""
    while True:
        try:
            file, is_new = _opened(path)
        except FileNotFoundError:  # removed by a run that ended just now
            continue
        try:
            _lock(file)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                file.close()
                raise ValueError(
                    f"{out} is being written by another run. Wait for its end, or choose another "
                    "--out."
                ) from error
            # some network file systems have no locks
            message = f"{path.parent} has no locks: start no second run with this --out."
            warnings.warn(message, UserWarning, stacklevel=4)
        if _is_at(file, path):
            return file, is_new
        file.close()  # of a run that ended between opening and locking


def _lock(file: BinaryIO) -> None:
    """Lock an open file, at once or not at all."""
    if sys.platform == "win32":
        file.seek(_LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _opened(path: Path) -> tuple[BinaryIO, bool]:
    """Open a file of one's own to read and write; also return whether it was made here."""

    def without_links(name: str, flags: int) -> int:
        return os.open(name, flags | _NOT_THROUGH_LINKS, 0o666)

    with suppress(FileExistsError):
        return open(path, "x+b", opener=without_links), True
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ValueError(
            f"{path} is a link, a folder or a device, and would have to be written to. Remove it, "
            "or choose another --out."
        )
    return open(path, "r+b", opener=without_links), False


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Return whether an open file is the one of that name still."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False


def _close(file: BinaryIO, path: Path, remove: bool) -> None:
    """Close a file, which ends its lock; remove it first, unless another has its name now."""
    remove = remove and not file.closed and _is_at(file, path)
    if _ON_WINDOWS:
        file.close()
    if remove:
        path.unlink()
    file.close()


def _cut(file: BinaryIO, n_bytes: int) -> None:
    """Keep the first bytes of a file, and go to their end."""
    file.truncate(n_bytes)
    file.seek(n_bytes)


def _write(file: BinaryIO, data: bytes) -> None:
    """Write to the disk, so that what follows is on it later than this."""
    file.write(data)
    file.flush()
    os.fsync(file.fileno())
