"""Tables as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# What a spreadsheet takes for the beginning of a formula, in the wide letters of East Asia as well.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def csv_text(table: pd.DataFrame, index: bool) -> str:
    """A table as CSV, with text that begins like a formula made harmless.

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
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates show


def harmless(value: Any) -> Any:
    """A cell that no spreadsheet runs; see :func:`csv_text`.

    Examples
    --------
    >>> harmless("@SUM(A1)"), harmless("+1"), harmless(-2.5), harmless("C=C")
    ("'@SUM(A1)", '+1', -2.5, 'C=C')
    """
    runs = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if runs else value
