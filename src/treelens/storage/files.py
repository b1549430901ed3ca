"""Files that are written whole or not at all, and tables as CSV that is safe in a spreadsheet."""

from __future__ import annotations

import os
import re
import secrets
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import pandas as pd

_LONGEST_NAME_BYTES = 200  # of the 255 that file systems allow
# The beginnings of a formula, in the wide letters of East Asia as well.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# Control and format characters (NUL, byte order mark, zero-width space), separators, and letters
# that are shown as nothing: a spreadsheet may drop them.
_INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe0e\ufe0f\uffa0"


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file to write bytes to, which appears under its name only once it is complete.

    The bytes go to a hidden temporary file in the same folder, which is renamed at the end. On any
    exception, Ctrl-C included, it is removed, and an existing file stays as it was.
    """
    target = checked_target(path)
    name = os.fsencode(target.name)[:_LONGEST_NAME_BYTES].decode("utf-8", "ignore")
    part = target.with_name(f".{name}-{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def checked_target(path: str | Path, reads: Iterable[str | Path] = ()) -> Path:
    """Return the resolved path to write to; raise an error if no file can be written there.

    ``reads`` are the files that the output is made from: to write over one of them, under whatever
    name, is a ``ValueError``.
    """
    target = Path(path).expanduser().resolve()  # writes through a link, not over it
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file to write.")
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is a device or a pipe: give the name of an ordinary file to write.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{path} cannot be written: the folder {target.parent} does not exist. Create it, or "
            "choose another place."
        )
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(
            f"{path} cannot be written: there is no permission to write in {target.parent}. "
            "Choose another place."
        )
    for source in reads if target.exists() else ():
        with suppress(FileNotFoundError):
            if os.path.samefile(target, Path(source).expanduser()):
                raise ValueError(
                    f"{path} cannot be written: it is the same file as {source}, which is read "
                    "here and would be lost. Choose another name."
                )
    return target


def write_csv(path: str | Path, table: pd.DataFrame, index: bool = False) -> None:
    """Write :func:`csv_text` to a file, whole or not at all."""
    with whole_file(path) as file:
        file.write(csv_text(table, index).encode("utf-8"))


def csv_text(table: pd.DataFrame, index: bool, header: bool = True) -> str:
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
    text = safe.to_csv(index=index, header=header, lineterminator="\n")
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
    shown = (k for k, x in enumerate(value)
             if unicodedata.category(x) not in _INVISIBLE and x not in _BLANK)  # fmt: skip
    visible = value[next(shown, len(value)) :]
    runs = any(_FORMULA.match(text) and not _NUMBER.fullmatch(text) for text in (value, visible))
    return f"'{value}" if runs else value
