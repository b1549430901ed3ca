"""The first sheet of an Excel workbook as a table of text."""

from __future__ import annotations

import datetime
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

from treelens.graphs.errors import GraphDataError
from treelens.graphs.opening import check_regular, too_much, unpacked_limit
from treelens.graphs.tables import Table

# What openpyxl and zipfile raise on files that are no workbooks; XML's errors are SyntaxErrors.
_DAMAGES = (
    zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, OSError, SyntaxError,
    IndexError, AttributeError, EOFError, NotImplementedError,
)  # fmt: skip


def read_excel(path: Path) -> Table:
    """The first sheet: a row of column names, then the rows; empty rows are passed over.

    What a formula gave when the workbook was last saved is its value.
    """
    check_regular(path)
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ImportError(
            f"Reading {path} needs openpyxl: pip install 'treelens[excel]'."
        ) from error
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on styles and the like, which no table has
            _check_size(path, file)
            book = load_workbook(file, read_only=True, data_only=True)
            sheet_names, numbered = book.sheetnames, _rows(book.worksheets[0])
    except GraphDataError:
        raise
    except _DAMAGES as error:
        raise GraphDataError(
            f"{path} cannot be read as an Excel workbook ({error}): it is damaged or something "
            "else. Save it again as .xlsx, or as CSV."
        ) from error
    if len(sheet_names) > 1:
        warnings.warn(
            f"{path} has {len(sheet_names)} sheets: the first, {sheet_names[0]!r}, was read. Move "
            "another to the front, or save it as CSV, to read that.",
            UserWarning,
            stacklevel=2,
        )
    return _table(path, numbered)


def _check_size(path: Path, file: IO[bytes]) -> None:
    """Refuse what would unpack to far more than a workbook does."""
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > unpacked_limit(path.stat().st_size):
        raise too_much(path, f"{unpacked:,}")
    file.seek(0)


def _rows(sheet: Any) -> list[tuple[int, list[str]]]:
    """Rows that hold something, with their numbers."""
    cells = ((n, [_text(x) for x in row]) for n, row in enumerate(sheet.values, 1))
    return [(n, row) for n, row in cells if any(row)]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return str(value).strip()


def _table(path: Path, numbered: list[tuple[int, list[str]]]) -> Table:
    if not numbered:
        raise GraphDataError(f"{path} is empty: expected a row of column names, then the rows.")
    header = numbered[0][1]
    named = [k for k, name in enumerate(header) if name]  # columns without a name hold remarks
    rows = [[row[k] if k < len(row) else "" for k in named] for _, row in numbered[1:]]
    lines = [number for number, _ in numbered[1:]]
    return Table(str(path), [header[k] for k in named], rows, lines)
