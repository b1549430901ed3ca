"""Conditioning and predicting on a device agree with the CPU."""

import numpy as np
import pytest

import treelens as tl
from devices import SIMULATED, THERE, needs_device, small_blocks  # noqa: F401

pytestmark = pytest.mark.interpreted
N = 7 if SIMULATED else 60


def _chains(n):
    lengths = 1 + np.arange(n) % 5
    graphs = tl.as_graph_collection(
        [([(i, i + 1) for i in range(k)], dict.fromkeys(range(k + 1), "C")) for k in lengths]
    )
    return graphs, lengths + 0.1 * np.sin(np.arange(n))


@pytest.fixture(scope="module")
def fitted():
    graphs, y = _chains(N)
    return tl.GraphRegressor(depth=1, weights="uniform", max_steps=3).fit(graphs, y)


@needs_device
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_predictions_agree(fitted):
    graphs, _ = _chains(4)
    here = fitted.model_.decide(graphs, variance=True)
    there = fitted.model_.decide(graphs, variance=True, device="cuda")
    for name in ("mean", "variance", "similarity"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-8)


@needs_device
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_posterior_agrees(fitted):
    from treelens.models.device import condition_on_device

    model = fitted.model_
    noise = model.noise / model.sample_weights
    targets = (model.training.targets[:, None] - model.target_offset) / model.target_scale
    posterior, left_out = condition_on_device(
        model.basis_graphs.pairs, model.kernel, noise, targets, "cuda"
    )
    np.testing.assert_allclose(posterior.coefficients, model.posterior.coefficients, rtol=1e-7)
    expected = model.posterior.leave_one_out(targets)
    np.testing.assert_allclose(left_out.mean, expected.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(left_out.variance, expected.variance, rtol=1e-7)


@pytest.mark.skipif(THERE, reason="there is a device here")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_of_a_device_predicts_where_there_is_none(fitted):
    graphs, _ = _chains(4)
    expected = fitted.predict(graphs)
    moved = tl.GraphRegressor(device="cuda")
    moved.model_ = fitted.model_
    np.testing.assert_array_equal(moved.predict(graphs), expected)
