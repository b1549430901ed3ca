"""The container of a model file: a zip of one JSON text and plain arrays.

Members: ``manifest.json`` (format, version, and the SHA-256 of every other member), ``model.json``
and ``arrays/NAME.npy``; ``docs/model-format.md`` describes them. Reading trusts nothing: sizes are
checked before anything is unpacked, checksums before anything is parsed, and the header of an array
before memory is allocated for it.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from treelens.storage.files import whole_file

FORMAT_NAME = "treelens model"
FORMAT_VERSION = 1
MANIFEST, MODEL = "manifest.json", "model.json"
ARRAY_TYPES = ("<i4", "<i8", "<f8")

# Models are a few megabytes and shrink to a fifth or so.
MAX_MEMBERS = 10_000
MAX_UNPACKED_BYTES = 16 * 2**30
MAX_RATIO = 200
SMALL_BYTES = 16 * 2**20  # the ratio does not matter below this
MAX_JSON_BYTES = 512 * 2**20
_MAX_HEADER_BYTES = 1000
_LONGEST_AXIS = 2**40
_DATE = (1980, 1, 1, 0, 0, 0)  # no clock in the file: the same model gives the same bytes
_MAGIC = b"\x93NUMPY\x01\x00"
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    ValueError, OSError,
)  # fmt: skip


class ModelFileError(ValueError):
    """A file that cannot be read as a model; the message says what is wrong with it."""


class OtherFileError(ModelFileError):
    """A file of another kind, rather than a damaged model file."""


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
            raise OtherFileError(
                f"{path} cannot be read as a model file: it is of another format. Expected a file "
                "written by 'treelens fit' or by the save method of a model."
            )
        members = _checked_members(file, path)
    if MODEL not in members:
        raise ModelFileError(f"{path} has no {MODEL}: it is not a complete model file.")
    arrays = {
        name.removeprefix("arrays/").removesuffix(".npy"): _array(data, f"{path}, {name}")
        for name, data in members.items()
        if name != MODEL
    }
    return Contents(_json_object(members[MODEL], f"{path}, {MODEL}"), arrays)


def is_model_file(path: str | Path) -> bool:
    """Whether a file looks like a model from outside, whatever its name; nothing is unpacked."""
    path = Path(path).expanduser()
    if not path.is_file():  # a pipe would be emptied
        return False
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return {MANIFEST, MODEL} <= set(archive.namelist())
    except _ZIP_ERRORS:
        return False


def _checked_members(file: BinaryIO, path: Path) -> dict[str, bytes]:
    """Return the members that the manifest lists, unpacked, with checksums compared."""
    try:
        with zipfile.ZipFile(file) as archive:
            infos = _harmless_members(archive, path)
            digests = _checked_digests(archive, infos, path)
            members = {name: archive.read(infos[name]) for name in digests}
    except ModelFileError:
        raise
    except _ZIP_ERRORS as error:  # a bad offset ends in a ValueError or an OSError
        raise ModelFileError(
            f"{path} cannot be read as a model file ({error}): it is cut off, damaged, or of "
            "another format. Save the model again, or copy the file again."
        ) from error
    for name, data in members.items():
        if hashlib.sha256(data).hexdigest() != digests[name]:
            raise ModelFileError(
                f"{path}, {name}: the checksum differs from that in {MANIFEST}. The file was "
                "altered or damaged: save the model again, or copy the file again."
            )
    return members


def _harmless_members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, after their names and sizes have been checked."""
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        problem = _problem_with(info, known=info.filename in infos)
        if problem:
            raise _refused(path, f"its member {info.filename[:200]!r} {problem}")
        infos[info.filename] = info
    size, unpacked = path.stat().st_size, sum(info.file_size for info in infos.values())
    if len(infos) > MAX_MEMBERS:
        raise _refused(path, f"it has {len(infos):,} members, a model at most {MAX_MEMBERS:,}")
    too_dense = unpacked > SMALL_BYTES and unpacked > MAX_RATIO * size
    if unpacked > MAX_UNPACKED_BYTES or too_dense:
        raise _refused(path, f"its {size:,} bytes would unpack to {unpacked:,}")
    return infos


def _problem_with(info: zipfile.ZipInfo, known: bool) -> str | None:
    name = info.filename
    if name not in (MANIFEST, MODEL) and not (name.startswith("arrays/") and name.endswith(".npy")):
        return "does not belong in a model file"
    if ".." in name.replace("\\", "/").split("/"):
        return "has a path that leads out of the archive"
    if info.flag_bits & 0x1:
        return "is encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in an unknown way"
    if name.endswith(".json") and info.file_size > MAX_JSON_BYTES:
        return f"is a JSON text of {info.file_size:,} bytes"
    return "is there twice" if known else None


def _refused(path: Path, why: str) -> ModelFileError:
    return ModelFileError(f"{path} was not read: {why}. Get the model from a source you trust.")


def _checked_digests(
    archive: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo], path: Path
) -> dict[str, str]:
    """Return the checksum of every member, from the manifest."""
    if MANIFEST not in infos:
        raise ModelFileError(f"{path} has no {MANIFEST}: it is a zip, but no treelens model file.")
    manifest = _json_object(archive.read(infos[MANIFEST]), f"{path}, {MANIFEST}")
    if manifest.get("format") != FORMAT_NAME:
        raise ModelFileError(f"{path} is not a treelens model, according to its {MANIFEST}.")
    version = manifest.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        writer = str(manifest.get("treelens_version"))[:40]
        raise ModelFileError(
            f"{path} has format version {str(version)[:40]}, written by treelens {writer}; this "
            f"treelens reads version {FORMAT_VERSION}. Use that treelens, or fit again."
        )
    digests = manifest.get("sha256")
    if not isinstance(digests, dict) or set(digests) != set(infos) - {MANIFEST}:
        raise ModelFileError(
            f"{path} was altered: its members are not those that {MANIFEST} lists ('sha256')."
        )
    return digests


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
    header, start = _npy_header(data, place)
    dtype, shape = header["descr"], header["shape"]
    if dtype not in ARRAY_TYPES:
        raise ModelFileError(
            f"{place} has elements of the type {str(dtype)[:80]!r}; model files have only numbers "
            f"({', '.join(ARRAY_TYPES)})."
        )
    expected = math.prod(shape) * np.dtype(dtype).itemsize
    if len(data) - start != expected:
        raise ModelFileError(
            f"{place} claims the shape {shape}, {expected:,} bytes, but has {len(data) - start:,}."
        )
    values = np.frombuffer(data, dtype, offset=start).astype(np.dtype(dtype).newbyteorder("="))
    return values.reshape(shape, order="F" if header["fortran_order"] else "C")


def _npy_header(data: bytes, place: str) -> tuple[dict[str, Any], int]:
    """Return the header and the position where it ends."""
    if not data.startswith(_MAGIC) or len(data) < 10:
        raise ModelFileError(f"{place} is not an array in the .npy format, version 1.0.")
    start = 10 + int.from_bytes(data[8:10], "little")
    good = start <= _MAX_HEADER_BYTES
    try:
        header = ast.literal_eval(data[10:start].decode("ascii").strip()) if good else {}
        shape: Any = header.get("shape")
        good = set(header) == {"descr", "fortran_order", "shape"} and isinstance(shape, tuple)
        good = good and len(shape) <= 2
        good = good and all(type(n) is int and 0 <= n < _LONGEST_AXIS for n in shape)
    except (ValueError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError):
        good = False
    if not good:
        raise ModelFileError(f"{place} has a header that no array of a model has.")
    return header, start
