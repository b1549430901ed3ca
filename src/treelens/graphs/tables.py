"""Tables of text from CSV, TSV, SMI, Excel and Parquet files, with the line of each row."""

from __future__ import annotations

import csv
import io
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import NamedTuple

from treelens.graphs.errors import GraphDataError
from treelens.graphs.opening import bounded_lines, open_text, read_lines

Row = tuple[int, list[str]]  # line, fields
_SEPARATORS = (",", "\t", ";")
_SMI_ENDINGS = (".smi", ".smiles", ".ism")
_PARQUET_ENDINGS = (".parquet", ".pq")
EXCEL_ENDINGS = (".xlsx", ".xlsm")
STREAMED_ENDINGS = (".csv", ".tsv", ".txt", *_SMI_ENDINGS)
TABLE_ENDINGS = (*STREAMED_ENDINGS, *EXCEL_ENDINGS, *_PARQUET_ENDINGS)
# A zip begins with the name of its first member at this byte; that of a model file is its manifest.
_ZIP_NAME, _FIRST_IN_A_MODEL = 30, b"manifest.json"
_UTF16_SIGNS = (b"\xff\xfe", b"\xfe\xff")  # what spreadsheets save as "Unicode text"


class Table(NamedTuple):
    """Rows of text with named columns."""

    source: str
    columns: list[str]
    rows: list[list[str]]  # each as long as columns
    lines: list[int] | None  # file line of each row, where the file has lines
    first_row: int = 0  # where these rows begin, if they are a part of the table

    def column(self, name: str, parameter: str) -> list[str]:
        """The stripped values of one column; ``parameter`` is the argument that asked for it."""
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


def inner_suffix(path: Path) -> str:
    """The ending that tells the format: ``.csv`` for both ``x.csv`` and ``x.csv.gz``."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_table(path: Path) -> Table:
    """Read a table; the separator of a CSV is found from its first line."""
    suffix = inner_suffix(path)
    if suffix in _PARQUET_ENDINGS:
        from treelens.graphs.parquet import read_parquet

        return read_parquet(path)
    if suffix in EXCEL_ENDINGS:
        from treelens.graphs.excel import read_excel

        return read_excel(path)
    return table_of_bytes(path, read_lines(path))


def table_of_bytes(path: Path, data: bytes) -> Table:
    """The table in a text file that was read already."""
    text = decoded(data, path)
    if inner_suffix(path) in _SMI_ENDINGS:
        return _smi_table(path, text)
    return _delimited_table(path, text)


def _zip_hint(data: bytes) -> str:
    return " (It begins like a zip: a spreadsheet?)" if data.startswith(b"PK") else ""


def _refuse_model(data: bytes, path: Path) -> None:
    """Bytes from the beginning of a file that is no text: it may be a model."""
    if data.startswith(b"PK") and data[_ZIP_NAME:].startswith(_FIRST_IN_A_MODEL):
        raise GraphDataError(
            f"{path} is a model, whatever its name, and no table or SDF: treelens.load opens it, "
            "and 'treelens info' shows it."
        )


def decoded(data: bytes, path: Path) -> str:
    """Bytes as text: UTF-8, UTF-16 where it begins with that sign, else Latin-1 with a warning."""
    if data.startswith(_UTF16_SIGNS):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse_model(data, path)
        if b"\0" in data:
            raise GraphDataError(
                f"{path} is no text (byte {error.start} is not UTF-8, and there are zeros): "
                f"expected a table or an SDF. Save it as CSV in UTF-8.{_zip_hint(data)}"
            ) from error
        warnings.warn(
            f"{path} is not UTF-8 (byte {error.start}): it was read as Latin-1 (Windows-1252). If "
            "letters look wrong, save it as UTF-8.",
            UserWarning,
            stacklevel=2,
        )
        return data.decode("cp1252", errors="replace")


def read_table_blocks(path: Path, block_size: int) -> Iterator[Table]:
    """The rows of a table, ``block_size`` at a time: no more of the file is held in memory.

    The formats are those of :func:`read_table`, Parquet excepted.
    """
    try:
        with open_text(path) as stream:
            lines = bounded_lines(stream, path)
            if inner_suffix(path) in _SMI_ENDINGS:
                columns, rows = ["smiles", "name"], _smi_rows(lines)
            else:
                columns, rows = _delimited_rows(path, lines)
            first_row = 0
            while block := list(islice(rows, block_size)):
                numbers, fields = [line for line, _ in block], [fields for _, fields in block]
                yield Table(str(path), columns, fields, numbers, first_row)
                first_row += len(block)
    except UnicodeDecodeError as error:
        _refuse_model(error.object, path)
        raise GraphDataError(
            f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8."
            f"{_zip_hint(error.object)}"
        ) from error


def _delimited_table(path: Path, text: str) -> Table:
    columns, rows = _delimited_rows(path, io.StringIO(text, newline=""))
    numbered = list(rows)
    return Table(
        str(path), columns, [fields for _, fields in numbered], [line for line, _ in numbered]
    )


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
    reader = csv.reader(_remembered(lines, recent), delimiter=separator, strict=True)
    last_line = 0
    try:
        for fields in reader:
            line, last_line = last_line + 1, reader.line_num  # a quoted field may span lines
            recent.clear()
            if any(map(str.strip, fields)):  # spreadsheets write lines of nothing but separators
                yield n_before + line, fields
    except csv.Error as error:
        raise _row_error(path, recent, separator, n_before + last_line, str(error)) from error


def _remembered(lines: Iterable[str], recent: list[str]) -> Iterator[str]:
    for line in lines:
        recent.append(line)
        yield line


def _row_error(
    path: Path, lines: list[str], separator: str, n_before: int, what: str
) -> GraphDataError:
    """The error for a row that begins after ``n_before`` lines and goes wrong in its last one."""
    quote = _line_of_quote(lines, separator)
    reached = n_before + len(lines)
    if quote is None:
        return GraphDataError(
            f"{path}, line {reached}: {what}. Correct the line, or save the table anew."
        )
    return GraphDataError(
        f"{path}, line {n_before + quote}: a quote opens here and is not closed as it should be "
        f"(line {reached}: {what}). Close it, or remove it."
    )


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


def _smi_table(path: Path, text: str) -> Table:
    """A SMI file has no header: a SMILES, then perhaps a name, on every line."""
    numbered = list(_smi_rows(text.splitlines()))
    rows, lines = [fields for _, fields in numbered], [line for line, _ in numbered]
    return Table(str(path), ["smiles", "name"], rows, lines)


def _smi_rows(stream: Iterable[str]) -> Iterator[Row]:
    for number, line in enumerate(stream, 1):
        if line.strip():
            smiles, _, name = line.strip().replace("\t", " ").partition(" ")
            yield number, [smiles, name.strip()]
