"""The compiled layout against plain numpy."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, shortest_path

from treelens.explain import _compiled, layout
from treelens.explain.layout import _arcs, _refined, _scaled
from treelens.graphs.collection import Graph
from treelens.graphs.synthetic import make_random_graphs


def naive_refined(positions: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Stress majorisation as the formula has it, with whole matrices."""
    n = len(steps)
    weights = (steps + np.eye(n)) ** -2.0 - np.eye(n)
    inverse = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + 1.0 / n)
    for _ in range(layout._REFINING_STEPS):
        gaps = np.linalg.norm(positions[:, None] - positions[None, :], axis=2)
        pulls = -weights * steps / np.maximum(gaps, 1e-9)
        np.fill_diagonal(pulls, 0.0)
        np.fill_diagonal(pulls, -pulls.sum(axis=1))
        positions = inverse @ (pulls @ positions)
    return positions


def test_refined_places_are_those_of_the_formula():
    for graph in make_random_graphs(10, (5, 20), random_state=0):
        steps = _compiled.steps_from(np.arange(graph.n_nodes), *_arcs(graph))
        if (steps < 0).any():
            continue
        start = _scaled(steps)
        np.testing.assert_allclose(_refined(start, steps), naive_refined(start, steps), atol=1e-6)


def test_steps_and_components_are_scipys():
    graphs = [*make_random_graphs(20, (1, 15), random_state=1), Graph(("a",) * 4, ((1, 3),))]
    for graph in graphs:
        ends = np.array(graph.edges, dtype=int).reshape(-1, 2)
        shape = (graph.n_nodes, graph.n_nodes)
        adjacency = sparse.coo_array((np.ones(len(ends)), ends.T), shape=shape).tocsr()
        theirs = shortest_path(adjacency, unweighted=True, directed=False)
        ours = _compiled.steps_from(np.arange(graph.n_nodes), *_arcs(graph))
        np.testing.assert_array_equal(np.where(ours < 0, np.inf, ours), theirs)
        _, component = connected_components(adjacency, directed=False)
        np.testing.assert_array_equal(_compiled.components(*_arcs(graph)), component)
