"""The compiled layout against plain numpy."""

import numpy as np
from scipy import sparse

from treelens.explain import layout
from treelens.explain.layout import _refined, _scaled, _steps, node_positions
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
        ends = np.array(graph.edges).T
        arcs = sparse.csr_array((np.ones(ends.shape[1]), ends), shape=(graph.n_nodes,) * 2)
        steps = _steps(arcs, np.arange(graph.n_nodes))
        if np.isinf(steps).any():
            continue
        start = _scaled(steps)
        np.testing.assert_allclose(_refined(start, steps), naive_refined(start, steps), atol=1e-6)


def test_components_stand_side_by_side():
    places = node_positions(Graph(("a",) * 5, ((0, 2), (2, 4), (1, 3))))
    large, small = places[[0, 2, 4], 0], places[[1, 3], 0]
    assert large.max() < small.min()
