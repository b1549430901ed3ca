"""Graphs, batches and data sets of PyTorch Geometric; the library itself is not imported."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from treelens.errors import GraphDataError
from treelens.graphs.build import about_directions, count_one_way, edge_array
from treelens.graphs.kinds import GraphRecipe
from treelens.graphs.plain import Joined, PlainGraph, to_array

# What is no column of nodes or edges, even where it has a value for each; targets are of graphs.
_NEVER_COLUMNS = ("edge_index", "y", "label", "batch", "ptr", "num_nodes")


# --- batches, loaders and data sets as lists ------------------------------------------------------


def is_dataset(graphs: object) -> bool:
    """Whether this is a data set, or a part of one, with items by number, or a loader of one."""
    if hasattr(graphs, "dataset") and hasattr(graphs, "batch_sampler"):
        return True
    by_number = hasattr(type(graphs), "__getitem__") and hasattr(type(graphs), "__len__")
    known = isinstance(graphs, (list, tuple, str, bytes, Mapping, np.ndarray))
    return by_number and not known and (hasattr(graphs, "load") or not isinstance(graphs, Iterable))


def items_of(dataset: Any) -> list[Any]:
    """Return the graphs of a data set; of a loader those of its data set, if it keeps their order.

    Targets belong to graphs by their position, which a loader that shuffles would change.
    """
    if hasattr(dataset, "batch_sampler"):
        sampler = type(getattr(dataset, "sampler", None)).__name__
        if sampler != "SequentialSampler" or getattr(dataset, "drop_last", False):
            raise GraphDataError(
                f"This {type(dataset).__name__} shuffles graphs or leaves some out, and targets "
                "are given by position. Pass its data set (loader.dataset)."
            )
        return items_of(dataset.dataset)
    return [dataset[k] for k in range(len(dataset))]


def taken_apart(item: Any, position: int) -> list[Any]:
    """Return the graphs of a batch; anything else as a list with one item."""
    if getattr(item, "batch", None) is None or not hasattr(item, "edge_index"):
        return [item]
    try:
        return list(item.to_data_list())
    except (AttributeError, RuntimeError) as error:  # of a batch that was put together by hand
        raise GraphDataError(
            f"Item {position} is a batch of several graphs, and cannot be taken apart ({error}). "
            "Pass a list of graphs, or a batch of Batch.from_data_list."
        ) from error


# --- as plain graphs ------------------------------------------------------------------------------


def from_geometric(graphs: Sequence[Any], asked: GraphRecipe) -> Joined:
    """Labels are decoded over all graphs at once, by one rule for all of them."""
    edges: list[np.ndarray] = []
    sizes: list[Any] = []
    for index, graph in enumerate(graphs):
        transposed = to_array(graph.edge_index).T  # (n_edges, 2)
        edges.append(edge_array(transposed, f"Graph {index}, edge_index transposed"))
        sizes.append(getattr(graph, "num_nodes", None))
        if not isinstance(sizes[-1], (int, np.integer)) or sizes[-1] < 0:
            raise GraphDataError(f"Graph {index}: num_nodes is {sizes[-1]!r}; expected an integer.")
    n_edges = [len(pairs) for pairs in edges]
    columns, decided, known = [], dict[str, Any](), {*_NEVER_COLUMNS}
    for what, counts, usual_labels, usual in (
        ("node", sizes, ("node_labels", "x"), ("x", "pos")),
        ("edge", n_edges, ("edge_labels", "edge_attr"), ("edge_attr", "edge_weight")),
    ):
        wanted = getattr(asked, f"{what}_attributes")
        if wanted == "all":
            wanted = [x for x in usual if any(getattr(g, x, None) is not None for g in graphs)]
            decided[f"{what}_attributes"] = wanted
        named = getattr(asked, f"{what}_label")
        free = [x for x in usual_labels if x not in wanted] if named is None else [named]
        label = [x for x in free if any(getattr(g, x, None) is not None for g in graphs)][:1]
        columns.append(_geometric_columns(graphs, counts, label, [*wanted, usual[1]], what))
        known.update(label)
    if asked.directed is None:
        listed = [count_one_way(pairs) for pairs in edges]
        one_way, n_listed = (sum(column) for column in zip(*listed, strict=True))
        decided["directed"] = one_way > 0
        if 0 < one_way < n_listed:
            first = next(k for k, (n, _) in enumerate(listed) if n)
            place = f"edge_index (first of graph {first})"
            warnings.warn(about_directions(place, one_way, n_listed, directed=True), stacklevel=4)
    _add_others(graphs, sizes, n_edges, columns[0], columns[1], known)
    asked = replace(asked, **decided)
    plain = [
        PlainGraph(range(size), pairs, of_nodes, of_edges, None, bool(asked.directed))
        for size, pairs, of_nodes, of_edges in zip(sizes, edges, *columns, strict=True)
    ]
    return plain, asked


def _geometric_columns(
    graphs: Sequence[Any],
    counts: Sequence[int],
    labels: list[str],
    attributes: list[str],
    what: str,
) -> list[dict[Any, Any]]:
    """Return some attributes of the graphs, and labels from ``labels``, one name or none."""
    found: list[dict[Any, Any]] = [{} for _ in graphs]
    tables: dict[int, np.ndarray] = {}  # of labels
    for i, graph in enumerate(graphs):
        for name in dict.fromkeys([*labels, *attributes]):
            value = getattr(graph, name, None)
            if value is None or not counts[i]:
                continue
            table = to_array(value)
            table = table[:, None] if table.ndim == 1 else table
            if table.ndim != 2 or len(table) != counts[i] or table.dtype.kind not in "iufb":
                raise GraphDataError(
                    f"{name} of graph {i} has shape {table.shape}: expected {counts[i]} rows."
                )
            if name in labels:
                tables[i] = table
            else:
                found[i][name] = table if table.shape[1] > 1 else table[:, 0]
    if len({table.shape[1] for table in tables.values()}) > 1:
        raise GraphDataError(f"{labels[0]} has not the same number of columns in all graphs.")
    if tables:
        decoded = iter(_decode(np.concatenate(list(tables.values())), labels[0], what))
        for i in tables:
            found[i][None] = list(islice(decoded, counts[i]))
    return found


def _add_others(
    graphs: Sequence[Any],
    sizes: Sequence[int],
    n_edges: Sequence[int],
    of_nodes: list[dict[Any, Any]],
    of_edges: list[dict[Any, Any]],
    known: set[str],
) -> None:
    """Add what else there is of each node or edge, for the warning that it is not used."""
    lengths: dict[str, list[tuple[int, int]]] = {}  # in which graphs
    for i, graph in enumerate(graphs):
        keys = getattr(graph, "keys", None)  # a method, in old versions a list
        for name in vars(graph) if keys is None else keys() if callable(keys) else keys:
            if name not in known and np.ndim(value := to_array(getattr(graph, name))):
                lengths.setdefault(name, []).append((i, len(value)))
    for name, found in lengths.items():
        # what fits both is of edges if it is called so, as in the library itself
        per_edge = all(n == n_edges[i] for i, n in found)
        per_node = all(n == sizes[i] for i, n in found)
        if not (per_edge or per_node):
            continue
        columns = of_edges if per_edge and ("edge" in name or not per_node) else of_nodes
        for i, _ in found:
            columns[i].setdefault(name, to_array(getattr(graphs[i], name)))


def _decode(table: np.ndarray, attribute: str, what: str) -> list[Any]:
    """One-hot rows become the position of the one; other whole numbers stay as they are."""
    if table.shape[1] > 1 and ((table == 0) | (table == 1)).all() and (table.sum(1) == 1).all():
        return table.argmax(axis=1).tolist()
    if not (np.isfinite(table).all() and (table == np.round(table)).all()):
        raise GraphDataError(
            f"{attribute} has values that are not whole numbers, which cannot serve as labels. "
            f"Use {what}_attributes=[{attribute!r}], or name labels by {what}_label=."
        )
    rows = table.astype(np.int64).tolist()
    return [row[0] for row in rows] if table.shape[1] == 1 else [tuple(row) for row in rows]
