"""The one place where data files are opened: regular files only, unpacked within bounds."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast

from treelens.graphs.errors import GraphDataError, GraphFileNotFoundError

# Files of graphs and molecules shrink to between a third and a hundredth. What claims more than
# this is something else, and is refused before memory is spent on it.
MAX_UNPACKED_BYTES = 2 * 2**30
MAX_RATIO = 100
SMALL_ENOUGH_BYTES = 8 * 2**20  # the ratio does not matter below this
LIMIT_VARIABLE = "TREELENS_MAX_UNPACKED"

# Files that are read bit by bit are still read line by line: one endless line would fill memory.
LONGEST_LINE = 10 * 2**20
_CHARACTERS_AT_ONCE = 2**18
_BYTES_AT_ONCE = 2**20

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_regular(path: Path) -> None:
    """Raise unless this is a regular file, or a link to one: reading a pipe may never end."""
    try:
        mode = path.stat().st_mode
    except PermissionError:
        raise  # the system's message names the path and says what is wrong
    except (OSError, ValueError) as error:  # not there, a loop of links, an impossible name
        raise GraphFileNotFoundError(f"{path} is not a file that exists.") from error
    if not stat.S_ISREG(mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "something else")
        raise GraphDataError(
            f"{path} is {kind}; expected a regular file. Write the data to one and give its path."
        )


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked within :func:`unpacked_limit` if its name ends in ``.gz``."""
    with open_unpacked(path, bounded=True) as file:
        return file.read()


def read_lines(path: Path) -> bytes:
    """The content of a text file; a line of many megabytes is an error before all of it is read."""
    parts, n_lines, open_line = [], 0, 0  # bytes since the last line end
    with open_unpacked(path, bounded=True) as file:
        while part := file.read(min(_BYTES_AT_ONCE, LONGEST_LINE)):
            first = part.find(b"\n")
            open_line += len(part) if first < 0 else first
            if open_line > LONGEST_LINE:
                raise _no_line(path, n_lines + 1)
            if first >= 0:
                n_lines += part.count(b"\n")
                open_line = len(part) - 1 - part.rfind(b"\n")
            parts.append(part)
    return b"".join(parts)


def _no_line(path: Path, line: int) -> GraphDataError:
    return GraphDataError(
        f"{path}, line {line}: the line is longer than {LONGEST_LINE:,} characters, so its line "
        "ends were lost, or it is no such file. Save it with one row a line."
    )


@contextmanager
def open_unpacked(path: Path, *, bounded: bool) -> Iterator[IO[bytes]]:
    """Open a file to read bytes, unpacked where its name ends in ``.gz``.

    Errors of unpacking, and with ``bounded`` more bytes than :func:`unpacked_limit` allows, become
    a ``GraphDataError``, also while the file is read in the body.
    """
    check_regular(path)
    if path.suffix.lower() != ".gz":
        with path.open("rb") as plain:
            yield plain
        return
    try:
        with gzip.open(path) as packed:
            file = io.BufferedReader(_Bounded(packed, path)) if bounded else packed
            yield cast("IO[bytes]", file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise GraphDataError(
            f"{path} cannot be unpacked ({error}): it is damaged or cut off. Fetch it again."
        ) from error


@contextmanager
def open_text(path: Path, errors: str = "strict") -> Iterator[TextIO]:
    """Open a UTF-8 file of any size, to be read with ``bounded_lines``."""
    with (
        open_unpacked(path, bounded=False) as file,
        io.TextIOWrapper(file, encoding="utf-8-sig", errors=errors, newline="") as text,
    ):
        yield text


def bounded_lines(stream: TextIO, path: Path) -> Iterator[str]:
    """The lines of a stream with their ends; one that is too long to be a line is an error."""
    n_lines, last = 0, ""
    while text := stream.read(_CHARACTERS_AT_ONCE):
        lines = list(io.StringIO(last + text, newline=""))
        last = "" if lines[-1].endswith("\n") else lines.pop()  # perhaps not yet all of it
        yield from lines
        n_lines += len(lines)
        if len(last) > LONGEST_LINE:
            raise _no_line(path, n_lines + 1)
    if last:
        yield last


def unpacked_limit(packed_bytes: int) -> int:
    """How many bytes a packed file may unpack to; ``TREELENS_MAX_UNPACKED`` overrides it.

    Examples
    --------
    >>> unpacked_limit(1_000), unpacked_limit(1_000_000), unpacked_limit(1_000_000_000)
    (8388608, 100000000, 2147483648)
    """
    chosen = os.environ.get(LIMIT_VARIABLE)
    if not chosen:
        return min(MAX_UNPACKED_BYTES, max(SMALL_ENOUGH_BYTES, MAX_RATIO * packed_bytes))
    if not (chosen.isascii() and chosen.isdigit() and len(chosen) < 20):
        raise GraphDataError(f"{LIMIT_VARIABLE} must be a number of bytes; got {chosen[:40]!r}.")
    return int(chosen)


def too_much(path: Path, found: str) -> GraphDataError:
    """The error for a packed file that would give more than its limit."""
    return GraphDataError(
        f"{path} was refused: its {path.stat().st_size:,} bytes would unpack to {found} bytes (the "
        f"limit is {MAX_RATIO} times, and {MAX_UNPACKED_BYTES:,} bytes). If you trust it, unpack "
        f"it yourself, or set the environment variable {LIMIT_VARIABLE}=BYTES."
    )


class _Bounded(io.RawIOBase):
    """A stream that raises once more bytes than allowed have come out of it."""

    def __init__(self, file: gzip.GzipFile, path: Path) -> None:
        self._file, self._path = file, path
        self._limit = self._left = unpacked_limit(path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise too_much(self._path, f"more than {self._limit:,}")
        return count
