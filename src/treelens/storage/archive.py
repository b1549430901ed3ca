"""The container of a model file: a zip of one JSON text and plain arrays, and nothing that runs.

Members: ``manifest.json`` (what this is, its version, and the SHA-256 of every other member),
``model.json`` and ``arrays/NAME.npy``. ``docs/model-format.md`` describes them in full. Reading
trusts nothing: sizes are looked at before anything is unpacked, checksums before anything is
parsed, and an array's header before memory is set aside for it.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from treelens.storage.files import whole_file

FORMAT_NAME = "treelens model"
FORMAT_VERSION = 3
MANIFEST, MODEL = "manifest.json", "model.json"
# What an array in a model file may hold; always little-endian.
ARRAY_TYPES = ("<i4", "<i8", "<f8")

# Models are a few megabytes and shrink to a fifth or so; more than this is not one.
MAX_MEMBERS = 1000
MAX_UNPACKED_BYTES = 16 * 2**30
MAX_RATIO = 200
SMALL_ENOUGH_BYTES = 16 * 2**20  # the ratio does not matter below this
MAX_JSON_BYTES = 512 * 2**20
_MOST_HEADER_BYTES = 1000
_LONGEST_AXIS = 2**40
_WHEN = (1980, 1, 1, 0, 0, 0)  # no clock in the file: the same model gives the same bytes
_ZIP_BEGINS = b"PK"
_MAGIC = b"\x93NUMPY\x01\x00"
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
)  # fmt: skip
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class ModelFileError(ValueError):
    """A file that cannot be read as a model; the message says what is wrong with it."""


class OtherFileError(ModelFileError):
    """A file of another kind, and no damaged model."""


class ModelFileNotFoundError(ModelFileError, FileNotFoundError):
    """A model file that is not there; also a ``FileNotFoundError``."""


class Contents(NamedTuple):
    """What a model file holds: JSON data and arrays by name."""

    data: dict[str, Any]
    arrays: dict[str, np.ndarray]
    version: int = FORMAT_VERSION


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
            info = zipfile.ZipInfo(name, _WHEN)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, data)


def _json_bytes(data: Any) -> bytes:
    return json.dumps(data, indent=1, allow_nan=False).encode("ascii")


def _npy_bytes(array: np.ndarray) -> bytes:
    little = f"<{array.dtype.kind}{array.dtype.itemsize}"
    assert little in ARRAY_TYPES, f"a model file holds no arrays of {array.dtype}"
    file = io.BytesIO()
    np.lib.format.write_array(file, array.astype(little, copy=False), (1, 0), allow_pickle=False)
    return file.getvalue()


# --- reading --------------------------------------------------------------------------------


def read_archive(path: str | Path) -> Contents:
    """Read a model file; anything that is not as it should be is a :class:`ModelFileError`."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise ModelFileNotFoundError(f"{path} is not a model file that exists.")
    with path.open("rb") as file:  # no permission to read is an error of its own
        _check_beginning(file, path)
        version, members = _checked_members(file, path)
    if MODEL not in members:
        raise ModelFileError(f"{path} has no {MODEL}: it is no complete model file.")
    arrays = {
        name.removeprefix("arrays/").removesuffix(".npy"): _array(data, f"{path}, {name}")
        for name, data in members.items()
        if name.startswith("arrays/") and name.endswith(".npy")
    }
    return Contents(_json_object(members[MODEL], f"{path}, {MODEL}"), arrays, version)


def _check_beginning(file: BinaryIO, path: Path) -> None:
    """A file of another kind is no damaged model."""
    begins = file.read(len(_ZIP_BEGINS))
    file.seek(0)
    if begins and begins != _ZIP_BEGINS:
        raise OtherFileError(
            f"{path} cannot be read as a model file: it begins like something else. Expected what "
            "'treelens fit' or the save of a model wrote."
        )


def is_model_file(path: str | Path) -> bool:
    """Whether a file looks like a model from outside, whatever its name; nothing is unpacked."""
    path = Path(path).expanduser()
    if not path.is_file():  # a pipe would be emptied
        return False
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return {MANIFEST, MODEL} <= set(archive.namelist())
    except (*_ZIP_ERRORS, ValueError, OSError):
        return False


def _checked_members(file: BinaryIO, path: Path) -> tuple[int, dict[str, bytes]]:
    """The version of the format, and the members that the manifest lists."""
    try:
        with zipfile.ZipFile(file) as archive:
            infos = _harmless_members(archive, path)
            manifest = _checked_manifest(archive, infos, path)
            return manifest["format_version"], {
                name: _member(archive, infos, name, digest, path)
                for name, digest in manifest["sha256"].items()
            }
    except ModelFileError:
        raise
    except (*_ZIP_ERRORS, ValueError, OSError) as error:  # a bad offset ends in the last two
        raise ModelFileError(
            f"{path} cannot be read as a model file ({error}): it is cut off, damaged, or "
            "something else. Save the model again, or copy the file again."
        ) from error


def _harmless_members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The members by name, once the list of them has been found harmless."""
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        problem = _problem_with(info, known=info.filename in infos)
        if problem:
            raise _refused(path, f"its member {info.filename[:200]!r} {problem}")
        infos[info.filename] = info
    size, unpacked = path.stat().st_size, sum(info.file_size for info in infos.values())
    if len(infos) > MAX_MEMBERS:
        raise _refused(path, f"it has {len(infos):,} members, a model at most {MAX_MEMBERS:,}")
    too_dense = unpacked > SMALL_ENOUGH_BYTES and unpacked > MAX_RATIO * size
    if unpacked > MAX_UNPACKED_BYTES or too_dense:
        raise _refused(path, f"its {size:,} bytes would unpack to an absurd {unpacked:,}")
    return infos


def _problem_with(info: zipfile.ZipInfo, known: bool) -> str | None:
    name = info.filename.replace("\\", "/")
    if name.startswith("/") or name[1:2] == ":" or ".." in name.split("/"):
        return "has a path that leads out of the archive"
    if info.flag_bits & 0x1:
        return "is encrypted"
    if info.compress_type not in _COMPRESSIONS:
        return "is compressed in a way that model files are not"
    if info.filename.endswith(".json") and info.file_size > MAX_JSON_BYTES:
        return f"is a JSON text of an absurd {info.file_size:,} bytes"
    return "is there twice" if known else None


def _refused(path: Path, why: str) -> ModelFileError:
    return ModelFileError(
        f"{path} was refused, nothing of it was read: {why}. Get the model from a source you trust."
    )


def _checked_manifest(
    archive: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo], path: Path
) -> dict[str, Any]:
    if MANIFEST not in infos:
        raise ModelFileError(f"{path} has no {MANIFEST}: it is a zip, but no treelens model file.")
    manifest = _json_object(archive.read(infos[MANIFEST]), f"{path}, {MANIFEST}")
    if manifest.get("format") != FORMAT_NAME:
        raise ModelFileError(f"{path} is no treelens model: its {MANIFEST} does not say so.")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{path} has no valid format version ({str(version)[:40]!r}).")
    if version > FORMAT_VERSION:
        writer = str(manifest.get("treelens_version"))[:40]
        raise ModelFileError(
            f"{path} has format version {version}, written by treelens {writer}; this treelens "
            f"reads up to version {FORMAT_VERSION}. Upgrade: pip install --upgrade treelens."
        )
    digests = manifest.get("sha256")
    if not isinstance(digests, dict) or not all(isinstance(x, str) for x in digests.values()):
        raise ModelFileError(f"{path}, {MANIFEST}: the list of checksums ('sha256') is missing.")
    stray = sorted(set(infos) - set(digests) - {MANIFEST})
    if stray:
        raise ModelFileError(
            f"{path} holds {stray[0][:200]!r}, which its {MANIFEST} does not list: it was altered."
        )
    return manifest


def _member(
    archive: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo], name: str, digest: str,
    path: Path,
) -> bytes:  # fmt: skip
    if name not in infos:
        raise ModelFileError(f"{path} lacks its member {name[:200]!r}: it is not complete.")
    data = archive.read(infos[name])
    if hashlib.sha256(data).hexdigest() != digest:
        raise ModelFileError(
            f"{path}, {name}: the checksum differs from that in {MANIFEST}. The file was altered "
            "or damaged: save the model again, or copy the file again."
        )
    return data


def _json_object(data: bytes, place: str) -> dict[str, Any]:
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{place} is not valid JSON ({error}).") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{place} must be a JSON object, not a {type(value).__name__}.")
    return value


def _array(data: bytes, place: str) -> np.ndarray:
    """An array from the bytes of a ``.npy`` file, version 1.0, of one of the permitted types."""
    header, start = _npy_header(data, place)
    dtype, shape = header["descr"], header["shape"]
    if dtype not in ARRAY_TYPES:
        raise ModelFileError(
            f"{place} holds elements of the type {str(dtype)[:80]!r}; a model file holds only "
            f"numbers ({', '.join(ARRAY_TYPES)})."
        )
    n_items = 1
    for length in shape:
        n_items *= length
    expected = n_items * np.dtype(dtype).itemsize
    if len(data) - start != expected:
        raise ModelFileError(
            f"{place} claims the shape {shape}, {expected:,} bytes, but holds "
            f"{len(data) - start:,}."
        )
    values = np.frombuffer(data, dtype, offset=start).astype(np.dtype(dtype).newbyteorder("="))
    return values.reshape(shape, order="F" if header["fortran_order"] else "C")


def _npy_header(data: bytes, place: str) -> tuple[dict[str, Any], int]:
    """The header and where it ends."""
    if not data.startswith(_MAGIC) or len(data) < 10:
        raise ModelFileError(f"{place} is not an array in the .npy format, version 1.0.")
    start = 10 + int.from_bytes(data[8:10], "little")
    if start > _MOST_HEADER_BYTES:
        raise ModelFileError(f"{place} has a header that no array of a model has.")
    try:
        header = ast.literal_eval(data[10:start].decode("ascii").strip())
        shape, keys = header["shape"], set(header)
        good = keys == {"descr", "fortran_order", "shape"} and isinstance(shape, tuple)
        good = (
            good
            and all(type(n) is int and 0 <= n < _LONGEST_AXIS for n in shape)
            and len(shape) <= 2
        )
    except (ValueError, SyntaxError, TypeError, LookupError, MemoryError, RecursionError) as error:
        raise ModelFileError(f"{place} has a header that cannot be read.") from error
    if not good:
        raise ModelFileError(f"{place} has a header that no array of a model has.")
    return header, start
