"""Tables of text from CSV, TSV, SMI and Parquet files, with the line that each row stands on."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from treelens.graphs.errors import GraphDataError, GraphFileNotFoundError

_SEPARATORS = (",", "\t", ";")
_SMI_ENDINGS = (".smi", ".smiles", ".ism")


class Table(NamedTuple):
    """Rows of text with named columns."""

    source: str
    columns: list[str]
    rows: list[list[str]]  # each as long as columns
    lines: list[int] | None  # file line of each row, where the file has lines

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
        return f"row {row + 1}" + ("" if self.lines is None else f" (line {self.lines[row]})")


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked where its name ends in ``.gz``."""
    if not path.is_file():
        raise GraphFileNotFoundError(f"{path} is not a file that exists.")
    data = path.read_bytes()
    if path.suffix.lower() != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise GraphDataError(
            f"{path} cannot be unpacked ({error}): it is damaged or cut off. Fetch it again."
        ) from error


def inner_suffix(path: Path) -> str:
    """The ending that tells the format: ``.csv`` for both ``x.csv`` and ``x.csv.gz``."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_table(path: Path) -> Table:
    """Read a table; the separator of a CSV is found from its first line."""
    suffix = inner_suffix(path)
    if suffix in (".parquet", ".pq"):
        return _read_parquet(path)
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GraphDataError(
            f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8."
        ) from error
    if suffix in _SMI_ENDINGS:
        return _smi_table(path, text)
    return _delimited_table(path, text)


def _delimited_table(path: Path, text: str) -> Table:
    if not text.strip():
        raise GraphDataError(f"{path} is empty: expected a line of column names, then the rows.")
    first_line = text.lstrip("\r\n").partition("\n")[0]
    separator = max(_SEPARATORS, key=first_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    columns: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    last_line = 0
    try:
        for fields in reader:
            line, last_line = last_line + 1, reader.line_num  # a quoted field may span lines
            if not fields:
                continue
            if not columns:
                columns = [name.strip() for name in fields]
            elif len(fields) != len(columns):
                raise GraphDataError(
                    f"{path}, line {line}: expected {len(columns)} fields ({', '.join(columns)}), "
                    f"found {len(fields)}. Correct the line, or fetch the file again."
                )
            else:
                rows.append(fields)
                lines.append(line)
    except csv.Error as error:
        raise GraphDataError(f"{path}, line {reader.line_num}: {error}.") from error
    return Table(str(path), columns, rows, lines)


def _smi_table(path: Path, text: str) -> Table:
    """A SMI file has no header: a SMILES, then perhaps a name, on every line."""
    rows, lines = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            smiles, _, name = line.strip().replace("\t", " ").partition(" ")
            rows.append([smiles, name.strip()])
            lines.append(number)
    return Table(str(path), ["smiles", "name"], rows, lines)


def _read_parquet(path: Path) -> Table:
    import pandas as pd

    if not path.is_file():
        raise GraphFileNotFoundError(f"{path} is not a file that exists.")
    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            f"Reading {path} needs a Parquet library: pip install pyarrow."
        ) from error
    except (ValueError, OSError) as error:  # what the Parquet libraries raise on bad files
        raise GraphDataError(f"{path} cannot be read as Parquet: {error}.") from error
    missing = frame.isna().to_numpy()
    rows = [
        ["" if gone else str(value) for value, gone in zip(row, gone_row, strict=True)]
        for row, gone_row in zip(frame.itertuples(index=False), missing, strict=True)
    ]
    columns: list[Any] = list(frame.columns)
    return Table(str(path), [str(name) for name in columns], rows, None)
