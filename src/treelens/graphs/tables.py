"""Tables of text from CSV, TSV, SMI, Excel and Parquet files, with the line of each row.

Cells stay text until the reader of molecules decides what they mean. CSV is parsed by the standard
library and not by pandas, which neither reports the line of a row nor a quote that is not closed.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import io
import re
import warnings
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from treelens.graphs.errors import GraphDataError
from treelens.graphs.opening import (
    bounded_lines,
    check_regular,
    open_unpacked,
    read_bytes,
    read_lines,
    too_much,
    unpacked_limit,
)

Row = tuple[int, list[str]]  # line, fields
_SEPARATORS = (",", "\t", ";")
_SMI_ENDINGS = (".smi", ".smiles", ".ism")
_PARQUET_ENDINGS = (".parquet", ".pq")
EXCEL_ENDINGS = (".xlsx", ".xlsm")
STREAMED_ENDINGS = (".csv", ".tsv", ".txt", *_SMI_ENDINGS)
TABLE_ENDINGS = (*STREAMED_ENDINGS, *EXCEL_ENDINGS, *_PARQUET_ENDINGS)
# A zip begins with the name of its first member at this byte; that of a model file is its manifest.
_ZIP_NAME, _FIRST_IN_A_MODEL = 30, b"manifest.json"
# Raised by openpyxl and zipfile on files that are no workbooks; XML errors are SyntaxErrors.
_DAMAGES = (
    zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, OSError, SyntaxError,
    IndexError, AttributeError, EOFError, NotImplementedError,
)  # fmt: skip
_UTF16_SIGNS = (b"\xff\xfe", b"\xfe\xff")  # what spreadsheets save as "Unicode text"


class Table(NamedTuple):
    """Rows of text with named columns."""

    source: str
    columns: list[str]
    rows: list[list[str]]  # each as long as columns
    lines: list[int] | None  # file line of each row, where the file has lines
    first_row: int = 0  # where these rows begin, if they are a part of the table

    def column(self, name: str, parameter: str) -> list[str]:
        """The stripped values of one column; ``parameter`` is the argument that named it."""
        matches = self.columns.count(name)
        if matches != 1:
            raise GraphDataError(
                f"{self.source} has {matches or 'no'} columns named {name!r}, which "
                f"{parameter}={name!r} asks for. Its columns are: "
                f"{', '.join(map(repr, self.columns))}."
            )
        position = self.columns.index(name)
        return [row[position].strip() for row in self.rows]

    def place(self, row: int) -> str:
        """The words that name a row in a message: its number from 1, and its line."""
        number = self.first_row + row + 1
        return f"row {number}" + ("" if self.lines is None else f" (line {self.lines[row]})")


def first_few(texts: Sequence[str], n: int = 5, separator: str = ", ") -> str:
    """The first texts of a list, and how many more there are: ``"a, b and 3 more"``."""
    more = f" and {len(texts) - n} more" if len(texts) > n else ""
    return separator.join(texts[:n]) + more


def inner_suffix(path: Path) -> str:
    """The ending of the format: ``.csv`` for both ``x.csv`` and ``x.csv.gz``."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_text_table(path: Path) -> Table:
    """Read a table as text; the separator of a CSV is found from its first line."""
    suffix = inner_suffix(path)
    if suffix in _PARQUET_ENDINGS:
        return _read_parquet(path)
    if suffix in EXCEL_ENDINGS:
        return _read_excel(path)
    return table_of_bytes(path, read_lines(path))


def table_of_bytes(path: Path, data: bytes) -> Table:
    """The table in a text file that was read already."""
    # Not str.splitlines, which also splits at U+2028 and other characters inside a line.
    columns, rows = _rows(path, io.StringIO(decoded(data, path), newline=""))
    return _as_table(path, columns, list(rows))


def _as_table(path: Path, columns: list[str], rows: list[Row], first_row: int = 0) -> Table:
    fields, lines = [fields for _, fields in rows], [line for line, _ in rows]
    return Table(str(path), columns, fields, lines, first_row)


def _rows(path: Path, lines: Iterable[str]) -> tuple[list[str], Iterator[Row]]:
    """Column names, and the rows one by one; a SMI file has no header."""
    if inner_suffix(path) in _SMI_ENDINGS:
        return ["smiles", "name"], _smi_rows(lines)
    return _delimited_rows(path, lines)


def decoded(data: bytes, path: Path) -> str:
    """Bytes as text, by the rule of :func:`_encoding_of`."""
    return data.decode(_encoding_of([data], path), errors="replace")


def _encoding_of(chunks: Iterable[bytes], path: Path) -> str:
    """UTF-8; UTF-16 where the bytes begin with its mark; else Windows-1252, with a warning."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    n_before, has_zeros, wrong, start = 0, False, None, b""
    for chunk in chain(chunks, [b""]):  # the empty one ends the last character
        if not n_before:
            start = chunk
            if start.startswith(_UTF16_SIGNS):
                return "utf-16"
        has_zeros = has_zeros or b"\0" in chunk
        if wrong is None:
            kept = len(decoder.getstate()[0])  # bytes of an unfinished character
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                wrong = n_before - kept + error.start
        n_before += len(chunk)
    if wrong is None:
        return "utf-8-sig"
    if start.startswith(b"PK") and start[_ZIP_NAME:].startswith(_FIRST_IN_A_MODEL):
        raise GraphDataError(
            f"{path} is a model, whatever its name, and no table or SDF: treelens.load opens it, "
            "and 'treelens info' shows it."
        )
    if has_zeros:
        hint = " (It begins like a zip: a spreadsheet?)" if start.startswith(b"PK") else ""
        raise GraphDataError(
            f"{path} is no text (byte {wrong} is not UTF-8, and there are zeros): expected a table "
            f"or an SDF. Save it as CSV in UTF-8.{hint}"
        )
    warnings.warn(
        f"{path} is not UTF-8 (byte {wrong}): it was read as Latin-1 (Windows-1252). If letters "
        "look wrong, save it as UTF-8.",
        UserWarning,
        stacklevel=3,
    )
    return "cp1252"


def read_table_blocks(path: Path, block_size: int) -> Iterator[Table]:
    """The rows of a text table, ``block_size`` at a time; the file is read twice, first for its
    encoding.
    """
    with open_unpacked(path, bounded=False) as file:
        encoding = _encoding_of(iter(lambda: file.read(2**20), b""), path)
        file.seek(0)
        stream = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="")
        columns, rows = _rows(path, bounded_lines(stream, path))
        first_row = 0
        while block := list(islice(rows, block_size)):
            yield _as_table(path, columns, block, first_row)
            first_row += len(block)


def _delimited_rows(path: Path, stream: Iterable[str]) -> tuple[list[str], Iterator[Row]]:
    """Column names, and the rows one by one, each with the line that it begins on."""
    lines = iter(stream)
    first_line, n_before = "", 0
    for first_line in lines:
        if first_line.strip():
            break
        n_before += 1
    if not first_line.strip():
        raise GraphDataError(f"{path} is empty: expected a line of column names, then the rows.")
    separator = max(_SEPARATORS, key=first_line.count)
    numbered = _numbered(path, chain([first_line], lines), separator, n_before)
    columns = [name.strip() for name in next(numbered)[1]]
    return columns, _checked_rows(path, numbered, columns)


def _numbered(path: Path, lines: Iterable[str], separator: str, n_before: int) -> Iterator[Row]:
    """The rows, each with the line that it begins on.

    A quote that is never closed takes the rows after it for text. ``strict`` finds it where the
    next quote opens, or at the end of the file; the message names the line where it began.
    """
    recent: list[str] = []  # the lines of the row that is being read

    def remembered() -> Iterator[str]:
        for line in lines:
            recent.append(line)
            yield line

    reader = csv.reader(remembered(), delimiter=separator, strict=True)
    last_line = 0
    try:
        for fields in reader:
            line, last_line = last_line + 1, reader.line_num  # a quoted field may span lines
            recent.clear()
            if any(map(str.strip, fields)):  # spreadsheets write lines of nothing but separators
                yield n_before + line, fields
    except csv.Error as error:
        first, reached = n_before + last_line, n_before + last_line + len(recent)
        quote = _line_of_quote(recent, separator)
        if quote is None:
            what = f"line {reached}: {error}. Correct the line, or save the table anew."
        else:
            what = (
                f"line {first + quote}: a quote opens here and is not closed as it should be "
                f"(line {reached}: {error}). Close it, or remove it."
            )
        raise GraphDataError(f"{path}, {what}") from error


def _line_of_quote(lines: list[str], separator: str) -> int | None:
    """Which of the lines of a row, from 1, has the quote that opens its first bad field."""
    text, start = "".join(lines), 0
    good = re.compile(
        rf'(?:"[^"]*(?:""[^"]*)*"|[^"{separator}\r\n][^{separator}\r\n]*|)'
        rf"(?:{separator}|\r\n|\r|\n)"
    )
    while field := good.match(text, start):
        start = field.end()
    if not text.startswith('"', start):
        return None
    ends = list(accumulate(map(len, lines)))
    return bisect_right(ends, start) + 1


def _checked_rows(path: Path, rows: Iterator[Row], columns: list[str]) -> Iterator[Row]:
    for line, fields in rows:
        if len(fields) != len(columns):
            raise GraphDataError(
                f"{path}, line {line}: expected {len(columns)} fields ({', '.join(columns)}), "
                f"found {len(fields)}. Correct the line, or fetch the file again."
            )
        yield line, fields


def _smi_rows(stream: Iterable[str]) -> Iterator[Row]:
    """A SMILES, then perhaps a name, of every line."""
    for number, line in enumerate(stream, 1):
        if line.strip():
            smiles, _, name = line.strip().replace("\t", " ").partition(" ")
            yield number, [smiles, name.strip()]


# --- Excel and Parquet --------------------------------------------------------------------------


def _read_excel(path: Path) -> Table:
    """The first sheet: a row of column names, then the rows; empty rows are skipped.

    Formulas have the value they had when the workbook was last saved. Columns without a name hold
    remarks and are not read, so that a stray cell far away costs nothing.
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
            warnings.simplefilter("ignore")  # about styles and the like
            with zipfile.ZipFile(file) as archive:
                unpacked = sum(info.file_size for info in archive.infolist())
            if unpacked > unpacked_limit(path.stat().st_size):
                raise too_much(path, f"{unpacked:,}")
            file.seek(0)
            book = load_workbook(file, read_only=True, data_only=True)
            sheets, sheet = book.sheetnames, book.worksheets[0]
            sheet.reset_dimensions()  # what the file says about its size may be wrong
            header, rows = _sheet_rows(sheet)
    except GraphDataError:
        raise
    except _DAMAGES as error:
        raise GraphDataError(
            f"{path} cannot be read as an Excel workbook ({error}): it is damaged or something "
            "else. Save it again as .xlsx, or as CSV."
        ) from error
    if not header:
        raise GraphDataError(f"{path} is empty: expected a row of column names, then the rows.")
    if len(sheets) > 1:
        warnings.warn(
            f"{path} has {len(sheets)} sheets: the first, {sheets[0]!r}, was read. Move another to "
            "the front, or save it as CSV, to read that.",
            UserWarning,
            stacklevel=2,
        )
    return _as_table(path, header, rows)


def _sheet_rows(sheet: Any) -> tuple[list[str], list[Row]]:
    """The named columns, and the rows that have a value in one of them."""
    named: list[int] = []
    header: list[str] = []
    rows: list[Row] = []
    for line, values in enumerate(sheet.iter_rows(values_only=True), 1):
        if not named:
            cells = [_cell_text(value) for value in values]
            named = [k for k, text in enumerate(cells) if text]
            header = [cells[k] for k in named]
            continue
        fields = [_cell_text(values[k]) if k < len(values) else "" for k in named]
        if any(fields):
            rows.append((line, fields))
    return header, rows


def _cell_text(value: Any) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    return "" if value is None else str(value).strip()


def _read_parquet(path: Path) -> Table:
    """The columns of a Parquet file, before them an index that has a name."""
    import pandas as pd

    check_regular(path)
    packed = path.suffix.lower() == ".gz"
    source: Any = io.BytesIO(read_bytes(path)) if packed else path
    try:
        # Whole numbers with gaps between them would be floats otherwise: "1.0" in place of "1".
        frame = pd.read_parquet(source, engine="pyarrow", dtype_backend="numpy_nullable")
    except ImportError as error:
        raise ImportError(
            f"Reading {path} needs a Parquet library: pip install 'treelens[parquet]'."
        ) from error
    except (ValueError, OSError, NotImplementedError, TypeError) as error:  # on bad files
        raise GraphDataError(
            f"{path} cannot be read as Parquet: {str(error).rstrip('.')}. Write it anew, or save "
            "the table as CSV."
        ) from error
    kept = [name for name in frame.index.names if name is not None and name not in frame.columns]
    frame = frame.reset_index(level=kept) if kept else frame
    columns = [
        ["" if missing else _parquet_text(x) for x, missing in zip(column, isna, strict=True)]
        for column, isna in ((column, column.isna().tolist()) for _, column in frame.items())
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Table(str(path), [str(name) for name in frame.columns], rows, None)


def _parquet_text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
