"""Tables of text from CSV, TSV, SMI, Excel, Parquet and SDF files, with the line of each row.

Cells stay text until the reader of molecules decides what they mean. CSV is parsed by the standard
library and not by pandas, which neither reports the line of a row nor a quote that is not closed.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import difflib
import gzip
import io
import os
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple, cast
from xml.parsers.expat import ExpatError, ParserCreate

from treelens.errors import GraphDataError, GraphFileNotFoundError, first_few

Row = tuple[int, list[str]]  # line, fields
_SEPARATORS = (",", "\t", ";")
_SMI_ENDINGS = (".smi", ".smiles", ".ism")
PARQUET_ENDINGS = (".parquet", ".pq")
_PARQUET_ROWS = 2**16  # that are read at a time
_EXCEL_ENDINGS = (".xlsx", ".xlsm")
STREAMED_ENDINGS = (".csv", ".tsv", ".txt", *_SMI_ENDINGS)
TABLE_ENDINGS = (*STREAMED_ENDINGS, *_EXCEL_ENDINGS, *PARQUET_ENDINGS)
SDF_ENDINGS = (".sdf", ".sd")
_LONGEST_CELL = 2**24  # characters of a CSV; Python's own limit is 131,072
# Raised by zipfile, openpyxl and pyarrow on damaged files; XML errors are SyntaxErrors.
DAMAGES: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    KeyError,
    ValueError,
    TypeError,
    OSError,
    SyntaxError,
    IndexError,
    AttributeError,
    EOFError,
    RuntimeError,
    OverflowError,
    ExpatError,
)
with suppress(ImportError):  # some Pythons are built without it
    from lzma import LZMAError

    DAMAGES = (*DAMAGES, LZMAError)


def reason(error: Exception) -> str:
    """Return what was wrong with a damaged file, on one line."""
    first_line = str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {first_line}" if isinstance(error, KeyError) else first_line


# --- files: regular ones only, unpacked within bounds ---------------------------------------------

# Files of graphs and molecules shrink to between a third and a hundredth. What claims more than
# this is something else, and is refused before memory is spent on it.
_MOST_BYTES = 2 * 2**30
_MOST_RATIO = 100
_SMALL_ENOUGH = 8 * 2**20  # bytes below which the ratio does not matter
LIMIT_VARIABLE = "TREELENS_MAX_UNPACKED"


def check_regular(path: Path) -> None:
    """Raise unless this is a regular file, or a link to one: reading a pipe may never end."""
    if not path.exists():
        raise GraphFileNotFoundError(f"{path} is not a file that exists.")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe, a socket or a device"
        raise GraphDataError(f"{path} is {kind}: give the path of an ordinary file.")


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked within bounds if its name ends in ``.gz``."""
    data = bytearray()
    with open_unpacked(path) as file:
        while part := file.read(2**20):
            data += part
            if path.suffix.lower() == ".gz":
                check_unpacked(path, len(data))
    return bytes(data)


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
        raise GraphDataError(f"{path} cannot be unpacked ({error}): damaged or cut off.") from error


def check_unpacked(path: Path, n_bytes: int) -> None:
    """Raise where a packed file gives too many bytes; ``TREELENS_MAX_UNPACKED`` sets the limit."""
    packed = path.stat().st_size
    limit = min(_MOST_BYTES, max(_SMALL_ENOUGH, _MOST_RATIO * packed))
    if n_bytes > (limit := int(os.environ.get(LIMIT_VARIABLE) or limit)):
        raise GraphDataError(
            f"{path} was refused: its {packed:,} bytes would unpack to more than {limit:,} bytes. "
            f"If you trust it, unpack it, or set the environment variable {LIMIT_VARIABLE}=BYTES."
        )


# --- tables ---------------------------------------------------------------------------------------


class Table(NamedTuple):
    """Rows of text with named columns."""

    source: str
    columns: list[str]
    rows: list[list[str]]  # each as long as columns
    lines: list[int] | None  # file line of each row, where the file has lines
    first_row: int = 0  # where these rows begin, if they are a part of the table
    separator: str | None = None  # of the fields in a text file

    def column(self, name: str, parameter: str) -> list[str]:
        """Return the stripped values of a column; ``parameter`` is the argument that named it."""
        position = self.columns.index(find_column(self.columns, name, parameter, self.source))
        if (matches := self.columns.count(name)) > 1:
            raise GraphDataError(
                f"{self.source} has {matches} columns named {name!r} ({parameter}): rename one."
            )
        return [row[position].strip() for row in self.rows]

    def place(self, row: int) -> str:
        """Return the words that name a row in a message: its number from 1, and its line."""
        number = self.first_row + row + 1
        return f"row {number}" + ("" if self.lines is None else f" (line {self.lines[row]})")

    def part(self, some: slice) -> Table:
        """Return some of the rows, which know where they stand in the whole table."""
        lines = None if self.lines is None else self.lines[some]
        return self._replace(rows=self.rows[some], lines=lines, first_row=some.start)


def find_column(columns: Sequence[str], wanted: str, parameter: str, source: str) -> str:
    """Return a column that was named by name, or raise an error that lists the columns."""
    if wanted in columns:
        return wanted
    close = difflib.get_close_matches(wanted, columns, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise GraphDataError(
        f"{source} has no column {wanted!r} ({parameter}).{hint} {listed(columns)}"
    )


def listed(columns: Sequence[str]) -> str:
    names = first_few(list(map(repr, columns)), 50)
    return f"Its columns are: {names}." if columns else "It has no columns."


def inner_suffix(path: Path) -> str:
    """Return the ending of the format: ``.csv`` for both ``x.csv`` and ``x.csv.gz``."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_sdf(path: Path) -> bool:
    return inner_suffix(path) in SDF_ENDINGS


def read_text_table(path: Path, sheet: str | None = None) -> Table:
    """Read a table as text; the separator of a CSV is found from its first line."""
    suffix = inner_suffix(path)
    check_sheet(path, sheet)
    if suffix in _EXCEL_ENDINGS:
        return _read_excel(path, sheet)
    if suffix in PARQUET_ENDINGS:
        return _read_parquet(path)
    return table_of_bytes(path, read_bytes(path))


def check_sheet(path: Path, sheet: str | None) -> None:
    """Raise where a sheet is asked for in a file that has none."""
    if sheet is not None and inner_suffix(path) not in _EXCEL_ENDINGS:
        raise GraphDataError(
            f"sheet={sheet!r}: {path} is no Excel workbook and has no sheets. Leave it out."
        )


def table_of_bytes(path: Path, data: bytes) -> Table:
    """Return the table in a text file that was read already."""
    columns, rows, separator = rows_of_lines(path, decoded(io.BytesIO(data), path))
    return table_of_rows(path, columns, list(rows))._replace(separator=separator)


def read_table_blocks(path: Path, block_size: int) -> Iterator[Table]:
    """Yield the rows of a text table, some at a time; the file is first read for its encoding."""
    with open_unpacked(path) as file:
        yield from blocks_of_lines(path, decoded(file, path), block_size)


def blocks_of_lines(path: Path, lines: Iterable[str], block_size: int) -> Iterator[Table]:
    """Yield the rows of a text table, some at a time; ``path`` tells the format."""
    columns, rows, separator = rows_of_lines(path, lines)
    first_row = 0
    while block := list(islice(rows, block_size)):
        yield table_of_rows(path, columns, block, first_row)._replace(separator=separator)
        first_row += len(block)


def decoded_lines(file: IO[bytes]) -> Iterator[str]:
    """Yield the lines of a stream that can be read once: UTF-8, or those that are not as Latin-1.

    A stream that begins with the mark of UTF-16 is that.
    """
    lines = iter(file)
    first = next(lines, b"")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from io.StringIO((first + file.read()).decode("utf-16", "replace"), newline="")
        return
    for line in chain([first.removeprefix(codecs.BOM_UTF8)], lines):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            if b"\0" in line:
                raise GraphDataError(
                    "Standard input is no text: expected a table, or one SMILES a line, in UTF-8."
                ) from error
            yield line.decode("cp1252", "replace")


def decoded(file: IO[bytes], path: Path) -> io.TextIOWrapper:
    """Return text in UTF-8; in UTF-16 where it begins with its mark; else, with a warning, in 1252.

    Lines end where Python's do, not at U+2028 and the like.
    """
    encoding, start = "utf-8-sig", file.read(2)
    file.seek(0)
    try:
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):  # "Unicode text" of spreadsheets
            encoding = "utf-16"
        else:
            for _ in codecs.iterdecode(iter(lambda: file.read(2**20), b""), "utf-8"):
                pass
    except UnicodeDecodeError as error:
        file.seek(0)
        if any(b"\0" in chunk for chunk in iter(lambda: file.read(2**20), b"")):
            zipped = " (It begins like a zip: a spreadsheet, or a model?)" if start == b"PK" else ""
            raise GraphDataError(
                f"{path} is no text: expected a table or an SDF. Save it as CSV in UTF-8.{zipped}"
            ) from error
        message = f"{path} is not UTF-8, and was read as Latin-1: is that right?"
        warnings.warn(message, UserWarning, stacklevel=3)
        encoding = "cp1252"
    file.seek(0)
    return io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="")


def table_of_rows(path: Path, columns: list[str], rows: list[Row], first_row: int = 0) -> Table:
    """Return the table of rows, which begin at ``first_row`` of the whole one."""
    fields, lines = [fields for _, fields in rows], [line for line, _ in rows]
    return Table(str(path), columns, fields, lines, first_row)


def rows_of_lines(path: Path, lines: Iterable[str]) -> tuple[list[str], Iterator[Row], str | None]:
    """Return column names, the rows one by one with their lines, and the separator."""
    if inner_suffix(path) in _SMI_ENDINGS:  # without a header: a SMILES, then perhaps a name
        parts = ((n, line.strip().replace("\t", " ")) for n, line in enumerate(lines, 1))
        split = ((n, text.partition(" ")) for n, text in parts if text)
        named = ((n, [smiles, name.strip()]) for n, (smiles, _, name) in split)
        return ["smiles", "name"], named, None
    lines, start = iter(lines), [""]
    while not start[-1].strip() and (line := next(lines, None)) is not None:
        start.append(line)
    separator = max(_SEPARATORS, key=start[-1].count)
    rows = _csv_rows(path, chain(start[1:], lines), separator)
    header = next(rows, None)
    if header is None:
        raise GraphDataError(f"{path} is empty: expected a line of column names, then the rows.")
    return [name.strip() for name in header[1]], rows, separator


def _csv_rows(path: Path, lines: Iterable[str], separator: str) -> Iterator[Row]:
    """Yield the column names and then the rows, each with the line that it begins on."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    # strict: a quote that is never closed would take the rows after it for text
    reader = csv.reader(lines, delimiter=separator, strict=True)
    columns, last_line = None, 0
    try:
        for fields in reader:
            first_line, last_line = last_line + 1, reader.line_num  # a field may span lines
            if not any(map(str.strip, fields)):  # spreadsheets write nothing but separators
                continue
            columns = columns or fields
            if len(fields) != len(columns):
                raise GraphDataError(
                    f"{path}, line {first_line}: expected {len(columns)} fields "
                    f"({', '.join(map(str.strip, columns))}), found {len(fields)}. Correct it."
                )
            yield first_line, fields
    except csv.Error as error:
        if "field limit" in str(error):
            raise GraphDataError(
                f"{path}, line {last_line + 1}: a cell in this row has more than "
                f"{_LONGEST_CELL:,} characters. Shorten it, or close the quote that it begins with."
            ) from error
        raise GraphDataError(
            f"{path}, line {last_line + 1}: a quote in this row is not closed as it should be "
            f"(line {reader.line_num}: {error}). Close it, or remove it."
        ) from error


# --- Excel and Parquet --------------------------------------------------------------------------


def _read_excel(path: Path, wanted: str | None = None) -> Table:
    """Read a sheet: column names, then rows; columns without a name hold remarks."""
    check_regular(path)
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ImportError(f"Reading {path} needs openpyxl: pip install openpyxl.") from error
    named: dict[int, str] = {}  # the header, by position
    rows: list[Row] = []
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and the like
            with zipfile.ZipFile(file) as archive:
                check_unpacked(path, sum(info.file_size for info in archive.infolist()))
            file.seek(0)
            book = load_workbook(file, read_only=True, data_only=True)
            for sheet in book.worksheets:
                sheet.reset_dimensions()  # what the file says about its size may be wrong
            sheet, choice = _chosen_sheet(path, book.worksheets, wanted)
            with sheet._get_source() as source:
                _check_order(path, sheet.title, source)
            for line, values in enumerate(sheet.iter_rows(values_only=True), 1):
                if not named:
                    named = {k: text for k, x in enumerate(values) if (text := _cell_text(x))}
                    continue
                fields = [_cell_text(values[k]) if k < len(values) else "" for k in named]
                if any(fields):
                    rows.append((line, fields))
    except GraphDataError:
        raise
    except DAMAGES as error:
        raise GraphDataError(
            f"{path} cannot be read as an Excel workbook ({reason(error)})."
        ) from error
    if not named:
        raise GraphDataError(
            f"{path} is empty{f' ({choice})' if choice else ''}: expected a row of column names, "
            "then the rows."
        )
    if choice:
        warnings.warn(f"{path} has {choice}.", UserWarning, stacklevel=2)
    return table_of_rows(path, list(named.values()), rows)


def _chosen_sheet(path: Path, sheets: list[Any], wanted: str | None) -> tuple[Any, str]:
    """Return a sheet, and how it was chosen; without a name the first that has a SMILES column."""
    names = [sheet.title for sheet in sheets]
    listed_names = first_few(list(map(repr, names)))
    if wanted is not None and wanted not in names:
        close = difflib.get_close_matches(wanted, names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise GraphDataError(f"{path} has no sheet {wanted!r}.{hint} Its sheets: {listed_names}.")
    if wanted is not None or len(sheets) == 1:
        return sheets[0 if wanted is None else names.index(wanted)], ""
    with_smiles = [sheet for sheet in sheets if "smiles" in _first_row(sheet).casefold()]
    chosen = (with_smiles or sheets)[0]
    why = ", the first with a column of SMILES," if with_smiles else ", the first,"
    return chosen, (
        f"{len(sheets)} sheets ({listed_names}): {chosen.title!r}{why} was read; sheet=NAME reads "
        "another"
    )


def _first_row(sheet: Any) -> str:
    """Return the first row that is not empty as one text."""
    rows = (" ".join(map(_cell_text, values)) for values in sheet.iter_rows(values_only=True))
    return next((text for text in rows if text.strip()), "")


def _check_order(path: Path, title: str, sheet: IO[bytes]) -> None:
    """Raise where rows or cells of a sheet stand behind later ones, which openpyxl would lose."""
    row = column = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal row, column
        found = re.fullmatch(r"([A-Z]*)(\d+)", attributes.get("r", ""))
        tag = name.rpartition(":")[2]
        if found is None or tag not in ("row", "c"):
            return
        letters, number = found.groups()
        before = row, column
        if tag == "row":
            row, column = int(number), 0
        else:
            column = reduce(lambda n, letter: 26 * n + ord(letter) - 64, letters, 0)
        if (row, column) <= before:
            raise GraphDataError(
                f"{path}: row {row} of the sheet {title!r}, or a cell in it, stands behind a later "
                "one in the file, and would be lost. Open it in a spreadsheet program, and save it "
                "again."
            )

    parser = ParserCreate()
    parser.StartElementHandler = begin
    parser.ParseFile(sheet)


def _cell_text(value: object) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return "" if value is None else str(value).strip()


def _read_parquet(path: Path) -> Table:
    """Read the columns of a Parquet file, before them an index that has a name."""
    whole, *more = read_parquet_blocks(path, _PARQUET_ROWS)
    for part in more:
        whole.rows.extend(part.rows)
    return whole


def read_parquet_blocks(path: Path, block_size: int) -> Iterator[Table]:
    """Yield the rows of a Parquet file, some at a time; of one without rows its columns."""
    import pandas as pd

    check_regular(path)
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(f"Reading {path} needs pyarrow: pip install pyarrow.") from error
    # Whole numbers with gaps between them would be floats otherwise: "1.0" in place of "1".
    kinds = (getattr(pd, f"{sign}Int{bits}Dtype") for bits in (8, 16, 32, 64) for sign in ("", "U"))
    whole = {pa.from_numpy_dtype(kind().numpy_dtype): kind() for kind in kinds}
    types = {**whole, pa.bool_(): pd.BooleanDtype()}
    first_row = 0
    try:
        with ParquetFile(path) as file:
            batches = file.iter_batches(block_size)
            parts = (pa.Table.from_batches([batch]) for batch in batches)
            for part in parts if file.metadata.num_rows else [file.schema_arrow.empty_table()]:
                frame = part.to_pandas(types_mapper=types.get)
                for index in (part.schema.pandas_metadata or {}).get("index_columns", ()):
                    if isinstance(index, dict):  # a range, which a part does not begin with
                        start = index["start"] + first_row * index["step"]
                        numbers = range(start, start + len(frame) * index["step"], index["step"])
                        frame.index = pd.RangeIndex(numbers, name=index["name"])
                kept = [name for name in frame.index.names if name not in (None, *frame.columns)]
                frame = frame.reset_index(level=kept) if kept else frame
                cells = [x.astype(object).where(x.notna(), None) for _, x in frame.items()]
                rows = [list(map(_cell_text, row)) for row in zip(*cells, strict=True)]
                yield Table(str(path), [str(name) for name in frame.columns], rows, None, first_row)
                first_row += len(rows)
    except (*DAMAGES, pa.ArrowException, MemoryError) as error:  # such as a column of 2**60 bytes
        raise GraphDataError(f"{path} cannot be read as Parquet ({reason(error)}).") from error
