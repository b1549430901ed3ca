"""A data set in the TU format, read in blocks of graphs from unpacked text files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from treelens.graphs.blocks import Block, check_block_size
from treelens.graphs.build import build_collection
from treelens.graphs.errors import GraphDataError, GraphFileNotFoundError
from treelens.graphs.tudataset import TU_RECIPE, labels_of_columns

_OPTIONAL = ("node_labels", "edge_labels")


@dataclass(frozen=True)
class TUPart:
    """The lines of some graphs as numbers; nodes are counted from 0 within the part."""

    y: np.ndarray
    sizes: np.ndarray  # (n_graphs,)
    edges: np.ndarray  # (n_lines, 2)
    node_labels: np.ndarray | None  # (n_nodes, n_columns)
    edge_labels: np.ndarray | None  # (n_lines, n_columns)

    def load(self) -> Block:
        node_labels = None if self.node_labels is None else labels_of_columns(self.node_labels)
        edge_labels = None if self.edge_labels is None else labels_of_columns(self.edge_labels)
        graphs = build_collection(
            self.sizes, self.edges, node_labels, edge_labels, recipe=TU_RECIPE
        )
        return Block(graphs, self.y)


@dataclass(frozen=True)
class TUBlocks:
    """A folder with ``NAME_A.txt`` and its companions, ``block_size`` graphs at a time.

    The files must list nodes and edges in the order of the graphs, as the published ones do;
    :func:`treelens.read_tudataset` reads any order, all at once.

    Parameters
    ----------
    folder : str or Path
        Unpacked; its name is that of the data set unless ``name`` says otherwise.
    name : str, optional
    block_size : int

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

    def __iter__(self) -> Iterator[TUPart]:
        check_block_size(self.block_size)
        folder = Path(self.folder).expanduser()
        name = folder.name if self.name is None else self.name
        with ExitStack() as stack:
            lines = {}
            for part in ("A", "graph_indicator", "graph_labels", *_OPTIONAL):
                path = folder / f"{name}_{part}.txt"
                if path.is_file():
                    stream = stack.enter_context(path.open(encoding="utf-8-sig"))
                    lines[part] = _NumberLines(path, stream)
                elif part not in _OPTIONAL:
                    raise GraphFileNotFoundError(f"{path} is missing: a TU data set needs it.")
            yield from self._parts(lines)

    def _parts(self, lines: dict[str, _NumberLines]) -> Iterator[TUPart]:
        n_graphs = n_nodes = 0
        while y := lines["graph_labels"].take(self.block_size):
            last_graph = n_graphs + len(y)
            owners = lines["graph_indicator"].take_while(n_graphs, last_graph)
            sizes = np.bincount(owners[:, 0] - n_graphs - 1, minlength=len(y))
            last_node = n_nodes + len(owners)
            edges = lines["A"].take_while(n_nodes, last_node)
            labels = {
                part: lines[part].table(len(rows)) if part in lines else None
                for part, rows in (("node_labels", owners), ("edge_labels", edges))
            }
            yield TUPart(np.array(y)[:, 0], sizes, edges - n_nodes - 1, **labels)
            n_graphs, n_nodes = last_graph, last_node
        for part in lines.values():
            part.check_end()


class _NumberLines:
    """The lines of a file as integers, one after the other."""

    def __init__(self, path: Path, stream: TextIO) -> None:
        self.path, self.number = path, 0
        self._rows = self._parsed(stream)
        self._ahead: list[int] | None = None

    def _parsed(self, stream: TextIO) -> Iterator[list[int]]:
        for line in stream:
            self.number += 1
            try:
                yield [int(field) for field in line.replace(",", " ").split()]
            except ValueError as error:
                raise self._error(f"expected integers, found {line[:80].strip()!r}") from error

    def take(self, count: int) -> list[list[int]]:
        """The next lines, at most ``count`` of them."""
        return list(islice(self._rows, count))

    def table(self, count: int) -> np.ndarray:
        """Exactly ``count`` lines, shape (count, n_columns)."""
        rows = self.take(count)
        if len(rows) != count:
            raise self._error(f"the file ends {count - len(rows)} lines early")
        return _as_table(rows, 1, self._error)

    def take_while(self, after: int, last: int) -> np.ndarray:
        """The lines whose numbers lie above ``after`` and up to ``last``: (n_lines, n_columns)."""
        rows = []
        n_columns = 2 if self.path.name.endswith("_A.txt") else 1
        while (row := self._peek()) is not None and max(row, default=0) <= last:
            if min(row, default=0) <= after or len(row) != n_columns:
                raise self._error(
                    f"{row} does not belong to the graphs from here on. Blocks need files in the "
                    "order of the graphs; read_tudataset reads any order"
                )
            rows.append(row)
            self._ahead = None
        return _as_table(rows, n_columns, self._error)

    def check_end(self) -> None:
        """Raise if there are lines that no graph has claimed."""
        if self._peek() is not None:
            raise self._error("there are more lines than the graphs of graph_labels account for")

    def _peek(self) -> list[int] | None:
        if self._ahead is None:
            self._ahead = next(self._rows, None)
        return self._ahead

    def _error(self, what: str) -> GraphDataError:
        return GraphDataError(f"{self.path}, line {self.number}: {what}.")


def _as_table(
    rows: list[list[int]], n_columns: int, error: Callable[[str], GraphDataError]
) -> np.ndarray:
    if len({len(row) for row in rows}) > 1:
        raise error("the lines up to here do not all have the same number of integers")
    return np.array(rows, dtype=np.int64).reshape(len(rows), -1 if rows else n_columns)
