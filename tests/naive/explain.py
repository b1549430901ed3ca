"""Plain twins of the explain room: slow, obvious, and written from the definitions."""

import numpy as np


def spread_over_nodes(shares, first_depth, neighbors):
    """Hand every share down its unfolding tree; ``neighbors`` is a list of lists."""
    result = np.zeros(len(neighbors))
    for k, row in enumerate(shares):
        depth = first_depth + k
        for root, share in enumerate(row):
            if not neighbors[root]:
                result[root] += share
                continue
            layer = [(root, share / (depth + 1))]
            for _ in range(depth + 1):
                for node, part in layer:
                    result[node] += part
                layer = _children(layer, neighbors)
    return result


def spread_over_edges(shares, first_depth, neighbors):
    """The same for the edges of the tree: a dict from (smaller, larger node) to a number."""
    result = {(u, v): 0.0 for u, around in enumerate(neighbors) for v in around if u <= v}
    for k, row in enumerate(shares):
        depth = first_depth + k
        for root, share in enumerate(row):
            layer = [(root, share / max(depth, 1))]
            for _ in range(depth):
                for node, part in layer:
                    for other in neighbors[node]:
                        edge = (min(node, other), max(node, other))
                        result[edge] += part / len(neighbors[node])
                layer = _children(layer, neighbors)
    return result


def _children(layer, neighbors):
    return [
        (child, part / len(neighbors[node])) for node, part in layer for child in neighbors[node]
    ]


def column_contributions(kernel, start, row, basis, coefficients, n_steps=2000):
    """What each number adds on the straight line from ``start`` to ``row``, in many small steps."""
    row, start = list(row), list(start)
    found = [0.0] * len(row)
    for k in range(n_steps):
        t = (k + 0.5) / n_steps
        here = [a + t * (b - a) for a, b in zip(start, row, strict=True)]
        for c, (a, b) in enumerate(zip(start, row, strict=True)):
            step = 1e-5
            ahead, behind = list(here), list(here)
            ahead[c] += step
            behind[c] -= step
            slope = sum(
                x * (kernel(ahead, other) - kernel(behind, other)) / (2 * step)
                for x, other in zip(coefficients, basis, strict=True)
            )
            found[c] += slope * (b - a) / n_steps
    return found
