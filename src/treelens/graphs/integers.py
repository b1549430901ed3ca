"""Numbers written as text, read strictly.

Python's ``int`` reads ``1_0`` as 10, ``01`` as 1, and the digits of every script. Here, an integer
is an optional sign and ASCII digits without a leading zero, within 64 bits.
"""

from __future__ import annotations

import re

import numpy as np

_INTEGER = r"[+-]?(?:0|[1-9][0-9]*)"
_ONE = re.compile(_INTEGER)
_BETWEEN = r"(?:\s*[,;]\s*|\s+)"
_LINE = re.compile(rf"\s*{_INTEGER}(?:{_BETWEEN}{_INTEGER})*\s*", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[+-]?(?:inf|infinity)", re.IGNORECASE | re.ASCII,
)  # fmt: skip
_PADDED = re.compile(r"[+-]?0[0-9]+")
_TO_BLANKS = str.maketrans(",;", "  ")
_MOST_DIGITS = 20  # with a sign; more do not fit, and Python refuses to read thousands

_PLAIN = b"0123456789+-, \t\r\n"


def is_integer(field: str) -> bool:
    """Whether a text is an integer that fits into 64 bits.

    Examples
    --------
    >>> [is_integer(text) for text in ("10", "-3", "+0", "01", "1_0", "1.0", "9" * 19)]
    [True, True, True, False, False, False, False]
    """
    if len(field) > _MOST_DIGITS or _ONE.fullmatch(field) is None:
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
    return _ONE.fullmatch(text) is None or abs(int(text[:_MOST_DIGITS])) <= 2**53


def integers_of_line(line: str) -> list[int] | None:
    """Return the integers of a line, separated by blanks, commas or semicolons, or None.

    Examples
    --------
    >>> integers_of_line("1, 2"), integers_of_line(" 3\\t-4 "), integers_of_line("1, 02")
    ([1, 2], [3, -4], None)
    """
    if _LINE.fullmatch(line) is None:
        return None
    fields = line.translate(_TO_BLANKS).split()
    if len(line) >= _MOST_DIGITS - 1 and not all(map(is_integer, fields)):
        return None
    return list(map(int, fields))


def why_no_integer(field: str) -> str:
    """Return an explanation to add to a message about a text that is no integer, or nothing."""
    if _PADDED.fullmatch(field):
        return " (with a leading zero, so it may be a code and not a number)"
    return " (beyond 64 bits)" if _ONE.fullmatch(field) else ""


def looks_plain(data: bytes) -> bool:
    """Whether a text has digits, signs, commas and blanks only, and no number like ``01``.

    A fast check of a whole file for a parser that reads ``1.0``, ``True`` and ``01`` as 1.

    Examples
    --------
    >>> looks_plain(b"0, 10\\n-100"), looks_plain(b"1\\n-01"), looks_plain(b"1.0")
    (True, False, False)
    """
    if data.translate(None, _PLAIN):
        return False
    codes = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8)
    zero = ord("0")  # digits lie above it, the others below
    return not ((codes[1:-1] == zero) & (codes[:-2] < zero) & (codes[2:] >= zero)).any()
