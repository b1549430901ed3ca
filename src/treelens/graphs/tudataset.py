"""Reader of the TU format: one text file for the edges, the graphs, the classes and the labels."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from treelens.graphs.build import build_collection
from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.graphs.integers import is_integer, looks_plain, why_no_integer
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.sources import TextFiles, read_text_files

TU_RECIPE = GraphRecipe("tudataset")
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")


def read_tudataset(path: str | Path) -> tuple[GraphCollection, np.ndarray]:
    """Read a data set in the TU format.

    The edges of ``NAME_A.txt`` are taken as undirected, whether each is listed once, in both
    directions, or several times. Nodes without edges and graphs without nodes are kept. Without
    ``NAME_node_labels.txt`` each node is labelled with its degree, and a warning says so. Labels
    with several columns become tuples. ``NAME_node_attributes.txt`` and other files are not read.
    Numbers are read strictly: ``01``, ``1_0`` and ``1.0`` are errors, not 1 and 10.

    Parameters
    ----------
    path : str or Path
        A folder with ``NAME_A.txt``, ``NAME_graph_indicator.txt``, ``NAME_graph_labels.txt`` and
        perhaps ``NAME_node_labels.txt`` and ``NAME_edge_labels.txt``; a folder with such a
        folder in it; or a zip of either, which is read in place and never unpacked to disk. A
        zip may unpack to 2 GiB, and above 8 MiB to 100 times its size; the environment variable
        ``TREELENS_MAX_UNPACKED`` (a number of bytes) takes the place of both limits.

    Returns
    -------
    graphs : GraphCollection
        Graph ``i`` of the collection is graph ``i + 1`` of the files.
    y : ndarray of int64, shape (n_graphs,)
        The class codes, as the file has them.

    Raises
    ------
    GraphDataError
        When something does not fit; the message names the file and the line.

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
    return collection_from_text(read_text_files(path))


def collection_from_text(files: TextFiles) -> tuple[GraphCollection, np.ndarray]:
    """Understand the text files of one data set; see :func:`read_tudataset`."""
    y = _table(files, "graph_labels", columns=1)[:, 0]
    graph_of = _table(files, "graph_indicator", columns=1)[:, 0]  # (n_nodes,), from 1
    _check_graph_numbers(files, graph_of, len(y))

    def whose_node(line: int) -> str:
        return f" (node {line} of {_graph(graph_of[line - 1])})" if line <= len(graph_of) else ""

    edges = _table(files, "A", columns=2)  # (n_lines, 2), nodes from 1
    _check_ends(files, edges, graph_of)

    def whose_edge(line: int) -> str:
        if line > len(edges):
            return ""
        u, v = edges[line - 1]
        return f" (edge {u} - {v} of {_graph(graph_of[u - 1])})"

    node_labels = edge_labels = None
    if "node_labels" in files.contents:
        node_labels = _table(files, "node_labels", None, whose_node)
        _check_length(files, "node_labels", node_labels, "graph_indicator", graph_of, whose_node)
    if "edge_labels" in files.contents:
        edge_labels = _table(files, "edge_labels", None, whose_edge)
        _check_length(files, "edge_labels", edge_labels, "A", edges, whose_edge)
        _check_edge_labels_agree(files, edges, edge_labels, graph_of)

    by_graph = np.argsort(graph_of, kind="stable")  # nodes of a graph need not stand together
    position = np.empty(len(graph_of), dtype=np.int64)
    position[by_graph] = np.arange(len(graph_of))
    graphs = build_collection(
        np.bincount(graph_of - 1, minlength=len(y)),
        position[edges - 1],
        None if node_labels is None else labels_of_columns(node_labels[by_graph]),
        None if edge_labels is None else labels_of_columns(edge_labels),
        recipe=TU_RECIPE,
    )
    return graphs, y


def _graph(number: int) -> str:
    return f"graph {number}, index {number - 1}"


def labels_of_columns(table: np.ndarray) -> Any:
    """One label a row: the number itself, or a tuple where there are several columns."""
    return table[:, 0] if table.shape[1] == 1 else [tuple(row) for row in table.tolist()]


# --- what must hold between the files -------------------------------------------------------


def _check_graph_numbers(files: TextFiles, graph_of: np.ndarray, n_graphs: int) -> None:
    outside = np.flatnonzero((graph_of < 1) | (graph_of > n_graphs))
    if len(outside):
        line = int(outside[0]) + 1
        raise GraphDataError(
            f"{files.places['graph_indicator']}, line {line}: node {line} belongs to graph "
            f"{graph_of[line - 1]}, but {files.places['graph_labels']} has {n_graphs} lines, so "
            f"the graphs are 1 to {n_graphs}. One of the two files is cut off or wrong."
        )


def _check_ends(files: TextFiles, edges: np.ndarray, graph_of: np.ndarray) -> None:
    """Every edge must join two nodes that exist, of the same graph."""
    n_nodes = len(graph_of)
    outside = np.flatnonzero(((edges < 1) | (edges > n_nodes)).any(axis=1))
    if len(outside):
        u, v = edges[outside[0]].tolist()
        stray, known = (u, v) if not 1 <= u <= n_nodes else (v, u)
        near = f" ({_graph(graph_of[known - 1])})" if 1 <= known <= n_nodes else ""
        raise GraphDataError(
            f"{files.places['A']}, line {outside[0] + 1}: the edge {u} - {v}{near} leads to node "
            f"{stray}, which does not exist: {files.places['graph_indicator']} has {n_nodes} "
            f"lines, so the nodes are 1 to {n_nodes}."
        )
    ends = graph_of[edges - 1]
    across = np.flatnonzero(ends[:, 0] != ends[:, 1])
    if len(across):
        line = int(across[0])
        (u, v), (of_u, of_v) = edges[line].tolist(), ends[line].tolist()
        raise GraphDataError(
            f"{files.places['A']}, line {line + 1}: the edge {u} - {v} joins two graphs: node {u} "
            f"lies in {_graph(of_u)}, node {v} in {_graph(of_v)}. Both ends of an edge must lie "
            "in one graph."
        )


def _check_length(
    files: TextFiles,
    part: str,
    table: np.ndarray,
    other_part: str,
    other: np.ndarray,
    whose: Callable[[int], str],
) -> None:
    if len(table) != len(other):
        first_without = min(len(table), len(other)) + 1
        raise GraphDataError(
            f"{files.places[part]} has {len(table)} lines, {files.places[other_part]} has "
            f"{len(other)}: they must have one line each for the same things. They part at line "
            f"{first_without}{whose(first_without)}; one of them is cut off or wrong."
        )


def _check_edge_labels_agree(
    files: TextFiles, edges: np.ndarray, labels: np.ndarray, graph_of: np.ndarray
) -> None:
    """An edge that is listed more than once must have the same label each time."""
    low, high = edges.min(axis=1), edges.max(axis=1)
    order = np.lexsort((high, low))
    same_edge = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
    differs = (labels[order[1:]] != labels[order[:-1]]).any(axis=1)
    conflict = np.flatnonzero(same_edge & differs)
    if len(conflict):
        first, second = sorted(order[conflict[0] : conflict[0] + 2].tolist())
        u, v = edges[first].tolist()
        raise GraphDataError(
            f"{files.places['edge_labels']}, lines {first + 1} and {second + 1}: the edge {u} - "
            f"{v} of {_graph(graph_of[u - 1])} gets two labels, "
            f"{_shown(labels[first])} and {_shown(labels[second])}. Edges are undirected and carry "
            "one label: merge the two, or remove the file to read the graphs without edge labels."
        )


def _shown(row: np.ndarray) -> str:
    return ", ".join(map(str, row.tolist()))


# --- numbers from text ----------------------------------------------------------------------


def _table(
    files: TextFiles,
    part: str,
    columns: int | None,
    whose: Callable[[int], str] = lambda line: "",
) -> np.ndarray:
    """The integers of one file, shape (n_lines, n_columns)."""
    data, place = files.contents[part].removeprefix(codecs.BOM_UTF8).rstrip(), files.places[part]
    if not data:
        raise GraphDataError(
            f"{place} is empty: expected one line for each "
            f"{'edge' if part in ('A', 'edge_labels') else 'node or graph'}. A data set has at "
            "least one graph, one node and one edge; the file is probably cut off."
        )
    table = _parse_fast(data)
    if table is None or (columns is not None and table.shape[1] != columns):
        table = _parse_line_by_line(data, place, columns, whose)
    return table


def _parse_fast(data: bytes) -> np.ndarray | None:
    """All lines at once, or None where any line is not as it should be."""
    if not looks_plain(data):
        return None
    import pandas as pd

    try:
        frame = pd.read_csv(
            io.BytesIO(data), header=None, dtype=np.int64, skipinitialspace=True,
            skip_blank_lines=False, na_filter=False, quoting=csv.QUOTE_NONE,
        )  # fmt: skip
    except (ValueError, OverflowError):  # pandas' own parser errors are ValueErrors
        return None
    return frame.to_numpy()


def _parse_line_by_line(
    data: bytes, place: str, columns: int | None, whose: Callable[[int], str]
) -> np.ndarray:
    """The patient way: accepts blanks and tabs between numbers, and finds the line that is bad."""
    rows: list[list[int]] = []
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), 1):
        fields = _SEPARATOR.split(line.strip())
        columns = columns or len(fields)
        bad = next((field for field in fields if not is_integer(field)), None)
        if bad is not None or len(fields) != columns:
            found = len(fields) if bad is None else f"{bad[:80]!r}{why_no_integer(bad)}"
            wanted = "one integer" if columns == 1 else f"{columns} integers"
            raise GraphDataError(
                f"{place}, line {number}{whose(number)}: expected {wanted}, found {found} in "
                f"{line[:80]!r}. Correct the line, or fetch the file again."
            )
        rows.append([int(field) for field in fields])
    return np.array(rows, dtype=np.int64)
