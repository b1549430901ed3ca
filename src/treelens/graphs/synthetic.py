"""Synthetic graphs: the eight-substructure study.

Each of the eight small graphs is a star hung on a tail. The star has a centre and three leaves with
the labels 0, 0, 1, 2; with a 0 in the centre it is the pattern ``1-0(-2)-0`` (a node labelled 0
whose neighbours are exactly 0, 1 and 2), and the substructure is positive. The tail has the labels
1, 2, 3, 3, 3 and does not matter for the class, but in training (substructures 1 to 4) it seems
to: every test substructure (5 to 8) has its star from one class and its tail from the other.

Under the plain Wasserstein Weisfeiler-Lehman kernel of depth 2 the similarity of a test
substructure (one minus the distance) is exactly 1/2 to a training substructure of its own class and
1/2 to one of the other: 5 to 2 and 4, 6 to 1 and 3, 7 to 3 and 1, 8 to 4 and 2. All eight have the
same label counts, and including depth 0 keeps the ties. Only a kernel that gives the pattern more
weight than the tails separates the classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.graphs.foreign import from_treelens

PATTERN_CENTRE = 0
PATTERN_NEIGHBORS = (0, 1, 2)
TRAINING_SUBSTRUCTURES = (1, 2, 3, 4)
TEST_SUBSTRUCTURES = (5, 6, 7, 8)
NODE_LABELS = (0, 1, 2, 3)

# Labels of a star: its centre, two leaves, and the leaf that carries the tail.
_STARS = {0: (0, 1, 2, 0), 1: (1, 0, 2, 0), 2: (2, 0, 1, 0)}
# Labels and edges of a tail; its first node hangs on the star. The first nodes of tails 1 and 3,
# and of 2 and 4, are the same: that is what makes the ties exact.
_TAILS = {
    1: ((3, 2, 1, 3, 3), ((0, 1), (1, 2), (2, 3), (2, 4))),
    2: ((1, 3, 2, 3, 3), ((0, 1), (1, 2), (2, 3), (2, 4))),
    3: ((3, 2, 3, 3, 1), ((0, 1), (1, 2), (2, 3), (3, 4))),
    4: ((1, 3, 3, 3, 2), ((0, 1), (1, 2), (1, 3), (2, 3), (2, 4))),
}
# substructure: (label in the middle of its star, number of its tail)
_COMPOSITION = {
    1: (0, 1), 2: (0, 2), 3: (2, 3), 4: (1, 4),
    5: (0, 4), 6: (0, 3), 7: (2, 1), 8: (1, 2),
}  # fmt: skip


def _substructure(number: int) -> Graph:
    centre, tail = _COMPOSITION[number]
    tail_labels, tail_edges = _TAILS[tail]
    positive = centre == PATTERN_CENTRE
    planted = (0, 3, 1, 2) if positive else ()
    return Graph(
        _STARS[centre] + tail_labels,
        ((0, 1), (0, 2), (0, 3), (3, 4), *((u + 4, v + 4) for u, v in tail_edges)),
        name=f"substructure {number}",
        data={"substructure": number, "class": 1 if positive else -1, "planted": planted},
    )


SUBSTRUCTURES: Mapping[int, Graph] = MappingProxyType({k: _substructure(k) for k in _COMPOSITION})
"""The eight substructures by number; ``data`` has ``"class"`` and the ``"planted"`` nodes: the
pattern's centre and then its neighbours labelled 0, 1 and 2."""


def make_synthetic(
    n_per_substructure: int = 20,
    substructures: Sequence[int] = tuple(SUBSTRUCTURES),
    noise_nodes: tuple[int, int] = (3, 6),
    noise_edges: tuple[int, int] = (1, 1),
    random_state: int | np.random.Generator | None = None,
    *,
    protect_pattern: bool = True,
) -> tuple[GraphCollection, np.ndarray]:
    """Return noisy copies of the eight substructures and their classes.

    Each copy gets some random nodes, one after another, each with a random label and one edge to a
    random node already there, and then some random edges between nodes not joined before. In the
    end its nodes are put in random order. Labels are drawn before places, so the label counts do
    not depend on the class.

    Parameters
    ----------
    n_per_substructure : int
        Number of noisy copies of each.
    substructures : sequence of int
        Which of the eight, for example :data:`TRAINING_SUBSTRUCTURES`.
    noise_nodes, noise_edges : (int, int)
        Fewest and most nodes added to a graph, and edges after those.
    random_state : int, Generator or None
        The same int gives the same graphs.
    protect_pattern : bool
        Whether to leave out noise that would change which nodes carry the pattern
        ``1-0(-2)-0``. Without it, a "positive" graph may lose it, and a negative one may get it.

    Returns
    -------
    graphs : GraphCollection
        The copies of each substructure together, in the order of ``substructures``. Their
        ``graph_data`` has ``"substructure"``, the number 1 to 8, and ``"planted"``: the pattern's
        nodes, its centre and then the neighbours labelled 0, 1 and 2, or ``()``.
    y : ndarray of int, shape (n_graphs,)
        +1 or -1.

    Examples
    --------
    >>> graphs, y = make_synthetic(random_state=0)
    >>> len(graphs), int(y.sum())
    (160, 0)
    >>> graph = graphs[0]
    >>> [graph.node_labels[node] for node in graph.data["planted"]]
    [0, 0, 1, 2]
    """
    if n_per_substructure < 1 or not set(substructures) <= set(SUBSTRUCTURES):
        raise GraphDataError(
            "n_per_substructure must be 1 or more and substructures of 1 to 8; they are "
            f"{n_per_substructure} and {substructures}."
        )
    for name, (fewest, most) in (("noise_nodes", noise_nodes), ("noise_edges", noise_edges)):
        if not 0 <= fewest <= most:
            raise GraphDataError(f"{name} must be (fewest, most), 0 or more; it is {fewest, most}.")
    rng = np.random.default_rng(random_state)
    numbers = np.repeat(np.asarray(substructures, dtype=np.int64), n_per_substructure)
    copies = []
    for k in numbers.tolist():
        growing = _GrowingGraph(SUBSTRUCTURES[k], protect_pattern)
        for _ in range(rng.integers(noise_nodes[0], noise_nodes[1] + 1)):
            growing.add_node(NODE_LABELS[rng.integers(len(NODE_LABELS))], rng)
        for _ in range(rng.integers(noise_edges[0], noise_edges[1] + 1)):
            growing.add_edge(rng)
        copies.append(growing.shuffled(SUBSTRUCTURES[k].data, rng))
    y = np.array([SUBSTRUCTURES[k].data["class"] for k in numbers.tolist()], dtype=np.int64)
    return from_treelens(copies), y


class _GrowingGraph:
    """A small graph to which noise is added, by default without changing the pattern's nodes."""

    def __init__(self, graph: Graph, protect_pattern: bool) -> None:
        self.protect_pattern = protect_pattern
        self.labels: list[int] = list(graph.node_labels)
        self.neighbors: list[set[int]] = [set() for _ in self.labels]
        for u, v in graph.edges:
            self._join(u, v)

    def _join(self, u: int, v: int) -> None:
        self.neighbors[u].add(v)
        self.neighbors[v].add(u)

    def _may_join(self, node: int, label: int) -> bool:
        """Whether a new neighbour leaves a node with the pattern, or without it, as before."""
        if not self.protect_pattern or self.labels[node] != PATTERN_CENTRE:
            return True
        around = [self.labels[other] for other in self.neighbors[node]]
        wanted = list(PATTERN_NEIGHBORS)
        return (sorted(around) == wanted) == (sorted([*around, label]) == wanted)

    def add_node(self, label: int, rng: np.random.Generator) -> None:
        """Join a new node to a random one; with one edge it cannot carry the pattern."""
        hosts = [node for node in range(len(self.labels)) if self._may_join(node, label)]
        self.labels.append(label)
        self.neighbors.append(set())
        self._join(hosts[rng.integers(len(hosts))], len(self.labels) - 1)

    def add_edge(self, rng: np.random.Generator) -> None:
        pairs = [
            (u, v)
            for v in range(len(self.labels))
            for u in range(v)
            if u not in self.neighbors[v]
            and self._may_join(u, self.labels[v])
            and self._may_join(v, self.labels[u])
        ]
        if not pairs:
            raise GraphDataError(
                f"No place is left for one more noisy edge in a graph of {len(self.labels)} nodes: "
                "lower noise_edges or raise noise_nodes."
            )
        self._join(*pairs[rng.integers(len(pairs))])

    def shuffled(self, data: Mapping[str, Any], rng: np.random.Generator) -> Graph:
        """Return the graph with its nodes in random order."""
        number = rng.permutation(len(self.labels)).tolist()
        labels = [label for _, label in sorted(zip(number, self.labels, strict=True))]
        pairs = ((u, v) for v, us in enumerate(self.neighbors) for u in us if u < v)
        edges = sorted(tuple(sorted((number[u], number[v]))) for u, v in pairs)
        planted = tuple(number[node] for node in data["planted"])
        facts = {"substructure": data["substructure"], "planted": planted}
        return Graph(tuple(labels), tuple(edges), data=facts)
