"""``build_collection``: from edge lists and labels to a canonical ``GraphCollection``."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from treelens.errors import DegreeLabelsWarning, GraphDataError, IgnoredDataWarning
from treelens.graphs.collection import GraphCollection, encode_labels
from treelens.graphs.recipe import GraphRecipe


def build_collection(
    sizes: Sequence[int] | np.ndarray,
    edges: np.ndarray,
    node_labels: Sequence[Any] | np.ndarray | None,
    edge_labels: Sequence[Any] | np.ndarray | None = None,
    names: Any = None,
    graph_data: Any = None,
    recipe: GraphRecipe | None = None,
    *,
    node_attributes: Any = None,
    attribute_names: Sequence[str] = (),
    edge_attributes: Any = None,
    edge_attribute_names: Sequence[str] = (),
    directed: bool = False,
) -> GraphCollection:
    """Build a collection from one list of edges over all graphs.

    The rules, the same for every source: an edge that is listed several times counts once, also
    in opposite directions unless graphs are directed; a self-loop makes a node its own neighbour.
    An edge listed with two different labels is an error; of attributes of an edge listed several
    times, the means are taken. Without node labels every node gets its degree as label, and a
    warning says so.

    Parameters
    ----------
    sizes : sequence of int, shape (n_graphs,)
        Number of nodes of each graph; 0 is allowed.
    edges : ndarray of int, shape (n_edges, 2)
        End nodes, numbered through all graphs. Floats are taken where they are whole numbers.
    node_labels : sequence, shape (n_nodes,), or None
    edge_labels : sequence, shape (n_edges,), optional
    names, graph_data, recipe, node_attributes, attribute_names, edge_attribute_names : optional
        See :class:`GraphCollection`.
    edge_attributes : array of float, shape (n_edges, n_edge_attributes), optional
    directed : bool
        Whether an edge leads from its first node to its second.

    Examples
    --------
    >>> graphs = build_collection([2, 1], np.array([[0, 1]]), ["a", "b", "a"])
    >>> graphs
    GraphCollection(2 graphs, 3 nodes, 1 edges, 2 node labels)
    """
    given = np.asarray(sizes) if len(sizes) else np.empty(0, dtype=np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given < 0).any():
        raise GraphDataError("The sizes must be numbers of nodes, integers, one for each graph.")
    sizes = given.astype(np.int64)
    node_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n_nodes = int(node_offsets[-1])
    edges = edge_array(edges, "The edges")
    graph = np.searchsorted(node_offsets, edges, side="right") - 1
    wrong = ((edges < 0) | (edges >= n_nodes)).any(axis=1) | (graph[:, 0] != graph[:, 1])
    if wrong.any():
        u, v = edges[wrong.argmax()].tolist()
        raise GraphDataError(
            f"Edge {wrong.argmax()} joins nodes {u} and {v}, not two of one graph among {n_nodes}."
        )
    # Every edge at both ends, sorted by (start, end, direction), equal ones merged.
    there, back = (2 * (pairs @ [n_nodes, 1]) for pairs in (edges, edges[:, ::-1]))
    arcs, first, which = np.unique(
        np.concatenate([there, back + directed]), return_index=True, return_inverse=True
    )
    start, end = np.divmod(arcs // 2, max(1, n_nodes))
    edge_codes, edge_alphabet = None, None
    if edge_labels is not None:
        _check_count("edge labels", len(edge_labels), "edges", len(edges))
        codes, edge_alphabet = encode_labels(
            edge_labels, lambda i: f"The label of edge {_place(edges[i], node_offsets)}"
        )
        codes = np.tile(codes, 2)
        edge_codes = codes[first]
        conflict = codes != edge_codes[which]
        if conflict.any():
            arc = conflict.argmax()
            one, other = (edge_alphabet[code] for code in (edge_codes[which[arc]], codes[arc]))
            raise GraphDataError(
                f"Edge {_place(edges[arc % len(edges)], node_offsets)} is listed with two labels, "
                f"{one!r} and {other!r}. Merge the two, or leave edge labels out."
            )
    if edge_attributes is not None:
        _check_count("rows of edge attributes", len(edge_attributes), "edges", len(edges))
        edge_attributes = _means(np.asarray(edge_attributes), which.reshape(2, -1), len(arcs))
    degrees = np.bincount(start, minlength=n_nodes)
    degree_labels = node_labels is None
    if node_labels is None:
        node_labels = degrees
        warnings.warn(
            f"These {len(sizes)} graphs have no node labels: each node was labelled with its "
            "degree. Pass others, or node_label=NAME where they are in another attribute.",
            DegreeLabelsWarning,
            stacklevel=2,
        )
    _check_count("node labels", len(node_labels), "nodes", n_nodes)
    node_codes, node_alphabet = encode_labels(
        node_labels, lambda i: f"The label of node {_place(i, node_offsets)}"
    )
    first_node = np.repeat(node_offsets[:-1], sizes)[start]  # of the graph of each arc
    return GraphCollection(
        node_offsets,
        np.concatenate([[0], np.cumsum(degrees)]),
        end - first_node,
        node_codes,
        node_alphabet,
        edge_codes,
        edge_alphabet,
        names,
        graph_data,
        degree_labels,
        recipe,
        node_attributes=node_attributes,
        attribute_names=tuple(attribute_names),
        edge_attributes=edge_attributes,
        edge_attribute_names=tuple(edge_attribute_names),
        directions=arcs % 2 if directed else None,
    )


def numbered_names(name: str, n_columns: int) -> tuple[str, ...]:
    """Return names of the columns of an array: ``"pos 1"``, ``"pos 2"``, ..."""
    return tuple(f"{name} {column}" for column in range(1, n_columns + 1))


def edge_array(edges: Any, place: str) -> np.ndarray:
    """Return pairs of node numbers as an array of int64, shape (n_edges, 2); nothing is rounded."""
    try:
        given = np.asarray(edges)
    except ValueError:  # pairs of different lengths
        given = np.empty(1, dtype=object)
    if not given.size:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iuf":
        raise GraphDataError(f"{place}: expected pairs of node numbers; got shape {given.shape}.")
    with np.errstate(invalid="ignore"):  # NaN, and what is too large: these compare as changed
        pairs = given.astype(np.int64, copy=False)
    if pairs is not given and (changed := np.flatnonzero((pairs != given).any(axis=1))).size:
        u, v = given[changed[0]].tolist()
        raise GraphDataError(f"{place}: edge {changed[0]} joins nodes {u} and {v}, no integers.")
    return pairs


def listed_one_way(edges: np.ndarray) -> np.ndarray:
    """Return the positions of edges (n_edges, 2) that are not listed in the other direction."""
    there, back = (pairs[:, 0] << 32 | pairs[:, 1] for pairs in (edges, edges[:, ::-1]))
    return np.flatnonzero(~np.isin(back, there))


def count_one_way(edges: np.ndarray) -> tuple[int, int]:
    """Return how many edges (n_edges, 2) are listed in one direction only, of how many: no loops.

    Examples
    --------
    >>> count_one_way(np.array([[0, 1], [1, 0], [1, 2], [2, 2]]))
    (1, 3)
    """
    return len(listed_one_way(edges)), int((edges[:, 0] != edges[:, 1]).sum())


def about_directions(place: str, one_way: int, n_edges: int, directed: bool) -> str:
    """Return that some edges are listed in one direction only, and how the graphs are read."""
    kind, other = ("", "un") if directed else ("un", "")
    return (
        f"{place}: {one_way} of {n_edges} edges are listed in one direction only, and the graphs "
        f"are read as {kind}directed. Pass directed={not directed} if they are {other}directed, or "
        f"directed={directed} to say that this is right."
    )


def _place(ends: Any, node_offsets: np.ndarray) -> str:
    """Return the name of a node, or of the edge between two, in messages."""
    graph = int(np.searchsorted(node_offsets, np.ravel(ends)[0], side="right")) - 1
    within = np.ravel(ends) - node_offsets[graph]
    return f"{' - '.join(map(str, within.tolist()))} of graph {graph}"


def _check_count(what: str, count: int, of_what: str, expected: int) -> None:
    if count != expected:
        raise GraphDataError(f"There are {count} {what} for {expected} {of_what}: give one each.")


def _means(table: np.ndarray, arcs_of: np.ndarray, n_arcs: int) -> np.ndarray:
    """Return the mean of the rows (n_edges, n_columns) of each arc, without missing values.

    Both directions of an edge add up in the order of the lines, so that they have the same mean.
    """
    by_line = arcs_of.T.ravel()
    means = np.empty((n_arcs, table.shape[1]))
    for k, column in enumerate(np.repeat(table, 2, axis=0).T):
        there = ~np.isnan(column)
        sums = np.bincount(by_line, np.where(there, column, 0.0), n_arcs)
        with np.errstate(invalid="ignore"):  # nothing but missing values: their mean is missing
            means[:, k] = sums / np.bincount(by_line, there, n_arcs)
    return means


# --- plain graphs: how graphs of other libraries are read -----------------------------------


class PlainGraph(NamedTuple):
    """One graph with nodes 0, 1, ...; columns are attributes by name, labels are under None."""

    nodes: Sequence[Any]  # as named in messages
    edges: Any  # pairs of node numbers: a list, or an array of shape (n_edges, 2)
    node_columns: dict[Any, Any]
    edge_columns: dict[Any, Any]
    name: Hashable | None = None
    directed: bool = False


class Columns(NamedTuple):
    """Labels and attributes of all nodes, or all edges, of some graphs."""

    labels: list[Any] | None = None
    values: np.ndarray | None = None  # attributes, (n_rows, n_names)
    names: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # what was asked for: "pos", of which the names are "pos 1", ...


def join(
    graphs: Sequence[PlainGraph], asked: GraphRecipe, required: bool = True, graph_data: Any = None
) -> GraphCollection:
    """Put plain graphs into one collection, with the labels and attributes that are asked for."""
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
    pairs = [edge_array(graph.edges, f"Graph {i}") for i, graph in enumerate(graphs)]
    n_edges, edges = [len(some) for some in pairs], np.concatenate(pairs)
    graph_of = np.repeat(np.arange(len(graphs)), n_edges)
    outside = ((edges < 0) | (edges >= np.array(sizes)[graph_of, None])).any(axis=1)
    if outside.any():
        (u, v), i = edges[outside.argmax()].tolist(), graph_of[outside.argmax()]
        raise GraphDataError(f"Graph {i}: an edge joins nodes {u} and {v}, but it has {sizes[i]}.")
    edges = edges + (np.cumsum(sizes) - sizes)[graph_of, None]
    nodes = _columns("node", graphs, sizes, asked, required, notes)
    arcs = _columns("edge", graphs, n_edges, asked, required, notes)
    if directed and not all(kinds):
        back = np.flatnonzero(np.repeat(np.logical_not(kinds), n_edges))
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
    for note in [*notes, *_ignored(graphs, joined, nodes, arcs)]:
        warnings.warn(note, stacklevel=3)
    return joined


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
    if not lacks:
        return labels if labels or what == "node" else None
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


def _ignored(
    graphs: Sequence[PlainGraph], joined: GraphCollection, nodes: Columns, edges: Columns
) -> list[Warning]:
    """Return warnings about what the graphs have and is not used."""
    ignored: dict[str, str] = {}
    for name in {"weight", "edge_weight"}.difference(edges.sources):
        values = chain.from_iterable(graph.edge_columns.get(name, ()) for graph in graphs)
        if any(isinstance(x, (int, float, np.number)) and x != 1 for x in values):
            ignored["edge weights"] = f"edge_attributes={[name]!r}"
    unused = {
        str(name)
        for graph in graphs
        for name, column in graph.node_columns.items()
        if name is not None and name not in nodes.sources and any(map(_is_continuous, column))
    }
    if unused:
        found = f"continuous node attributes ({', '.join(map(repr, sorted(unused)))})"
        ignored[found] = f"node_attributes={sorted(unused)!r}"
    messages = []
    if ignored:
        messages.append(
            f"Ignored in these graphs: {'; '.join(ignored)}. Use them with as_graph_collection("
            f"graphs, {', '.join(ignored.values())}), or remove them."
        )
    for what, alphabet in (("node", joined.node_alphabet), ("edge", joined.edge_alphabet or ())):
        fraction = next((x for x in alphabet if isinstance(x, float) and not x.is_integer()), None)
        if fraction is not None:
            messages.append(
                f"The {what} labels are floating-point numbers ({fraction!r}, ...), and how close "
                f"two of them are is ignored. Round them, or pass {what}_attributes=."
            )
    return [IgnoredDataWarning(message) for message in messages]


def _is_continuous(value: Any) -> bool:
    """Whether a value is a float, or an array or sequence of them."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f"
    several = value if isinstance(value, (tuple, list)) else (value,)
    return any(isinstance(x, (float, np.floating)) for x in several)


def to_array(tensor: Any) -> np.ndarray:
    """Return a tensor, also one on a device, as an array."""
    for step in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    return np.asarray(tensor)
