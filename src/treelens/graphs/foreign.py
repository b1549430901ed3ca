"""Other libraries' graphs, each turned into one plain form; none of the libraries is imported."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.build import build_collection, edge_array
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.graphs.recipe import GraphRecipe, common_recipe

DEFAULT_ATTRIBUTE = "label"


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
) -> Any:
    """Put plain graphs into one collection, once all of them have labels or none has."""
    sizes = [graph.n_nodes for graph in graphs]
    edges = [edge_array(graph.edges, f"Graph {i}") for i, graph in enumerate(graphs)]
    n_edges = [len(pairs) for pairs in edges]
    together = np.concatenate(edges)  # (n_edges in all, 2), nodes numbered within their graph
    _check_nodes_exist(together, sizes, n_edges)
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


def _check_nodes_exist(edges: np.ndarray, sizes: Sequence[int], n_edges: Sequence[int]) -> None:
    """Every end must be a node of its own graph: beyond it, the next graph's nodes begin."""
    n_nodes = np.repeat(sizes, n_edges)[:, None]
    outside = np.flatnonzero(((edges < 0) | (edges >= n_nodes)).any(axis=1))
    if len(outside):
        last_edges = np.cumsum(n_edges)
        graph = int(np.searchsorted(last_edges, outside[0], side="right"))
        edge = outside[0] - (last_edges[graph] - n_edges[graph])
        u, v = edges[outside[0]].tolist()
        there = f"the nodes are 0 to {sizes[graph] - 1}" if sizes[graph] else "it has no node"
        raise GraphDataError(
            f"Graph {graph}: edge {edge} joins nodes {u} and {v}, but the graph has "
            f"{sizes[graph]} nodes: {there}."
        )


def _together(what: str, labels: list[Any], counts: list[int]) -> list[Any] | None:
    """All labels in one list; graphs that have nothing to label count as neither."""
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
    """The labels, or None where no value is there; a mixture is an error that names the gap."""
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
    """An attribute that was asked for by name must be there."""
    if node_label is not None and all(graph.node_labels is None for graph in plain):
        raise _missing_attribute("node", node_label, node_attributes())
    if edge_label is not None and all(graph.edge_labels is None for graph in plain):
        raise _missing_attribute("edge", edge_label, ())


# --- treelens' own graphs -------------------------------------------------------------------


def from_treelens(graphs: Sequence[Graph]) -> GraphCollection:
    plain = [PlainGraph(g.n_nodes, g.edges, g.node_labels, g.edge_labels, g.name) for g in graphs]
    shared = set(graphs[0].data).intersection(*(graph.data for graph in graphs))
    data = {key: [graph.data[key] for graph in graphs] for key in sorted(shared)}
    joined = join(plain, data, common_recipe(graph.recipe for graph in graphs))
    fine = [graph.fine_labels for graph in graphs if graph.fine_labels is not None]
    if len(fine) < len(graphs):  # finer labels help only if every graph has them
        return joined
    return joined.with_fine_labels([label for labels in fine for label in labels])


# --- NetworkX -------------------------------------------------------------------------------


def from_networkx(
    graphs: Sequence[Any], node_label: str | None, edge_label: str | None
) -> GraphCollection:
    plain = [
        _from_networkx(
            graph, index, node_label or DEFAULT_ATTRIBUTE, edge_label or DEFAULT_ATTRIBUTE
        )
        for index, graph in enumerate(graphs)
    ]
    _check_asked(
        plain, node_label, edge_label,
        lambda: {str(key) for graph in graphs for _, x in graph.nodes(data=True) for key in x},
    )  # fmt: skip
    return join(plain, None, GraphRecipe("networkx", node_label=node_label, edge_label=edge_label))


def _from_networkx(graph: Any, index: int, node_label: str, edge_label: str) -> PlainGraph:
    nodes, labels = [], []
    for node, label in graph.nodes(data=node_label):
        nodes.append(node)
        labels.append(label)
    number = {node: i for i, node in enumerate(nodes)}
    triples = list(graph.edges(data=edge_label))
    return PlainGraph(
        len(nodes),
        [(number[u], number[v]) for u, v, _ in triples],
        _all_or_none(labels, lambda i: f"Node {nodes[i]!r} of graph {index}", node_label),
        _all_or_none(
            [label for _, _, label in triples],
            lambda i: f"Edge {triples[i][0]!r} - {triples[i][1]!r} of graph {index}",
            edge_label,
        ),
        graph.graph.get("name") or None,
    )


# --- igraph ---------------------------------------------------------------------------------


def from_igraph(
    graphs: Sequence[Any], node_label: str | None, edge_label: str | None
) -> GraphCollection:
    plain = [
        _from_igraph(graph, index, node_label or DEFAULT_ATTRIBUTE, edge_label or DEFAULT_ATTRIBUTE)
        for index, graph in enumerate(graphs)
    ]
    _check_asked(
        plain, node_label, edge_label,
        lambda: {key for graph in graphs for key in graph.vs.attributes()},
    )  # fmt: skip
    return join(plain, None, GraphRecipe("igraph", node_label=node_label, edge_label=edge_label))


def _from_igraph(graph: Any, index: int, node_label: str, edge_label: str) -> PlainGraph:
    edges = graph.get_edgelist()
    nodes_have, edges_have = graph.vs.attributes(), graph.es.attributes()
    return PlainGraph(
        graph.vcount(),
        edges,
        _all_or_none(
            list(graph.vs[node_label]) if node_label in nodes_have else [],
            lambda i: f"Node {i} of graph {index}",
            node_label,
        ),
        _all_or_none(
            list(graph.es[edge_label]) if edge_label in edges_have else [],
            lambda i: f"Edge {edges[i][0]} - {edges[i][1]} of graph {index}",
            edge_label,
        ),
    )


# --- PyTorch Geometric ----------------------------------------------------------------------


def from_geometric(
    graphs: Sequence[Any], node_label: str | None, edge_label: str | None
) -> GraphCollection:
    """Labels are decoded over all graphs at once, so that one rule holds for all of them."""
    edges = [_edge_index(graph, index) for index, graph in enumerate(graphs)]
    sizes = [_n_nodes(graph, i, edges[i]) for i, graph in enumerate(graphs)]
    nodes = _feature_labels(graphs, sizes, node_label, ("node_labels", "x"), "node")
    arcs = _feature_labels(
        graphs, [len(x) for x in edges], edge_label, ("edge_labels", "edge_attr"), "edge"
    )
    plain = [PlainGraph(*parts) for parts in zip(sizes, edges, nodes, arcs, strict=True)]
    recipe = GraphRecipe("geometric", node_label=node_label, edge_label=edge_label)
    return join(plain, None, recipe)


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
    """The labels of each graph (None for none), from the first attribute that is there."""
    for attribute in (asked,) if asked is not None else defaults:
        values = [getattr(graph, attribute, None) for graph in graphs]
        if any(value is not None for value in values):
            break
    else:
        if asked is not None:
            raise _missing_attribute(what, asked, ())
        return [None] * len(graphs)
    there = [i for i, value in enumerate(values) if value is not None and counts[i]]
    tables = [_feature_table(values[i], counts[i], f"{attribute} of graph {i}") for i in there]
    if len({table.shape[1] for table in tables}) > 1:
        raise GraphDataError(f"{attribute} has not the same number of columns in all graphs.")
    labels: list[Any] = [None] * len(graphs)
    if tables:
        decoded, start = _decode(np.concatenate(tables), attribute, what), 0
        for i in there:
            labels[i], start = decoded[start : start + counts[i]], start + counts[i]
    return labels


def _feature_table(values: Any, count: int, place: str) -> np.ndarray:
    table = _to_array(values)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != count or table.dtype.kind not in "iufb":
        raise GraphDataError(
            f"{place} has shape {table.shape} and type {table.dtype}: expected one row of numbers "
            f"for each of {count}."
        )
    return table


def _decode(table: np.ndarray, attribute: str, what: str) -> list[Any]:
    """One-hot rows become the position of the one; other whole numbers stay as they are."""
    if table.shape[1] > 1 and ((table == 0) | (table == 1)).all() and (table.sum(1) == 1).all():
        return table.argmax(axis=1).tolist()
    if not (np.isfinite(table).all() and (table == np.round(table)).all()):
        raise GraphDataError(
            f"{attribute} holds values that are not whole numbers, which cannot serve as labels: "
            f"expected one-hot rows or integers. Pass {what}_label= with the name of an attribute "
            "that holds labels, or remove this one."
        )
    rows = table.astype(np.int64).tolist()
    return [row[0] for row in rows] if table.shape[1] == 1 else [tuple(row) for row in rows]
