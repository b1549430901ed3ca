"""Plain-Python twins for paths and walks, and the two kernels by their definitions."""

from collections import Counter
from math import inf
from typing import Any

import numpy as np

from treelens.graphs.collection import Graph, GraphCollection


def distances(graph: Graph) -> list[list[float]]:
    """All shortest path lengths, by Floyd and Warshall."""
    n = graph.n_nodes
    d = [[0 if i == j else inf for j in range(n)] for i in range(n)]
    for u, v in graph.edges:
        if u != v:
            d[u][v] = 1
            d[v][u] = min(d[v][u], inf if graph.directed else 1)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i][j] = min(d[i][j], d[i][k] + d[k][j])
    return d


def triples(graph: Graph, ordered: bool) -> Counter:
    """How many node pairs have each (label, label, distance); ordered ones in directed graphs."""
    d = distances(graph)
    result: Counter = Counter()
    for i in range(graph.n_nodes):
        for j in range(0 if graph.directed else i + 1, graph.n_nodes):
            if d[i][j] < inf and i != j:
                pair = (graph.node_labels[i], graph.node_labels[j])
                if graph.directed:
                    result[(*pair, d[i][j])] += 1
                elif ordered:
                    result[(*pair, d[i][j])] += 1
                    result[(*pair[::-1], d[i][j])] += 1
                else:
                    result[(*sorted(pair), d[i][j])] += 1
    return result


def steps(graph: Graph, edge_labels: bool) -> list[list[tuple[Any, int]]]:
    """For every node the (edge label or None, neighbour) it can step along."""
    result: list[list[tuple[Any, int]]] = [[] for _ in range(graph.n_nodes)]
    labels = graph.edge_labels if edge_labels else [None] * len(graph.edges)
    for (u, v), label in zip(graph.edges, labels or (), strict=True):
        result[u].append((label, v))
        if u != v and not graph.directed:
            result[v].append((label, u))
    return result


def sequences(graph: Graph, max_length: int, edge_labels: bool = False) -> Counter:
    """How many walks meet each sequence of labels: ``(node, edge, node, edge, ..., node)``."""
    step, result = steps(graph, edge_labels), Counter()

    def walk_on(node: int, met: tuple) -> None:
        met = (*met, graph.node_labels[node])
        result[met] += 1
        if len(met) // 2 < max_length:
            for label, other in step[node]:
                walk_on(other, (*met, label))

    for node in range(graph.n_nodes):
        walk_on(node, ())
    return result


def product_adjacency(a: Graph, b: Graph, edge_labels: bool = False) -> np.ndarray:
    """Adjacency matrix over the node pairs with equal labels, in row-major order."""
    pairs = [
        (u, v)
        for u in range(a.n_nodes)
        for v in range(b.n_nodes)
        if a.node_labels[u] == b.node_labels[v]
    ]
    place = {pair: k for k, pair in enumerate(pairs)}
    step_a, step_b = steps(a, edge_labels), steps(b, edge_labels)
    adjacency = np.zeros((len(pairs), len(pairs)))
    for (u, v), k in place.items():
        for label, other_u in step_a[u]:
            for other_label, other_v in step_b[v]:
                if label == other_label and (other_u, other_v) in place:
                    adjacency[k, place[other_u, other_v]] = 1.0
    return adjacency


def power_series(adjacency: np.ndarray, decay: float, max_length: int | None) -> float:
    """``sum_k decay^k 1' W^k 1`` up to a length, or all of it."""
    ones = np.ones(len(adjacency))
    if max_length is None:
        return float(np.linalg.solve(np.eye(len(ones)) - decay * adjacency, ones).sum())
    total, power = 0.0, ones
    for k in range(max_length + 1):
        total += decay**k * power.sum()
        power = adjacency @ power
    return float(total)


def dot(a: Counter, b: Counter) -> float:
    return float(sum(count * b[key] for key, count in a.items()))


def shortest_path_kernel(
    left: GraphCollection, right: GraphCollection, ordered: bool
) -> np.ndarray:
    return np.array([[dot(triples(a, ordered), triples(b, ordered)) for b in right] for a in left])


def random_walk_kernel(
    left: GraphCollection,
    right: GraphCollection,
    decay: float,
    max_length: int | None,
    edge_labels: bool = False,
) -> np.ndarray:
    return np.array(
        [
            [power_series(product_adjacency(a, b, edge_labels), decay, max_length) for b in right]
            for a in left
        ]
    )
