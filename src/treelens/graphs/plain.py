"""Plain graphs, which graphs of other libraries become, and how they are joined to a collection."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from treelens.errors import GraphDataError, IgnoredDataWarning
from treelens.graphs.build import build_collection, edge_array, numbered_names
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import GraphRecipe


class PlainGraph(NamedTuple):
    """One graph with nodes 0, 1, ...; columns are attributes by name, labels are under None."""

    nodes: Sequence[Any]  # as named in messages
    edges: Any  # pairs of node numbers: a list, or an array of shape (n_edges, 2)
    node_columns: dict[Any, Any]
    edge_columns: dict[Any, Any]
    name: Hashable | None = None
    directed: bool = False


# In ``graph_data``, where the nodes of a graph are drawn: a pair of numbers for each.
POSITIONS = "positions"
_POSITIONS_COLUMN = "pos"  # what NetworkX and PyTorch Geometric call them

Joined = tuple[list[PlainGraph], GraphRecipe]  # with what is asked for, as far as graphs decide it


class Columns(NamedTuple):
    """Labels and attributes of all nodes, or all edges, of some graphs."""

    labels: list[Any] | None = None
    values: np.ndarray | None = None  # attributes, (n_rows, n_names)
    names: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # what was asked for: "pos", of which the names are "pos 1", ...


def join(
    graphs: Sequence[PlainGraph],
    asked: GraphRecipe,
    required: bool = True,
    graph_data: dict[str, list[Any]] | None = None,
) -> GraphCollection:
    """Put plain graphs into one collection, with the labels and attributes that are asked for.

    Positions of nodes (``pos``) that nobody asks for as attributes are kept for drawings.
    """
    notes: list[Warning] = []
    kinds = [graph.directed for graph in graphs]
    directed = any(kinds) if asked.directed is None else asked.directed
    if mixed := asked.directed is None and len(set(kinds)) > 1:
        notes.append(
            UserWarning(
                f"Graph {kinds.index(True)} is directed, graph {kinds.index(False)} is not: all "
                "are read as directed, undirected edges lead both ways. Pass directed=True or "
                "False."
            )
        )
    sizes = [len(graph.nodes) for graph in graphs]
    edges, n_edges = _numbered_edges(graphs, sizes)
    nodes = _columns("node", graphs, sizes, asked, required, notes)
    placed = [] if _POSITIONS_COLUMN in nodes.sources else list(map(_positions, graphs))
    if is_drawn := bool(placed) and None not in placed:
        graph_data = {POSITIONS: placed, **(graph_data or {})}
    arcs = _columns("edge", graphs, n_edges, asked, required, notes)
    if directed and not all(kinds):
        both = np.repeat(np.logical_not(kinds), n_edges) & (edges[:, 0] != edges[:, 1])
        back = np.flatnonzero(both)
        edges = np.concatenate([edges, edges[back, ::-1]])
        labels, values = arcs.labels, arcs.values
        labels = None if labels is None else labels + [labels[i] for i in back]
        values = None if values is None else np.concatenate([values, values[back]])
        arcs = arcs._replace(labels=labels, values=values)
    recipe = replace(
        asked,
        node_attributes=nodes.sources,
        edge_attributes=arcs.sources,
        directed=True if mixed else asked.directed,
    )
    names = [graph.name for graph in graphs]
    joined = build_collection(
        sizes,
        edges,
        nodes.labels,
        arcs.labels,
        names if any(name is not None for name in names) else None,
        graph_data,
        recipe,
        node_attributes=nodes.values,
        attribute_names=nodes.names,
        edge_attributes=arcs.values,
        edge_attribute_names=arcs.names,
        directed=directed,
    )
    of_drawings = {_POSITIONS_COLUMN} if is_drawn else set[str]()
    for note in [*notes, *_ignored(graphs, joined, nodes, arcs, of_drawings)]:
        warnings.warn(note, stacklevel=3)
    return joined


def _numbered_edges(graphs: Sequence[PlainGraph], sizes: list[int]) -> tuple[np.ndarray, list[int]]:
    """Return all edges (n_edges, 2), nodes numbered through all graphs, and how many each has."""
    pairs = [edge_array(graph.edges, f"Graph {i}") for i, graph in enumerate(graphs)]
    n_edges, edges = [len(some) for some in pairs], np.concatenate(pairs)
    graph_of = np.repeat(np.arange(len(graphs)), n_edges)
    outside = ((edges < 0) | (edges >= np.array(sizes)[graph_of, None])).any(axis=1)
    if outside.any():
        (u, v), i = edges[outside.argmax()].tolist(), graph_of[outside.argmax()]
        raise GraphDataError(f"Graph {i}: an edge joins nodes {u} and {v}, but it has {sizes[i]}.")
    return edges + (np.cumsum(sizes) - sizes)[graph_of, None], n_edges


def _columns(
    what: str,
    graphs: Sequence[PlainGraph],
    counts: Sequence[int],
    asked: GraphRecipe,
    required: bool,
    notes: list[Warning],
) -> Columns:
    """Return the labels of all nodes (or edges), and the attributes that were asked for."""
    columns: list[dict[Any, Any]] = [getattr(graph, f"{what}_columns") for graph in graphs]
    wanted, label = getattr(asked, f"{what}_attributes"), getattr(asked, f"{what}_label")
    for i, of_graph in enumerate(columns):
        source = label or "label"
        free = wanted == "all" or source not in wanted
        if free and None not in of_graph and source in of_graph:
            of_graph[None] = of_graph.pop(source)
        for name, column in of_graph.items():
            if len(column) != counts[i]:
                raise GraphDataError(
                    f"Graph {i}: {len(column)} {what} {name or 'label'}s for {counts[i]} {what}s."
                )
    labels = _labels(what, graphs, columns, counts, label)
    names = sorted({name for of_graph in columns for name in of_graph if isinstance(name, str)})
    blocks: dict[str, np.ndarray] = {}
    for name in names if wanted == "all" else wanted:
        if name not in names:
            if required:
                raise GraphDataError(
                    f"No {what} has {name!r}. There are: {', '.join(names) or 'no attributes'}."
                )
            continue
        try:
            blocks[name] = _numbers([x.get(name) for x in columns], counts, name, what)
        except GraphDataError:
            if wanted != "all":
                raise
            continue
        empty = [all(value is None for value in x.get(name, ())) for x in columns]
        lack = [i for i, n in enumerate(counts) if n and empty[i]]
        if lack:
            notes.append(
                UserWarning(
                    f"Graph {lack[0]} has no {what} attribute {name!r} ({len(lack)} of "
                    f"{len(columns)} graphs have none), while others have it: its values count as "
                    "missing."
                )
            )
    if not blocks:
        return Columns(labels)
    names = []
    for name, block in blocks.items():
        names += [name] if block.shape[1] == 1 else numbered_names(name, block.shape[1])
    values = np.concatenate(list(blocks.values()), axis=1)
    return Columns(labels, values, tuple(names), tuple(blocks))


def _labels(
    what: str,
    graphs: Sequence[PlainGraph],
    columns: Sequence[dict[Any, Any]],
    counts: Sequence[int],
    asked: str | None,
) -> list[Any] | None:
    """Return the labels of all graphs in one list; either all nodes (or edges) have one or none."""
    labels: list[Any] = []
    for of_graph, n in zip(columns, counts, strict=True):
        labels += list(of_graph[None]) if None in of_graph else [None] * n
    lacks = [k for k, label in enumerate(labels) if label is None]
    if not lacks:  # graphs without edges may have labels of edges all the same
        declared = all(None in of_graph for of_graph in columns)
        return labels if labels or declared or what == "node" else None
    if len(lacks) < len(labels):
        i = int(np.searchsorted(np.cumsum(counts), lacks[0], side="right"))
        k = lacks[0] - sum(counts[:i])
        ends = [k] if what == "node" else graphs[i].edges[k]
        raise GraphDataError(
            f"{what.capitalize()} {' - '.join(repr(graphs[i].nodes[n]) for n in ends)} of graph {i}"
            f" has no {asked or 'label'!r}, while others have one ({len(lacks)} of {len(labels)} "
            "have none): give every one a label, such as 'unknown', or none."
        )
    if asked is not None:
        known = sorted({str(name) for of_graph in columns for name in of_graph})
        raise GraphDataError(
            f"No {what} of any graph has {asked!r}, which {what}_label={asked!r} asks for. "
            f"Attributes there: {', '.join(known) or 'none'}."
        )
    return None


def _numbers(columns: Sequence[Any], counts: Sequence[int], name: str, what: str) -> np.ndarray:
    """Return values, each a number or an array of them, as an array of shape (n_values, width)."""
    values = list(
        chain.from_iterable(
            [None] * n if column is None else column
            for column, n in zip(columns, counts, strict=True)
        )
    )
    with suppress(ValueError, TypeError):  # all of them numbers, or arrays of one length
        block = np.array([np.nan if value is None else value for value in values])
        if len(values) and block.dtype.kind in "iufb" and block.ndim in (1, 2):
            return block.reshape(len(values), -1).astype(np.float64)
    there = [i for i, value in enumerate(values) if value is not None]
    arrays = [to_array(values[i]).ravel() for i in there]
    width = len(arrays[0]) if arrays else 1
    for i, array in zip(there, arrays, strict=True):
        if array.dtype.kind not in "iufb" or len(array) != width:
            graph = np.searchsorted(np.cumsum(counts), i, side="right")
            wanted = "a number" if width == 1 else f"{width} numbers"
            raise GraphDataError(
                f"{'An edge' if what == 'edge' else 'A node'} of graph {graph} has "
                f"{values[i]!r:.80} as attribute {name!r}: expected {wanted}, as others have."
            )
    block = np.full((len(values), width), np.nan)
    if arrays:
        block[there] = arrays
    return block


def _positions(graph: PlainGraph) -> tuple[tuple[float, float], ...] | None:
    """Return where the nodes of a graph are drawn; None unless all have two finite numbers."""
    if not len(graph.nodes):
        return ()
    given = graph.node_columns.get(_POSITIONS_COLUMN, ())
    with suppress(ValueError, TypeError):
        places = np.array([to_array(x) for x in given], dtype=np.float64)
        if places.shape == (len(graph.nodes), 2) and np.isfinite(places).all():
            return tuple((x, y) for x, y in places.tolist())
    return None


def _ignored(
    graphs: Sequence[PlainGraph],
    joined: GraphCollection,
    nodes: Columns,
    edges: Columns,
    of_drawings: set[str],
) -> list[Warning]:
    """Return warnings about what the graphs have and is not used."""
    found, hints = list[str](), list[str]()
    for what, used in (("edge", edges), ("node", nodes)):
        columns = [getattr(graph, f"{what}_columns") for graph in graphs]
        names = {n for of_graph in columns for n in of_graph if n is not None} - {*used.sources}
        names -= of_drawings if what == "node" else set()
        numeric = {}
        for name in sorted(names, key=str):
            values = list(chain.from_iterable(column.get(name, ()) for column in columns))
            if _tells_apart(values):
                numeric[name] = all(value is None or _is_numeric(value) for value in values)
        if not numeric:
            continue
        found.append(f"{what} data ({', '.join(repr(str(name)) for name in numeric)})")
        if numbers := [name for name, numbers in numeric.items() if numbers]:
            hints.append(f"{what}_attributes={numbers!r}")
        hints += [f"{what}_label={name!r}" for name, numbers in numeric.items() if not numbers][:1]
    messages = []
    if found:
        messages.append(
            f"Ignored in these graphs: {'; '.join(found)}. Use them with as_graph_collection("
            f"graphs, {', '.join(hints)}), or remove them."
        )
    for what, alphabet in (("node", joined.node_alphabet), ("edge", joined.edge_alphabet or ())):
        fraction = next((x for x in alphabet if isinstance(x, float) and not x.is_integer()), None)
        if fraction is not None:
            messages.append(
                f"The {what} labels are floating-point numbers ({fraction!r}, ...), and how close "
                f"two of them are is ignored. Round them, or pass {what}_attributes=."
            )
    return [IgnoredDataWarning(message) for message in messages]


def _tells_apart(values: Sequence[Any]) -> bool:
    """Whether values differ, or are numbers other than one: weights of one say nothing."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return bool(known)
    if any(isinstance(x, np.ndarray) or _is_numeric(x) for x in known):
        return any(np.ndim(x) > 0 or x != 1 for x in known)
    return any(x != known[0] for x in known)


def _is_numeric(value: object) -> bool:
    """Whether a value is a number, or an array or sequence of them."""
    if isinstance(value, (int, float, np.number)):
        return True
    with suppress(ValueError):  # arrays of different lengths
        return not isinstance(value, str) and np.asarray(value).dtype.kind in "iufb"
    return False


def to_array(tensor: object) -> np.ndarray:
    """Return a tensor, also one on a device, as an array."""
    for step in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    return np.asarray(tensor)
