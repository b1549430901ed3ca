"""Plain-Python twins of ``treelens/patterns/_compiled.py``: colours as what they stand for."""

import numpy as np

from treelens.graphs.collection import GraphCollection


def nested_colors(graphs: GraphCollection, depth: int, edge_labels: bool = False) -> list[list]:
    """Every node's pattern at every depth as nested tuples of labels: colours without numbers.

    Two nodes of any two graphs have equal tuples if and only if they have equal colours. Edges of
    directed graphs are written as they are in the texts of patterns.
    """
    levels: list[list] = [[label for graph in graphs for label in graph.node_labels]]
    for _ in range(depth):
        previous, current = levels[-1], []
        for index, graph in enumerate(graphs):
            base = int(graphs.node_offsets[index])
            around: list[list] = [[] for _ in graph.node_labels]
            bonds = graph.edge_labels if edge_labels else [None] * len(graph.edges)
            for (u, v), bond in zip(graph.edges, bonds, strict=True):
                if graph.directed:
                    there, back = ("->", "<-") if bond is None else (f"-{bond}->", f"<-{bond}-")
                    around[u].append((there, previous[base + v]))
                    around[v].append((back, previous[base + u]))
                    continue
                around[u].append((bond, previous[base + v]))
                if u != v:
                    around[v].append((bond, previous[base + u]))
            current += [
                (previous[base + node], tuple(sorted(children, key=repr)))
                for node, children in enumerate(around)
            ]
        levels.append(current)
    return levels


def numbered(levels: list[list]) -> np.ndarray:
    """Numbers per depth in order of first appearance, shape (depth + 1, n_nodes)."""
    result = []
    for level in levels:
        number: dict = {}
        result.append([number.setdefault(pattern, len(number)) for pattern in level])
    return np.array(result, dtype=np.int32).reshape(len(levels), -1)
