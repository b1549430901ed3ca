"""A data set in the TU format, read in blocks of graphs from unpacked text files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from treelens.graphs.blocks import Block, check_block_size
from treelens.graphs.build import build_collection
from treelens.graphs.errors import GraphDataError, GraphFileNotFoundError
from treelens.graphs.integers import integers_of_line
from treelens.graphs.opening import bounded_lines, open_text
from treelens.graphs.tudataset import (
    OPTIONAL_PARTS,
    REQUIRED_PARTS,
    TU_RECIPE,
    UNUSED_PARTS,
    labels_of_columns,
    warn_attributes,
)


@dataclass(frozen=True)
class TUPart:
    """The lines of some graphs as numbers; nodes are counted from 0 within the part."""

    y: np.ndarray
    sizes: np.ndarray  # (n_graphs,)
    edges: np.ndarray  # (n_lines, 2)
    node_labels: np.ndarray | None  # (n_nodes, n_columns)
    edge_labels: np.ndarray | None  # (n_lines, n_columns)
    place: str  # the words that name the part in an error

    def load(self) -> Block:
        node_labels = None if self.node_labels is None else labels_of_columns(self.node_labels)
        edge_labels = None if self.edge_labels is None else labels_of_columns(self.edge_labels)
        try:
            graphs = build_collection(
                self.sizes, self.edges, node_labels, edge_labels, recipe=TU_RECIPE
            )
        except GraphDataError as error:
            raise GraphDataError(f"{self.place}: {error}") from error
        return Block(graphs, self.y)


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
            for part in REQUIRED_PARTS + OPTIONAL_PARTS:
                path = folder / f"{name}_{part}.txt"
                if path.exists():
                    # bytes that are no text end up in the message about their line
                    stream = stack.enter_context(open_text(path, errors="replace"))
                    lines[part] = _NumberLines(path, stream)
                elif part in REQUIRED_PARTS:
                    raise GraphFileNotFoundError(f"{path} is missing: a TU data set needs it.")
            unused = [f"{name}_{part}.txt" for part in UNUSED_PARTS]
            warn_attributes(file for file in unused if (folder / file).exists())
            yield from self._parts(lines)

    def _parts(self, lines: dict[str, _NumberLines]) -> Iterator[TUPart]:
        n_graphs = n_nodes = 0
        classes = lines["graph_labels"]
        while len(y := classes.table_up_to(self.block_size, 1)):
            last_graph = n_graphs + len(y)
            owners = lines["graph_indicator"].take_while(n_graphs, last_graph, ascending=True)
            graph_of = owners[:, 0] - n_graphs - 1
            last_node = n_nodes + len(owners)
            edges = lines["A"].take_while(n_nodes, last_node, ascending=False) - n_nodes - 1
            _check_within_graphs(lines["A"], edges, graph_of, n_nodes, n_graphs)
            labels = {
                part: lines[part].table(len(rows)) if part in lines else None
                for part, rows in (("node_labels", owners), ("edge_labels", edges))
            }
            place = (
                f"{classes.path.parent}, graphs {n_graphs + 1} to {last_graph} (counted from 0 in "
                "what follows)"
            )
            sizes = np.bincount(graph_of, minlength=len(y))
            yield TUPart(y[:, 0], sizes, edges, **labels, place=place)
            n_graphs, n_nodes = last_graph, last_node
        if not n_graphs:
            raise GraphDataError(f"{classes.path} is empty: expected one class a line.")
        for part in lines.values():
            part.check_end()


def _check_within_graphs(
    lines: _NumberLines, edges: np.ndarray, graph_of: np.ndarray, n_nodes: int, n_graphs: int
) -> None:
    """Both ends of an edge must lie in one graph; the counts before this block name the place."""
    ends = graph_of[edges]
    across = np.flatnonzero(ends[:, 0] != ends[:, 1])
    if len(across):
        u, v = (edges[across[0]] + n_nodes + 1).tolist()
        of_u, of_v = (ends[across[0]] + n_graphs + 1).tolist()
        raise GraphDataError(
            f"{lines.path}, line {lines.n_taken - len(edges) + across[0] + 1}: the edge {u} - {v} "
            f"joins two graphs, {of_u} and {of_v}. Both ends of an edge must lie in one graph."
        )


class _NumberLines:
    """The lines of a file as integers, one after the other."""

    def __init__(self, path: Path, stream: TextIO) -> None:
        self.path, self.number = path, 0
        self.n_taken = 0  # lines that take_while has given out
        self._rows = self._parsed(stream)
        self._ahead: list[int] | None = None
        self._n_columns: int | None = None

    def _parsed(self, stream: TextIO) -> Iterator[list[int]]:
        blank = 0
        for line in bounded_lines(stream, self.path):
            self.number += 1
            row = integers_of_line(line)
            if row is not None and not blank:
                yield row
            elif line.strip():
                self.number = blank or self.number
                found = "a blank line" if blank else repr(line[:80].strip())
                raise self._error(f"expected integers, found {found}")
            else:  # fine at the end of the file
                blank = blank or self.number

    def table_up_to(self, count: int, n_columns: int | None = None) -> np.ndarray:
        """The next lines, at most ``count`` of them, shape (n_lines, n_columns)."""
        rows = []
        for row in islice(self._rows, count):
            n_columns = n_columns or len(row)
            if len(row) != n_columns:
                raise self._error(f"expected {n_columns} integers a line, found {len(row)}")
            rows.append(row)
        return np.array(rows, dtype=np.int64).reshape(len(rows), n_columns or 1)

    def table(self, count: int) -> np.ndarray:
        """Exactly ``count`` lines, with as many columns as all lines before have."""
        table = self.table_up_to(count, self._n_columns)
        if len(table) != count:
            raise self._error(f"the file ends {count - len(table)} lines early")
        self._n_columns = table.shape[1] if count else self._n_columns
        return table

    def take_while(self, after: int, last: int, ascending: bool) -> np.ndarray:
        """The lines whose numbers lie above ``after`` and up to ``last``: (n_lines, n_columns).

        ``ascending``: one number a line, none smaller than the one before; else two.
        """
        rows, n_columns = [], 1 if ascending else 2
        while (row := self._peek()) is not None and max(row) <= last:
            if len(row) != n_columns:
                raise self._error(f"expected {n_columns} integers a line, found {len(row)}")
            if min(row) <= after:
                raise self._error(
                    f"{', '.join(map(str, row))} does not belong to the graphs from here on. "
                    "Blocks need files in the order of the graphs; read_tudataset reads any order"
                )
            rows.append(row)
            after = row[0] - 1 if ascending else after
            self._ahead = None
        self.n_taken += len(rows)
        return np.array(rows, dtype=np.int64).reshape(len(rows), n_columns)

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
