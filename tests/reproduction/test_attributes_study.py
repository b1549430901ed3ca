"""The study of attributes: other kernels are right, sums are right."""

import numpy as np
import pytest
from reproduction.attributes import accuracies, gains, time_ratios, wwl_kernels
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


def test_differences_and_ratios_are_on_shared_folds():
    rows = [
        {"set": "A", "method": method, "repetition": 0, "fold": fold, "accuracy": accuracy,
         "cpu_seconds": seconds}
        for method, fold, accuracy, seconds in (
            ("labels", 0, 0.5, 1.0), ("labels", 1, 0.7, 3.0), ("labels", 2, 0.1, 100.0),
            ("default", 0, 0.8, 4.0), ("default", 1, 0.8, 4.0),
        )
    ]  # fmt: skip
    assert accuracies(rows)["A"]["default"] == (80.0, 0.0, 2)
    test = gains(rows)["A", "default", "labels"]
    assert (test["difference"], test["n"]) == (pytest.approx(0.2), 2)
    # differences 0.3 and 0.1; variance (1/2 + 1/9) times 0.02
    assert test["error"] == pytest.approx(np.sqrt(0.02 * (1 / 2 + 1 / 9)))
    assert time_ratios(rows) == {"A": (2.0, 4.0, 2.0)}
