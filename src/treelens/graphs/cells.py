"""What a cell of a table says: a number with its qualifier, unit and error, or none."""

from __future__ import annotations

import re
from typing import NamedTuple

MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "nan", "null", "none", "<na>", "nd", "n.d.", "not determined"}
    | {"nt", "n.t.", "not tested", "not measured"}
    | {"#n/a", "#value!", "#div/0!", "#ref!", "#num!", "#name?", "#null!"}  # of spreadsheets
)
# Of values that lie outside what could be measured, without a number that says where that ends.
_OUTSIDE = re.compile(
    r"[<>]?\s*(?:(?:below|above|under|over)\s+)?[ul]{0,2}lo[dq]|b[ld]o?[qld]|bql|a[ul]o?q|"
    r"(?:below|above) (?:the )?(?:limit|range).*|out of range",
    re.IGNORECASE,
)
# Python's ``int`` also reads ``1_0``, ``01`` and the digits of every script. Here, integers fit
# into 64 bits, and no digit of a number is lost in a float.
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(
    r"[+-]?(?:(?:(?:0|[1-9][0-9]{0,15})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity)",
    re.IGNORECASE | re.ASCII,
)
APPROXIMATE = ("~", "≈", "~=")
SIGNS = {
    **dict.fromkeys((">", ">=", "=>", "≥", ">>"), 1),
    **dict.fromkeys(("<", "<=", "=<", "≤", "<<"), -1),
    **dict.fromkeys(("", "=", "==", *APPROXIMATE), 0),
}
_QUALIFIED = re.compile(r"([<>≤≥~≈=]{1,2})\s*([^\s<>≤≥~≈=].*)")
_DIGITS = r"[+-]?(?:[0-9][0-9.,]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?"
_ONE_UNIT = r"(?:[fpnuµμm]?(?:M|mol|g|s)|[fpnuµμmd]?[lL]|kg|min|hr?|%|°C|k?Da|eV|k?cal|k?J)"
_UNIT = rf"{_ONE_UNIT}(?:\^?-?[0-9])?(?:[/.·]{_ONE_UNIT}(?:\^?-?[0-9])?)*"
_CELL = re.compile(
    rf"(?P<number>{_DIGITS})\s*(?P<unit>{_UNIT})?"
    rf"(?:\s*(?:±|\+/-|\+-)\s*(?P<error>{_DIGITS})\s*(?P<last_unit>{_UNIT})?)?"
)
_REPEATS = re.compile(r"\s*\(\s*n\s*=\s*[0-9]+\s*\)$", re.IGNORECASE)  # 3.2 ± 0.1 (n = 3)
_IN_BRACKETS = re.compile(r"\(([^()]*(?:±|\+/-|\+-)[^()]*)\)")  # (3.2 ± 0.1) nM


class Cell(NamedTuple):
    """The parts of ``"> 30 uM"`` or ``"(12 ± 3) %"``, as they are written; "" for none."""

    number: str  # the whole text, where it is no number with more around it
    qualifier: str = ""
    unit: str = ""
    error: str = ""


def read_cell(text: str) -> Cell:
    """Return the parts of a cell; decimal commas and the like stay as they are.

    Examples
    --------
    >>> read_cell("> 30 uM")
    Cell(number='30', qualifier='>', unit='uM', error='')
    >>> read_cell("12,5 ± 3,1 (n = 3)")
    Cell(number='12,5', qualifier='', unit='', error='3,1')
    >>> read_cell("see page 3").number
    'see page 3'
    """
    text, qualifier = text.strip(), ""
    signed = _QUALIFIED.fullmatch(text)
    if signed and signed[1] in SIGNS:
        qualifier, text = signed[1], signed[2].strip()
    found = _CELL.fullmatch(_IN_BRACKETS.sub(r"\1", _REPEATS.sub("", text)))
    if found is None:
        return Cell(text, qualifier)
    units = {found["unit"], found["last_unit"]} - {None, ""}
    if len(units) > 1:  # 3.2 nM ± 5 %
        return Cell(text, qualifier)
    return Cell(found["number"], qualifier, "".join(units), found["error"] or "")


def is_integer(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def is_missing(text: str) -> bool:
    """Whether a cell says that there is no value."""
    return text.lower() in MISSING


def is_outside(text: str) -> bool:
    """Whether a cell says that a value lies outside what could be measured, but not where.

    Examples
    --------
    >>> [is_outside(text) for text in ("BLQ", "< LOD", "above range", "<0.5", "BL21")]
    [True, True, True, False, False]
    """
    return _OUTSIDE.fullmatch(text.strip()) is not None
