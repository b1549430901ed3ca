"""Where TU text files come from: a folder, or a zip that is read without being unpacked."""

from __future__ import annotations

import lzma
import stat
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from treelens.graphs.errors import GraphDataError, GraphFileNotFoundError

REQUIRED_PARTS = ("A", "graph_indicator", "graph_labels")
OPTIONAL_PARTS = ("node_labels", "edge_labels")

# Text files of graphs shrink to between a third and a hundredth. An archive that claims more than
# this is not one, and is refused before a byte of it is unpacked.
MAX_UNPACKED_BYTES = 4 * 2**30
MAX_RATIO = 100
SMALL_ENOUGH_BYTES = 8 * 2**20  # the ratio does not matter below this

_EDGES_ENDING = "_A.txt"


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
    contents = {part: file.read_bytes() for part, file in paths.items() if file.is_file()}
    return _checked(TextFiles(name, contents, {part: str(file) for part, file in paths.items()}))


def _from_zip(path: Path) -> TextFiles:
    try:
        with zipfile.ZipFile(path) as archive:
            members = _checked_members(archive, path)
            chosen = _choose_set(map(PurePosixPath, members), path, wanted=path.stem)
            name = chosen.name.removesuffix(_EDGES_ENDING)
            inside = {
                part: str(chosen.with_name(f"{name}_{part}.txt"))
                for part in REQUIRED_PARTS + OPTIONAL_PARTS
            }
            contents = {
                part: archive.read(members[member])
                for part, member in inside.items()
                if member in members
            }
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise GraphDataError(
            f"{path} cannot be read as a zip ({error}): it is damaged, cut off, or no zip at all. "
            "Fetch it again, or unpack it yourself and give the folder."
        ) from error
    places = {part: f"{path}/{member}" for part, member in inside.items()}
    return _checked(TextFiles(name, contents, places))


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
    too_dense = unpacked > SMALL_ENOUGH_BYTES and unpacked > MAX_RATIO * path.stat().st_size
    if unpacked > MAX_UNPACKED_BYTES or too_dense:
        raise GraphDataError(
            f"{path} was refused, nothing of it was read: its {path.stat().st_size:,} bytes would "
            f"unpack to {unpacked:,}, far more than text files of graphs do (at most "
            f"{MAX_RATIO} times, and {MAX_UNPACKED_BYTES:,} bytes). If you trust it, unpack it "
            "yourself and give the folder."
        )
    return members


def _problem_with(info: zipfile.ZipInfo, known: bool) -> str | None:
    name = info.filename.replace("\\", "/")
    if name.startswith("/") or name[1:2] == ":":
        return "has an absolute path"
    if ".." in name.split("/"):
        return "has a path that climbs out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a symbolic link"
    if info.flag_bits & 0x1:
        return "is encrypted"
    return "is there twice" if known else None
