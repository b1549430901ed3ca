"""Graphs in blocks: a file or a collection handed out in parts that fit into memory.

A *part* is cheap to pass around, also to another machine, and gives its graphs when it is loaded.
What iterates over parts can be read again and again, one pass after the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from treelens.graphs.atoms import AtomLabel
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import as_graph_collection, described, kind_of
from treelens.graphs.errors import (
    GraphDataError,
    InvalidMoleculesWarning,
    MissingTargetsWarning,
    NotGraphsError,
)
from treelens.graphs.molecules import check_choice, molecules_of_table
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.tables import STREAMED_ENDINGS, Table, inner_suffix, read_table_blocks

_EXPECTED = "SmilesBlocks, CollectionBlocks, TUBlocks or a list of (graphs, y) pairs"


class Block(NamedTuple):
    """Some graphs (None when none is left), their targets, and what there was to say."""

    graphs: GraphCollection | None
    y: np.ndarray | None
    messages: tuple[Warning, ...] = ()


class Part(Protocol):
    """Something that can be loaded."""

    def load(self) -> Block: ...


@dataclass(frozen=True)
class GraphPart:
    """Graphs that are in memory already."""

    graphs: GraphCollection
    y: np.ndarray | None

    def load(self) -> Block:
        return Block(self.graphs, self.y)


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


@dataclass(frozen=True)
class SmilesPart:
    """Some rows of a table of molecules, as text."""

    table: Table
    smiles: str
    target: str | None
    on_invalid: str
    on_missing: str
    recipe: GraphRecipe

    def load(self) -> Block:
        """Parse the molecules; messages name rows by their number in the whole file."""
        data = {"smiles": self.table.column(self.smiles, "smiles")}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InvalidMoleculesWarning)
            warnings.simplefilter("always", MissingTargetsWarning)
            read = molecules_of_table(
                self.table, data, self.target, recipe=self.recipe, on_invalid=self.on_invalid,
                on_missing=self.on_missing, may_be_empty=True,
            )  # fmt: skip
        messages = tuple(w.message for w in caught if isinstance(w.message, Warning))
        graphs, y = (None, None) if read is None else read
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

    def __post_init__(self) -> None:
        check_choice("on_invalid", self.on_invalid, ("raise", "skip"))
        check_choice("on_missing", self.on_missing, ("raise", "skip"))
        self._recipe()

    def _recipe(self) -> GraphRecipe:
        return GraphRecipe.of_molecules(
            "smiles", self.atom_label, self.hydrogens, self.bond_label, self.standardize
        )

    def __iter__(self) -> Iterator[SmilesPart]:
        check_block_size(self.block_size)
        path = Path(self.path).expanduser()
        if inner_suffix(path) not in STREAMED_ENDINGS:
            raise GraphDataError(
                f"{path} cannot be read in blocks: expected .csv, .tsv, .txt or .smi (or these "
                "with .gz). read_smiles reads it at once."
            )
        for table in read_table_blocks(path, self.block_size):
            yield SmilesPart(
                table, self.smiles, self.target, self.on_invalid, self.on_missing, self._recipe()
            )


# --- blocks as they are given ----------------------------------------------------------------


def loaded(blocks: Any, recipe: GraphRecipe | None = None) -> Iterator[Block]:
    """Blocks with their graphs, one in memory at a time; warnings are passed on.

    Molecules among them that were not read yet are read by the recipe.
    """
    if isinstance(blocks, CollectionBlocks):
        blocks = replace(blocks, graphs=as_graph_collection(blocks.graphs, recipe=recipe))
    for part in parts_of(blocks, recipe):
        block = part.load()
        repeat_messages(block.messages)
        if block.graphs is not None and len(block.graphs):
            yield block


def parts_of(blocks: Any, recipe: GraphRecipe | None = None) -> Iterator[Part]:
    """The parts of an iterable of parts or of ``(graphs, y)`` pairs."""
    return (as_part(block, number, recipe) for number, block in enumerate(blocks))


def as_part(block: Any, number: int, recipe: GraphRecipe | None = None) -> Part:
    """A part, or a pair of graphs and targets as one; an error names the block."""
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
    """How a message calls a block."""
    return f"Block {number} (counted from 0)"


def graph_name(number: int, graph: int, block: Block, n_before: int) -> str:
    """How a message calls a graph of a block: where it stands there, in all blocks, in its table.

    Parameters
    ----------
    number, graph : int
        Of the block, and of the graph in it.
    block : Block
    n_before : int
        Graphs in the blocks before.
    """
    assert block.graphs is not None
    rows = block.graphs.graph_data.get("row")
    row = None if rows is None else rows[graph]
    place = f", row {row + 1} of its table" if isinstance(row, (int, np.integer)) else ""
    return f"{block_name(number)}, graph {graph} of it ({n_before + graph} of all){place}"


def check_blocks(blocks: Any) -> None:
    """Raise unless these may be blocks, and can be read several times; nothing is read yet."""
    if isinstance(blocks, (str, bytes, GraphCollection)) or not isinstance(blocks, Iterable):
        raise NotGraphsError(
            f"Expected blocks: {_EXPECTED}; got {described(blocks)}. Graphs in memory are given "
            "with their targets: fit(graphs, y)."
        )
    if isinstance(blocks, Iterator):
        raise NotGraphsError(
            "The blocks are read several times, but this iterator can be read once: pass "
            f"{_EXPECTED}."
        )


def check_beside_blocks(**given: Any) -> None:
    """Refuse what is given beside blocks, by its name."""
    for name, value in given.items():
        if value is not None:
            raise TypeError(
                f"Blocks take no {name} beside them, and have their targets in them: leave it out."
            )


def holds_blocks(given: Any) -> bool:
    """Whether this is an iterable of blocks and not one of graphs; for what may be either."""
    if isinstance(given, (GraphCollection, Iterator)) or not isinstance(given, Iterable):
        return False
    if kind_of(given) is not None:  # a graph by itself: some can be iterated over
        return False
    first = next(iter(given), None)
    return kind_of(first) is None and (hasattr(first, "load") or _is_pair(first))


def _is_pair(block: Any) -> bool:
    if not isinstance(block, (tuple, list)) or len(block) != 2:
        return False
    graphs = block[0]
    return isinstance(graphs, (GraphCollection, Iterable)) and not isinstance(graphs, (str, bytes))


def _checked_y(y: Any, n_graphs: int, place: str) -> np.ndarray | None:
    if y is None:
        return None
    targets = np.asarray(y)
    if targets.ndim != 1:
        raise GraphDataError(
            f"{place}: y must be one class or value per graph, one-dimensional; got {described(y)}."
        )
    if len(targets) != n_graphs:
        raise GraphDataError(
            f"{place}: there are {n_graphs} graphs but {len(targets)} targets in y: give one each."
        )
    return targets


def repeat_messages(messages: tuple[Warning, ...]) -> None:
    """Warn about rows that were left out, perhaps on another machine."""
    for message in messages:
        warnings.warn(message, stacklevel=3)


def check_block_size(block_size: Any) -> None:
    """Raise unless it is a number of graphs."""
    if not isinstance(block_size, (int, np.integer)) or block_size < 1:
        raise ValueError(
            f"block_size must be a number of graphs of at least 1, got {block_size!r}."
        )
