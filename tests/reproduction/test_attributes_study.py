"""The study of attributes: the kernel of others is right."""

import numpy as np
import pytest
from reproduction.attributes import wwl_kernels
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from treelens.graphs.build import build_collection


@pytest.fixture(scope="module")
def graphs():
    """Paths of four nodes with two attributes."""
    n = 12
    edges = [(4 * g + k, 4 * g + k + 1) for g in range(n) for k in range(3)]
    values = np.random.default_rng(0).normal(size=(4 * n, 2))
    return build_collection(
        [4] * n, np.array(edges), ["a"] * 4 * n, node_attributes=values, attribute_names=("x", "y")
    )


def test_wwl_is_the_cost_of_the_best_assignment(graphs):
    pytest.importorskip("wwl")
    found = {(x["depth"], x["gamma"]): kernel for x, kernel in wwl_kernels(graphs)}
    values = graphs.node_attributes
    scaled = ((values - values.mean(axis=0)) / values.std(axis=0)).reshape(-1, 4, 2)
    means = np.array([[g[1], (g[0] + g[2]) / 2, (g[1] + g[3]) / 2, g[2]] for g in scaled])
    first, second = (np.hstack([scaled[k], (scaled[k] + means[k]) / 2]) for k in (0, 1))
    cost = cdist(first, second)
    expected = np.exp(-cost[linear_sum_assignment(cost)].mean())
    assert found[1, 1.0][0, 1] == pytest.approx(expected)
    np.testing.assert_allclose(found[1, 1.0], found[1, 1.0].T)
