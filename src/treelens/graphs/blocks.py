"""Graphs in blocks: a file or a collection handed out in parts that fit into memory.

A *part* is cheap to pass around, also to another machine, and gives its graphs when it is loaded.
What iterates over parts can be read again and again, one pass after the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError, InvalidMoleculesWarning
from treelens.graphs.molecules import molecules_of_table
from treelens.graphs.tables import Table, inner_suffix, read_table_blocks


class Block(NamedTuple):
    """Some graphs (None when none is left), their classes, and what there was to say."""

    graphs: GraphCollection | None
    y: np.ndarray | None
    messages: tuple[str, ...] = ()


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

    Examples
    --------
    >>> from treelens.graphs.synthetic import make_random_graphs
    >>> blocks = CollectionBlocks(make_random_graphs(10, random_state=0), None, block_size=4)
    >>> [len(part.load().graphs) for part in blocks]
    [4, 4, 2]
    """

    graphs: GraphCollection
    y: Any = None
    block_size: int = 5000

    def __iter__(self) -> Iterator[GraphPart]:
        check_block_size(self.block_size)
        y = None if self.y is None else np.asarray(self.y)
        if y is not None and len(y) != len(self.graphs):
            raise GraphDataError(f"There are {len(self.graphs)} graphs but {len(y)} classes in y.")
        for start in range(0, len(self.graphs), self.block_size):
            rows = slice(start, start + self.block_size)
            yield GraphPart(self.graphs[rows], None if y is None else y[rows])


@dataclass(frozen=True)
class SmilesPart:
    """Some rows of a table of molecules, as text."""

    table: Table
    smiles: str
    target: str | None
    on_invalid: str
    hydrogens: bool
    atom_label: str

    def load(self) -> Block:
        """Parse the molecules; messages name rows by their number in the whole file."""
        data = {"smiles": self.table.column(self.smiles, "smiles")}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InvalidMoleculesWarning)
            read = molecules_of_table(
                self.table, data, self.target, on_invalid=self.on_invalid,
                hydrogens=self.hydrogens, atom_label=self.atom_label, may_be_empty=True,
            )  # fmt: skip
        messages = tuple(str(w.message) for w in caught)
        graphs, y = (None, None) if read is None else read
        return Block(graphs, y, messages)


@dataclass(frozen=True)
class SmilesBlocks:
    """A table of molecules, read ``block_size`` rows at a time.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.txt`` or ``.smi``, each also with ``.gz``.
    smiles, target, on_invalid, hydrogens, atom_label
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
    atom_label: str = "element"

    def __iter__(self) -> Iterator[SmilesPart]:
        check_block_size(self.block_size)
        path = Path(self.path).expanduser()
        if inner_suffix(path) in (".sdf", ".sd", ".parquet", ".pq"):
            raise GraphDataError(
                f"{path} cannot be read in blocks: expected .csv, .tsv, .txt or .smi (or these "
                "with .gz). read_smiles reads it at once."
            )
        for table in read_table_blocks(path, self.block_size):
            yield SmilesPart(
                table, self.smiles, self.target, self.on_invalid, self.hydrogens, self.atom_label
            )


def loaded(parts: Any) -> Iterator[Block]:
    """The blocks of an iterable of parts or of ``(graphs, y)`` pairs; warnings are passed on."""
    for part in parts:
        block = as_part(part).load()
        repeat_messages(block.messages)
        if block.graphs is not None:
            yield block


def as_part(part: Any) -> Part:
    """A part, or a pair of graphs and classes as one."""
    if hasattr(part, "load"):
        return part
    graphs, y = part
    return GraphPart(graphs, np.asarray(y))


def repeat_messages(messages: tuple[str, ...]) -> None:
    """Warn about molecules that were left out, perhaps on another machine."""
    for message in messages:
        warnings.warn(message, InvalidMoleculesWarning, stacklevel=3)


def check_block_size(block_size: Any) -> None:
    """Raise unless it is a number of graphs."""
    if not isinstance(block_size, (int, np.integer)) or block_size < 1:
        raise ValueError(
            f"block_size must be a number of graphs of at least 1, got {block_size!r}."
        )
