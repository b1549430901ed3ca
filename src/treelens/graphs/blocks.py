"""Graphs in blocks that fit into memory: from a collection, a table of molecules, or TU files.

Blocks are iterables of *parts*, which can be read several times. A part is cheap to send, also to
another machine, and returns its graphs when it is loaded.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TextIO

import numpy as np

from treelens.graphs.atoms import AtomAttributes, AtomLabel
from treelens.graphs.build import listed_one_way
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import as_graph_collection, described, kind_of
from treelens.graphs.errors import (
    GraphDataError,
    GraphFileNotFoundError,
    InvalidMoleculesWarning,
    MissingTargetsWarning,
    NotGraphsError,
    check_choice,
)
from treelens.graphs.molecules import molecules_of_table
from treelens.graphs.opening import bounded_lines, open_text
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.tables import STREAMED_ENDINGS, Table, inner_suffix, read_table_blocks
from treelens.graphs.tudataset import (
    PARTS,
    REQUIRED_PARTS,
    UNUSED_PARTS,
    build_tu,
    parser_of,
    warn_attributes,
)

_EXPECTED = "SmilesBlocks, CollectionBlocks, TUBlocks or a list of (graphs, y) pairs"
_LINES_AT_ONCE = 2**16


class Block(NamedTuple):
    """Some graphs, perhaps none, their targets, and warnings about them."""

    graphs: GraphCollection
    y: np.ndarray | None
    messages: tuple[Warning, ...] = ()


class Part(Protocol):
    def load(self) -> Block: ...


@dataclass(frozen=True)
class GraphPart:
    """Graphs in memory."""

    graphs: GraphCollection
    y: np.ndarray | None

    def load(self) -> Block:
        return Block(self.graphs, self.y)


@dataclass(frozen=True)
class FilePart:
    """Some lines of a file, and the function that turns them into graphs."""

    read: Callable[..., Block]
    arguments: tuple[Any, ...]

    def load(self) -> Block:
        return self.read(*self.arguments)


@dataclass(frozen=True)
class CollectionBlocks:
    """A collection in blocks of neighbouring graphs.

    Parameters
    ----------
    graphs : GraphCollection or anything :func:`treelens.as_graph_collection` takes
    y : array-like, shape (n_graphs,), optional
        Classes or values; a prediction needs none.
    block_size : int

    Examples
    --------
    >>> from treelens.graphs.synthetic import make_random_graphs
    >>> blocks = CollectionBlocks(make_random_graphs(10, random_state=0), None, block_size=4)
    >>> [len(part.load().graphs) for part in blocks]
    [4, 4, 2]
    """

    graphs: Any
    y: Any = None
    block_size: int = 5000

    def __iter__(self) -> Iterator[GraphPart]:
        check_block_size(self.block_size)
        graphs = as_graph_collection(self.graphs)
        y = _checked_y(self.y, len(graphs), "CollectionBlocks")
        for start in range(0, len(graphs), self.block_size):
            rows = slice(start, start + self.block_size)
            yield GraphPart(graphs[rows], None if y is None else y[rows])


def _read_molecules(
    table: Table, smiles: str, target: str | None, on_invalid: str, on_missing: str,
    recipe: GraphRecipe,
) -> Block:  # fmt: skip
    """Parse some rows of a table; warnings name rows by their number in the whole file."""
    data = {"smiles": table.column(smiles, "smiles")}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InvalidMoleculesWarning)
        warnings.simplefilter("always", MissingTargetsWarning)
        graphs, y = molecules_of_table(
            table, data, target, recipe=recipe, on_invalid=on_invalid, on_missing=on_missing,
            may_be_empty=True,
        )  # fmt: skip
    messages = tuple(w.message for w in caught if isinstance(w.message, Warning))
    return Block(graphs, y, messages)


@dataclass(frozen=True)
class SmilesBlocks:
    """A table of molecules, read ``block_size`` rows at a time.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.txt`` or ``.smi``, each also with ``.gz``.
    smiles, target, on_invalid, on_missing, hydrogens, atom_label, bond_label, standardize
        As in :func:`treelens.read_smiles`. A message about a row gives its number in the file,
        whatever block it is in.
    block_size : int
        Rows in memory at a time.
    atom_attributes : list of str or callable, optional
        As in :func:`treelens.read_smiles`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "drinks.csv")
    >>> _ = path.write_text("smiles,label\\nCCO,1\\nO,0\\nCC,0\\n")
    >>> blocks = [part.load() for part in SmilesBlocks(path, block_size=2)]
    >>> [block.y.tolist() for block in blocks], blocks[1].graphs.graph_data["row"].tolist()
    ([[1, 0], [0]], [2])
    """

    path: str | Path
    smiles: str = "smiles"
    target: str | None = "label"
    block_size: int = 5000
    on_invalid: str = "raise"
    hydrogens: bool = False
    atom_label: AtomLabel = "element"
    bond_label: str = "order"
    standardize: bool | str | Sequence[str] = False
    on_missing: str = "raise"
    atom_attributes: AtomAttributes | None = None
    _recipe: GraphRecipe = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("on_invalid", self.on_invalid, ("raise", "skip"))
        check_choice("on_missing", self.on_missing, ("raise", "skip"))
        recipe = GraphRecipe.of_molecules(
            "smiles", self.atom_label, self.hydrogens, self.bond_label, self.standardize,
            self.atom_attributes,
        )  # fmt: skip
        object.__setattr__(self, "_recipe", recipe)

    def __iter__(self) -> Iterator[FilePart]:
        check_block_size(self.block_size)
        path = Path(self.path).expanduser()
        if inner_suffix(path) not in STREAMED_ENDINGS:
            raise GraphDataError(
                f"{path} cannot be read in blocks: expected .csv, .tsv, .txt or .smi (or these "
                "with .gz). read_smiles reads it at once."
            )
        for table in read_table_blocks(path, self.block_size):
            settings = (self.smiles, self.target, self.on_invalid, self.on_missing, self._recipe)
            yield FilePart(_read_molecules, (table, *settings))


# --- TU files ---------------------------------------------------------------------------------


def _read_tu(y: np.ndarray, *arguments: Any) -> Block:
    return Block(build_tu(*arguments), y)


@dataclass(frozen=True)
class TUBlocks:
    """A folder with ``NAME_A.txt`` and its companions, ``block_size`` graphs at a time.

    The files must list nodes and edges in the order of the graphs, as the published ones do, and
    give one class a graph; anything else is an error that names the file and the line.
    :func:`treelens.read_tudataset` reads any order, all at once. Numbers are read as strictly as
    there: ``01`` and ``1_0`` are errors.

    Parameters
    ----------
    folder : str or Path
        Unpacked; its name is that of the data set unless ``name`` says otherwise.
    name : str, optional
    block_size : int
    directed : bool, optional
        Whether edges have a direction. None: they have none, and a block with edges that are listed
        in one direction only is an error.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "TINY_A.txt").write_text("1, 2\\n2, 1\\n")
    >>> _ = (folder / "TINY_graph_indicator.txt").write_text("1\\n1\\n2\\n")
    >>> _ = (folder / "TINY_graph_labels.txt").write_text("1\\n-1\\n")
    >>> _ = (folder / "TINY_node_labels.txt").write_text("0\\n1\\n0\\n")
    >>> [part.load().graphs.n_nodes for part in TUBlocks(folder, "TINY", block_size=1)]
    [2, 1]
    """

    folder: str | Path
    name: str | None = None
    block_size: int = 5000
    directed: bool | None = None

    def __iter__(self) -> Iterator[FilePart]:
        check_block_size(self.block_size)
        folder = Path(self.folder).expanduser()
        name = folder.name if self.name is None else self.name
        with ExitStack() as stack:
            files = {}
            for part in PARTS:
                path = folder / f"{name}_{part}.txt"
                if path.exists():
                    # bytes that are no text end up in the message about their line
                    stream = stack.enter_context(open_text(path, errors="replace"))
                    files[part] = _NumberFile(path, stream, part)
                elif part in REQUIRED_PARTS:
                    raise GraphFileNotFoundError(f"{path} is missing: a TU data set needs it.")
            unused = [f"{name}_{part}.txt" for part in UNUSED_PARTS]
            warn_attributes(file for file in unused if (folder / file).exists())
            yield from self._parts(files)

    def _parts(self, files: dict[str, _NumberFile]) -> Iterator[FilePart]:
        n_graphs = n_nodes = 0
        owner_file, edge_file = files["graph_indicator"], files["A"]
        while len(y := files["graph_labels"].take(self.block_size)):
            last_graph = n_graphs + len(y)
            owners = owner_file.take(last=last_graph)[:, 0]
            owner_file.check(np.diff(owners, prepend=n_graphs + 1) < 0, _DISORDER)
            graph_of = owners - n_graphs - 1
            last_node = n_nodes + len(owners)
            edges = edge_file.take(last=last_node)
            edge_file.check((edges <= n_nodes).any(axis=1), _DISORDER)
            ends = graph_of[edges - n_nodes - 1]
            edge_file.check(ends[:, 0] != ends[:, 1], "the edge joins two graphs")
            if self.directed is None:
                one_way = np.isin(np.arange(len(edges)), listed_one_way(edges))
                edge_file.check(
                    one_way, "the edge is listed in this direction only: pass directed=True if "
                    "edges have a direction, else directed=False",
                )  # fmt: skip
            companions = [
                files[part].take(len(lines), exactly=True) if part in files else None
                for part, lines in (
                    ("node_labels", owners), ("node_attributes", owners), ("edge_labels", edges),
                    ("edge_attributes", edges),
                )
            ]  # fmt: skip
            place = f"{edge_file.path.parent}, graphs {n_graphs + 1} to {last_graph}"
            sizes = np.bincount(graph_of, minlength=len(y))
            edges = edges - n_nodes - 1
            arguments = (y[:, 0], sizes, edges, *companions, place, bool(self.directed))
            yield FilePart(_read_tu, arguments)
            n_graphs, n_nodes = last_graph, last_node
        if not n_graphs:
            raise GraphDataError(f"{files['graph_labels'].path} is empty: expected classes.")
        for file in files.values():
            more = file.take(1)
            file.check([True] * len(more), "there are more lines than the graphs need")


_COLUMNS = {"A": 2, "graph_indicator": 1, "graph_labels": 1}
_DISORDER = (
    "it does not belong to the graphs from here on. Blocks need files in the order of the graphs; "
    "read_tudataset reads any"
)


class _NumberFile:
    """The lines of a file as rows of numbers, some at a time."""

    def __init__(self, path: Path, stream: TextIO, part: str) -> None:
        self.path, self.n_columns, self.n_taken = path, _COLUMNS.get(part), 0
        self._tables = self._parsed(stream, parser_of(part))
        self._ahead: np.ndarray | None = None  # rows that were parsed, but not taken yet

    def _parsed(self, stream: TextIO, parse: Callable[..., np.ndarray]) -> Iterator[np.ndarray]:
        text, n_rows, blank = bounded_lines(stream, self.path), 0, ""
        while lines := list(islice(text, _LINES_AT_ONCE)):
            data = blank + "".join(lines)
            kept = data.rstrip()
            blank = data[len(kept) :] if kept else data  # blank lines are fine at the end only
            if kept:
                blank = blank.split("\n", 1)[-1]
                table = parse(kept.encode(), str(self.path), self.n_columns, first_line=n_rows + 1)
                self.n_columns, n_rows = table.shape[1], n_rows + len(table)
                yield table

    def take(
        self, count: float = np.inf, last: float = np.inf, exactly: bool = False
    ) -> np.ndarray:
        """Return the next rows: at most ``count``, up to the first number above ``last``."""
        rows: list[np.ndarray] = []
        left = count
        while left > 0:
            table = next(self._tables, None) if self._ahead is None else self._ahead
            if table is None:
                break
            above = (table > last).any(axis=1)
            stop = int(min(left, above.argmax() if above.any() else len(table)))
            rows.append(table[:stop])
            left -= stop
            self._ahead = table[stop:] if stop < len(table) else None
            if self._ahead is not None:
                break
        taken = np.concatenate(rows or [np.empty((0, self.n_columns or 1), dtype=np.int64)])
        self.n_taken += len(taken)
        if exactly and len(taken) < count:
            raise GraphDataError(
                f"{self.path}, line {self.n_taken}: the file ends {count - len(taken)} lines early."
            )
        return taken

    def check(self, is_wrong: Any, problem: str) -> None:
        """Raise where one of the rows taken last is wrong."""
        wrong = np.flatnonzero(is_wrong)
        if len(wrong):
            line = self.n_taken - len(is_wrong) + int(wrong[0]) + 1
            raise GraphDataError(f"{self.path}, line {line}: {problem}.")


# --- any blocks ------------------------------------------------------------------------------


def loaded(blocks: Any, recipe: GraphRecipe | None = None) -> Iterator[Block]:
    """Yield blocks with their graphs, one in memory at a time; molecules are read by the recipe."""
    if isinstance(blocks, CollectionBlocks):
        blocks = replace(blocks, graphs=as_graph_collection(blocks.graphs, recipe=recipe))
    for part in parts_of(blocks, recipe):
        block = part.load()
        repeat_messages(block.messages)
        if len(block.graphs):
            yield block


def parts_of(blocks: Any, recipe: GraphRecipe | None = None) -> Iterator[Part]:
    """Yield the parts of an iterable of parts or of ``(graphs, y)`` pairs."""
    return (as_part(block, number, recipe) for number, block in enumerate(blocks))


def as_part(block: Any, number: int, recipe: GraphRecipe | None = None) -> Part:
    """Return a part, also of a pair of graphs and targets; an error names the block."""
    if hasattr(block, "load"):
        return block
    if not _is_pair(block):
        raise NotGraphsError(
            f"{block_name(number)} is {described(block)}: expected {_EXPECTED}, where graphs is "
            "a collection or a list of graphs."
        )
    graphs, y = block
    try:
        collection = as_graph_collection(graphs, recipe=recipe)
    except GraphDataError as error:
        raise type(error)(f"{block_name(number)}: {error}") from error
    return GraphPart(collection, _checked_y(y, len(collection), block_name(number)))


def block_name(number: int) -> str:
    """Return the name of a block in a message."""
    return f"Block {number} (counted from 0)"


def graph_name(number: int, graph: int, block: Block, n_before: int) -> str:
    """Return the name of a graph in a message: its place in the block, in all, in its table."""
    rows = block.graphs.graph_data.get("row")
    row = None if rows is None else rows[graph]
    place = f", row {row + 1} of its table" if isinstance(row, (int, np.integer)) else ""
    return f"{block_name(number)}, graph {graph} of it ({n_before + graph} of all){place}"


def check_beside_blocks(**given: Any) -> None:
    """Raise where an argument is given that blocks do not take."""
    for name, value in given.items():
        if value is not None:
            raise TypeError(
                f"Blocks take no {name} beside them, and have their targets in them: leave it out."
            )


def holds_blocks(given: Any) -> bool:
    """Whether this is an iterable of blocks, not of graphs."""
    if isinstance(given, (GraphCollection, Iterator)) or not isinstance(given, Iterable):
        return False
    if kind_of(given) is not None:  # a graph by itself: some can be iterated over
        return False
    first = next(iter(given), None)
    return kind_of(first) is None and (hasattr(first, "load") or _is_pair(first))


def _is_pair(block: Any) -> bool:
    if not isinstance(block, (tuple, list)) or len(block) != 2:
        return False
    return isinstance(block[0], Iterable) and not isinstance(block[0], (str, bytes))


def _checked_y(y: Any, n_graphs: int, place: str) -> np.ndarray | None:
    if y is None:
        return None
    targets, problem = np.asarray(y), None
    if isinstance(y, (set, frozenset, np.ma.MaskedArray)):
        problem = f"y is a {type(y).__name__}: expected an array or list, without masked values"
    elif targets.ndim != 1:
        problem = f"y must be one class or value per graph, one-dimensional; got {described(y)}"
    elif len(targets) != n_graphs:
        problem = f"there are {n_graphs} graphs but {len(targets)} targets in y: give one each"
    if problem is not None:
        raise GraphDataError(f"{place}: {problem}.")
    return targets


def repeat_messages(messages: tuple[Warning, ...]) -> None:
    """Issue the warnings of a block, which may have been loaded on another machine."""
    for message in messages:
        warnings.warn(message, stacklevel=3)


def check_block_size(block_size: Any) -> None:
    """Raise unless it is a number of graphs."""
    if not isinstance(block_size, (int, np.integer)) or block_size < 1:
        raise ValueError(f"block_size must be a number of graphs, at least 1; got {block_size!r}.")
