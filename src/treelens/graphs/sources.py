"""Where TU text files come from: a folder, or a zip that is read without being unpacked."""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treelens.graphs.errors import GraphDataError, GraphFileNotFoundError
from treelens.graphs.opening import check_regular, read_bytes, too_much, unpacked_limit

REQUIRED_PARTS = ("A", "graph_indicator", "graph_labels")
OPTIONAL_PARTS = ("node_labels", "edge_labels")

_EDGES_ENDING = "_A.txt"
_READ_AT_ONCE = 2**20
# Members in other ways (bzip2, LZMA, ...) would be unpacked whole before their size is known.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What zipfile raises on damaged archives: a bad offset or name ends in the last three.
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    OverflowError, ValueError, OSError,
)  # fmt: skip


@dataclass(frozen=True)
class TextFiles:
    """The text files of one TU data set, read but not yet understood.

    Attributes
    ----------
    name : str
        The NAME in ``NAME_A.txt``.
    contents : mapping of str to bytes
        From a part (``"A"``, ``"graph_indicator"``, ...) to the bytes of its file.
    places : mapping of str to str
        From a part to the words that name its file in an error, also where the file is missing.
    """

    name: str
    contents: Mapping[str, bytes]
    places: Mapping[str, str]


def read_text_files(path: str | Path) -> TextFiles:
    """Read the files of one TU data set from a folder, a zip, or the path of its ``NAME_A.txt``."""
    path = Path(path).expanduser()
    if path.is_dir():
        return _from_folder(path)
    if not path.exists():
        raise GraphFileNotFoundError(
            f"{path} does not exist: expected a folder or a zip with NAME_A.txt, "
            "NAME_graph_indicator.txt and NAME_graph_labels.txt."
        )
    if path.name.endswith(_EDGES_ENDING):
        return _from_prefix(path.parent, path.name.removesuffix(_EDGES_ENDING))
    return _from_zip(path)


def _from_folder(folder: Path) -> TextFiles:
    found = [*folder.glob(f"*{_EDGES_ENDING}"), *folder.glob(f"*/*{_EDGES_ENDING}")]
    relative = [PurePosixPath(file.relative_to(folder).as_posix()) for file in found]
    chosen = _choose_set(relative, folder, wanted=folder.name)
    return _from_prefix(folder / chosen.parent, chosen.name.removesuffix(_EDGES_ENDING))


def _from_prefix(folder: Path, name: str) -> TextFiles:
    paths = {part: folder / f"{name}_{part}.txt" for part in REQUIRED_PARTS + OPTIONAL_PARTS}
    contents = {part: read_bytes(file) for part, file in paths.items() if file.exists()}
    return _checked(TextFiles(name, contents, {part: str(file) for part, file in paths.items()}))


def _from_zip(path: Path) -> TextFiles:
    check_regular(path)
    with path.open("rb") as file:  # no permission to read is an error of its own
        try:
            with zipfile.ZipFile(file) as archive:
                return _from_archive(archive, path)
        except GraphDataError:
            raise
        except _ZIP_ERRORS as error:
            raise GraphDataError(
                f"{path} cannot be read as a zip ({error}): it is damaged, cut off, or no zip at "
                "all. Fetch it again, or unpack it yourself and give the folder."
            ) from error


def _from_archive(archive: zipfile.ZipFile, path: Path) -> TextFiles:
    members = _checked_members(archive, path)
    chosen = _choose_set(map(PurePosixPath, members), path, wanted=path.stem)
    name = chosen.name.removesuffix(_EDGES_ENDING)
    inside = {
        part: str(chosen.with_name(f"{name}_{part}.txt"))
        for part in REQUIRED_PARTS + OPTIONAL_PARTS
    }
    contents = {
        part: _read_member(archive, members[member])
        for part, member in inside.items()
        if member in members
    }
    places = {part: f"{path}/{member}" for part, member in inside.items()}
    return _checked(TextFiles(name, contents, places))


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member, bit by bit: at once, more than its declared size might be unpacked first."""
    with archive.open(info) as member:
        return b"".join(iter(lambda: member.read(_READ_AT_ONCE), b""))


def _checked(files: TextFiles) -> TextFiles:
    missing = [files.places[part] for part in REQUIRED_PARTS if part not in files.contents]
    if missing:
        raise GraphFileNotFoundError(
            f"{missing[0]} is missing: a TU data set needs "
            + ", ".join(f"{files.name}_{part}.txt" for part in REQUIRED_PARTS)
            + "."
        )
    return files


def _choose_set(edge_files: Iterable[PurePosixPath], place: Path, wanted: str) -> PurePosixPath:
    """The one ``NAME_A.txt`` to read: the least deep, and of those the one named as asked."""
    candidates = [file for file in edge_files if _is_edge_file(file)]
    if not candidates:
        raise GraphFileNotFoundError(
            f"{place} holds no TU data set: expected NAME_A.txt, NAME_graph_indicator.txt and "
            "NAME_graph_labels.txt, at the top or one folder down."
        )
    depth = min(len(file.parts) for file in candidates)
    candidates = [file for file in candidates if len(file.parts) == depth]
    named = [file for file in candidates if file.name == f"{wanted}{_EDGES_ENDING}"]
    candidates = named or candidates
    if len(candidates) > 1:
        raise GraphDataError(
            f"{place} holds several data sets ({', '.join(sorted(map(str, candidates)))}): give "
            "the path of one of them."
        )
    return candidates[0]


def _is_edge_file(file: PurePosixPath) -> bool:
    hidden = file.name.startswith(".") or "__MACOSX" in file.parts  # what a Mac's zip adds
    return file.name.endswith(_EDGES_ENDING) and not hidden


def _checked_members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The files in the zip by name, once the whole archive has been found harmless."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        problem = _problem_with(info, known=info.filename in members)
        if problem:
            raise GraphDataError(
                f"{path} was refused, nothing of it was read: its member {info.filename!r} "
                f"{problem}. Get the archive from a source you trust."
            )
        if not info.is_dir():
            members[info.filename] = info
    unpacked = sum(info.file_size for info in members.values())
    if unpacked > unpacked_limit(path.stat().st_size):
        raise too_much(path, f"{unpacked:,}")
    return members


def _problem_with(info: zipfile.ZipInfo, known: bool) -> str | None:
    name = info.filename.replace("\\", "/")
    if not name:
        return "has no name"
    if name.startswith("/") or name[1:2] == ":":
        return "has an absolute path"
    if ".." in name.split("/"):
        return "has a path that climbs out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a symbolic link"
    if info.flag_bits & 0x1:
        return "is encrypted"
    if info.compress_type not in _COMPRESSIONS:
        return f"is packed in an unusual way (method {info.compress_type}; pack it anew as .zip)"
    return "is there twice" if known else None
