"""Numbers written as text, read strictly.

Python's ``int`` reads ``1_0`` as 10, ``01`` as 1, and the digits of every script. Here, an integer
is an optional sign and ASCII digits without a leading zero, within 64 bits.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import numpy as np

from treelens.graphs.errors import GraphDataError

_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[+-]?(?:inf|infinity)", re.IGNORECASE | re.ASCII,
)  # fmt: skip
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_PADDED = re.compile(r"[+-]?0[0-9]+")
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
_PLAIN = b"0123456789+-, \t\r\n"
_MOST_DIGITS = 20  # with a sign; more do not fit, and Python refuses to read thousands


def is_integer(field: str) -> bool:
    """Whether a text is an integer that fits into 64 bits.

    Examples
    --------
    >>> [is_integer(text) for text in ("10", "-3", "+0", "01", "1_0", "1.0", "9" * 19)]
    [True, True, True, False, False, False, False]
    """
    if len(field) > _MOST_DIGITS or _INTEGER.fullmatch(field) is None:
        return False
    return -(2**63) <= int(field) < 2**63


def is_number(text: str) -> bool:
    """Whether a text is a number whose digits a float can represent.

    Examples
    --------
    >>> [is_number(text) for text in ("0.5", "-1e3", ".5", "2", "inf", "01.5", "1_0.0", "9" * 19)]
    [True, True, True, True, True, False, False, False]
    """
    if _NUMBER.fullmatch(text) is None:
        return False
    return _INTEGER.fullmatch(text) is None or abs(int(text[:_MOST_DIGITS])) <= 2**53


def integer_table(
    data: bytes, place: str, columns: int | None = None, first_line: int = 1
) -> np.ndarray:
    """Return the integers of lines of text, shape (n_lines, n_columns)."""
    table = _parsed_at_once(data)
    if table is None or (columns is not None and table.shape[1] != columns):
        table = _parsed_by_line(data, place, columns, first_line)
    return table


def float_table(
    data: bytes, place: str, columns: int | None = None, first_line: int = 1
) -> np.ndarray:
    """Return the numbers of lines of text, shape (n_lines, n_columns); ``nan`` is missing."""
    try:
        table = np.loadtxt(io.BytesIO(data), delimiter=",", comments=None, ndmin=2)
    except ValueError:  # also lines of different lengths
        table = np.empty((0, 0))
    # loadtxt leaves blank lines out
    if len(table) != data.count(b"\n") + 1 or columns not in (None, table.shape[1]) or (
        np.isinf(table).any()
    ):  # fmt: skip
        table = _parsed_by_line(data, place, columns, first_line, np.float64)
    return table


def _parsed_at_once(data: bytes) -> np.ndarray | None:
    """Parse all lines by pandas; None where any is unusual, since pandas reads ``01`` as 1."""
    import pandas as pd

    if data.translate(None, _PLAIN):
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


def _is_finite_or_nan(field: str) -> bool:
    return field.lower() == "nan" or (_FLOAT.fullmatch(field) is not None)


def _parsed_by_line(
    data: bytes, place: str, columns: int | None, first_line: int = 1, dtype: Any = np.int64
) -> np.ndarray:
    """Parse line by line: blanks and tabs may separate numbers, and an error names the line."""
    is_good, what = (is_integer, "integer") if dtype is np.int64 else (_is_finite_or_nan, "number")
    rows: list[list[float]] = []
    lines = data.decode("utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, first_line):
        fields = _SEPARATOR.split(line.strip())
        columns = columns or len(fields)
        bad = next((field for field in fields if not is_good(field)), None)
        if bad is not None or len(fields) != columns:
            found = str(len(fields)) if bad is None else repr(bad[:80])
            if bad is not None and _PADDED.fullmatch(bad):
                found += " (with a leading zero, so it may be a code and not a number)"
            elif bad is not None and _INTEGER.fullmatch(bad):
                found += " (beyond 64 bits)"
            wanted = f"one {what}" if columns == 1 else f"{columns} {what}s"
            raise GraphDataError(
                f"{place}, line {number}: expected {wanted}, found {found} in "
                f"{line[:80]!r}. Correct the line, or fetch the file again."
            )
        rows.append([int(x) if dtype is np.int64 else float(x) for x in fields])
    return np.array(rows, dtype=dtype)
