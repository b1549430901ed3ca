"""Tables as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# The beginnings of a formula, in the wide letters of East Asia as well.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# Control and format characters (NUL, byte order mark, zero-width space), separators, and letters
# that are shown as nothing: a spreadsheet may drop them.
_INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe0e\ufe0f\uffa0"


def csv_text(table: pd.DataFrame, index: bool) -> str:
    """Return a table as CSV in which no cell is run as a formula.

    Class names, SMILES and labels come from others' files, and a spreadsheet runs a cell such as
    ``=HYPERLINK(...)``. Such cells, and names of columns, get a single quote in front, which
    spreadsheets take as the sign for text. Numbers, also those written as text (``-1``), stay as
    they are, and so does every SMILES: none begins in such a way.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"smiles": ["CCO", "[Na+]"], "class": ["=1+1", "-1"]})
    >>> print(csv_text(table, index=False))
    smiles,class
    CCO,'=1+1
    [Na+],-1
    <BLANKLINE>
    """
    safe = table.apply(lambda column: column.map(harmless))
    safe.columns = safe.columns.map(harmless)
    if index:
        safe.index = safe.index.map(harmless)
    text = safe.to_csv(index=index, lineterminator="\n")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # shows lone surrogates


def harmless(value: Any) -> Any:
    """Return a cell that no spreadsheet runs; see :func:`csv_text`.

    Examples
    --------
    >>> harmless("@SUM(A1)"), harmless("+1"), harmless(-2.5), harmless("C=C")
    ("'@SUM(A1)", '+1', -2.5, 'C=C')
    """
    if not isinstance(value, str) or not value or (value[0].isascii() and value[0].isalnum()):
        return value
    shown = (k for k, x in enumerate(value) if not _is_blank(x))
    visible = value[next(shown, len(value)) :]
    runs = any(_FORMULA.match(text) and not _NUMBER.fullmatch(text) for text in (value, visible))
    return f"'{value}" if runs else value


def _is_blank(letter: str) -> bool:
    """Whether a character is shown as nothing."""
    return unicodedata.category(letter) in _INVISIBLE or letter in _BLANK
