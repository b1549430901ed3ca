"""Files and numbers in them: regular files only, unpacked within bounds; numbers read strictly.

Python's ``int`` reads ``1_0`` as 10, ``01`` as 1, and the digits of every script. Here, an integer
is an optional sign and ASCII digits without a leading zero, within 64 bits.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from treelens.graphs.errors import GraphDataError, GraphFileNotFoundError

# Files of graphs and molecules shrink to between a third and a hundredth. What claims more than
# this is something else, and is refused before memory is spent on it.
MAX_UNPACKED_BYTES = 2 * 2**30
MAX_RATIO = 100
SMALL_ENOUGH_BYTES = 8 * 2**20  # the ratio does not matter below this
LIMIT_VARIABLE = "TREELENS_MAX_UNPACKED"
LONGEST_LINE = 10 * 2**20  # one endless line would fill memory


def check_regular(path: Path) -> None:
    """Raise unless this is a regular file, or a link to one: reading a pipe may never end."""
    try:
        mode = path.stat().st_mode
    except PermissionError:
        raise  # the system's message names the path and says what is wrong
    except (OSError, ValueError) as error:  # not there, a loop of links, an impossible name
        raise GraphFileNotFoundError(f"{path} is not a file that exists.") from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
        raise GraphDataError(
            f"{path} is {kind}; expected a regular file. Write the data to one and give its path."
        )


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked within bounds if its name ends in ``.gz``."""
    data = bytearray()
    with open_unpacked(path) as file:
        while part := file.read(2**20):
            data += part
            if path.suffix.lower() == ".gz":
                check_unpacked(path, len(data))
    return bytes(data)


def read_lines(path: Path) -> bytes:
    """Return the content of a text file; a line of many megabytes is an error."""
    data = read_bytes(path)
    for _ in bounded_lines(io.BytesIO(data), path):
        pass
    return data


def bounded_lines(stream: Any, path: Path) -> Iterator[Any]:
    """Yield the lines of a stream with their ends; one too long to be a line is an error."""
    n_lines = 0
    while line := stream.readline(LONGEST_LINE + 2):
        n_lines += 1
        if len(line) > LONGEST_LINE and len(line.rstrip()) > LONGEST_LINE:
            raise GraphDataError(
                f"{path}, line {n_lines}: the line is longer than {LONGEST_LINE:,} characters, so "
                "its line ends were lost, or it is no such file. Save it with one row a line."
            )
        yield line


@contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read bytes, unpacked where its name ends in ``.gz``.

    Errors of unpacking become a ``GraphDataError``, also while the file is read in the body.
    """
    check_regular(path)
    if path.suffix.lower() != ".gz":
        with path.open("rb") as plain:
            yield plain
        return
    try:
        with gzip.open(path) as packed:
            yield cast("IO[bytes]", packed)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise GraphDataError(
            f"{path} cannot be unpacked ({error}): it is damaged or cut off. Fetch it again."
        ) from error


def unpacked_limit(packed_bytes: int) -> int:
    """How many bytes a packed file may unpack to; ``TREELENS_MAX_UNPACKED`` overrides it."""
    chosen = os.environ.get(LIMIT_VARIABLE)
    if not chosen:
        return min(MAX_UNPACKED_BYTES, max(SMALL_ENOUGH_BYTES, MAX_RATIO * packed_bytes))
    if not (chosen.isascii() and chosen.isdigit() and len(chosen) < 20):
        raise GraphDataError(f"{LIMIT_VARIABLE} must be a number of bytes; got {chosen[:40]!r}.")
    return int(chosen)


def check_unpacked(path: Path, n_bytes: int) -> None:
    """Raise where a packed file would give more bytes than its limit."""
    limit = unpacked_limit(path.stat().st_size)
    if n_bytes > limit:
        raise GraphDataError(
            f"{path} was refused: its {path.stat().st_size:,} bytes would unpack to more than "
            f"{limit:,} bytes. If you trust it, unpack it yourself, or set the environment "
            f"variable {LIMIT_VARIABLE}=BYTES."
        )


# --- numbers ------------------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[+-]?(?:inf|infinity)", re.IGNORECASE | re.ASCII,
)  # fmt: skip
_FLOAT = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?|nan", re.IGNORECASE | re.ASCII
)
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
_MOST_DIGITS = 20  # with a sign; more do not fit, and Python refuses to read thousands


def is_integer(field: str) -> bool:
    """Whether a text is an integer that fits into 64 bits."""
    if len(field) > _MOST_DIGITS or _INTEGER.fullmatch(field) is None:
        return False
    return -(2**63) <= int(field) < 2**63


def is_number(text: str) -> bool:
    """Whether a text is a number whose digits a float can represent."""
    if _NUMBER.fullmatch(text) is None:
        return False
    return _INTEGER.fullmatch(text) is None or abs(int(text[:_MOST_DIGITS])) <= 2**53


def integer_table(data: bytes, place: str, columns: int | None = None) -> np.ndarray:
    """Return the integers of lines of text, shape (n_lines, n_columns)."""
    table = _parsed_at_once(data)
    if table is None or (columns is not None and table.shape[1] != columns):
        table = _parsed_by_line(data, place, columns)
    return table


def float_table(data: bytes, place: str, columns: int | None = None) -> np.ndarray:
    """Return the numbers of lines of text, shape (n_lines, n_columns); ``nan`` is missing."""
    try:
        table = np.loadtxt(io.BytesIO(data), delimiter=",", comments=None, ndmin=2)
    except ValueError:  # also lines of different lengths
        table = np.empty((0, 0))
    # loadtxt leaves blank lines out
    complete = len(table) == data.count(b"\n") + 1 and columns in (None, table.shape[1])
    if not complete or np.isinf(table).any():
        table = _parsed_by_line(data, place, columns, np.float64)
    return table


def _parsed_at_once(data: bytes) -> np.ndarray | None:
    """Parse all lines by pandas; None where any is unusual, since pandas reads ``01`` as 1."""
    import pandas as pd

    if data.translate(None, b"0123456789+-, \t\r\n"):
        return None
    codes = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8)
    zero = ord("0")  # digits lie above it, the other characters below
    if ((codes[1:-1] == zero) & (codes[:-2] < zero) & (codes[2:] >= zero)).any():
        return None
    try:
        frame = pd.read_csv(
            io.BytesIO(data), header=None, dtype=np.int64, skipinitialspace=True,
            skip_blank_lines=False, na_filter=False, quoting=csv.QUOTE_NONE,
        )  # fmt: skip
    except (ValueError, OverflowError):  # pandas' own parser errors are ValueErrors
        return None
    return frame.to_numpy()


def _parsed_by_line(
    data: bytes, place: str, columns: int | None, dtype: Any = np.int64
) -> np.ndarray:
    """Parse line by line: blanks and tabs may separate numbers, and an error names the line."""
    what = "integer" if dtype is np.int64 else "number"
    rows: list[list[float]] = []
    lines = data.decode("utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        fields = _SEPARATOR.split(line.strip())
        columns = columns or len(fields)
        good = is_integer if dtype is np.int64 else _FLOAT.fullmatch
        bad = next((repr(field[:80]) for field in fields if not good(field)), None)
        if bad is not None or len(fields) != columns:
            wanted = f"one {what}" if columns == 1 else f"{columns} {what}s"
            raise GraphDataError(
                f"{place}, line {number}: expected {wanted}, found {bad or len(fields)} in "
                f"{line[:80]!r} (no leading zeros, 64 bits). Correct the line, or fetch the file "
                "again."
            )
        rows.append([int(x) if dtype is np.int64 else float(x) for x in fields])
    return np.array(rows, dtype=dtype)
