"""Random graph collections: drawn by hypothesis, or from a seeded generator."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
from hypothesis import strategies as st

from treelens.graphs.build import build_collection
from treelens.graphs.collection import Graph, GraphCollection
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

NODE_LABELS = "CNO"
EDGE_LABELS = "-="


@st.composite
def collections(
    draw: st.DrawFn,
    min_graphs: int = 1,
    max_graphs: int = 6,
    min_nodes: int = 1,
    max_nodes: int = 6,
    edge_labels: bool = False,
    directed: bool | None = False,
) -> GraphCollection:
    """Small collections, self-loops, lonely nodes and (for ``min_nodes=0``) empty graphs included.

    Few labels and few nodes make equal colours, within and between graphs, the common case.
    ``directed=None`` draws either kind.
    """
    directed = draw(st.booleans()) if directed is None else directed
    sizes = draw(
        st.lists(st.integers(min_nodes, max_nodes), min_size=min_graphs, max_size=max_graphs)
    )
    edges: list[tuple[int, int]] = []
    base = 0
    for size in sizes:
        nodes = range(base, base + size)
        possible = list(
            product(nodes, nodes) if directed else combinations_with_replacement(nodes, 2)
        )
        if possible:
            edges += draw(st.lists(st.sampled_from(possible), unique=True, max_size=10))
        base += size
    labels = draw(st.lists(st.sampled_from(NODE_LABELS), min_size=base, max_size=base))
    edge_alphabet = EDGE_LABELS if edge_labels else EDGE_LABELS[:1]
    bonds = draw(st.lists(st.sampled_from(edge_alphabet), min_size=len(edges), max_size=len(edges)))
    return build_collection(
        sizes,
        np.array(edges, dtype=int).reshape(-1, 2),
        labels,
        bonds if edge_labels else None,
        directed=directed,
    )


def random_collection(
    rng: np.random.Generator,
    n_graphs: int = 30,
    max_nodes: int = 15,
    density: float = 0.2,
    labels: str = NODE_LABELS,
    directed: bool = False,
) -> GraphCollection:
    """Random graphs with node labels and edge labels."""
    sizes = rng.integers(1, max_nodes + 1, n_graphs)
    edges = []
    for base, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
        joined = rng.random((size, size)) < density
        joined = joined if directed else np.triu(joined)
        edges.append(np.argwhere(joined) + base)
    edges = np.concatenate(edges)
    return build_collection(
        sizes,
        edges,
        rng.choice(list(labels), sizes.sum()).tolist(),
        rng.choice(list(EDGE_LABELS), len(edges)).tolist(),
        directed=directed,
    )


def histograms_of(graphs: GraphCollection, depth: int = 2) -> PatternHistograms:
    """Counts of the patterns of graphs, depths 0 to ``depth``."""
    return PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, depth))


def renumbered(graphs: GraphCollection, rng: np.random.Generator) -> list[Graph]:
    """The same graphs with the nodes of each in another order."""
    return [_renumbered_graph(graph, rng.permutation(graph.n_nodes).tolist()) for graph in graphs]


def _renumbered_graph(graph: Graph, new_name: list[int]) -> Graph:
    labels = [None] * graph.n_nodes
    for old, label in enumerate(graph.node_labels):
        labels[new_name[old]] = label
    renamed = [(new_name[u], new_name[v]) for u, v in graph.edges]
    renamed = renamed if graph.directed else [tuple(sorted(edge)) for edge in renamed]
    return Graph(tuple(labels), tuple(renamed), graph.edge_labels, directed=graph.directed)


def make_random_graphs(
    n_graphs: int,
    n_nodes: tuple[int, int] = (20, 30),
    n_labels: int = 10,
    label_skew: float = 2.0,
    random_state: int | np.random.Generator | None = None,
) -> GraphCollection:
    """Random sparse graphs that resemble molecules: chains, branches, rings, skewed labels."""
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(n_nodes[0], n_nodes[1] + 1, size=n_graphs)
    shares = np.arange(1.0, n_labels + 1) ** -label_skew
    labels = rng.choice(n_labels, size=int(sizes.sum()), p=shares / shares.sum())
    node = np.arange(sizes.sum())
    place = node - np.repeat(np.cumsum(sizes) - sizes, sizes)  # number within the graph
    steps = rng.choice((1, 2, 3), size=len(node), p=(0.75, 0.15, 0.10))
    tree = np.column_stack([node - np.minimum(steps, place), node])[place > 0]
    closes_ring = (place >= 5) & (rng.random(len(node)) < 0.12)  # rings of six
    rings = np.column_stack([node - 5, node])[closes_ring]
    return build_collection(sizes, np.concatenate([tree, rings]), labels)
