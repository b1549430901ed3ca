"""A fitted Gaussian process: block by block as at once, and complete when variances need it."""

import warnings

import numpy as np
import pytest

import treelens as tl
from strategies import make_random_graphs
from treelens.patterns import histograms

GRAPHS = make_random_graphs(14, n_nodes=(4, 8), n_labels=3, random_state=3)
OTHERS = make_random_graphs(5, n_nodes=(4, 8), n_labels=3, random_state=4)
VALUES = np.array([graph.node_labels.count(0) + 0.1 * graph.n_nodes for graph in GRAPHS])


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tl.GraphRegressor(depth=1, max_steps=5).fit(GRAPHS, VALUES).model_


@pytest.mark.parametrize("size", [1, 2, 5])
def test_blocks_give_what_all_at_once_give(fitted, size, monkeypatch) -> None:
    whole = fitted.decide(OTHERS, variance=True)
    monkeypatch.setattr(histograms, "BLOCK_SIZE", size)
    parts = list(whole.graphs.features.blocks())
    assert [len(part.patterns.diagonal) for part in parts] == [size] * (5 // size) + [5 % size] * (
        5 % size > 0
    )
    again = fitted.decide(OTHERS, variance=True)
    np.testing.assert_allclose(again.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(again.variance, whole.variance, rtol=1e-9)


def test_no_variance_falls_below_the_noise(fitted) -> None:
    too_much = np.array([2 * fitted.kernel.variance, 0.0])
    least, most = fitted.variances(too_much)
    assert least == pytest.approx(fitted.target_scale**2 * fitted.noise)
    assert most == pytest.approx(fitted.target_scale**2 * (fitted.kernel.variance + fitted.noise))
