"""Graphs of other libraries as one plain form; none of the libraries is imported."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.build import build_collection, edge_array
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError, IgnoredDataWarning
from treelens.graphs.recipe import GraphRecipe, common_recipe

_LABEL, _WEIGHT = "label", "weight"


class PlainGraph(NamedTuple):
    """One graph with nodes 0, 1, ...; labels are None where the graph has none."""

    n_nodes: int
    edges: Any  # pairs of node numbers: a list, or an array of shape (n_edges, 2)
    node_labels: Sequence[Any] | None
    edge_labels: Sequence[Any] | None
    name: Hashable | None = None


def join(
    graphs: Sequence[PlainGraph],
    recipe: GraphRecipe | None = None,
    graph_data: Mapping[str, Any] | None = None,
) -> GraphCollection:
    """Put plain graphs into one collection; either all of them have labels or none has."""
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
    names = [graph.name for graph in graphs]
    return build_collection(
        sizes,
        together + np.repeat(np.cumsum(sizes) - sizes, n_edges)[:, None],
        _joined_labels("node", [graph.node_labels for graph in graphs], sizes),
        _joined_labels("edge", [graph.edge_labels for graph in graphs], n_edges),
        names if any(name is not None for name in names) else None,
        graph_data,
        recipe,
    )


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
    n_directed: int = 0,
    weights: Iterable[Any] = (),
    attributes: Iterable[Any] = (),
) -> GraphCollection:
    """Return the graphs; one warning lists what was in their source and is not used.

    ``weights`` are values of edges, ``attributes`` names of continuous attributes of nodes.
    """
    ignored = {}
    if n_directed:
        found = f"the direction of edges ({n_directed} of {len(graphs)} graphs are directed)"
        ignored[found] = "pass graph.to_undirected()"
    numbers = (x for x in weights if isinstance(x, (int, float, np.number)))
    if any(x != 1 and not isinstance(x, bool) for x in numbers):
        ignored["edge weights"] = "bin weights into edge labels"
    if names := sorted(set(map(str, attributes))):
        found = f"continuous node attributes ({', '.join(map(repr, names))})"
        ignored[found] = "bin attributes into node labels"
    messages = []
    if ignored:
        messages.append(
            f"Ignored in these graphs: {'; '.join(ignored)}. Kernels compare labels and undirected "
            f"edges only: {'; '.join(ignored.values())}; or remove them."
        )
    for what, alphabet in (("node", graphs.node_alphabet), ("edge", graphs.edge_alphabet or ())):
        fraction = next((x for x in alphabet if isinstance(x, float) and not x.is_integer()), None)
        if fraction is not None:
            messages.append(
                f"The {what} labels are floating-point numbers, of which each ({fraction!r}, ...) "
                "is a label of its own: how close two of them are is ignored. Round or bin them."
            )
    for message in messages:
        warnings.warn(message, IgnoredDataWarning, stacklevel=4)
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
    plain = [PlainGraph(g.n_nodes, g.edges, g.node_labels, g.edge_labels, g.name) for g in graphs]
    shared = set(graphs[0].data).intersection(*(graph.data for graph in graphs))
    data = {key: [graph.data[key] for graph in graphs] for key in sorted(shared)}
    joined = join(plain, common_recipe(graph.recipe for graph in graphs), data)
    fine = [graph.fine_labels for graph in graphs if graph.fine_labels is not None]
    if len(fine) < len(graphs):
        return joined
    return joined.with_fine_labels([label for labels in fine for label in labels])


class _Attributed(NamedTuple):
    """Nodes and edges of one graph, each with a dict of its attributes."""

    nodes: Sequence[Any]
    node_data: Sequence[Mapping[Any, Any]]
    edges: Sequence[tuple[int, int]]
    edge_data: Sequence[Mapping[Any, Any]]
    name: Hashable | None = None


def _read_networkx(graph: Any) -> _Attributed:
    nodes, edges = dict(graph.nodes(data=True)), list(graph.edges(data=True))
    number = {node: i for i, node in enumerate(nodes)}
    pairs = [(number[u], number[v]) for u, v, _ in edges]
    edge_data = [data for _, _, data in edges]
    return _Attributed(
        list(nodes), list(nodes.values()), pairs, edge_data, graph.graph.get("name") or None
    )


def _read_igraph(graph: Any) -> _Attributed:
    edges = graph.get_edgelist()
    node_data, edge_data = (
        [
            dict(zip(items.attributes(), row, strict=True))
            for row in zip(*(items[key] for key in items.attributes()), strict=True)
        ]
        or [{}] * n
        for items, n in ((graph.vs, graph.vcount()), (graph.es, len(edges)))
    )
    return _Attributed(range(graph.vcount()), node_data, edges, edge_data)


def _from_attributed(
    graphs: Sequence[Any],
    node_label: str | None,
    edge_label: str | None,
    source: str,
    read: Callable[[Any], _Attributed],
) -> GraphCollection:
    """Labels are attributes of nodes and edges."""
    recipe = GraphRecipe(source, node_label=node_label, edge_label=edge_label)
    node_key, edge_key = node_label or _LABEL, edge_label or _LABEL
    plain: list[PlainGraph] = []
    weights: list[Any] = []
    known: set[Any] = set()
    continuous: set[Any] = set()
    for index, graph in enumerate(graphs):
        nodes, node_data, edges, edge_data, name = read(graph)
        for data in node_data:
            if len(data) > (node_key in data):
                known.update(data)
                continuous.update(k for k in data if k != node_key and _is_continuous(data[k]))
        if edge_key != _WEIGHT:
            weights += [data[_WEIGHT] for data in edge_data if _WEIGHT in data]
        labels, arcs = [x.get(node_key) for x in node_data], [x.get(edge_key) for x in edge_data]
        found = _all_or_none(labels, node_key, index, nodes)
        found_arcs = _all_or_none(arcs, edge_key, index, nodes, edges)
        plain.append(PlainGraph(len(nodes), edges, found, found_arcs, name))
    _check_found(plain, recipe, known)
    n_directed = sum(graph.is_directed() for graph in graphs)
    joined = join(plain, recipe)
    return warn_ignored(joined, n_directed=n_directed, weights=weights, attributes=continuous)


from_networkx = partial(_from_attributed, source="networkx", read=_read_networkx)
from_igraph = partial(_from_attributed, source="igraph", read=_read_igraph)


# --- PyTorch Geometric ----------------------------------------------------------------------


def from_geometric(
    graphs: Sequence[Any], node_label: str | None, edge_label: str | None
) -> GraphCollection:
    """Labels are decoded over all graphs at once, by one rule for all of them."""
    recipe = GraphRecipe("geometric", node_label=node_label, edge_label=edge_label)
    edges, sizes = [], []
    for index, graph in enumerate(graphs):
        edge_index = _to_array(graph.edge_index)
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            raise GraphDataError(
                f"Graph {index}: edge_index must have shape (2, n_edges); got {edge_index.shape}."
            )
        edges.append(edge_array(edge_index.T, f"Graph {index}, edge_index"))  # (n_edges, 2)
        sizes.append(_n_nodes(graph, index, edges[-1]))
    nodes = _feature_labels(graphs, sizes, node_label, ("node_labels", "x"), "node")
    n_edges = [len(pairs) for pairs in edges]
    arcs = _feature_labels(graphs, n_edges, edge_label, ("edge_labels", "edge_attr"), "edge")
    plain = [PlainGraph(*parts) for parts in zip(sizes, edges, nodes, arcs, strict=True)]
    _check_found(plain, recipe, ())
    weights = [getattr(graph, "edge_weight", None) for graph in graphs]
    return warn_ignored(
        join(plain, recipe),
        weights=() if edge_label == "edge_weight" else chain.from_iterable(
            _to_array(x).ravel().tolist() for x in weights if x is not None),
        attributes={"pos"} if any(getattr(g, "pos", None) is not None for g in graphs) else (),
    )  # fmt: skip


def _to_array(tensor: Any) -> np.ndarray:
    for step in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    return np.asarray(tensor)


def _n_nodes(graph: Any, index: int, edges: np.ndarray) -> int:
    stated = getattr(graph, "num_nodes", None)
    if stated is None:
        has_features = getattr(graph, "x", None) is not None
        return len(_to_array(graph.x)) if has_features else int(edges.max(initial=-1)) + 1
    if int(stated) != stated or stated < 0:
        raise GraphDataError(f"Graph {index}: num_nodes is {stated!r}; expected an integer.")
    return int(stated)


def _feature_labels(
    graphs: Sequence[Any], counts: list[int], asked: str | None, usual: tuple[str, str], what: str
) -> list[Any]:
    """Return the labels of each graph (or None) from the first attribute that is there."""
    labels: list[Any] = [None] * len(graphs)
    for attribute in usual if asked is None else (asked,):
        values = [getattr(graph, attribute, None) for graph in graphs]
        if any(value is not None for value in values):
            break
    else:
        return labels
    there = [i for i, value in enumerate(values) if value is not None and counts[i]]
    tables = []
    for i in there:
        table = _to_array(values[i])
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or len(table) != counts[i] or table.dtype.kind not in "iufb":
            raise GraphDataError(
                f"{attribute} of graph {i} has shape {table.shape} and type {table.dtype}: "
                f"expected one row of numbers for each of {counts[i]}."
            )
        tables.append(table)
    if len({table.shape[1] for table in tables}) > 1:
        raise GraphDataError(f"{attribute} has not the same number of columns in all graphs.")
    if tables:
        decoded, start = _decode(np.concatenate(tables), attribute, what), 0
        for i in there:
            labels[i], start = decoded[start : start + counts[i]], start + counts[i]
    return labels


def _decode(table: np.ndarray, attribute: str, what: str) -> list[Any]:
    """One-hot rows become the position of the one; other whole numbers stay as they are."""
    if table.shape[1] > 1 and ((table == 0) | (table == 1)).all() and (table.sum(1) == 1).all():
        return table.argmax(axis=1).tolist()
    if not (np.isfinite(table).all() and (table == np.round(table)).all()):
        raise GraphDataError(
            f"{attribute} has values that are not whole numbers, which cannot serve as labels. "
            f"Pass {what}_label= with the name of an attribute that has labels, or remove this one."
        )
    rows = table.astype(np.int64).tolist()
    return [row[0] for row in rows] if table.shape[1] == 1 else [tuple(row) for row in rows]
