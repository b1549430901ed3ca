"""Graphs in blocks that fit into memory: from a collection or a table of molecules.

Blocks are iterables of *parts*, which can be read several times. A part is cheap to send, also to
another machine, and returns its graphs when it is loaded.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from treelens.errors import (
    GraphDataError,
    NotGraphsError,
)
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.convert import as_graph_collection, is_block
from treelens.graphs.foreign import described
from treelens.graphs.kinds import GraphRecipe
from treelens.targets import Targets


class Block(NamedTuple):
    """Some graphs, perhaps none, their targets, and warnings about them."""

    graphs: GraphCollection
    y: Targets | None
    messages: tuple[Warning, ...] = ()

    def load(self) -> Block:
        return self


class Part(Protocol):
    def load(self) -> Block: ...


@dataclass(frozen=True)
class CollectionBlocks:
    """A collection in blocks of neighbouring graphs.

    Parameters
    ----------
    graphs : GraphCollection or anything :func:`treelens.as_graph_collection` takes
    y : Targets or array-like, shape (n_graphs,), optional
        Classes or values, without limits and noise; a prediction needs none.
    block_size : int

    Examples
    --------
    >>> from treelens import make_synthetic
    >>> blocks = CollectionBlocks(make_synthetic(random_state=0)[0][:10], block_size=4)
    >>> [len(part.load().graphs) for part in blocks]
    [4, 4, 2]
    """

    graphs: Any
    y: Any = None
    block_size: int = 5000

    def __iter__(self) -> Iterator[Block]:
        check_block_size(self.block_size)
        graphs = as_graph_collection(self.graphs)
        y = _checked_y(self.y, len(graphs), "CollectionBlocks")
        for start in range(0, len(graphs), self.block_size):
            rows = slice(start, start + self.block_size)
            yield Block(graphs[rows], None if y is None else y[rows])


# --- any blocks ------------------------------------------------------------------------------


def loaded(blocks: Iterable[Any], recipe: GraphRecipe | None = None) -> Iterator[Block]:
    """Yield blocks with their graphs, one in memory at a time; molecules are read by the recipe."""
    if isinstance(blocks, CollectionBlocks):
        blocks = replace(blocks, graphs=as_graph_collection(blocks.graphs, recipe=recipe))
    for part in parts_of(blocks, recipe):
        block = part.load()
        repeat_messages(block.messages)
        if len(block.graphs):
            yield block


def parts_of(blocks: Iterable[Any], recipe: GraphRecipe | None = None) -> Iterator[Part]:
    """Yield the parts of an iterable of parts or of ``(graphs, y)`` pairs."""
    for number, block in enumerate(blocks):
        if hasattr(block, "load"):
            yield block
            continue
        if not is_block(block):
            raise NotGraphsError(
                f"{block_name(number)} is {described(block)}: expected SmilesBlocks, "
                "CollectionBlocks or a list of (graphs, y) pairs."
            )
        try:
            graphs = as_graph_collection(block[0], recipe=recipe)
        except GraphDataError as error:
            raise type(error)(f"{block_name(number)}: {error}") from error
        yield Block(graphs, _checked_y(block[1], len(graphs), block_name(number)))


def block_name(number: int) -> str:
    """Return the name of a block in a message."""
    return f"Block {number} (counted from 0)"


def graph_name(number: int, position: int, graph: Graph, n_before: int) -> str:
    """Return the name of a graph in a message: its place in the block, in all, in its table."""
    row = graph.data.get("row")  # of a table, unless somebody's own
    place = f", row {row + 1} of its table" if isinstance(row, (int, np.integer)) else ""
    return f"{block_name(number)}, graph {position} of it ({n_before + position} of all){place}"


def check_beside_blocks(**given: Any) -> None:
    """Raise where an argument is given that blocks do not take."""
    for name, value in given.items():
        if value is not None:
            raise TypeError(f"Blocks take no {name} beside them: leave it out.")


def _checked_y(y: object, n_graphs: int, place: str) -> Targets | None:
    """Return the targets of a block; an error where blocks cannot learn from all they hold."""
    if y is None:
        return None
    try:
        targets = Targets.of(y, n_graphs)
    except GraphDataError as error:
        raise GraphDataError(f"{place}: {error}") from error
    for name in ("limits", "noise", "sample_weight"):
        if getattr(targets, name) is not None:
            raise GraphDataError(
                f"{place}: y has {name}, which blocks do not learn from. Call fit(graphs, y), or "
                "give y.values."
            )
    return targets


def repeat_messages(messages: tuple[Warning, ...]) -> None:
    """Issue the warnings of a block, which may have been loaded on another machine."""
    for message in messages:
        warnings.warn(message, stacklevel=3)


def check_block_size(block_size: object) -> None:
    """Raise unless it is a number of graphs."""
    if not isinstance(block_size, (int, np.integer)) or block_size < 1:
        raise ValueError(f"block_size must be a number of graphs, at least 1; got {block_size!r}.")
