"""Graphs of other libraries, each turned into one plain form; none of the libraries is imported."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.build import build_collection, edge_array
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError, IgnoredDataWarning
from treelens.graphs.recipe import GraphRecipe, common_recipe

DEFAULT_ATTRIBUTE = "label"
_WEIGHT = "weight"


class PlainGraph(NamedTuple):
    """One graph with nodes 0, 1, ...; labels are None where the graph has none."""

    n_nodes: int
    edges: Any  # pairs of node numbers: a list, or an array of shape (n_edges, 2)
    node_labels: Sequence[Any] | None
    edge_labels: Sequence[Any] | None
    name: Hashable | None = None


def join(
    graphs: Sequence[PlainGraph],
    graph_data: Mapping[str, Any] | None = None,
    recipe: GraphRecipe | None = None,
) -> GraphCollection:
    """Put plain graphs into one collection; either all of them have labels or none has."""
    sizes = [graph.n_nodes for graph in graphs]
    edges = [edge_array(graph.edges, f"Graph {i}") for i, graph in enumerate(graphs)]
    n_edges = [len(pairs) for pairs in edges]
    together = np.concatenate(edges)  # (n_edges in all, 2), nodes numbered within their graph
    n_nodes = np.repeat(sizes, n_edges)[:, None]
    outside = np.flatnonzero(((together < 0) | (together >= n_nodes)).any(axis=1))
    if len(outside):
        last_edges = np.cumsum(n_edges)
        graph = int(np.searchsorted(last_edges, outside[0], side="right"))
        edge = outside[0] - (last_edges[graph] - n_edges[graph])
        u, v = together[outside[0]].tolist()
        there = f"the nodes are 0 to {sizes[graph] - 1}" if sizes[graph] else "it has no node"
        raise GraphDataError(
            f"Graph {graph}: edge {edge} joins nodes {u} and {v}, but the graph has "
            f"{sizes[graph]} nodes: {there}."
        )
    first_node = np.repeat(np.cumsum(sizes) - sizes, n_edges)
    names = [graph.name for graph in graphs]
    return build_collection(
        sizes,
        together + first_node[:, None],
        _together("node", [graph.node_labels for graph in graphs], sizes),
        _together("edge", [graph.edge_labels for graph in graphs], n_edges),
        names if any(name is not None for name in names) else None,
        graph_data,
        recipe,
    )


def _together(what: str, labels: list[Any], counts: list[int]) -> list[Any] | None:
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
            f"Graph {labelled[0]} has {what} labels, graph {bare[0]} has none "
            f"({len(bare)} of {len(labels)} have none): give {what} labels to all graphs or to "
            "none."
        )
    if not labelled:
        return None if bare or what == "edge" else []
    return [label for i in labelled for label in labels[i]]


def _all_or_none(
    values: list[Any], place: Callable[[int], str], attribute: str
) -> list[Any] | None:
    """Return the labels, or None where all are None; where some are, the error names the first."""
    missing = [i for i, value in enumerate(values) if value is None]
    if len(missing) == len(values):
        return None
    if missing:
        raise GraphDataError(
            f"{place(missing[0])} has no {attribute!r}, while others of the same graph have one: "
            "give every one a label, such as 'unknown', or none."
        )
    return values


def _missing_attribute(what: str, attribute: str, known: Iterable[str]) -> GraphDataError:
    listed = f" Attributes there: {', '.join(sorted(known))}." if known else ""
    return GraphDataError(
        f"No {what} of any graph has {attribute!r}, which {what}_label={attribute!r} asks for."
        f"{listed}"
    )


def _check_asked(
    plain: Sequence[PlainGraph],
    node_label: str | None,
    edge_label: str | None,
    node_attributes: Callable[[], Iterable[str]],
) -> None:
    if node_label is not None and all(graph.node_labels is None for graph in plain):
        raise _missing_attribute("node", node_label, node_attributes())
    if edge_label is not None and all(graph.edge_labels is None for graph in plain):
        raise _missing_attribute("edge", edge_label, ())


# --- what is not used ------------------------------------------------------------------------


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
    ignored, advice = [], []
    if n_directed:
        ignored.append(
            f"the direction of edges ({n_directed} of {len(graphs)} graphs are directed)"
        )
        advice.append("pass graph.to_undirected()")
    if any(_is_number(weight) and weight != 1 for weight in weights):
        ignored.append("edge weights")
        advice.append("bin weights into edge labels")
    if names := sorted(set(map(str, attributes))):
        ignored.append(f"continuous node attributes ({', '.join(map(repr, names))})")
        advice.append("bin attributes into node labels")
    if ignored:
        warnings.warn(
            f"Ignored in these graphs: {'; '.join(ignored)}. Kernels compare labels and undirected "
            f"edges only: {'; '.join(advice)}; or remove them.",
            IgnoredDataWarning,
            stacklevel=4,
        )
    for what, alphabet in (("node", graphs.node_alphabet), ("edge", graphs.edge_alphabet or ())):
        fraction = next((x for x in alphabet if isinstance(x, float) and not x.is_integer()), None)
        if fraction is not None:
            warnings.warn(
                f"The {what} labels are floating-point numbers, of which each ({fraction!r}, ...) "
                "is a label of its own: how close two of them are is ignored. Round or bin them.",
                IgnoredDataWarning,
                stacklevel=4,
            )
    return graphs


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


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
    joined = join(plain, data, common_recipe(graph.recipe for graph in graphs))
    fine = [graph.fine_labels for graph in graphs if graph.fine_labels is not None]
    if len(fine) < len(graphs):
        return joined
    return joined.with_fine_labels([label for labels in fine for label in labels])


def from_networkx(
    graphs: Sequence[Any], node_label: str | None, edge_label: str | None
) -> GraphCollection:
    keys = node_label or DEFAULT_ATTRIBUTE, edge_label or DEFAULT_ATTRIBUTE
    weights: list[Any] = []
    attributes: set[Any] = set()
    plain = [
        _plain_networkx(graph, i, *keys, weights, attributes) for i, graph in enumerate(graphs)
    ]
    _check_asked(
        plain, node_label, edge_label,
        lambda: {str(key) for graph in graphs for _, x in graph.nodes(data=True) for key in x},
    )  # fmt: skip
    recipe = GraphRecipe("networkx", node_label=node_label, edge_label=edge_label)
    n_directed = sum(graph.is_directed() for graph in graphs)
    joined = join(plain, None, recipe)
    return warn_ignored(joined, n_directed=n_directed, weights=weights, attributes=attributes)


def _plain_networkx(
    graph: Any, index: int, node_label: str, edge_label: str, weights: list[Any], others: set[Any]
) -> PlainGraph:
    """Weights and the names of other continuous attributes are added to the last arguments."""
    nodes, labels = [], []
    for node, data in graph.nodes(data=True):
        nodes.append(node)
        labels.append(data.get(node_label))
        if len(data) > (node_label in data):
            others.update(key for key in data if key != node_label and _is_continuous(data[key]))
    number = {node: i for i, node in enumerate(nodes)}
    triples = list(graph.edges(data=True))
    if edge_label != _WEIGHT:
        weights += [data[_WEIGHT] for _, _, data in triples if _WEIGHT in data]
    return PlainGraph(
        len(nodes),
        [(number[u], number[v]) for u, v, _ in triples],
        _all_or_none(labels, lambda i: f"Node {nodes[i]!r} of graph {index}", node_label),
        _all_or_none(
            [data.get(edge_label) for _, _, data in triples],
            lambda i: f"Edge {triples[i][0]!r} - {triples[i][1]!r} of graph {index}",
            edge_label,
        ),
        graph.graph.get("name") or None,
    )


def from_igraph(
    graphs: Sequence[Any], node_label: str | None, edge_label: str | None
) -> GraphCollection:
    node_key, edge_key = node_label or DEFAULT_ATTRIBUTE, edge_label or DEFAULT_ATTRIBUTE
    plain = [_plain_igraph(graph, i, node_key, edge_key) for i, graph in enumerate(graphs)]
    names = [(graph, key) for graph in graphs for key in graph.vs.attributes()]
    _check_asked(plain, node_label, edge_label, lambda: {key for _, key in names})
    recipe = GraphRecipe("igraph", node_label=node_label, edge_label=edge_label)
    weighted = [g for g in graphs if edge_key != _WEIGHT and _WEIGHT in g.es.attributes()]
    return warn_ignored(
        join(plain, None, recipe),
        n_directed=sum(graph.is_directed() for graph in graphs),
        weights=chain.from_iterable(graph.es[_WEIGHT] for graph in weighted),
        attributes={k for g, k in names if k != node_key and any(map(_is_continuous, g.vs[k]))},
    )


def _plain_igraph(graph: Any, index: int, node_label: str, edge_label: str) -> PlainGraph:
    edges = graph.get_edgelist()
    return PlainGraph(
        graph.vcount(),
        edges,
        _all_or_none(
            list(graph.vs[node_label]) if node_label in graph.vs.attributes() else [],
            lambda i: f"Node {i} of graph {index}",
            node_label,
        ),
        _all_or_none(
            list(graph.es[edge_label]) if edge_label in graph.es.attributes() else [],
            lambda i: f"Edge {edges[i][0]} - {edges[i][1]} of graph {index}",
            edge_label,
        ),
    )


# --- PyTorch Geometric ----------------------------------------------------------------------


def from_geometric(
    graphs: Sequence[Any], node_label: str | None, edge_label: str | None
) -> GraphCollection:
    """Labels are decoded over all graphs at once, by one rule for all of them."""
    edges = [_edge_index(graph, index) for index, graph in enumerate(graphs)]
    sizes = [_n_nodes(graph, i, edges[i]) for i, graph in enumerate(graphs)]
    nodes = _feature_labels(graphs, sizes, node_label, ("node_labels", "x"), "node")
    arcs = _feature_labels(
        graphs, [len(x) for x in edges], edge_label, ("edge_labels", "edge_attr"), "edge"
    )
    plain = [PlainGraph(*parts) for parts in zip(sizes, edges, nodes, arcs, strict=True)]
    recipe = GraphRecipe("geometric", node_label=node_label, edge_label=edge_label)
    weights = [getattr(graph, "edge_weight", None) for graph in graphs]
    return warn_ignored(
        join(plain, None, recipe),
        weights=() if edge_label == "edge_weight" else chain.from_iterable(
            _to_array(x).ravel().tolist() for x in weights if x is not None),
        attributes={"pos"} if any(getattr(g, "pos", None) is not None for g in graphs) else (),
    )  # fmt: skip


def _to_array(tensor: Any) -> np.ndarray:
    for step in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    return np.asarray(tensor)


def _edge_index(graph: Any, index: int) -> np.ndarray:
    edge_index = _to_array(graph.edge_index)
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise GraphDataError(
            f"Graph {index}: edge_index must have shape (2, n_edges); got {edge_index.shape}."
        )
    return edge_array(edge_index.T, f"Graph {index}, edge_index")  # (n_edges, 2)


def _n_nodes(graph: Any, index: int, edges: np.ndarray) -> int:
    stated = getattr(graph, "num_nodes", None)
    if stated is not None:
        if int(stated) != stated or stated < 0:
            raise GraphDataError(f"Graph {index}: num_nodes is {stated!r}; expected an integer.")
        return int(stated)
    if getattr(graph, "x", None) is not None:
        return len(_to_array(graph.x))
    return int(edges.max()) + 1 if edges.size else 0


def _feature_labels(
    graphs: Sequence[Any],
    counts: list[int],
    asked: str | None,
    defaults: tuple[str, ...],
    what: str,
) -> list[Any]:
    """Return the labels of each graph (or None) from the first attribute that is there."""
    for attribute in (asked,) if asked is not None else defaults:
        values = [getattr(graph, attribute, None) for graph in graphs]
        if any(value is not None for value in values):
            break
    else:
        if asked is not None:
            raise _missing_attribute(what, asked, ())
        return [None] * len(graphs)
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
    labels: list[Any] = [None] * len(graphs)
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
            f"{attribute} has values that are not whole numbers, which cannot serve as labels: "
            f"expected one-hot rows or integers. Pass {what}_label= with the name of an attribute "
            "that has labels, or remove this one."
        )
    rows = table.astype(np.int64).tolist()
    return [row[0] for row in rows] if table.shape[1] == 1 else [tuple(row) for row in rows]
