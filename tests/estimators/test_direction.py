"""Directed graphs in every kernel and model: a chain is not a collider."""

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone

import treelens as tl
from strategies import random_collection, renumbered
from treelens.errors import GraphDataError
from treelens.explain.contributions import spread_over_graph
from treelens.explain.draw import draw_graph

CHAIN = [("a", "b"), ("b", "c")]  # a -> b -> c
COLLIDER = [("a", "b"), ("c", "b")]  # a -> b <- c
KERNELS = [
    tl.WLSubtree(1),
    tl.WLSubtree(1, edge_labels=True),
    tl.WLOptimalAssignment(1),
    tl.WassersteinWL(1),
    tl.ShortestPath(),
    tl.ShortestPath(ordered=False),
    tl.RandomWalk(2),
    tl.RandomWalk(2, edge_labels=True),
    tl.RandomWalk(None, decay=0.1),
]


def digraph(edges, kind=nx.DiGraph):
    graph = kind(edges, label="x")
    nx.set_node_attributes(graph, "x", "label")
    nx.set_edge_attributes(graph, "e", "label")
    return graph


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_chain_and_a_collider_differ(kernel):
    chain, collider = digraph(CHAIN), digraph(COLLIDER)
    gram = kernel.fit_transform([chain, collider])
    assert abs(gram[0, 0] - gram[0, 1]) > 1e-6
    # the same edges without their direction
    plain = kernel.fit_transform([digraph(CHAIN, nx.Graph), digraph(COLLIDER, nx.Graph)])
    assert plain[0, 0] == pytest.approx(plain[0, 1])
    read = tl.as_graph_collection([chain, collider], directed=False)
    np.testing.assert_allclose(kernel.fit_transform(read), plain)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_order_of_nodes_and_the_way_to_read_do_not_matter(kernel, rng):
    graphs = random_collection(rng, 8, max_nodes=6, directed=True)
    expected = kernel.fit_transform(graphs)
    for same in (renumbered(graphs, rng), [graph.to_networkx() for graph in graphs]):
        np.testing.assert_allclose(kernel.fit_transform(same), expected, rtol=1e-9)
    np.testing.assert_allclose(kernel.fit(graphs[:5]).transform(graphs), expected[:, :5], rtol=1e-9)


@pytest.mark.parametrize(
    "model", [tl.GraphClassifier(), tl.GraphSVC("wwl", 2, 1.0, 1.0, 10.0)], ids=repr
)
def test_classifiers_learn_from_direction(model, tmp_path):
    """Random paths on which all edges lead one way, or away from a middle node."""
    rng, graphs, y = np.random.default_rng(0), [], np.arange(40) % 2
    for turns in y:
        length = int(rng.integers(3, 9))
        turn = int(rng.integers(1, length - 1)) if turns else length
        edges = [(i, i + 1) if i < turn else (i + 1, i) for i in range(length - 1)]
        graphs.append(digraph(edges))
    model.fit(graphs[:30], y[:30])
    assert model.score(graphs[30:], y[30:]) == 1.0
    model.save(tmp_path / "model.treelens")
    loaded = tl.load(tmp_path / "model.treelens")
    np.testing.assert_array_equal(
        loaded.decision_function(graphs[30:]), model.decision_function(graphs[30:])
    )
    with pytest.raises(GraphDataError, match="directed=True"):
        loaded.predict([nx.Graph(graph) for graph in graphs[30:]])
    explanation = loaded.explain(graphs[31])
    assert len(explanation.edge_contributions) == graphs[31].number_of_edges()
    blind = tl.as_graph_collection(graphs, directed=False)
    assert clone(model).fit(blind[:30], y[:30]).score(blind[30:], y[30:]) < 0.8


def test_shares_of_directed_edges_are_those_without_direction_and_drawings_have_arrows(rng):
    """No edge leads both ways here, so nodes have the same neighbours in either reading."""
    trees = []
    for _ in range(5):
        pairs = [(int(rng.integers(node)), node) for node in range(1, 12)]
        trees.append(digraph([pair[:: rng.choice([-1, 1])] for pair in pairs]))
    graphs = tl.as_graph_collection(trees)
    blind = tl.as_graph_collection([graph.to_networkx() for graph in graphs], directed=False)
    depths = np.array([0, 1, 2])
    for directed, undirected in zip(graphs, blind, strict=True):
        shares = rng.normal(size=(3, directed.n_nodes))
        found = []
        for graph in (directed, undirected):
            one = tl.as_graph_collection([graph])
            found.append(
                spread_over_graph(
                    shares, depths, one.neighbor_offsets, one.neighbors, one.directions
                )
            )
        np.testing.assert_allclose(found[0][0], found[1][0])
        place = {edge: k for k, edge in enumerate(undirected.edges)}
        order = [place[min(edge), max(edge)] for edge in directed.edges]
        np.testing.assert_allclose(found[0][1], found[1][1][order])
        n_lines = [draw_graph(graph).count("M") for graph in (directed, undirected)]
        assert n_lines[0] == n_lines[1] + 2 * len(directed.edges)
