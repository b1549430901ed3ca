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
    random node already there, then some random edges between nodes not joined before; its nodes are
    put in random order. Labels are drawn before places, so their counts do not depend on the class.

    Parameters
    ----------
    n_per_substructure : int
        Number of noisy copies of each.
    substructures : sequence of int
        Which of the eight.
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
    numbers = [int(k) for k in substructures for _ in range(n_per_substructure)]
    copies = [
        _noisy(SUBSTRUCTURES[k], noise_nodes, noise_edges, protect_pattern, rng) for k in numbers
    ]
    return from_treelens(copies), np.array([SUBSTRUCTURES[k].data["class"] for k in numbers])


def _noisy(
    graph: Graph, noise_nodes: tuple[int, int], noise_edges: tuple[int, int], protect: bool,
    rng: np.random.Generator,
) -> Graph:  # fmt: skip
    """Return a copy with random nodes and edges, its nodes in random order."""
    labels = list(graph.node_labels)
    around: list[set[int]] = [set() for _ in labels]

    def join(u: int, v: int) -> None:
        around[u].add(v)
        around[v].add(u)

    def may_join(node: int, label: int) -> bool:
        """Whether a new neighbour leaves a node with the pattern, or without it, as before."""
        if not protect or labels[node] != PATTERN_CENTRE:
            return True
        before, wanted = [labels[other] for other in around[node]], list(PATTERN_NEIGHBORS)
        return (sorted(before) == wanted) == (sorted([*before, label]) == wanted)

    for u, v in graph.edges:
        join(u, v)
    for _ in range(rng.integers(noise_nodes[0], noise_nodes[1] + 1)):
        label = NODE_LABELS[rng.integers(len(NODE_LABELS))]
        hosts = [node for node in range(len(labels)) if may_join(node, label)]
        labels.append(label)  # with one edge, the new node cannot carry the pattern
        around.append(set())
        join(hosts[rng.integers(len(hosts))], len(labels) - 1)
    for _ in range(rng.integers(noise_edges[0], noise_edges[1] + 1)):
        free = [(u, v) for v in range(len(labels)) for u in range(v) if u not in around[v]]
        pairs = [(u, v) for u, v in free if may_join(u, labels[v]) and may_join(v, labels[u])]
        if not pairs:
            raise GraphDataError(
                f"No place is left for one more edge among {len(labels)} nodes: lower noise_edges."
            )
        join(*pairs[rng.integers(len(pairs))])
    number = rng.permutation(len(labels)).tolist()
    edges = {tuple(sorted((number[u], number[v]))) for u, some in enumerate(around) for v in some}
    planted = tuple(number[node] for node in graph.data["planted"])
    facts = {"substructure": graph.data["substructure"], "planted": planted}
    ordered = tuple(label for _, label in sorted(zip(number, labels, strict=True)))
    return Graph(ordered, tuple(sorted(edges)), data=facts)
