"""Plain-Python twins of ``treelens/kernels/_compiled.py``, and the kernels by their definitions.

The twins add in the same order as the compiled loops, so they agree to the last bit.
"""

from collections import Counter

import numpy as np
import ot
from scipy.optimize import linear_sum_assignment


def pair_sum(
    left: dict[int, float], right: dict[int, float], dense: set[int], minimum: bool
) -> float:
    """The sum over shared patterns: the dense ones first, then the others, each ascending."""
    total = 0.0
    for pattern in sorted(left, key=lambda p: (p not in dense, p)):
        if pattern in right:
            x, y = left[pattern], right[pattern]
            total = total + (min(x, y) if minimum else x * y)
    return total


def sum_rows(
    left: list[dict],
    right: list[dict],
    dense: set[int],
    minimum: bool,
    left_scale: list,
    scale: list,
) -> list[list[float]]:
    return [
        [pair_sum(a, b, dense, minimum) * (left_scale[i] * scale[j]) for j, b in enumerate(right)]
        for i, a in enumerate(left)
    ]


def gather_rows(table: np.ndarray, matrix: np.ndarray, minimum: bool) -> np.ndarray:
    """``sum_{i <= j} matrix[i, j] combine(table[i, v], table[j, v])`` for every pattern ``v``."""
    totals = np.zeros(table.shape[1])
    for i in range(len(table)):
        for j in range(i, len(table)):
            both = np.minimum(table[i], table[j]) if minimum else table[i] * table[j]
            totals += matrix[i, j] * both
    return totals


def hamming(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Share of depths at which two nodes differ; node embeddings have shape (n_depths, n_nodes)."""
    return (left[:, :, None] != right[:, None, :]).mean(axis=0)


def wasserstein(left: np.ndarray, right: np.ndarray) -> float:
    """The transport problem between two clouds of nodes, solved as a linear programme."""
    n, m = left.shape[1], right.shape[1]
    cost = np.ascontiguousarray(hamming(left, right))
    return float(ot.emd2(np.full(n, 1 / n), np.full(m, 1 / m), cost))


def assignment(left: np.ndarray, right: np.ndarray) -> float:
    """The best assignment of nodes to nodes; the larger graph's other nodes match nothing."""
    similarity = 1.0 - hamming(left, right)
    return float(similarity[linear_sum_assignment(similarity, maximize=True)].sum())


def subtree(left: np.ndarray, right: np.ndarray) -> float:
    """The sum of the similarities of all pairs of nodes."""
    return float((1.0 - hamming(left, right)).sum())


def histogram_sum(left: np.ndarray, right: np.ndarray, combine, weight=lambda h, color: 1.0):
    """``(1/H) sum w_v combine(frequency(v), frequency'(v))`` over patterns of either graph."""
    total = 0.0
    for h, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        in_a, in_b = Counter(a), Counter(b)
        for color in in_a.keys() | in_b.keys():
            frequencies = in_a[color] / max(len(a), 1), in_b[color] / max(len(b), 1)
            total += weight(h, color) * combine(*frequencies)
    return total / len(left)


def nearest(
    sums: np.ndarray, left: np.ndarray, right: np.ndarray, k: int, left_out: list[int]
) -> list[list[tuple[int, float]]]:
    """Positions and similarities of the most similar columns of each row, by sorting them all."""
    found = []
    for i, row in enumerate(sums.tolist()):
        unions = [left[i] + right[j] - shared for j, shared in enumerate(row)]
        alike = [min(1.0, s / u) if u > 0 else 1.0 for s, u in zip(row, unions, strict=True)]
        order = sorted((j for j in range(len(row)) if j != left_out[i]), key=lambda j: -alike[j])
        found.append([(j, alike[j]) for j in order[:k]])
    return found
