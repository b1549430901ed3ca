"""Synthetic graphs: the eight-substructure study, data flows, random graphs for timing.

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

from treelens.graphs.build import build_collection
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
    end its nodes are put in random order. By default *no noisy edge may change which nodes carry
    the pattern* ``1-0(-2)-0``; everything else may change, in both classes. Labels are drawn
    before places, so the label counts do not depend on the class.

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
        Whether to leave out noise that would change which nodes carry the pattern. Without it, a
        "positive" graph may lose the pattern, and a negative one may get it.

    Returns
    -------
    graphs : GraphCollection
        The copies of each substructure together, in the order of ``substructures``. Their
        ``graph_data`` has ``"substructure"``, the number 1 to 8, and ``"planted"``: the pattern's
        nodes, its centre and then the neighbours labelled 0, 1 and 2, or ``()``. Without
        protection noise may have joined other nodes to that centre.
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
    _check_range("noise_nodes", noise_nodes)
    _check_range("noise_edges", noise_edges)
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


def _check_range(name: str, bounds: tuple[int, int], at_least: int = 0) -> None:
    if not at_least <= bounds[0] <= bounds[1]:
        raise GraphDataError(
            f"{name} must be (fewest, most) with {at_least} <= fewest <= most; it is {bounds}."
        )


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


# --- directed graphs --------------------------------------------------------------------------

_STEPS = ("parse", "sort", "cache", "log", "merge")


def make_data_flows(
    n_graphs: int = 200,
    n_steps: tuple[int, int] = (6, 12),
    random_state: int | np.random.Generator | None = None,
) -> tuple[GraphCollection, np.ndarray]:
    """Return directed graphs of programs, data flowing along the edges, and their classes.

    In a safe program the input is checked on its way to where it is written, ``input -> check ->
    write``; in an unsafe one the check comes after the write, ``input -> check <- write``. All have
    another check that leads to a write and one that follows a write, joined to them by one step,
    and ``n_steps`` (fewest and most) more steps, each joined to one before it. The directions of
    these edges are random. Without directions, both classes are the same random graphs.

    Returns
    -------
    graphs : GraphCollection
        ``graph_data["planted"]`` has the nodes of input, check and write.
    y : ndarray of str, shape (n_graphs,)
        ``"safe"`` or ``"unsafe"``.

    Examples
    --------
    >>> graphs, y = make_data_flows(10, random_state=0)
    >>> graphs.directed, sorted(set(y.tolist()))
    (True, ['safe', 'unsafe'])
    """
    _check_range("n_steps", n_steps)
    rng = np.random.default_rng(random_state)
    y = np.where(np.arange(n_graphs) % 2, "unsafe", "safe")
    copies = []
    for kind in y:
        labels = ["input", "check", "write", "check", "write", "write", "check"]
        edges = [(0, 1), (1, 2) if kind == "safe" else (2, 1), (3, 4), (5, 6)]
        n_more = int(rng.integers(n_steps[0], n_steps[1] + 1))
        joined = [[rng.integers(3), 3 + rng.integers(2)], [rng.integers(3), 5 + rng.integers(2)]]
        joined += [[len(labels) + k - rng.integers(1, 9)] for k in range(2, 2 + n_more)]
        for others in joined:
            node = len(labels)
            labels.append(_STEPS[rng.integers(len(_STEPS))])
            pairs = [(node, int(other)) for other in others]
            edges += [pair if rng.random() < 0.5 else pair[::-1] for pair in pairs]
        number = rng.permutation(len(labels)).tolist()
        shuffled = [label for _, label in sorted(zip(number, labels, strict=True))]
        moved = tuple((number[u], number[v]) for u, v in edges)
        data = {"planted": tuple(number[:3])}
        copies.append(Graph(tuple(shuffled), moved, data=data, directed=True))
    return from_treelens(copies), y


# --- random graphs of any number ------------------------------------------------------------

# How far back along the numbering a node's parent lies, with probabilities: mostly chains, some
# branches, and never more than four neighbours before rings are closed.
_PARENT_STEPS, _PARENT_STEP_CHANCES = (1, 2, 3), (0.75, 0.15, 0.10)
_RING_STEP = 5  # a node and the one five before it on a chain close a ring of six
_RING_CHANCE = 0.12  # about three rings in a graph of 30 nodes


def make_random_graphs(
    n_graphs: int,
    n_nodes: tuple[int, int] = (20, 30),
    n_labels: int = 10,
    label_skew: float = 2.0,
    random_state: int | np.random.Generator | None = None,
) -> GraphCollection:
    """Return random sparse graphs that resemble molecules in size, rings and labels.

    Each is a tree of chains with some branches and a few rings of about six nodes. Labels are
    independent of the structure and skewed as chemical elements are: label ``k`` has a share
    proportional to ``(k + 1) ** -label_skew``, so by default 65 % of the nodes have label 0.

    ``n_nodes`` are the fewest and most nodes of a graph; every number between is as likely.
    """
    if n_graphs < 0 or n_labels < 1:
        raise GraphDataError(
            f"Need n_graphs >= 0 and n_labels >= 1; they are {n_graphs} and {n_labels}."
        )
    _check_range("n_nodes", n_nodes, at_least=1)
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(n_nodes[0], n_nodes[1] + 1, size=n_graphs)  # (n_graphs,)
    shares = np.arange(1.0, n_labels + 1) ** -label_skew
    labels = rng.choice(n_labels, size=int(sizes.sum()), p=shares / shares.sum())
    # an edge to the parent for every node but the first of each graph, and an edge for each ring
    node = np.arange(sizes.sum())
    place = node - np.repeat(np.cumsum(sizes) - sizes, sizes)  # number within the graph
    steps = rng.choice(_PARENT_STEPS, size=len(node), p=_PARENT_STEP_CHANCES)
    tree = np.column_stack([node - np.minimum(steps, place), node])[place > 0]
    closes_ring = (place >= _RING_STEP) & (rng.random(len(node)) < _RING_CHANCE)
    rings = np.column_stack([node - _RING_STEP, node])[closes_ring]
    return build_collection(sizes, np.concatenate([tree, rings]), labels)
