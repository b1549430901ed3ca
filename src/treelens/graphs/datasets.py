"""``load_dataset``: find a known data set on this machine or fetch it, check it, read it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError, GraphFileNotFoundError
from treelens.graphs.molecules import molecules_of_table
from treelens.graphs.opening import read_bytes
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.registry import DATASETS, DatasetInfo, dataset_info
from treelens.graphs.tables import table_of_bytes
from treelens.graphs.tudataset import (
    REQUIRED_PARTS,
    TextFiles,
    collection_from_text,
    read_text_files,
)

OFFICIAL_ARCHIVES = "https://www.chrsmrrs.com/graphkerneldatasets"
_DOWNLOAD_TIMEOUT_S = 60


def load_dataset(
    name: str, *, folder: str | Path | None = None, download: bool = True
) -> tuple[GraphCollection, np.ndarray]:
    """Load a data set by its name.

    It is looked for in ``folder``, in the folder that the environment variable ``TREELENS_DATA``
    names, and in the cache (``TREELENS_CACHE``, else the platform's cache folder). In each,
    ``NAME.zip``, a folder ``NAME`` and, for molecules, ``NAME.csv.gz`` are found, directly or in
    the folders ``tu`` and ``smiles``. If it is in none of them, the official archive is
    downloaded into the cache. Every text file is checked against its pinned SHA-256, and a file
    of labels that is not pinned is an error: it is no part of the data set.

    Parameters
    ----------
    name : str
        One of the names that :func:`list_datasets` lists.
    folder : str or Path, optional
        Where to look first.
    download : bool, default=True
        Whether to fetch the official archive when no copy is found.

    Returns
    -------
    graphs : GraphCollection
    y : ndarray, shape (n_graphs,)
        The class codes, as the files have them. Molecules that cannot be parsed are left out of
        both, with a warning that names their rows.

    Examples
    --------
    >>> from treelens import load_dataset
    >>> graphs, y = load_dataset("MUTAG")  # doctest: +SKIP
    >>> graphs  # doctest: +SKIP
    GraphCollection(188 graphs, 3371 nodes, 3721 edges, 7 node labels, 4 edge labels)
    """
    return load_by_recipe(name, GraphRecipe.of_molecules(), folder=folder, download=download)


def load_by_recipe(
    name: str, recipe: GraphRecipe, *, folder: str | Path | None = None, download: bool = True
) -> tuple[GraphCollection, np.ndarray]:
    """As :func:`load_dataset`; where the set is one of molecules, they are read by the recipe."""
    info = dataset_info(name)
    path = _locate(info, folder) or _download(info, folder, allowed=download)
    if info.kind == "smiles":
        return _read_molecules(info, path, recipe)
    files = read_text_files(path)
    _require_pins(info, path, _digests_of_text(files))
    graphs, y = collection_from_text(files)
    if graphs.n_edges != info.n_edges:
        raise GraphDataError(
            f"{files.places['A']} holds {graphs.n_edges:,} edges; {name} has {info.n_edges:,}. "
            f"{_what_to_do(info, path)}"
        )
    return graphs, y


def _read_molecules(
    info: DatasetInfo, path: Path, recipe: GraphRecipe
) -> tuple[GraphCollection, np.ndarray]:
    data = read_bytes(path)
    _require_pins(info, path, {f"{info.file_stem}.csv": hashlib.sha256(data).hexdigest()})
    table = table_of_bytes(path, data)
    smiles = {"smiles": table.column("smiles", "smiles")}
    read = molecules_of_table(table, smiles, "label", recipe=recipe, on_invalid="skip")
    assert read is not None  # nothing was said to allow that none is left
    assert read[1] is not None  # a target column was asked for
    return read[0], read[1]


def list_datasets(folder: str | Path | None = None) -> list[dict[str, Any]]:
    """The known data sets, one dict each, ready for ``pandas.DataFrame``.

    ``path`` is where the set was found on this machine, or None.

    Examples
    --------
    >>> [row["name"] for row in list_datasets() if row["kind"] == "tu"][:3]
    ['MUTAG', 'PTC_MR', 'PTC_DGCNN']
    """
    return [
        {
            "name": info.name,
            "kind": info.kind,
            "n_graphs": info.n_graphs,
            "description": info.description,
            "downloadable": info.downloadable,
            "path": _locate(info, folder),
        }
        for info in DATASETS.values()
    ]


def verify_dataset(name: str, *, folder: str | Path | None = None) -> list[dict[str, Any]]:
    """Compare every file of a data set on this machine with its pinned checksum.

    Returns
    -------
    rows : list of dict
        ``file``, ``status`` (``"ok"``, ``"mismatch"``, ``"missing"`` or ``"unpinned"``),
        ``expected`` and ``found`` (SHA-256 or None), and the ``path`` of the data set.
    """
    info = dataset_info(name)
    path = _locate(info, folder)
    if path is None:
        raise _not_here(info, folder, "It was not downloaded: verifying reads local files only.")
    found = _digests(info, path)
    return [
        {
            "file": file,
            "status": _status(info.sha256.get(file), found.get(file)),
            "expected": info.sha256.get(file),
            "found": found.get(file),
            "path": path,
        }
        for file in sorted({*info.sha256, *found})
    ]


# --- where the files are --------------------------------------------------------------------


def cache_folder() -> Path:
    """Where downloads are kept: ``TREELENS_CACHE``, else the platform's cache folder."""
    import pooch

    chosen = os.environ.get("TREELENS_CACHE")
    return Path(chosen).expanduser() if chosen else Path(pooch.os_cache("treelens"))


def _folders(folder: str | Path | None) -> Iterator[Path]:
    if folder is not None:
        folder = Path(folder).expanduser()
        if not folder.is_dir():
            raise GraphFileNotFoundError(f"folder={str(folder)!r} is not a folder that exists.")
        yield folder
    from_environment = os.environ.get("TREELENS_DATA")
    if from_environment:
        yield Path(from_environment).expanduser()
    yield cache_folder()


def _candidates(info: DatasetInfo, folder: Path) -> Iterator[Path]:
    for place in (folder / info.kind, folder):
        if info.kind == "smiles":
            yield from (place / f"{info.file_stem}.csv.gz", place / f"{info.file_stem}.csv")
        else:
            yield place / f"{info.file_stem}.zip"
            # a folder is named by its edge file, so that an empty one is passed over
            yield place / info.file_stem / f"{info.file_stem}_A.txt"
            yield place / f"{info.file_stem}_A.txt"


def _locate(info: DatasetInfo, folder: str | Path | None) -> Path | None:
    places = (path for place in _folders(folder) for path in _candidates(info, place))
    return next((path for path in places if path.is_file()), None)


def _not_here(info: DatasetInfo, folder: str | Path | None, why: str) -> GraphFileNotFoundError:
    file = f"{info.file_stem}.zip" if info.kind == "tu" else f"{info.file_stem}.csv.gz"
    looked = ", ".join(str(place) for place in _folders(folder))
    unset = "" if os.environ.get("TREELENS_DATA") else " (TREELENS_DATA is not set)"
    source = f" from {OFFICIAL_ARCHIVES}/{file}" if info.downloadable else ""
    return GraphFileNotFoundError(
        f"{info.name} was not found in {looked}{unset}. {why} To put it there by hand, get {file}"
        f"{source} and place it in one of these folders, or in a folder that you name with "
        "folder=... or TREELENS_DATA."
    )


# --- download -------------------------------------------------------------------------------


def _download(info: DatasetInfo, folder: str | Path | None, allowed: bool) -> Path:
    """Fetch the official archive into the cache: complete and checked, or not at all."""
    if not info.downloadable:
        raise _not_here(info, folder, "It has no official archive to download.")
    if not allowed:
        raise _not_here(info, folder, "It was not downloaded, since download=False.")
    target = cache_folder() / f"{info.name}.zip"
    url = f"{OFFICIAL_ARCHIVES}/{info.name}.zip"
    part = None
    try:
        try:
            part = _fetch(url, target)
        except OSError as error:  # no network, no such page, no room, no right to write
            reason = f"Downloading {url} into {target.parent} failed: {error}."
            raise _not_here(info, folder, reason) from error
        try:
            _require_pins(info, part, _digests(info, part))
        except GraphDataError as error:
            raise GraphDataError(
                f"What {url} served cannot be used and was not kept: {error}"
            ) from error
        os.replace(part, target)
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
    return target


def _fetch(url: str, target: Path) -> Path:
    """Download to a temporary file beside ``target``; nothing stays behind on failure."""
    import pooch

    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=".part")
    os.close(handle)
    complete = False
    try:
        pooch.HTTPDownloader(timeout=_DOWNLOAD_TIMEOUT_S)(url, name, None)
        complete = True
    finally:
        if not complete:
            Path(name).unlink(missing_ok=True)
    return Path(name)


# --- checksums ------------------------------------------------------------------------------


def _digests(info: DatasetInfo, path: Path) -> dict[str, str]:
    """SHA-256 of every text file of a data set, unpacked, by file name."""
    if info.kind == "tu":
        return _digests_of_text(read_text_files(path))
    return {f"{info.file_stem}.csv": hashlib.sha256(read_bytes(path)).hexdigest()}


def _digests_of_text(files: TextFiles) -> dict[str, str]:
    return {
        f"{files.name}_{part}.txt": hashlib.sha256(data).hexdigest()
        for part, data in files.contents.items()
    }


def _status(expected: str | None, found: str | None) -> str:
    if expected is None:
        return "unpinned"
    if found is None:
        return "missing"
    return "ok" if expected == found else "mismatch"


def _require_pins(info: DatasetInfo, path: Path, found: dict[str, str]) -> None:
    for file, expected in info.sha256.items():
        if found.get(file) != expected:
            raise GraphDataError(
                f"{file} in {path} is not the file that {info.name} is known by: expected SHA-256 "
                f"{expected}, got {found.get(file, 'no such file')}. {_what_to_do(info, path)}"
            )
    required = {f"{info.file_stem}_{part}.txt" for part in REQUIRED_PARTS}
    added = sorted(set(found) - set(info.sha256) - required)
    if added:
        raise GraphDataError(
            f"{added[0]} in {path} is no file of {info.name}: expected {', '.join(info.sha256)} "
            f"and no other that changes the graphs. {_what_to_do(info, path)}"
        )


def _what_to_do(info: DatasetInfo, path: Path) -> str:
    reader = "read_tudataset" if info.kind == "tu" else "read_smiles"
    return (
        "The copy is damaged or another version: delete it and fetch it again, or read it as it "
        f"is with treelens.{reader}({str(path)!r})."
    )
