"""What stands behind DATA on the command line: a table, an SDF, a TU data set, or a known name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from treelens.cli.console import InputError


def kind_of(source: str) -> str:
    """What a source is: "table", "sdf", "tu" or "name"."""
    from treelens.cli.places import refuse_model_as_data
    from treelens.graphs.datasets import DATASETS
    from treelens.graphs.sdf import is_sdf
    from treelens.graphs.tables import TABLE_ENDINGS, inner_suffix

    refuse_model_as_data(source)
    path = Path(source).expanduser()
    suffix = inner_suffix(path)
    if path.is_dir() or suffix == ".zip" or path.name.endswith("_A.txt"):
        kind = "tu"
    elif is_sdf(path):
        kind = "sdf"
    else:
        kind = "table" if suffix in TABLE_ENDINGS else ""
    if path.exists() and kind:
        return kind
    if source in DATASETS:
        return "name"
    raise InputError(_what_is_missing(source, path, exists=path.exists()))


def files_behind(source: str) -> Iterator[Path]:
    """The files on this machine that reading a source would read."""
    path = Path(source).expanduser()
    if path.is_dir():
        for edge_file in (*path.glob("*_A.txt"), *path.glob("*/*_A.txt")):
            yield from _files_of_set(edge_file)
    elif path.name.endswith("_A.txt"):
        yield from _files_of_set(path)
    elif path.exists():
        yield path
    else:
        yield from _files_of_dataset(source)


def _files_of_set(edge_file: Path) -> Iterator[Path]:
    """All files of a TU data set, from the one with its edges."""
    from treelens.graphs.tudataset import OPTIONAL_PARTS, REQUIRED_PARTS

    stem = edge_file.name.removesuffix("A.txt")
    for part in REQUIRED_PARTS + OPTIONAL_PARTS:
        yield edge_file.with_name(f"{stem}{part}.txt")


def _files_of_dataset(name: str) -> Iterator[Path]:
    from treelens.graphs.datasets import list_datasets

    for row in list_datasets():
        if row["name"] == name and row["path"] is not None:
            yield from files_behind(str(row["path"]))


def _what_is_missing(source: str, path: Path, exists: bool) -> str:
    from treelens.graphs.datasets import DATASETS
    from treelens.graphs.sdf import SDF_ENDINGS
    from treelens.graphs.tables import TABLE_ENDINGS

    if exists:
        return (
            f"{source} has an ending that tells nothing: expected a table "
            f"({', '.join(TABLE_ENDINGS)}), {SDF_ENDINGS[0]}, or a TU folder or .zip."
        )
    names = {name.casefold(): name for name in DATASETS}
    if path.parent.is_dir():
        names.update({p.name.casefold(): str(path.parent / p.name) for p in path.parent.iterdir()})
    close = difflib.get_close_matches(path.name.casefold(), names, n=3)
    hint = f" Did you mean {' or '.join(names[match] for match in close)}?" if close else ""
    return (
        f"{source} is neither a file or folder that exists nor a known data set.{hint} "
        "'treelens datasets list' shows the known ones."
    )
