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
from contextlib import contextmanager, suppress
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
    """Open a file to read bytes, unpacked where its name ends in ``.gz``."""
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


def check_unpacked(path: Path, n_bytes: int) -> None:
    """Raise where a packed file gives too many bytes; ``TREELENS_MAX_UNPACKED`` sets the limit."""
    packed, chosen = path.stat().st_size, os.environ.get(LIMIT_VARIABLE)
    limit = min(MAX_UNPACKED_BYTES, max(SMALL_ENOUGH_BYTES, MAX_RATIO * packed))
    if chosen:
        if not (chosen.isascii() and chosen.isdigit() and len(chosen) < 20):
            raise GraphDataError(f"{LIMIT_VARIABLE} must be a number of bytes; got {chosen!r:.9}.")
        limit = int(chosen)
    if n_bytes > limit:
        raise GraphDataError(
            f"{path} was refused: its {packed:,} bytes would unpack to more than {limit:,} bytes. "
            "If you trust it, unpack it yourself, or set the environment variable "
            f"{LIMIT_VARIABLE}=BYTES."
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
_OF_INTEGERS = b"0123456789+-, \t\r\n"
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


def number_table(
    data: bytes, place: str, dtype: type = np.int64, columns: int | None = None
) -> np.ndarray:
    """Return the numbers of lines of text, shape (n_lines, n_columns); ``nan`` is missing."""
    import pandas as pd

    whole, table = dtype is np.int64, np.empty((0, 0))
    with suppress(ValueError, OverflowError):  # also lines of different lengths
        if not whole:
            table = np.loadtxt(io.BytesIO(data), delimiter=",", comments=None, ndmin=2)
        elif not (data.translate(None, _OF_INTEGERS) or _has_leading_zero(data)):
            table = pd.read_csv(
                io.BytesIO(data), header=None, dtype=dtype, skipinitialspace=True, na_filter=False,
                skip_blank_lines=False, quoting=csv.QUOTE_NONE,
            ).to_numpy()  # fmt: skip
    complete = len(table) == data.count(b"\n") + 1  # loadtxt leaves blank lines out
    if complete and columns in (None, table.shape[1]) and not np.isinf(table).any():
        return table
    # What fast parsers read too kindly, or not at all: here, blanks and tabs may separate numbers.
    what, good = ("integer", is_integer) if whole else ("number", _FLOAT.fullmatch)
    rows: list[list[float]] = []
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), 1):
        fields = _SEPARATOR.split(line.strip())
        columns = columns or len(fields)
        bad = next((repr(field[:80]) for field in fields if not good(field)), None)
        if bad is not None or len(fields) != columns:
            wanted = f"one {what}" if columns == 1 else f"{columns} {what}s"
            raise GraphDataError(
                f"{place}, line {number}: expected {wanted}, found {bad or len(fields)} in "
                f"{line[:80]!r} (no leading zeros, 64 bits). Correct the line, or fetch the file "
                "again."
            )
        rows.append([int(x) if whole else float(x) for x in fields])
    return np.array(rows, dtype=dtype)


def _has_leading_zero(data: bytes) -> bool:
    """Whether a number begins with a zero, where all that is no digit lies below the digits."""
    zero = np.frombuffer(data, dtype=np.uint8) == ord("0")
    digit = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8) >= ord("0")
    return bool((zero & ~digit[:-2] & digit[2:]).any())
