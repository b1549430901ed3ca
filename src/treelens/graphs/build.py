"""``build_collection``: from edge lists and labels to a canonical ``GraphCollection``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import DegreeLabelsWarning, GraphDataError, IgnoredDataWarning
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
    label_hint: str = "Pass node labels to choose others.",
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
    label_hint : str
        How to give node labels, for the warning where there are none.

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
    _check_edges(edges, node_offsets)
    edge_codes, edge_alphabet = None, None
    if edge_labels is not None:
        _check_count("edge labels", len(edge_labels), "edges", len(edges))
        edge_codes, edge_alphabet = encode_labels(
            edge_labels, lambda i: f"The label of edge {_edge_place(edges[i], node_offsets)}"
        )
    arcs, directions, order, first = _canonical_arcs(edges, directed)
    if edge_codes is not None and edge_alphabet is not None:
        edge_codes = _codes_of_arcs(edge_codes[order], edge_alphabet, arcs, first, node_offsets)
    if edge_attributes is not None:
        _check_count("rows of edge attributes", len(edge_attributes), "edges", len(edges))
        # Arcs of one edge in the order of the lines, so that both directions have the same mean.
        by_line = order[np.lexsort((order, np.cumsum(first)))]
        edge_attributes = _mean_of_runs(np.asarray(edge_attributes)[by_line], first)
    arcs = arcs[first]
    degrees = np.bincount(arcs[:, 0], minlength=n_nodes)
    degree_labels = node_labels is None
    if node_labels is None:
        node_labels = degrees
        warnings.warn(
            f"These {len(sizes)} graphs have no node labels: each node was labelled with its "
            f"degree. {label_hint}",
            DegreeLabelsWarning,
            stacklevel=2,
        )
    _check_count("node labels", len(node_labels), "nodes", n_nodes)
    node_codes, node_alphabet = encode_labels(
        node_labels, lambda i: f"The label of {_node_place(i, node_offsets)}"
    )
    graph_of_arc_start = np.repeat(node_offsets[:-1], sizes)[arcs[:, 0]]
    return GraphCollection(
        node_offsets, np.concatenate([[0], np.cumsum(degrees)]), arcs[:, 1] - graph_of_arc_start,
        node_codes, node_alphabet, edge_codes, edge_alphabet, names, graph_data, degree_labels,
        recipe, node_attributes=node_attributes, attribute_names=tuple(attribute_names),
        edge_attributes=edge_attributes, edge_attribute_names=tuple(edge_attribute_names),
        directions=directions,
    )  # fmt: skip


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
        raise GraphDataError(
            f"{place}: expected pairs of node numbers, as integers; got an array of shape "
            f"{given.shape} and type {given.dtype}."
        )
    with np.errstate(invalid="ignore"):  # NaN, and what is too large: these compare as changed
        pairs = given.astype(np.int64, copy=False)
    if pairs is not given and (changed := np.flatnonzero((pairs != given).any(axis=1))).size:
        u, v = given[changed[0]].tolist()
        raise GraphDataError(
            f"{place}: edge {changed[0]} joins nodes {u} and {v}: nodes are numbered with integers."
        )
    return pairs


def listed_one_way(edges: np.ndarray) -> np.ndarray:
    """Return the positions of edges (n_edges, 2) that are not listed in the other direction."""
    there, back = (pairs[:, 0] << 32 | pairs[:, 1] for pairs in (edges, edges[:, ::-1]))
    if np.array_equal(np.sort(there), np.sort(back)):  # the usual case, and quick
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(~np.isin(back, there))


def _node_place(node: int, node_offsets: np.ndarray) -> str:
    graph = int(np.searchsorted(node_offsets, node, side="right")) - 1
    return f"node {int(node - node_offsets[graph])} of graph {graph}"


def _edge_place(edge: np.ndarray, node_offsets: np.ndarray) -> str:
    graph = int(np.searchsorted(node_offsets, edge[0], side="right")) - 1
    u, v = (edge - node_offsets[graph]).tolist()
    return f"{u} - {v} of graph {graph}"


def _check_count(what: str, count: int, of_what: str, expected: int) -> None:
    if count != expected:
        raise GraphDataError(f"There are {count} {what} for {expected} {of_what}: give one each.")


def _check_edges(edges: np.ndarray, node_offsets: np.ndarray) -> None:
    """Every edge must join two nodes that exist, of the same graph."""
    n_nodes = int(node_offsets[-1])
    outside = np.flatnonzero(((edges < 0) | (edges >= n_nodes)).any(axis=1))
    if len(outside):
        u, v = edges[outside[0]].tolist()
        raise GraphDataError(
            f"Edge {outside[0]} joins nodes {u} and {v}, but the nodes are 0 to {n_nodes - 1}."
        )
    graph = np.searchsorted(node_offsets, edges, side="right") - 1
    across = np.flatnonzero(graph[:, 0] != graph[:, 1])
    if len(across):
        u, v = (_node_place(node, node_offsets) for node in edges[across[0]].tolist())
        raise GraphDataError(f"Edge {across[0]} joins {u} and {v}, which are different graphs.")


def _canonical_arcs(
    edges: np.ndarray, directed: bool
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Return every edge at both ends, sorted by (start, end, direction).

    Returned are the arcs (2 n_edges, 2), the directions of different ones, the edge of each arc,
    and which arcs differ from the one before.
    """
    arcs = np.concatenate([edges, edges[:, ::-1]])
    incoming = np.repeat([False, directed], len(edges))
    order = np.lexsort((*([incoming] if directed else []), arcs[:, 1], arcs[:, 0]))
    arcs, incoming = arcs[order], incoming[order]
    first = np.ones(len(arcs), dtype=bool)
    first[1:] = (arcs[1:] != arcs[:-1]).any(axis=1) | (incoming[1:] != incoming[:-1])
    directions = incoming[first].astype(np.int8) if directed else None
    return arcs, directions, order % max(1, len(edges)), first


def _codes_of_arcs(
    codes: np.ndarray, alphabet: tuple[Any, ...], arcs: np.ndarray, first: np.ndarray, offsets: Any
) -> np.ndarray:
    """Return the codes of the different arcs; raise where one has two."""
    known = codes[first][np.cumsum(first) - 1]  # the code of the first arc with the same ends
    conflict = np.flatnonzero(codes != known)
    if len(conflict):
        arc = conflict[0]
        raise GraphDataError(
            f"Edge {_edge_place(arcs[arc], offsets)} is listed with two labels, "
            f"{alphabet[known[arc]]!r} and {alphabet[codes[arc]]!r}. Merge the two (a tuple is a "
            "fine label) or leave the edge labels out."
        )
    return codes[first]


def _mean_of_runs(table: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the means of runs of rows, without missing values."""
    if not len(table) or first.all():
        return table
    starts, there = np.flatnonzero(first), ~np.isnan(table)
    with np.errstate(invalid="ignore"):  # nothing but missing values: their mean is missing
        return np.add.reduceat(np.where(there, table, 0.0), starts) / np.add.reduceat(
            there, starts, dtype=np.int64
        )


def encode_labels(
    labels: Sequence[Hashable] | np.ndarray,
    place: Callable[[int], str] = lambda position: f"label {position}",
) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return a code for every label, and the alphabet: the different labels.

    The alphabet is sorted where labels can be compared, else in order of first appearance.
    ``place`` maps a position in ``labels`` to its name in an error message.
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iub":
        values, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int32), tuple(values.tolist())
    labels = labels.tolist() if isinstance(labels, np.ndarray) else labels
    try:
        alphabet = list(dict.fromkeys(labels))
        bad = [label for label in alphabet if label is None or bool(label != label)]
    except (TypeError, ValueError):  # unhashable, or == gives no single truth value
        bad = [None]
    if bad:
        _raise_bad_label(labels, place)
    with suppress(TypeError):  # labels of mixed kinds keep their order of appearance
        alphabet = sorted(alphabet)
    code_of = {label: code for code, label in enumerate(alphabet)}
    codes = np.fromiter(map(code_of.__getitem__, labels), dtype=np.int32, count=len(labels))
    return codes, tuple(alphabet)


def _raise_bad_label(labels: Sequence[Any], place: Callable[[int], str]) -> None:
    for position, label in enumerate(labels):
        try:
            hash(label)
            is_missing = label is None or bool(label != label)
        except (TypeError, ValueError):
            raise GraphDataError(
                f"{place(position)} is an unhashable {type(label).__name__} ({label!r}): labels "
                "must be hashable. Turn lists into tuples, arrays into numbers or strings."
            ) from None
        if is_missing:
            raise GraphDataError(
                f"{place(position)} is {label!r}: every label must be a value that equals itself. "
                "Give the missing ones a label of their own, such as 'unknown'."
            )


# --- plain graphs: how graphs of other libraries are read -----------------------------------

_WEIGHTS = ("weight", "edge_weight")
Columns = dict[Any, Any]


class PlainGraph(NamedTuple):
    """One graph with nodes 0, 1, ... and columns: labels under the key None, attributes by name.

    A column has a value for each node (or edge), None where one is missing.
    """

    nodes: Sequence[Any]  # as named in messages
    edges: Any  # pairs of node numbers: a list, or an array of shape (n_edges, 2)
    node_columns: Columns
    edge_columns: Columns
    name: Hashable | None = None
    directed: bool = False


class Asked(NamedTuple):
    """What to take from graphs."""

    node_label: str | None = None
    edge_label: str | None = None
    node_attributes: Any = ()  # names, "all", or values for each graph
    edge_attributes: Any = ()
    directed: bool | None = None
    required: bool = True  # whether attributes must be there

    def labelled(self, nodes: Columns, edges: Columns) -> tuple[Columns, Columns]:
        """Return columns with the labels under None, unless they were asked for as attributes."""
        for columns, label, names in (
            (nodes, self.node_label or "label", self.node_attributes),
            (edges, self.edge_label or "label", self.edge_attributes),
        ):
            if label in columns and (names == "all" or label not in names):
                columns[None] = columns.pop(label)
        return nodes, edges


class Attributes(NamedTuple):
    """Attributes of all nodes or edges of some graphs."""

    values: np.ndarray | None = None  # (n_rows, n_names)
    names: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # what was asked for: "pos", of which the names are "pos 1", ...


def join(
    graphs: Sequence[PlainGraph],
    asked: Asked,
    source: str | None,
    graph_data: Mapping[str, Any] | None = None,
) -> GraphCollection:
    """Put plain graphs into one collection; warnings name what is missing, mixed or ignored."""
    notes: list[tuple[str, type[Warning]]] = []
    kinds = [graph.directed for graph in graphs]
    directed = any(kinds) if asked.directed is None else asked.directed
    mixed = asked.directed is None and len(set(kinds)) > 1
    if mixed:
        message = (
            f"Graph {kinds.index(True)} is directed, graph {kinds.index(False)} is not: all are "
            "read as directed, and undirected edges lead both ways. Pass directed=True if that is "
            "what you want, or directed=False to ignore directions."
        )
        notes.append((message, UserWarning))
    sizes = [len(graph.nodes) for graph in graphs]
    pairs = [edge_array(graph.edges, f"Graph {i}") for i, graph in enumerate(graphs)]
    n_edges = [len(edges) for edges in pairs]
    edges = np.concatenate(pairs)  # (n_edges in all, 2), nodes numbered within their graph
    n_nodes = np.repeat(sizes, n_edges)[:, None]
    outside = np.flatnonzero(((edges < 0) | (edges >= n_nodes)).any(axis=1))
    if len(outside):
        graph = int(np.searchsorted(np.cumsum(n_edges), outside[0], side="right"))
        u, v = edges[outside[0]].tolist()
        raise GraphDataError(
            f"Graph {graph}: an edge joins nodes {u} and {v}, but the graph has {sizes[graph]} "
            "nodes, numbered from 0."
        )
    edges = edges + np.repeat(np.cumsum(sizes) - sizes, n_edges)[:, None]
    (node_labels, nodes), (edge_labels, arcs) = (
        (
            _labels(what, graphs, columns, counts, label),
            _attributes(what, columns, counts, names, asked.required, notes),
        )
        for what, columns, counts, label, names in (
            ("node", [g.node_columns for g in graphs], sizes, *asked[0:4:2]),
            ("edge", [g.edge_columns for g in graphs], n_edges, *asked[1:4:2]),
        )
    )
    values = arcs.values
    if directed and not all(kinds):
        back = np.flatnonzero(np.repeat(np.logical_not(kinds), n_edges))
        edges = np.concatenate([edges, edges[back, ::-1]])
        edge_labels = None if edge_labels is None else edge_labels + [edge_labels[i] for i in back]
        values = None if values is None else np.concatenate([values, values[back]])
    recipe = GraphRecipe(
        source, node_label=asked.node_label, edge_label=asked.edge_label,
        node_attributes=nodes.sources, edge_attributes=arcs.sources,
        directed=True if mixed else asked.directed,
    )  # fmt: skip
    names = [graph.name for graph in graphs]
    hint = {}
    if source != "grakel":  # whose labels have no names
        texts = {key for graph in graphs for key, values in graph.node_columns.items()
                 if any(isinstance(value, str) for value in values)}  # fmt: skip
        known = f" There are: {', '.join(sorted(map(str, texts)))}." if texts else ""
        hint = {"label_hint": f"node_label=NAME takes labels from another attribute.{known}"}
    joined = build_collection(
        sizes, edges, node_labels, edge_labels,
        names if any(name is not None for name in names) else None, graph_data, recipe,
        node_attributes=nodes.values, attribute_names=nodes.names, edge_attributes=values,
        edge_attribute_names=arcs.names, directed=directed, **hint,
    )  # fmt: skip
    notes += ((message, IgnoredDataWarning) for message in _ignored(graphs, joined, nodes, arcs))
    for message, category in notes:
        warnings.warn(message, category, stacklevel=3)
    return joined


def _labels(
    what: str, graphs: Sequence[PlainGraph], columns: Sequence[Columns], counts: Sequence[int],
    asked: str | None,
) -> list[Any] | None:  # fmt: skip
    """Return the labels of all graphs in one list; either all nodes (or edges) have one or none."""
    labelled: list[int] = []
    bare: list[int] = []
    for i, of_graph in enumerate(columns):
        for name, column in of_graph.items():
            if len(column) != counts[i]:
                raise GraphDataError(
                    f"Graph {i} has {len(column)} {what} {name or 'label'}s for {counts[i]} "
                    f"{what}s: give one each."
                )
        values = of_graph.get(None, ())
        missing = sum(value is None for value in values)
        if 0 < missing < len(values):
            first = next(k for k, value in enumerate(values) if value is None)
            ends = [first] if what == "node" else graphs[i].edges[first]
            place = f"{what.capitalize()} {' - '.join(repr(graphs[i].nodes[n]) for n in ends)}"
            raise GraphDataError(
                f"{place} of graph {i} has no {asked or 'label'!r}, while others of the same graph "
                "have one: give every one a label, such as 'unknown', or none."
            )
        if counts[i]:
            (bare if missing == len(values) else labelled).append(i)
    if not labelled and asked is not None:
        known = sorted({str(name) for of_graph in columns for name in of_graph})
        raise GraphDataError(
            f"No {what} of any graph has {asked!r}, which {what}_label={asked!r} asks for."
            + (f" Attributes there: {', '.join(known)}." if known else "")
        )
    if labelled and bare:
        raise GraphDataError(
            f"Graph {labelled[0]} has {what} labels, graph {bare[0]} has none ({len(bare)} of "
            f"{len(graphs)} have none): give {what} labels to all graphs or to none."
        )
    if not labelled:
        return None if bare or what == "edge" else []
    return [label for i in labelled for label in columns[i][None]]


def _attributes(
    what: str, columns: Sequence[Columns], counts: Sequence[int], asked: Any, required: bool,
    notes: list[tuple[str, type[Warning]]],
) -> Attributes:  # fmt: skip
    """Return the attributes of some names, or all that are numbers, of all nodes or edges.

    A value that is an array becomes several attributes; one that is not there is missing.
    """
    known = sorted({name for of_graph in columns for name in of_graph if isinstance(name, str)})
    blocks: dict[str, np.ndarray] = {}
    for name in known if asked == "all" else asked:
        if name not in known:
            if required:
                raise GraphDataError(
                    f"No {what} of any graph has the attribute {name!r}. "
                    + (
                        f"There are: {', '.join(known)}."
                        if known
                        else f"There are none: leave {what}_attributes= out."
                    )
                )
            continue
        try:
            blocks[name] = _numbers([x.get(name) for x in columns], counts, name, what)
        except GraphDataError:
            if asked != "all":
                raise
            continue
        lack = [i for i, x in enumerate(columns) if counts[i] and _is_empty(x.get(name))]
        if lack:
            message = (
                f"Graph {lack[0]} has no {what} attribute {name!r} ({len(lack)} of {len(columns)} "
                "graphs have none), while others have it: its values count as missing."
            )
            notes.append((message, UserWarning))
    if not blocks:
        return Attributes()
    names: list[str] = []
    for name, block in blocks.items():
        names += [name] if block.shape[1] == 1 else numbered_names(name, block.shape[1])
    return Attributes(np.concatenate(list(blocks.values()), axis=1), tuple(names), tuple(blocks))


def _is_empty(column: Any) -> bool:
    return column is None or all(value is None for value in column)


def _numbers(columns: Sequence[Any], counts: Sequence[int], name: str, what: str) -> np.ndarray:
    """Return values, each a number or an array of them, as an array of shape (n_values, width)."""
    values = list(chain.from_iterable(
        [None] * n if column is None else column for column, n in zip(columns, counts, strict=True)
    ))  # fmt: skip
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
    graphs: Sequence[PlainGraph], joined: GraphCollection, nodes: Attributes, edges: Attributes
) -> list[str]:
    """Return messages about what the graphs have and is not used."""
    ignored: dict[str, str] = {}
    for name in _WEIGHTS:
        columns = [g.edge_columns[name] for g in graphs if name in g.edge_columns]
        numbers = (x for x in chain(*columns) if isinstance(x, (int, float, np.number)))
        if name not in edges.sources and any(x != 1 and not isinstance(x, bool) for x in numbers):
            ignored["edge weights"] = f"edge_attributes={[name]!r}"
    unused = {
        str(name)
        for graph in graphs
        for name, column in graph.node_columns.items()
        if name is not None and name not in nodes.sources and any(map(_is_continuous, column))
    }
    if unused:
        names = sorted(unused)
        found = f"continuous node attributes ({', '.join(map(repr, names))})"
        ignored[found] = f"node_attributes={names!r}"
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
                f"The {what} labels are floating-point numbers, of which each ({fraction!r}, ...) "
                "is a label of its own: how close two of them are is ignored. Round them, or pass "
                f"{what}_attributes=."
            )
    return messages


def _is_continuous(value: Any) -> bool:
    """Whether a value is a float, or an array or sequence of them."""
    if isinstance(value, (tuple, list)):
        return any(isinstance(x, (float, np.floating)) for x in value)
    return isinstance(value, (float, np.floating)) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    )


def to_array(tensor: Any) -> np.ndarray:
    """Return a tensor, also one on a device, as an array."""
    for step in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    return np.asarray(tensor)
