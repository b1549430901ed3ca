"""Numbers that say what a graph is made of."""

import numpy as np
import pytest

from treelens import as_graph_collection
from treelens.graphs.content import draw_keys, structure_hashes

PATH = ([(0, 1), (1, 2), (2, 3)], {0: "a", 1: "b", 2: "a", 3: "c"})
TURNED = ([(0, 1), (1, 2), (2, 3)], {0: "c", 1: "a", 2: "b", 3: "a"})
RING = ([(0, 1), (1, 2), (2, 3), (3, 0)], {0: "a", 1: "b", 2: "a", 3: "c"})
OTHER = ([(0, 1), (1, 2), (2, 3)], {0: "a", 1: "b", 2: "c", 3: "a"})


def test_hashes_are_of_the_content_alone():
    graphs = as_graph_collection([PATH, TURNED, RING, OTHER])
    path, turned, ring, other = structure_hashes(graphs).tolist()
    assert path == turned
    assert len({path, ring, other}) == 3
    backwards = structure_hashes(as_graph_collection([OTHER, RING, TURNED]))  # other codes
    assert backwards.tolist() == [other, ring, path]


def test_attributes_tell_graphs_apart():
    nx = pytest.importorskip("networkx", reason="networkx is not installed")
    graphs = []
    for x in (0.0, 1.0, 0.0):
        graph = nx.path_graph(3)
        nx.set_node_attributes(graph, {0: x, 1: 2.0, 2: 3.0}, "x")
        graphs.append(graph)
    first, second, third = structure_hashes(
        as_graph_collection(graphs, node_attributes=["x"])
    ).tolist()
    assert first == third != second


def test_keys_are_random_and_depend_on_targets_and_seed():
    graphs, targets = as_graph_collection([PATH] * 500), np.arange(500.0)
    keys = draw_keys(graphs, targets, 0)
    assert len(set(keys.tolist())) == 500
    assert abs(np.corrcoef(np.argsort(np.argsort(keys)), targets)[0, 1]) < 0.15
    order = np.random.default_rng(0).permutation(500)
    np.testing.assert_array_equal(draw_keys(graphs, targets[order], 0), keys[order])
    assert (draw_keys(graphs, targets, 1) != keys).all()
