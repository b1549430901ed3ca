"""The container of a model file: a zip of one JSON text and plain arrays.

Members: ``manifest.json`` (format, version, and the SHA-256 of every other member), ``model.json``
and ``arrays/NAME.npy``; ``docs/model-format.md`` describes them. Reading trusts nothing: sizes are
checked before anything is unpacked, checksums before anything is parsed, and the header of an array
before memory is allocated for it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from treelens.storage.files import whole_file

FORMAT_NAME = "treelens model"
FORMAT_VERSION = 1
MANIFEST, MODEL = "manifest.json", "model.json"
ARRAY_TYPES = ("<i4", "<i8", "<f8")

# Models are a few megabytes and shrink to a fifth or so.
MAX_UNPACKED_BYTES = 16 * 2**30
MAX_RATIO = 200
SMALL_BYTES = 16 * 2**20  # the ratio does not matter below this
MAX_JSON_BYTES = 512 * 2**20
_MAX_HEADER_BYTES = 1000
_DATE = (1980, 1, 1, 0, 0, 0)  # no clock in the file: the same model gives the same bytes
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    ValueError, OSError,
)  # fmt: skip
_HEADER_ERRORS = (
    ValueError, SyntaxError, TypeError, MemoryError, RecursionError, tokenize.TokenError,
)  # fmt: skip


class ModelFileError(ValueError):
    """A file that cannot be read as a model; the message says what is wrong with it."""


class ModelFileNotFoundError(ModelFileError, FileNotFoundError):
    """A model file that does not exist; also a ``FileNotFoundError``."""


class Contents(NamedTuple):
    """Contents of a model file: JSON data and arrays by name."""

    data: Any
    arrays: dict[str, np.ndarray]


# --- writing --------------------------------------------------------------------------------


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
    with (
        whole_file(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive,
    ):
        for name, data in {MANIFEST: _json_bytes(manifest), **members}.items():
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, data)


def _json_bytes(data: Any) -> bytes:
    return json.dumps(data, indent=1, allow_nan=False).encode("ascii")


def _npy_bytes(array: np.ndarray) -> bytes:
    little = f"<{array.dtype.kind}{array.dtype.itemsize}"
    assert little in ARRAY_TYPES, f"a model file has no arrays of {array.dtype}"
    file = io.BytesIO()
    np.lib.format.write_array(file, array.astype(little, copy=False), (1, 0), allow_pickle=False)
    return file.getvalue()


# --- reading --------------------------------------------------------------------------------


def read_archive(path: str | Path) -> Contents:
    """Read a model file; anything unexpected is a :class:`ModelFileError`."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise ModelFileNotFoundError(f"The model file {path} does not exist.")
    with path.open("rb") as file:  # no permission to read is an error of its own
        if file.peek(2)[:2] not in (b"PK", b""):
            raise ModelFileError(
                f"{path} cannot be read as a model file: it is of another format. Expected a file "
                "written by 'treelens fit' or by the save method of a model."
            )
        try:
            members = _checked_members(file, path)
        except ModelFileError:
            raise
        except _ZIP_ERRORS as error:  # a bad offset ends in a ValueError or an OSError
            raise ModelFileError(
                f"{path} cannot be read as a model file ({error}): it is cut off, damaged, or of "
                "another format. Save the model again, or copy the file again."
            ) from error
    data = _json_object(members.pop(MODEL), f"{path}, {MODEL}")
    arrays = {
        name.removeprefix("arrays/").removesuffix(".npy"): _array(content, f"{path}, {name}")
        for name, content in members.items()
    }
    return Contents(data, arrays)


def _checked_members(file: BinaryIO, path: Path) -> dict[str, bytes]:
    """Return the members that the manifest lists, unpacked, with checksums compared."""
    with zipfile.ZipFile(file) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        n_bytes, unpacked = path.stat().st_size, sum(sizes.values())
        too_dense = unpacked > SMALL_BYTES and unpacked > MAX_RATIO * n_bytes
        too_large = unpacked > MAX_UNPACKED_BYTES or sizes.get(MODEL, 0) > MAX_JSON_BYTES
        if too_dense or too_large or len(sizes) < len(archive.infolist()):
            raise ModelFileError(
                f"{path} was not read: its {n_bytes:,} bytes would unpack to {unpacked:,}, or have "
                "a member twice. Get the model from a source you trust."
            )
        if not {MANIFEST, MODEL} <= set(sizes):
            raise ModelFileError(f"{path} is a zip, but no treelens model: it has no {MODEL}.")
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
