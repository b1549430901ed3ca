"""Plain-Python twins of ``treelens/patterns/_compiled.py``: what each function means, slowly.

A pattern is written as it is defined, ``(own colour, sorted child keys)``, and known patterns are a
dict from patterns to colours, so that equality is equality of tuples and no hash can collide.
"""

import numpy as np

from treelens.graphs.collection import GraphCollection

UNSEEN = -1


def child_keys(
    graphs: GraphCollection, colors: list[int], edge_codes: list[int] | None, n_edge_labels: int
) -> list[list[int]]:
    """The sorted keys of every node's neighbours."""
    result = []
    for graph in range(len(graphs)):
        base = int(graphs.node_offsets[graph])
        for node in range(base, int(graphs.node_offsets[graph + 1])):
            arcs = range(graphs.neighbor_offsets[node], graphs.neighbor_offsets[node + 1])
            keys = []
            for arc in arcs:
                color = int(colors[base + int(graphs.neighbors[arc])])
                code = 0 if edge_codes is None else int(edge_codes[arc])
                unseen = color == UNSEEN or code == UNSEEN
                keys.append(UNSEEN if unseen else color * max(n_edge_labels, 1) + code)
            result.append(sorted(keys))
    return result


def patterns_of(colors: list[int], keys: list[list[int]]) -> list[tuple]:
    return [(int(color), tuple(own_keys)) for color, own_keys in zip(colors, keys, strict=True)]


def known_patterns(own: list, child_offsets: list, child_keys: list) -> dict[tuple, int]:
    """The patterns of one level as a dict from pattern to colour."""
    return {
        (int(own[color]), tuple(child_keys[child_offsets[color] : child_offsets[color + 1]])): color
        for color in range(len(own))
    }


def look_up_patterns(patterns: list[tuple], known: dict[tuple, int], add: bool) -> list[int]:
    """Colours of the patterns. One that contains something unseen is never known.

    With ``add`` new patterns get the next number.
    """
    numbers, found = dict(known), []
    for own, keys in patterns:
        if own == UNSEEN or UNSEEN in keys:
            found.append(UNSEEN)
        elif add:
            found.append(numbers.setdefault((own, keys), len(numbers)))
        else:
            found.append(numbers.get((own, keys), UNSEEN))
    return found


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
