"""Reader of the TU format: text files of edges, graphs, classes and labels, in a folder or zip."""

from __future__ import annotations

import codecs
import difflib
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from treelens.errors import (
    DamagedFileWarning,
    GraphDataError,
    GraphFileNotFoundError,
    IgnoredDataWarning,
    check_truth,
)
from treelens.graphs.build import (
    about_directions,
    build_collection,
    count_one_way,
    listed_one_way,
    numbered_names,
)
from treelens.graphs.cells import is_integer
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import GraphRecipe
from treelens.graphs.tables import DAMAGES, check_regular, check_unpacked, read_bytes, reason

REQUIRED_PARTS = ("A", "graph_indicator", "graph_labels")
OPTIONAL_PARTS = ("node_labels", "edge_labels", "node_attributes", "edge_attributes")
PARTS = REQUIRED_PARTS + OPTIONAL_PARTS
_UNUSED = "graph_attributes"
_EDGES_ENDING = "_A.txt"
_READ_AT_ONCE = 2**20
_LONGEST_ZIP_END = 22 + 2**16  # bytes, with the longest comment
_FEW = 0.05  # exceptions to a rule that files follow otherwise: damage rather than intent
_SIMILAR_NAMES = 0.9  # of the letters of two names


def read_tudataset(
    path: str | Path, *, directed: bool | None = None
) -> tuple[GraphCollection, np.ndarray]:
    """Read a data set in the TU format.

    An edge that is listed several times counts once, with the mean of its attributes. Nodes without
    edges and graphs without nodes are kept. Without node labels each node is labelled with its
    degree, and a warning says so. Labels with several columns become tuples; they are read
    strictly: ``01``, ``1_0`` and ``1.0`` are errors. Attributes are named ``"attribute 1"``, ...;
    ``nan`` is a missing value. What files rarely have (few edges listed in one direction only, a
    last graph without nodes) is a ``DamagedFileWarning``.

    Parameters
    ----------
    path : str or Path
        A folder with ``NAME_A.txt``, ``NAME_graph_indicator.txt``, ``NAME_graph_labels.txt`` and
        perhaps files of labels and attributes of nodes and edges (``NAME_node_labels.txt``); a
        folder with such a folder in it; or a zip of either, which is never unpacked to disk. A zip
        may unpack to 2 GiB, and above 8 MiB to 100 times its size; the environment variable
        ``TREELENS_MAX_UNPACKED`` (a number of bytes) takes the place of both limits.
    directed : bool, optional
        Whether the edges lead from the first node of a line to the second. None: unless nearly all
        of them (95 %) are listed in both directions. A warning counts those that are not.

    Returns
    -------
    graphs : GraphCollection
        Graph ``i`` of the collection is graph ``i + 1`` of the files.
    y : ndarray of int64, shape (n_graphs,)
        The class codes, as the file has them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "TINY_A.txt").write_text("1, 2\\n2, 1\\n")
    >>> _ = (folder / "TINY_graph_indicator.txt").write_text("1\\n1\\n2\\n")
    >>> _ = (folder / "TINY_graph_labels.txt").write_text("1\\n-1\\n")
    >>> _ = (folder / "TINY_node_labels.txt").write_text("0\\n1\\n0\\n")
    >>> graphs, y = read_tudataset(folder)
    >>> graphs, y.tolist()
    (GraphCollection(2 graphs, 3 nodes, 1 edges, 2 node labels), [1, -1])
    """
    if directed is not None:
        check_truth("directed", directed)
    return collection_from_text(read_text_files(path), directed)


def collection_from_text(
    files: TextFiles, directed: bool | None = None
) -> tuple[GraphCollection, np.ndarray]:
    """Return the graphs and classes of the text files of one data set."""
    y = _table(files, "graph_labels", 1)[:, 0]
    graph_of = _table(files, "graph_indicator", 1)[:, 0]  # (n_nodes,), from 1
    edges = _table(files, "A", 2)  # (n_lines, 2), nodes from 1
    _check_numbers(files, y, graph_of, edges)
    one_way = listed_one_way(edges) if directed is None else np.empty(0, dtype=np.int64)
    few = len(one_way) <= _FEW * len(edges)
    notes: list[Warning] = []
    if directed is None:
        directed = not few
        if directed:
            about = about_directions(files.places["A"], *count_one_way(edges), directed)
            notes.append(UserWarning(about))
    graphs = _build(files, edges, graph_of, len(y), directed)
    if files.unused:
        notes.append(
            IgnoredDataWarning(
                f"Ignored: {files.unused}. Pass attributes of whole graphs as covariates."
            )
        )
    if damages := _damages(files, edges, graph_of, len(y), one_way if few else ()):
        notes.append(
            DamagedFileWarning(
                f"{'. '.join(damages)}. The data set may be damaged: compare it with its source."
            )
        )
    for note in notes:
        warnings.warn(note, stacklevel=3)
    return graphs, y


def _build(
    files: TextFiles, edges: np.ndarray, graph_of: np.ndarray, n_graphs: int, directed: bool
) -> GraphCollection:
    by_graph = np.argsort(graph_of, kind="stable")  # nodes of a graph need not stand together
    position = np.argsort(by_graph)
    found: dict[str, np.ndarray] = {}
    for part in (part for part in OPTIONAL_PARTS if part in files.contents):
        table = _table(files, part)
        of_edges = part.startswith("edge")
        count = len(edges) if of_edges else len(graph_of)
        if len(table) != count:
            other = files.places["A" if of_edges else "graph_indicator"]
            raise GraphDataError(
                f"{files.places[part]} has {len(table)} lines, {other} has {count}: one is wrong."
            )
        found[part] = table if of_edges else table[by_graph]

    def labels(part: str) -> Any:  # a label of several columns is a tuple
        table = found.get(part)
        if table is None or table.shape[1] == 1:
            return None if table is None else table[:, 0]
        return [tuple(row) for row in table.tolist()]

    names, edge_names = (
        numbered_names("attribute", found[part].shape[1]) if part in found else ()
        for part in ("node_attributes", "edge_attributes")
    )
    try:
        return build_collection(
            np.bincount(graph_of - 1, minlength=n_graphs),
            position[edges - 1],
            labels("node_labels"),
            labels("edge_labels"),
            recipe=GraphRecipe("tudataset", node_attributes=names, edge_attributes=edge_names),
            node_attributes=found.get("node_attributes"),
            attribute_names=names,
            edge_attributes=found.get("edge_attributes"),
            edge_attribute_names=edge_names,
            directed=directed,
        )
    except GraphDataError as error:
        place = files.places["edge_labels"]
        raise GraphDataError(f"{place}, where graphs are counted from 0: {error}") from error


def _table(files: TextFiles, part: str, columns: int | None = None) -> np.ndarray:
    """Return the numbers of one file, shape (n_lines, n_columns)."""
    data = files.contents[part].removeprefix(codecs.BOM_UTF8).rstrip()
    if not data:
        raise GraphDataError(f"{files.places[part]} is empty: expected a line or more.")
    dtype = np.float64 if part.endswith("_attributes") else np.int64
    return number_table(data, files.places[part], dtype, columns)


# --- where the files are ---------------------------------------------------------------------


class TextFiles(NamedTuple):
    """The text files of one TU data set, by part ("A", "graph_indicator", ...)."""

    name: str  # the NAME in NAME_A.txt
    contents: Mapping[str, bytes]
    places: Mapping[str, str]  # names of files in errors, also of those that are missing
    unused: str | None = None  # a file that is not read


def read_text_files(path: str | Path) -> TextFiles:
    """Read the files of a TU data set from a folder, a zip, or the path of its ``NAME_A.txt``."""
    path = Path(path).expanduser()
    if not path.exists():
        raise GraphFileNotFoundError(f"{path} does not exist: expected a folder or a zip.")
    wanted = path.name if path.is_dir() else path.stem
    if path.name.endswith(_EDGES_ENDING):
        path, wanted = path.parent, path.name.removesuffix(_EDGES_ENDING)
    with _opened(path) as (files, read):
        chosen = _choose_set(files, path, wanted)
        name, folder = chosen.name.removesuffix(_EDGES_ENDING), chosen.parent
        beside = {file.name for file in files if file.parent == folder}
        parts = {part: f"{name}_{part}.txt" for part in PARTS}
        places = {part: str(path / folder / file) for part, file in parts.items()}
        missing = [places[part] for part in REQUIRED_PARTS if parts[part] not in beside]
        if missing:
            needed = ", ".join(parts[part] for part in REQUIRED_PARTS)
            raise GraphFileNotFoundError(f"{missing[0]} is missing: a TU data set needs {needed}.")
        unused = f"{name}_{_UNUSED}.txt"
        lacking = {file.casefold(): file for file in parts.values() if file not in beside}
        for file in beside - {*parts.values(), unused}:  # a name that is nearly that of a part
            if near := difflib.get_close_matches(file.casefold(), lacking, 1, _SIMILAR_NAMES):
                raise GraphDataError(
                    f"{file} beside {places['A']} is not read, but {lacking[near[0]]} would be: "
                    "rename it, or move it away if it is no part of the data set."
                )
        contents = {part: read(folder / file) for part, file in parts.items() if file in beside}
    return TextFiles(name, contents, places, unused if unused in beside else None)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[list[PurePosixPath], Callable[[Any], bytes]]]:
    """Yield the files of a zip, or of a folder and those in it, and a function that reads one."""
    if path.is_dir():
        found = [*path.glob("*"), *path.glob("*/*")]
        files = [PurePosixPath(file.relative_to(path).as_posix()) for file in found]
        yield files, lambda file: read_bytes(path / file)
        return
    check_regular(path)
    with path.open("rb") as packed:  # no permission to read is an error of its own
        try:
            with zipfile.ZipFile(packed) as archive:
                infos = [info for info in archive.infolist() if not info.is_dir()]
                check_unpacked(path, sum(info.file_size for info in infos))
                members = {PurePosixPath(info.filename): info for info in infos}
                packed.seek(-min(path.stat().st_size, _LONGEST_ZIP_END), io.SEEK_END)
                stated = int.from_bytes(packed.read().rpartition(b"PK\5\6")[2][6:8], "little")
                lost = stated not in (len(archive.infolist()), 0xFFFF)  # too many for the field
                if lost or len(members) < len(infos):
                    raise zipfile.BadZipFile("a member is lost, or is there twice")
                for info in infos:  # compares the names before a member and in the directory
                    archive.open(info).close()

                def read(file: PurePosixPath) -> bytes:
                    # bit by bit: at once, more than the declared size might be unpacked
                    with archive.open(members[file]) as member:
                        return b"".join(iter(partial(member.read, _READ_AT_ONCE), b""))

                yield list(members), read
        except GraphDataError:
            raise
        except DAMAGES as error:
            raise GraphDataError(
                f"{path} cannot be read as a zip ({reason(error)}): it is damaged, cut off, or no "
                "zip at all. Fetch it again, or unpack it yourself and give the folder."
            ) from error


def _choose_set(files: Iterable[PurePosixPath], place: Path, wanted: str) -> PurePosixPath:
    """Return the ``NAME_A.txt`` to read: the least deep, and of those the one named as asked."""
    named = [file for file in files if file.name.endswith(_EDGES_ENDING)]
    # what a Mac's zip adds is left out
    found = [x for x in named if not x.name.startswith(".") and "__MACOSX" not in x.parts]
    if not found:
        raise GraphFileNotFoundError(
            f"{place} has no TU data set (NAME_A.txt, ...) at its top or one folder down."
        )
    depth = min(len(file.parts) for file in found)
    found = [file for file in found if len(file.parts) == depth]
    found = [file for file in found if file.name == f"{wanted}{_EDGES_ENDING}"] or found
    if len(found) > 1:
        raise GraphDataError(
            f"{place} has several data sets ({', '.join(sorted(map(str, found)))}): name one."
        )
    return found[0]


# --- consistency of the files ----------------------------------------------------------------


def _check_numbers(
    files: TextFiles, y: np.ndarray, graph_of: np.ndarray, edges: np.ndarray
) -> None:
    """Every node must lie in a graph that exists, every edge join two nodes of one graph."""
    n_nodes, n_graphs = len(graph_of), len(y)
    ends = graph_of[np.clip(edges, 1, n_nodes) - 1]
    nodes = graph_of[:, None]
    for part, table, wrong, expected in (
        (
            "graph_indicator",
            nodes,
            (nodes < 1) | (nodes > n_graphs),
            f"a graph of 1 to {n_graphs}, the lines of {files.places['graph_labels']}",
        ),
        (
            "A",
            edges,
            (edges < 1) | (edges > n_nodes),
            f"nodes of 1 to {n_nodes}, the lines of {files.places['graph_indicator']}",
        ),
        ("A", edges, ends[:, :1] != ends[:, 1:], "two nodes of one graph"),
    ):
        if wrong.any():
            line = int(wrong.any(axis=1).argmax())
            raise GraphDataError(
                f"{files.places[part]}, line {line + 1}: expected {expected}, found "
                f"{', '.join(map(str, table[line]))}. One of the files is cut off or wrong."
            )


def _damages(
    files: TextFiles,
    edges: np.ndarray,
    graph_of: np.ndarray,
    n_graphs: int,
    one_way: Sequence[int] | np.ndarray,
) -> list[str]:
    """Return what hardly any sound file has; ``one_way`` are edges listed once, if they are few."""
    places, found = files.places, []
    if len(one_way):
        u, v = edges[one_way[0]].tolist()
        about = about_directions(places["A"], *count_one_way(edges), directed=False)
        found.append(f"{about} The first is {u} - {v} in line {one_way[0] + 1}")
    if graph_of.max() < n_graphs:
        last = f"the last graph with nodes is {graph_of.max()}"
        found.append(f"{places['graph_labels']} has {n_graphs} lines, but {last}")
    open_ended = [part for part, data in files.contents.items() if not data.endswith(b"\n")]
    if len(open_ended) == 1:
        found.append(f"{places[open_ended[0]]} ends within a line, the other files do not")
    return found


# --- numbers ---------------------------------------------------------------------------------

_FLOAT = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?|nan", re.IGNORECASE | re.ASCII
)
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
_OF_INTEGERS = b"0123456789+-, \t\r\n"


def number_table(
    data: bytes, place: str, dtype: type = np.int64, columns: int | None = None
) -> np.ndarray:
    """Return the numbers of lines of text, shape (n_lines, n_columns); ``nan`` is missing."""
    whole, table = dtype is np.int64, np.empty((0, 0))
    # also lines of different lengths; some numpy only warns of integers that do not fit
    with suppress(ValueError, OverflowError, Warning), warnings.catch_warnings():
        warnings.simplefilter("error")
        if not whole or not (data.translate(None, _OF_INTEGERS) or _has_leading_zero(data)):
            table = np.loadtxt(io.BytesIO(data), dtype, delimiter=",", comments=None, ndmin=2)
    complete = len(table) == data.count(b"\n") + 1  # loadtxt leaves blank lines out
    if complete and columns in (None, table.shape[1]) and not np.isinf(table).any():
        return table
    # What fast parsers read too kindly, or not at all: here, blanks and tabs may separate numbers.
    what, good = ("integer", is_integer) if whole else ("number", _FLOAT.fullmatch)
    rows: list[list[float]] = []
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), 1):
        fields = _SEPARATOR.split(line.strip())
        columns = columns or len(fields)
        bad = next((repr(field[:80]) for field in fields if not good(field)), None)
        if bad is not None or len(fields) != columns:
            wanted = f"one {what}" if columns == 1 else f"{columns} {what}s"
            raise GraphDataError(
                f"{place}, line {number}: expected {wanted}, found {bad or len(fields)} in "
                f"{line[:80]!r} (no leading zeros, 64 bits). Correct the line."
            )
        rows.append([int(x) if whole else float(x) for x in fields])
    return np.array(rows, dtype=dtype)


def _has_leading_zero(data: bytes) -> bool:
    """Whether a number begins with a zero, where all that is no digit lies below the digits."""
    zero = np.frombuffer(data, dtype=np.uint8) == ord("0")
    digit = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8) >= ord("0")
    return bool((zero & ~digit[:-2] & digit[2:]).any())
