"""Conditioning and predicting on a device agree with the CPU."""

import re

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
    for name in ("mean", "variance"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-8)


@needs_device
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_posterior_agrees(fitted):
    from treelens.gp.device import condition_on_device

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


class _Runtime:
    """As much of CuPy as says how many GPUs there are."""

    class CUDARuntimeError(RuntimeError):
        pass

    def __init__(self, n: int) -> None:
        self.cuda, self.runtime, self.n = self, self, n

    def getDeviceCount(self) -> int:
        if not self.n:
            raise self.CUDARuntimeError
        return self.n

    def Device(self, number: int):
        return self

    def use(self) -> None:
        pass


@pytest.mark.skipif(SIMULATED, reason="the simulator has as many devices as one asks for")
@pytest.mark.parametrize(
    ("n", "says"),
    [
        (0, "device='cuda:2', but CuPy finds no GPU here: use device='cpu'"),
        (1, "there is no such GPU here: use one of 'cuda:0' or 'cpu'."),
        (2, "there is no such GPU here: use one of 'cuda:0', 'cuda:1' or 'cpu'."),
    ],
)
def test_a_device_that_is_not_there_leads_to_those_that_are(n, says, monkeypatch):
    from numba import cuda

    monkeypatch.setattr("treelens.kernels.device._cupy", lambda: _Runtime(n))
    monkeypatch.setattr(cuda, "select_device", lambda number: None)
    graphs, y = _chains(N)
    with pytest.raises(RuntimeError, match=re.escape(says)):
        tl.GraphRegressor(depth=1, device="cuda:2").fit(graphs, y)
