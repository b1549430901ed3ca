"""Graphs of other libraries as one plain form; none of the libraries is imported."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.build import build_collection, edge_array, listed_one_way, numbered_names
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError, IgnoredDataWarning
from treelens.graphs.recipe import GraphRecipe, common_recipe

_LABEL, _WEIGHT = "label", "weight"


class PlainGraph(NamedTuple):
    """One graph with nodes 0, 1, ...; labels and attributes are None where the graph has none."""

    n_nodes: int
    edges: Any  # pairs of node numbers: a list, or an array of shape (n_edges, 2)
    node_labels: Sequence[Any] | None
    edge_labels: Sequence[Any] | None
    name: Hashable | None = None
    directed: bool = False


class Table(NamedTuple):
    """Attributes of all nodes or edges of some graphs."""

    values: np.ndarray | None = None  # (n_rows, n_names)
    names: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # what was asked for: "pos", of which the names are "pos 1", ...


class Asked(NamedTuple):
    """What to take from graphs."""

    node_label: str | None = None
    edge_label: str | None = None
    node_attributes: Any = ()  # names, "all", or values for each graph
    edge_attributes: Any = ()
    directed: bool | None = None
    required: bool = True  # whether attributes must be there

    def recipe(self, source: str, nodes: Table, edges: Table, directed: bool | None) -> GraphRecipe:
        """Return the recipe of graphs from which this was taken."""
        return GraphRecipe(
            source, node_label=self.node_label, edge_label=self.edge_label,
            node_attributes=nodes.sources, edge_attributes=edges.sources,
            directed=directed if self.directed is None else self.directed,
        )  # fmt: skip


def join(
    graphs: Sequence[PlainGraph],
    recipe: GraphRecipe | None = None,
    graph_data: Mapping[str, Any] | None = None,
    nodes: Table = Table(),  # noqa: B008 - immutable
    edge_table: Table = Table(),  # noqa: B008
    directed: bool | None = None,
) -> GraphCollection:
    """Put plain graphs into one collection; either all of them have labels or none has.

    ``directed=None``: where one of them is. An edge of an undirected graph among directed ones
    leads both ways.
    """
    directed = any(graph.directed for graph in graphs) if directed is None else directed
    sizes = [graph.n_nodes for graph in graphs]
    edges = [edge_array(graph.edges, f"Graph {i}") for i, graph in enumerate(graphs)]
    n_edges = [len(pairs) for pairs in edges]
    together = np.concatenate(edges)  # (n_edges in all, 2), nodes numbered within their graph
    n_nodes = np.repeat(sizes, n_edges)[:, None]
    outside = np.flatnonzero(((together < 0) | (together >= n_nodes)).any(axis=1))
    if len(outside):
        graph = int(np.searchsorted(np.cumsum(n_edges), outside[0], side="right"))
        u, v = together[outside[0]].tolist()
        raise GraphDataError(
            f"Graph {graph}: an edge joins nodes {u} and {v}, but the graph has {sizes[graph]} "
            "nodes, numbered from 0."
        )
    together = together + np.repeat(np.cumsum(sizes) - sizes, n_edges)[:, None]
    node_labels = _joined_labels("node", [graph.node_labels for graph in graphs], sizes)
    labels = _joined_labels("edge", [graph.edge_labels for graph in graphs], n_edges)
    values = edge_table.values
    if directed and not all(graph.directed for graph in graphs):
        both_ways = np.flatnonzero(np.repeat([not graph.directed for graph in graphs], n_edges))
        together = np.concatenate([together, together[both_ways, ::-1]])
        labels = None if labels is None else labels + [labels[edge] for edge in both_ways]
        values = None if values is None else np.concatenate([values, values[both_ways]])
    names = [graph.name for graph in graphs]
    return build_collection(
        sizes,
        together,
        node_labels,
        labels,
        names if any(name is not None for name in names) else None,
        graph_data,
        recipe,
        node_attributes=nodes.values,
        attribute_names=nodes.names,
        edge_attributes=values,
        edge_attribute_names=edge_table.names,
        directed=directed,
    )


def attribute_table(
    rows: Sequence[Mapping[Any, Any]], asked: Any, skip: Any, place: Callable[[int], str],
    required: bool = True,
) -> Table:  # fmt: skip
    """Return the attributes of some names, or all that are numbers, of nodes or edges.

    A value that is an array becomes several columns; a value that is not there is missing. ``skip``
    is the name of the labels, which ``asked="all"`` leaves out.
    """
    if not len(asked):
        return Table()
    known = sorted({key for row in rows for key in row if isinstance(key, str)})
    names = [name for name in known if name != skip] if asked == "all" else list(asked)
    blocks: dict[str, np.ndarray] = {}
    for name in names:
        if name in known or required:
            try:
                blocks[name] = _numbers([row.get(name) for row in rows], name, place, known)
            except GraphDataError:
                if asked != "all":
                    raise
    return _side_by_side(blocks)


def _side_by_side(blocks: Mapping[str, np.ndarray]) -> Table:
    """Return arrays (n_rows, width) as one table."""
    columns: list[str] = []
    for name, block in blocks.items():
        columns += [name] if block.shape[1] == 1 else numbered_names(name, block.shape[1])
    if not blocks:
        return Table()
    return Table(np.concatenate(list(blocks.values()), axis=1), tuple(columns), tuple(blocks))


def _numbers(
    values: list[Any], name: str, place: Callable[[int], str], known: Sequence[str]
) -> np.ndarray:
    """Return values, each a number or an array of them, as an array of shape (n_values, width)."""
    there = [i for i, value in enumerate(values) if value is not None]
    if values and not there:
        raise GraphDataError(
            f"Nothing has the attribute {name!r}. There are: {', '.join(known) or 'none'}."
        )
    with suppress(ValueError, TypeError):  # all of them numbers, or arrays of one length
        block = np.array([np.nan if value is None else value for value in values])
        if block.dtype.kind in "iufb" and block.ndim in (1, 2):
            return block.reshape(len(values), -1).astype(np.float64)
    arrays = [to_array(values[i]).ravel() for i in there]
    for i, array in zip(there, arrays, strict=True):
        if array.dtype.kind not in "iufb" or len(array) != len(arrays[0]):
            wanted = "a number" if len(arrays[0]) == 1 else f"{len(arrays[0])} numbers"
            raise GraphDataError(
                f"{place(i)} has {values[i]!r:.80} as attribute {name!r}: expected {wanted}, as "
                "others have."
            )
    block = np.full((len(values), len(arrays[0])), np.nan)
    block[there] = arrays
    return block


def _joined_labels(what: str, labels: list[Any], counts: list[int]) -> list[Any] | None:
    """Return all labels in one list; graphs without nodes (or edges) need none."""
    for i, given in enumerate(labels):
        if given is not None and len(given) != counts[i]:
            raise GraphDataError(
                f"Graph {i} has {len(given)} {what} labels for {counts[i]} {what}s: give one each."
            )
    labelled = [i for i, x in enumerate(labels) if x is not None and counts[i]]
    bare = [i for i, x in enumerate(labels) if x is None and counts[i]]
    if labelled and bare:
        raise GraphDataError(
            f"Graph {labelled[0]} has {what} labels, graph {bare[0]} has none ({len(bare)} of "
            f"{len(labels)} have none): give {what} labels to all graphs or to none."
        )
    if not labelled:
        return None if bare or what == "edge" else []
    return [label for i in labelled for label in labels[i]]


def _all_or_none(
    values: list[Any], attribute: str, index: int, nodes: Sequence[Any], edges: Any = None
) -> list[Any] | None:
    """Return the labels, or None where all are None; where some are, the error names the first."""
    missing = [i for i, value in enumerate(values) if value is None]
    if len(missing) == len(values):
        return None
    if missing:
        ends = [missing[0]] if edges is None else edges[missing[0]]
        place = ("Node " if edges is None else "Edge ") + " - ".join(repr(nodes[i]) for i in ends)
        raise GraphDataError(
            f"{place} of graph {index} has no {attribute!r}, while others of the same graph have "
            "one: give every one a label, such as 'unknown', or none."
        )
    return values


def _check_found(plain: Sequence[PlainGraph], recipe: GraphRecipe, known: Iterable[Any]) -> None:
    """Raise where no graph has an attribute that was asked for by name."""
    for what in ("node", "edge"):
        asked = getattr(recipe, f"{what}_label")
        if asked is not None and all(getattr(g, f"{what}_labels") is None for g in plain):
            listed = ", ".join(sorted(map(str, known))) if what == "node" else ""
            raise GraphDataError(
                f"No {what} of any graph has {asked!r}, which {what}_label={asked!r} asks for."
                + (f" Attributes there: {listed}." if listed else "")
            )


def warn_ignored(
    graphs: GraphCollection,
    *,
    weights: Iterable[Any] = (),
    attributes: Iterable[Any] = (),
    weight_name: str = _WEIGHT,
    stacklevel: int = 4,
) -> GraphCollection:
    """Return the graphs; one warning lists what was in their source and is not used.

    ``weights`` are values of edges, ``attributes`` names of continuous attributes of nodes.
    """
    ignored = {}
    numbers = (x for x in weights if isinstance(x, (int, float, np.number)))
    if any(x != 1 and not isinstance(x, bool) for x in numbers):
        ignored["edge weights"] = f"edge_attributes={[weight_name]!r}"
    if names := sorted(set(map(str, attributes))):
        found = f"continuous node attributes ({', '.join(map(repr, names))})"
        ignored[found] = f"node_attributes={names!r}"
    messages = []
    if ignored:
        messages.append(
            f"Ignored in these graphs: {'; '.join(ignored)}. Use them with as_graph_collection("
            f"graphs, {', '.join(ignored.values())}), or remove them."
        )
    for what, alphabet in (("node", graphs.node_alphabet), ("edge", graphs.edge_alphabet or ())):
        fraction = next((x for x in alphabet if isinstance(x, float) and not x.is_integer()), None)
        if fraction is not None:
            messages.append(
                f"The {what} labels are floating-point numbers, of which each ({fraction!r}, ...) "
                "is a label of its own: how close two of them are is ignored. Round them, or pass "
                f"{what}_attributes=."
            )
    for message in messages:
        warnings.warn(message, IgnoredDataWarning, stacklevel=stacklevel)
    return graphs


def _is_continuous(value: Any) -> bool:
    """Whether a value is a float, or an array or sequence of them."""
    if isinstance(value, (tuple, list)):
        return any(isinstance(x, (float, np.floating)) for x in value)
    return isinstance(value, (float, np.floating)) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    )


# --- treelens, NetworkX, igraph --------------------------------------------------------------


def from_treelens(graphs: Sequence[Graph]) -> GraphCollection:
    plain = [
        PlainGraph(g.n_nodes, g.edges, g.node_labels, g.edge_labels, g.name, g.directed)
        for g in graphs
    ]
    shared = set(graphs[0].data).intersection(*(graph.data for graph in graphs))
    data = {key: [graph.data[key] for graph in graphs] for key in sorted(shared)}
    nodes = _joined_columns([graph.node_attributes for graph in graphs], "node")
    edges = _joined_columns([graph.edge_attributes for graph in graphs], "edge")
    joined = join(plain, common_recipe(graph.recipe for graph in graphs), data, nodes, edges)
    fine = [graph.fine_labels for graph in graphs if graph.fine_labels is not None]
    if len(fine) < len(graphs):
        return joined
    return joined.with_fine_labels([label for labels in fine for label in labels])


def _joined_columns(columns: Sequence[Mapping[str, Sequence[float]]], what: str) -> Table:
    """Return the attributes of all graphs, which must have the same."""
    names = tuple(columns[0])
    for index, of_graph in enumerate(columns):
        if tuple(of_graph) != names:
            raise GraphDataError(
                f"Graph 0 has the {what} attributes {list(names)!r}, graph {index} has "
                f"{list(of_graph)!r}: give all graphs the same."
            )
    if not names:
        return Table()
    tables = [np.array(list(of_graph.values()), dtype=np.float64).T for of_graph in columns]
    return Table(np.concatenate(tables), names)


class Attributed(NamedTuple):
    """Nodes and edges of one graph, each with a dict of its attributes."""

    nodes: Sequence[Any]
    node_data: Sequence[Mapping[Any, Any]]
    edges: Sequence[tuple[int, int]]
    edge_data: Sequence[Mapping[Any, Any]]
    name: Hashable | None = None
    directed: bool = False


def _read_networkx(graph: Any, index: int) -> Attributed:
    nodes, edges = dict(graph.nodes(data=True)), list(graph.edges(data=True))
    number = {node: i for i, node in enumerate(nodes)}
    pairs = [(number[u], number[v]) for u, v, _ in edges]
    edge_data = [data for _, _, data in edges]
    return Attributed(
        list(nodes), list(nodes.values()), pairs, edge_data, graph.graph.get("name") or None,
        graph.is_directed(),
    )  # fmt: skip


def _read_igraph(graph: Any, index: int) -> Attributed:
    edges = graph.get_edgelist()
    node_data, edge_data = (
        [
            dict(zip(items.attributes(), row, strict=True))
            for row in zip(*(items[key] for key in items.attributes()), strict=True)
        ]
        or [{}] * n
        for items, n in ((graph.vs, graph.vcount()), (graph.es, len(edges)))
    )
    nodes = range(graph.vcount())
    return Attributed(nodes, node_data, edges, edge_data, directed=graph.is_directed())


def from_attributed(
    graphs: Sequence[Any], asked: Asked, source: str, read: Callable[[Any, int], Attributed],
    stacklevel: int = 4,
) -> GraphCollection:  # fmt: skip
    """Return graphs whose labels are attributes of nodes and edges.

    An attribute that is asked for as a number does not serve as label.
    """
    node_key, edge_key = asked.node_label or _LABEL, asked.edge_label or _LABEL
    plain: list[PlainGraph] = []
    found = [read(graph, index) for index, graph in enumerate(graphs)]
    nodes, edges = (
        attribute_table(
            list(chain.from_iterable(rows)), names, key, _place_of(rows, what), asked.required
        )
        for rows, names, key, what in (
            ([x.node_data for x in found], asked.node_attributes, node_key, "A node"),
            ([x.edge_data for x in found], asked.edge_attributes, edge_key, "An edge"),
        )
    )
    used = {node_key, *nodes.sources}
    known: set[Any] = set()
    continuous: set[Any] = set()
    weights: list[Any] = []
    for index, parts in enumerate(found):
        for data in parts.node_data:
            if len(data) > (node_key in data):
                known.update(data)
                continuous.update(k for k in data if k not in used and _is_continuous(data[k]))
        if _WEIGHT not in (edge_key, *edges.sources):
            weights += [data[_WEIGHT] for data in parts.edge_data if _WEIGHT in data]
        labels, arcs = (
            None if key in table.sources
            else _all_or_none([x.get(key) for x in rows], key, index, parts.nodes, *ends)
            for key, table, rows, ends in (
                (node_key, nodes, parts.node_data, ()),
                (edge_key, edges, parts.edge_data, (parts.edges,)),
            )
        )  # fmt: skip
        plain.append(
            PlainGraph(len(parts.nodes), parts.edges, labels, arcs, parts.name, parts.directed)
        )
    some_directed = len({graph.directed for graph in plain}) > 1
    recipe = asked.recipe(source, nodes, edges, True if some_directed else None)
    _check_found(plain, recipe, known)
    joined = join(plain, recipe, None, nodes, edges, asked.directed)
    return warn_ignored(joined, weights=weights, attributes=continuous, stacklevel=stacklevel)


def _place_of(rows: Sequence[Sequence[Any]], what: str) -> Callable[[int], str]:
    """Return a function from a position among the rows of all graphs to words."""
    ends = np.cumsum([len(of_graph) for of_graph in rows])
    return lambda row: f"{what} of graph {np.searchsorted(ends, row, side='right')}"


from_networkx = partial(from_attributed, source="networkx", read=_read_networkx)
from_igraph = partial(from_attributed, source="igraph", read=_read_igraph)


# --- PyTorch Geometric ----------------------------------------------------------------------


def from_geometric(graphs: Sequence[Any], asked: Asked) -> GraphCollection:
    """Labels are decoded over all graphs at once, by one rule for all of them."""
    edges, sizes = [], []
    for index, graph in enumerate(graphs):
        edge_index = to_array(graph.edge_index)
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            raise GraphDataError(
                f"Graph {index}: edge_index must have shape (2, n_edges); got {edge_index.shape}."
            )
        edges.append(edge_array(edge_index.T, f"Graph {index}, edge_index"))  # (n_edges, 2)
        sizes.append(_n_nodes(graph, index, edges[-1]))
    n_edges = [len(pairs) for pairs in edges]
    node_table = _feature_table(graphs, sizes, asked.node_attributes, ("x", "pos"), asked.required)
    edge_table = _feature_table(
        graphs, n_edges, asked.edge_attributes, ("edge_attr", "edge_weight"), asked.required
    )
    nodes, arcs = (
        _feature_labels(graphs, counts, label, [k for k in usual if k not in table.sources], what)
        for counts, label, usual, table, what in (
            (sizes, asked.node_label, ("node_labels", "x"), node_table, "node"),
            (n_edges, asked.edge_label, ("edge_labels", "edge_attr"), edge_table, "edge"),
        )
    )
    directed = asked.directed
    if directed is None:
        directed = any(len(listed_one_way(pairs)) for pairs in edges)
    plain = [
        PlainGraph(*parts, None, directed) for parts in zip(sizes, edges, nodes, arcs, strict=True)
    ]
    recipe = asked.recipe("geometric", node_table, edge_table, directed)
    _check_found(plain, recipe, ())
    used = {asked.edge_label, *edge_table.sources}
    weights = [] if "edge_weight" in used else [getattr(x, "edge_weight", None) for x in graphs]
    has_position = any(getattr(graph, "pos", None) is not None for graph in graphs)
    return warn_ignored(
        join(plain, recipe, None, node_table, edge_table, directed),
        weights=chain.from_iterable(
            to_array(x).ravel().tolist() for x in weights if x is not None),
        attributes={"pos"} - set(node_table.sources) if has_position else (),
        weight_name="edge_weight",
    )  # fmt: skip


def _stacked(
    graphs: Sequence[Any], counts: list[int], name: str
) -> tuple[np.ndarray | None, np.ndarray]:
    """Return an attribute of all graphs (n_rows, n_columns), and which of them have it."""
    tables, has = [], np.zeros(len(graphs), dtype=bool)
    for i, graph in enumerate(graphs):
        value = getattr(graph, name, None)
        if value is None or not counts[i]:
            continue
        table, has[i] = to_array(value), True
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or len(table) != counts[i] or table.dtype.kind not in "iufb":
            raise GraphDataError(
                f"{name} of graph {i} has shape {table.shape} and type {table.dtype}: "
                f"expected one row of numbers for each of {counts[i]}."
            )
        tables.append(table)
    if len({table.shape[1] for table in tables}) > 1:
        raise GraphDataError(f"{name} has not the same number of columns in all graphs.")
    return (np.concatenate(tables) if tables else None), has


def _feature_table(
    graphs: Sequence[Any], counts: list[int], asked: Any, usual: tuple[str, ...], required: bool
) -> Table:
    """Return arrays of the graphs, such as ``x`` and ``pos``, side by side."""
    blocks = {}
    for name in usual if asked == "all" else asked:
        values, has = _stacked(graphs, counts, name)
        if values is not None:
            blocks[name] = np.full((sum(counts), values.shape[1]), np.nan)
            blocks[name][np.repeat(has, counts)] = values
        elif required and asked != "all":
            raise GraphDataError(f"No graph has the attribute {name!r}.")
    return _side_by_side(blocks)


def to_array(tensor: Any) -> np.ndarray:
    """Return a tensor, also one on a device, as an array."""
    for step in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    return np.asarray(tensor)


def _n_nodes(graph: Any, index: int, edges: np.ndarray) -> int:
    stated = getattr(graph, "num_nodes", None)
    if stated is None:
        has_features = getattr(graph, "x", None) is not None
        return len(to_array(graph.x)) if has_features else int(edges.max(initial=-1)) + 1
    if int(stated) != stated or stated < 0:
        raise GraphDataError(f"Graph {index}: num_nodes is {stated!r}; expected an integer.")
    return int(stated)


def _feature_labels(
    graphs: Sequence[Any], counts: list[int], asked: str | None, usual: Sequence[str], what: str
) -> list[Any]:
    """Return the labels of each graph (or None) from the first attribute that is there."""
    labels: list[Any] = [None] * len(graphs)
    for name in usual if asked is None else (asked,):
        if any(getattr(graph, name, None) is not None for graph in graphs):
            values, has = _stacked(graphs, counts, name)
            if values is not None:
                decoded, start = _decode(values, name, what), 0
                for i in np.flatnonzero(has).tolist():
                    labels[i], start = decoded[start : start + counts[i]], start + counts[i]
            break
    return labels


def _decode(table: np.ndarray, attribute: str, what: str) -> list[Any]:
    """One-hot rows become the position of the one; other whole numbers stay as they are."""
    if table.shape[1] > 1 and ((table == 0) | (table == 1)).all() and (table.sum(1) == 1).all():
        return table.argmax(axis=1).tolist()
    if not (np.isfinite(table).all() and (table == np.round(table)).all()):
        raise GraphDataError(
            f"{attribute} has values that are not whole numbers, which cannot serve as labels. "
            f"Use them as attributes, {what}_attributes=[{attribute!r}], or pass {what}_label= "
            "with the name of an attribute that has labels."
        )
    rows = table.astype(np.int64).tolist()
    return [row[0] for row in rows] if table.shape[1] == 1 else [tuple(row) for row in rows]
