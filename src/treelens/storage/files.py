"""Files that are written whole or not at all: model files and tables as CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import secrets
import tokenize
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from treelens.array_checks import Columns
from treelens.graphs.tables import DAMAGES

if TYPE_CHECKING:
    import pandas as pd

_LONGEST_NAME_BYTES = 200  # of the 255 that file systems allow
_WRITTEN_IN_FULL = 1e6  # six digits would not show a number of this size to its last whole digit
_FORMULA = re.compile(r"\s*[=+\-@]|[\t\r\n]")  # how one begins
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file to write bytes to, which appears under its name only once it is complete.

    They go to a hidden temporary file in the same folder, which is renamed at the end or, on any
    exception, Ctrl-C included, removed.
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
        raise FileNotFoundError(f"{path}: the folder {target.parent} does not exist. Create it.")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"{path}: there is no permission to write in {target.parent}.")
    for source in reads if target.exists() else ():
        with suppress(FileNotFoundError):
            if os.path.samefile(target, Path(source).expanduser()):
                raise ValueError(
                    f"{path} cannot be written: it is the same file as {source}, which is read "
                    "here and would be lost. Choose another name."
                )
    return target


def write_csv(path: str | Path, table: pd.DataFrame | Columns, index: bool = False) -> None:
    """Write :func:`csv_text` to a file, whole or not at all."""
    with whole_file(path) as file:
        file.write(csv_text(table, index).encode("utf-8"))


def csv_text(table: pd.DataFrame | Columns, index: bool, header: bool = True) -> str:
    """Return a table as CSV in which no cell is run as a formula.

    Class names, SMILES and labels come from others' files, and a spreadsheet runs a cell such as
    ``=HYPERLINK(...)``. Such cells, and names of columns, get a single quote in front, which
    spreadsheets take as the sign for text. Numbers that are written as text (``-1``) stay as they
    are, and so does every SMILES: none begins in such a way. Floating-point numbers have six
    significant digits.
    """
    named = [(str(harmless(name)), _cells(np.asarray(x))) for name, x in table.items()]
    if index and not isinstance(table, Columns):
        named.insert(0, (str(harmless(table.index.name or "")), _cells(np.asarray(table.index))))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow([name for name, _ in named])
    writer.writerows(zip(*(column for _, column in named), strict=True))
    return text.getvalue().encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates


def _cells(column: np.ndarray) -> list[Any]:
    """Return what is written of a column; missing values are empty."""
    if column.dtype.kind == "f":
        return [short_number(value) for value in column.tolist()]
    return ["" if is_missing(value) else harmless(value) for value in column.tolist()]


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN or pandas' NA, which equals nothing."""
    return value is None or type(value).__name__ == "NAType" or value != value


def short_number(value: float) -> Any:
    """Return a number with six digits; whole and large ones as they are, and none as no text."""
    if value != value:
        return ""
    if not abs(value) < _WRITTEN_IN_FULL or value.is_integer():
        return value
    return f"{value:.6g}"


def harmless(value: object) -> Any:
    """Return a cell that no spreadsheet runs; see :func:`csv_text`."""
    return f"'{value}" if runs_as_formula(value) else value


def runs_as_formula(value: object) -> bool:
    """Whether a cell is text that begins like a formula, and no number."""
    begins = isinstance(value, str) and _FORMULA.match(value)
    return bool(begins) and not _NUMBER.fullmatch(str(value))


# --- model files ----------------------------------------------------------------------------------
# A zip of ``manifest.json`` (format, version, SHA-256 of every other member), ``model.json`` and
# ``arrays/NAME.npy``; ``docs/model-format.md`` describes them. Reading trusts nothing: sizes are
# checked before anything is unpacked, checksums before anything is parsed, and the header of an
# array before memory is allocated for it.

FORMAT_NAME = "treelens model"
FORMAT_VERSION = 2
MANIFEST, MODEL = "manifest.json", "model.json"
ARRAY_TYPES = ("<i4", "<i8", "<f4", "<f8")

# Models are a few megabytes and shrink to a fifth or so.
MAX_UNPACKED_BYTES = 16 * 2**30
MAX_RATIO = 200
SMALL_BYTES = 16 * 2**20  # the ratio does not matter below this
MAX_JSON_BYTES = 512 * 2**20
_MAX_HEADER_BYTES = 1000
_DATE = (1980, 1, 1, 0, 0, 0)  # no clock in the file: the same model gives the same bytes
_HEADER_ERRORS = (
    ValueError,
    SyntaxError,
    TypeError,
    MemoryError,
    RecursionError,
    tokenize.TokenError,
)


class ModelFileError(ValueError):
    """A file that cannot be read as a model; the message says what is wrong with it."""


class ModelFileNotFoundError(ModelFileError, FileNotFoundError):
    """A model file that does not exist; also a ``FileNotFoundError``."""


class Contents(NamedTuple):
    """Contents of a model file: JSON data and arrays by name."""

    data: Any
    arrays: dict[str, np.ndarray]


def write_archive(path: str | Path, contents: Contents, version: str) -> None:
    """Write a model file, whole or not at all; ``version`` is that of treelens."""
    members = {MODEL: _json_bytes(contents.data)}
    for name, array in contents.arrays.items():
        members[f"arrays/{name}.npy"] = _npy_bytes(array)
    manifest = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "treelens_version": version,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, data in {MANIFEST: _json_bytes(manifest), **members}.items():
            info = zipfile.ZipInfo(name, _DATE)
            info.external_attr = 0o644 << 16
            # Level 6 is 3 % smaller and takes 3 times as long.
            archive.writestr(info, data, zipfile.ZIP_DEFLATED, compresslevel=1)


def _json_bytes(data: object) -> bytes:
    return json.dumps(data, indent=1, allow_nan=False).encode("ascii")


def _npy_bytes(array: np.ndarray) -> bytes:
    little = f"<{array.dtype.kind}{array.dtype.itemsize}"
    assert little in ARRAY_TYPES, f"a model file has no arrays of {array.dtype}"
    file = io.BytesIO()
    np.lib.format.write_array(file, array.astype(little, copy=False), (1, 0), allow_pickle=False)
    return file.getvalue()


def read_archive(path: str | Path | bytes) -> Contents:
    """Read a model file, or its bytes; anything unexpected is a :class:`ModelFileError`."""
    if isinstance(path, bytes):
        return _contents_of(io.BytesIO(path), "the model")
    path = Path(path).expanduser()
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ModelFileNotFoundError(
            f"The model file {path} {what}: give the path of one that 'treelens fit' or the save "
            "method of a model has written."
        )
    with path.open("rb") as file:  # no permission to read is an error of its own
        return _contents_of(file, str(path))


def _contents_of(file: BinaryIO, place: str) -> Contents:
    """Read a model from an open file; ``place`` is for messages."""
    n_bytes = file.seek(0, io.SEEK_END)
    try:
        members = _checked_members(file, place, n_bytes)
    except ModelFileError:
        raise
    except DAMAGES as error:
        found = "cannot be read as a model file" if n_bytes else "is empty"
        raise ModelFileError(
            f"{place} {found}: it is cut off, damaged, or not written by 'treelens fit' or the "
            "save method of a model. Save or copy it again."
        ) from error
    data = _json_object(members.pop(MODEL), f"{place}, {MODEL}")
    arrays = {
        name.removeprefix("arrays/").removesuffix(".npy"): _array(content, f"{place}, {name}")
        for name, content in members.items()
    }
    return Contents(data, arrays)


def _checked_members(file: BinaryIO, path: str, n_bytes: int) -> dict[str, bytes]:
    """Return the members that the manifest lists, unpacked, with checksums compared."""
    with zipfile.ZipFile(file) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        unpacked = sum(sizes.values())
        too_dense = unpacked > SMALL_BYTES and unpacked > MAX_RATIO * n_bytes
        too_large = unpacked > MAX_UNPACKED_BYTES or sizes.get(MODEL, 0) > MAX_JSON_BYTES
        if too_dense or too_large or len(sizes) < len(archive.infolist()):
            raise ModelFileError(
                f"{path} was not read: its {n_bytes:,} bytes would unpack to {unpacked:,}, or have "
                "a member twice. Get the model from a source you trust."
            )
        manifest = {}
        if {MANIFEST, MODEL} <= set(sizes):
            manifest = _json_object(archive.read(MANIFEST), f"{path}, {MANIFEST}")
        version = manifest.get("format_version")
        if manifest.get("format") != FORMAT_NAME:
            raise ModelFileError(f"{path} is a zip, but no treelens model: see its {MANIFEST}.")
        if (type(version), version) != (int, FORMAT_VERSION):
            writer = str(manifest.get("treelens_version"))[:40]
            raise ModelFileError(
                f"{path} has format version {str(version)[:40]}, written by treelens {writer}; "
                f"this treelens reads version {FORMAT_VERSION}. Use that treelens, or fit again."
            )
        digests = manifest.get("sha256")
        if not isinstance(digests, dict) or set(digests) != set(sizes) - {MANIFEST}:
            raise ModelFileError(
                f"{path} was altered: its members are not those that {MANIFEST} lists ('sha256')."
            )
        members = {name: archive.read(name) for name in digests}
    for name, data in members.items():
        if hashlib.sha256(data).hexdigest() != digests[name]:
            raise ModelFileError(
                f"{path}, {name}: the checksum differs from that in {MANIFEST}. The file was "
                "altered or damaged: save the model again, or copy the file again."
            )
    return members


def _json_object(data: bytes, place: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number")

    try:
        value = json.loads(data.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{place} is not valid JSON ({error}).") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{place} must be a JSON object, not a {type(value).__name__}.")
    return value


def _array(data: bytes, place: str) -> np.ndarray:
    """Return an array from the bytes of a ``.npy`` file, version 1.0, of a permitted type."""
    file, known = io.BytesIO(data), np.lib.format
    try:
        if known.read_magic(file) != (1, 0):
            raise ValueError("another version of the format")
        shape, fortran, dtype = known.read_array_header_1_0(file, _MAX_HEADER_BYTES)
        sizes = all(type(n) is int and n >= 0 for n in shape) and len(shape) <= 2
        n_bytes = math.prod(shape) * dtype.itemsize
        if not sizes or dtype.str not in ARRAY_TYPES or n_bytes != len(data) - file.tell():
            raise ValueError(f"the type {str(dtype)[:80]} and the shape {str(shape)[:80]}")
        values = np.frombuffer(data, dtype, offset=file.tell()).astype(dtype.newbyteorder("="))
        return values.reshape(shape, order="F" if fortran else "C")
    except _HEADER_ERRORS as error:
        raise ModelFileError(
            f"{place} is not an array of numbers ({', '.join(ARRAY_TYPES)}) in the .npy format, "
            f"version 1.0: {error}."
        ) from error
