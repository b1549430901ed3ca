"""Parts of a text table as ranges of bytes, which whoever works on a part reads from the file."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

from treelens.errors import GraphDataError
from treelens.graphs.tables import Table, check_regular, rows_of_lines, table_of_rows

_CHUNK = 2**20


class TableRange(NamedTuple):
    """Some neighbouring rows of a table; cheap to send, as it holds none of them."""

    path: Path  # absolute
    head: str  # the text before the first row of the table, with its column names
    start: int  # bytes
    stop: int
    first_row: int
    n_lines: int  # of the file before these rows
    state: tuple[int, int]  # size of the file and time of its last change

    def read(self) -> Table:
        """Return the rows, which know their places in the whole file."""
        try:
            state = _state(self.path)
            with self.path.open("rb") as file:
                file.seek(self.start)
                part = file.read(self.stop - self.start)
        except FileNotFoundError as error:
            raise GraphDataError(
                f"{self.path} does not exist here: workers read their parts of a file themselves. "
                "Put it where all of them find it by this path, or pack it (.gz): then it is read "
                "by the client, and sent."
            ) from error
        if state != self.state:
            raise GraphDataError(f"{self.path} was changed while it was read: call fit again.")
        if not self.start:  # of a file without column names
            part = part.removeprefix(codecs.BOM_UTF8)
        text = self.head + part.decode("utf-8")
        columns, rows, separator = rows_of_lines(self.path, io.StringIO(text, newline=""))
        shift = self.n_lines - self.head.count("\n")
        placed = [(line + shift, fields) for line, fields in rows]
        table = table_of_rows(self.path, columns, placed, self.first_row)
        return table._replace(separator=separator)


def table_ranges(path: Path, n_rows: int) -> Iterator[TableRange] | None:
    """Return a table in ranges of so many rows; None where bytes do not tell where lines end.

    That is of packed files, of those that are not in UTF-8, and of lines that end by a carriage
    return alone. The file is read once before its first range, and once with them.
    """
    check_regular(path)
    path = path.absolute()
    if path.suffix.lower() == ".gz" or not _is_plain(path):
        return None
    return _ranges(path, n_rows)


def _ranges(path: Path, n_rows: int) -> Iterator[TableRange]:
    with path.open("rb") as file:
        state, lines = _state(path), _CountedLines(file)
        _, rows, _ = rows_of_lines(path, lines)
        head, first_row = "".join(lines.read), 0
        lines.read.clear()
        while True:
            start, n_lines = lines.n_bytes, lines.n_lines
            n = sum(1 for _ in islice(rows, n_rows))
            lines.read.clear()
            if not n:
                return
            yield TableRange(path, head, start, lines.n_bytes, first_row, n_lines, state)
            first_row += n


class _CountedLines:
    """The lines of a file in UTF-8, and how many bytes were read for those that were asked for."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.n_bytes = self.n_lines = 0
        self.read: list[str] = []

    def __iter__(self) -> _CountedLines:
        return self

    def __next__(self) -> str:
        line = next(self.file)
        text = line.removeprefix(b"" if self.n_lines else codecs.BOM_UTF8).decode("utf-8")
        self.n_bytes += len(line)
        self.n_lines += 1
        self.read.append(text)
        return text


def _is_plain(path: Path) -> bool:
    """Whether a file is in UTF-8 and its lines end by a line feed."""
    decoder, last = codecs.getincrementaldecoder("utf-8")(), b""
    with path.open("rb") as file:
        try:
            while chunk := file.read(_CHUNK):
                decoder.decode(chunk)
                both = last + chunk
                last = b"\r" if both.endswith(b"\r") else b""
                if both.count(b"\r") - both.count(b"\r\n") > len(last):
                    return False
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return not last


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
