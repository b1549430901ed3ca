"""From what stands behind DATA on the command line to graphs and targets, with helpful errors."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from treelens.cli.console import InputError
from treelens.cli.reading import Reading
from treelens.cli.target import (
    as_numbers,
    check_classes,
    check_no_target_missing,
    check_numbers,
    looks_measured,
)

if TYPE_CHECKING:
    import numpy as np

    from treelens.graphs.collection import GraphCollection

LONGEST_LINE_BYTES = 10 * 2**20
TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".smi", ".smiles", ".ism", ".parquet", ".pq")
SDF_ENDINGS = (".sdf", ".sd")
DEFAULT_TARGETS = ("label", "value", "target", "y", "class", "activity")
_ROWS_IN_A_MESSAGE = 5


@dataclass(frozen=True)
class GraphData:
    """Graphs and targets, and which rows of the source they stand for.

    Attributes
    ----------
    source : str
    graphs : GraphCollection
    y : ndarray or None
    rows : ndarray of int, shape (n_graphs,)
        The row of each graph, from 0.
    n_rows : int
        Rows in the source; those that are not in ``rows`` could not be read.
    texts : list of str or None
        The SMILES of every row, where there are any.
    target : str or None
        The column that the targets come from.
    task : str
        ``"regression"`` where ``y`` holds numbers to predict.
    """

    source: str
    graphs: GraphCollection
    y: np.ndarray | None
    rows: np.ndarray
    n_rows: int
    texts: list[str] | None = None
    target: str | None = None
    task: str = "classification"

    @property
    def n_unreadable(self) -> int:
        return self.n_rows - len(self.rows)

    @property
    def target_name(self) -> str:
        """The target in messages."""
        return self.target or "the class file"

    def with_numbers(self) -> GraphData:
        """The same with the targets as numbers, where there are any targets."""
        if self.y is None:
            return replace(self, task="regression")
        y = as_numbers(self.y, self.target_name, self.rows)
        return replace(self, y=y, task="regression")

    def pick(self, keep: np.ndarray) -> GraphData:
        """Some of the graphs."""
        y = None if self.y is None else self.y[keep]
        return replace(self, graphs=self.graphs[keep], y=y, rows=self.rows[keep])


def read_training_data(
    source: str,
    target: str | None = None,
    smiles: str | None = None,
    max_invalid: float = 0.1,
    drop_duplicates: bool = False,
    note: Callable[[str], None] = lambda text: None,
    reading: Reading | None = None,
    task: str | None = None,
) -> GraphData:
    """Graphs with targets that can be learned from, or an error that says what to change.

    ``task`` is one of :data:`treelens.cli.options.TASKS`; None: only classes will do.
    """
    data = read_data(source, target, smiles, need_target=True, note=note, reading=reading)
    _check_share_unreadable(data, max_invalid, note)
    data = _for_task(data, task, note)
    data = _without_duplicates(data, drop_duplicates, note)
    assert data.y is not None
    if data.task == "regression":
        check_numbers(data.y, data.target_name)
        return data
    check_classes(data.y, data.target_name, data.rows, sure=task == "classification")
    # Numbers that stand for classes would be taken for a measurement again.
    return replace(data, y=data.y.astype(str)) if data.y.dtype.kind == "f" else data


def _for_task(data: GraphData, task: str | None, note: Callable[[str], None]) -> GraphData:
    """With targets as the task has them; "auto" goes by what they look like, and says so."""
    assert data.y is not None
    if task == "auto" and looks_measured(data.y):
        note(
            f"column {data.target_name!r} holds numbers: fitting a regression; "
            "--task classification to overrule."
        )
        task = "regression"
    return data.with_numbers() if task == "regression" else data


def read_data(
    source: str,
    target: str | None = None,
    smiles: str | None = None,
    need_target: bool = False,
    note: Callable[[str], None] = lambda text: None,
    reading: Reading | None = None,
) -> GraphData:
    """Graphs of any source; rows that cannot be read are left out, but counted."""
    kind, reading = _kind_of(source), reading or Reading()
    if kind in ("table", "sdf"):
        path = Path(source).expanduser()
        check_lines(path)
        read = _read_table if kind == "table" else _read_sdf
        data = read(path, target, smiles, need_target, reading)
        if target is None and data.target is not None and data.target.casefold() != "label":
            note(
                f"there is no column 'label': the target is {data.target!r}; "
                "--target names another."
            )
        return data
    for option, value in (("--target", target), ("--smiles", smiles)):
        if value is not None:
            note(f"{option} {value} is not used: {source} brings its classes along.")
    return _read_dataset(source, reading) if kind == "name" else _read_tu(source, reading)


def _kind_of(source: str) -> str:
    """What a source is: "table", "sdf", "tu" or "name"."""
    from treelens.graphs.registry import DATASETS
    from treelens.graphs.tables import inner_suffix

    path = Path(source).expanduser()
    suffix = inner_suffix(path)
    if path.is_dir() or suffix == ".zip" or path.name.endswith("_A.txt"):
        kind = "tu"
    elif suffix in SDF_ENDINGS:
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
    from treelens.graphs.sources import OPTIONAL_PARTS, REQUIRED_PARTS

    stem = edge_file.name.removesuffix("A.txt")
    for part in REQUIRED_PARTS + OPTIONAL_PARTS:
        yield edge_file.with_name(f"{stem}{part}.txt")


def _files_of_dataset(name: str) -> Iterator[Path]:
    from treelens.graphs.datasets import list_datasets

    for row in list_datasets():
        if row["name"] == name and row["path"] is not None:
            yield from files_behind(str(row["path"]))


def _what_is_missing(source: str, path: Path, exists: bool) -> str:
    from treelens.graphs.registry import DATASETS

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


# --- lines that are no lines ----------------------------------------------------------------


def check_lines(path: Path) -> None:
    """Refuse a text file with a line of many megabytes before all of it is read into memory."""
    from treelens.graphs.opening import open_unpacked

    if path.suffix.lower() in (".parquet", ".pq"):
        return
    with open_unpacked(path, bounded=True) as file:
        number = _first_long_line(file)
    if number is not None:
        raise InputError(
            f"{path}, line {number}: the line is longer than {LONGEST_LINE_BYTES // 2**20} MB, so "
            "this is probably no table of molecules, or its line ends were lost. Open it in an "
            "editor and save it with one row a line."
        )


def _first_long_line(file: IO[bytes]) -> int | None:
    number = 1
    while line := file.readline(LONGEST_LINE_BYTES + 1):
        if len(line) > LONGEST_LINE_BYTES:
            return number
        number += line.endswith(b"\n")
    return None


# --- molecules ------------------------------------------------------------------------------


def _read_table(
    path: Path, target: str | None, smiles: str | None, need: bool, reading: Reading
) -> GraphData:
    import numpy as np

    from treelens.graphs.tables import read_table

    table = read_table(path)
    if not table.rows:
        raise InputError(f"{path} has column names but no rows: there is nothing to learn from.")
    smiles_column = _smiles_column(table.columns, smiles, path)
    target_column = _target_column(table.columns, target, need, path)
    texts = table.column(smiles_column, "smiles")
    if target_column is not None:
        check_no_target_missing(table, target_column)
    graphs, y = _read_quietly(path, smiles_column, target_column, reading)
    rows = np.array(graphs.graph_data["row"], dtype=np.int64)
    return GraphData(str(path), graphs, y, rows, len(texts), texts, target_column)


def _read_sdf(
    path: Path, target: str | None, smiles: str | None, need: bool, reading: Reading
) -> GraphData:
    import numpy as np

    if smiles is not None:
        raise InputError(f"--smiles {smiles}: an SDF holds the molecules themselves. Leave it out.")
    graphs, y = _read_quietly(path, "", None, reading)
    properties = list(dict.fromkeys(n for m in graphs.graph_data["mol"] for n in m.GetPropNames()))
    target_column = _target_column(properties, target, need, path)
    if target_column is not None:
        graphs, y = _read_quietly(path, "", target_column, reading)
    rows = np.array(graphs.graph_data["row"], dtype=np.int64)
    n_rows = max(_n_records(path), int(rows.max()) + 1)
    return GraphData(str(path), graphs, y, rows, n_rows, None, target_column)


def _n_records(path: Path) -> int:
    from treelens.graphs.opening import read_bytes

    *records, last = (b"\n" + read_bytes(path)).split(b"\n$$$$")
    return len(records) + bool(last.strip())


def _read_quietly(path: Path, smiles: str, target: str | None, reading: Reading) -> Any:
    """Rows that cannot be read are left out without a word: the caller counts and tells."""
    from treelens.graphs.errors import InvalidMoleculesWarning
    from treelens.graphs.molecules import read_smiles

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidMoleculesWarning)
        return read_smiles(path, smiles, target, on_invalid="skip", **reading.settings())


def _smiles_column(columns: Sequence[str], asked: str | None, path: Path) -> str:
    if asked is not None:
        return _asked_column(columns, asked, "--smiles", path)
    exact = [name for name in columns if name.casefold() == "smiles"]
    near = [name for name in columns if "smiles" in name.casefold()]
    found = exact or near
    if len(found) != 1:
        raise InputError(
            f"{path} has {'several columns' if found else 'no column'} with 'smiles' in the name: "
            f"say which one holds the SMILES with --smiles COLUMN. {_listed(columns)}"
        )
    return found[0]


def _target_column(columns: Sequence[str], asked: str | None, need: bool, path: Path) -> str | None:
    if asked is not None:
        return _asked_column(columns, asked, "--target", path)
    if not need:
        return None
    found = [c for name in DEFAULT_TARGETS for c in columns if c.casefold() == name]
    if not found:
        raise InputError(
            f"Say which column of {path} holds the class or number with --target COLUMN. "
            f"{_listed(columns)}"
        )
    return found[0]


def _asked_column(columns: Sequence[str], asked: str, option: str, path: Path) -> str:
    if asked in columns:
        return asked
    close = difflib.get_close_matches(asked, columns, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InputError(f"{path} has no column {asked!r} ({option}).{hint} {_listed(columns)}")


def _listed(columns: Sequence[str]) -> str:
    names = ", ".join(map(repr, columns[:50])) + (", ..." if len(columns) > 50 else "")
    return f"Its columns are: {names}." if columns else "It has no columns."


# --- graphs ---------------------------------------------------------------------------------


def _read_tu(source: str, reading: Reading) -> GraphData:
    import numpy as np

    from treelens.graphs.tudataset import read_tudataset

    reading.check_no_molecules(source)
    graphs, y = read_tudataset(source)
    return GraphData(source, graphs, y, np.arange(len(graphs)), len(graphs))


def _read_dataset(name: str, reading: Reading) -> GraphData:
    import numpy as np

    from treelens.graphs.datasets import load_dataset
    from treelens.graphs.errors import InvalidMoleculesWarning
    from treelens.graphs.molecules import reread
    from treelens.graphs.registry import dataset_info

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidMoleculesWarning)
        graphs, y = load_dataset(name)
    if "smiles" not in graphs.graph_data:
        reading.check_no_molecules(name)
    elif reading.settings() != Reading().settings():
        graphs = reread(graphs, **reading.settings())
    rows = np.array(graphs.graph_data.get("row", np.arange(len(graphs))), dtype=np.int64)
    return GraphData(name, graphs, y, rows, dataset_info(name).n_graphs)


# --- what is wrong with the rows ------------------------------------------------------------


def _check_share_unreadable(
    data: GraphData, max_invalid: float, note: Callable[[str], None]
) -> None:
    if not data.n_unreadable:
        return
    share = data.n_unreadable / data.n_rows
    found = (
        f"{data.source}: {data.n_unreadable} of {data.n_rows} rows ({100 * share:.0f} %) hold no "
        f"molecule that RDKit can read: {unreadable_rows(data)}."
    )
    if share > max_invalid:
        raise InputError(
            f"{found} With so many, the column or the file is probably not what it should be. "
            f"Correct them, name another column with --smiles, or leave them out with "
            f"--max-invalid {min(1.0, share + 0.01):.2f}."
        )
    note(f"{found} They were left out.")


def unreadable_rows(data: GraphData) -> str:
    """The first rows that could not be read, in words."""
    import numpy as np

    missing = np.setdiff1d(np.arange(data.n_rows), data.rows).tolist()
    shown = [
        f"row {row + 1}" + (f" {data.texts[row][:40]!r}" if data.texts else "")
        for row in missing[:_ROWS_IN_A_MESSAGE]
    ]
    more = len(missing) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _without_duplicates(data: GraphData, drop: bool, note: Callable[[str], None]) -> GraphData:
    """Tell of rows with the same SMILES, and leave out all but the first of each if asked."""
    import numpy as np

    if data.texts is None:
        return data
    _, first, which = np.unique(
        np.array([data.texts[row] for row in data.rows]), return_index=True, return_inverse=True
    )
    n_copies = len(data.rows) - len(first)
    if not n_copies:
        return data
    assert data.y is not None
    _, codes = np.unique(data.y, return_inverse=True)
    n_torn = int((codes != codes[first][which]).sum())
    found = f"{n_copies} rows repeat the SMILES of another row, letter for letter"
    other = "value" if data.task == "regression" else "class"
    found += f", {n_torn} of them with another {other}" if n_torn else ""
    if drop:
        note(f"{found}; they were left out.")
        return data.pick(np.sort(first))
    note(
        f"{found}. Copies on both sides of a split make scores look better than they are: "
        "--drop-duplicates keeps one of each."
    )
    return data
