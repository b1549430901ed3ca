"""The evidence on a device agrees with that of the compiled lists."""

import numpy as np
import pytest

from learning.test_evidence import _parameters, _problem
from treelens.learning.evidence import evidence_objective
from treelens.learning.evidence_search import learn_by_evidence

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from treelens.learning.evidence_device import DeviceEvidence, unary_columns  # noqa: E402

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
    ),
]


def test_unary_columns_sum_to_minima():
    problem, counts = _problem(n=20)
    rows, columns, patterns = unary_columns(problem)
    table = np.zeros((20, len(patterns)))
    table[rows, columns] = 1.0
    weights = np.random.default_rng(0).uniform(size=counts.shape[1])
    expected = (weights * np.minimum(counts[:, None], counts[None])).sum(axis=2)
    found = (table * weights[patterns]) @ table.T
    off = ~np.eye(20, dtype=bool)
    np.testing.assert_allclose(found[off], expected[off], atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("learned", ["uniform", "depths", "branches"])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_value_and_gradient_agree_with_the_lists(device, learned, n_columns):
    problem, _ = _problem(n=30, n_columns=n_columns)
    parameters = _parameters(problem)
    value, gradient = evidence_objective(problem, parameters, learned)
    on_device = DeviceEvidence(problem, device)(parameters, learned)
    assert on_device[0] == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(on_device[1], gradient, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("device", DEVICES[1:])
def test_the_search_ends_in_the_same_place(device):
    problem, _ = _problem(n=40)
    here, there = (learn_by_evidence(problem, device=where) for where in ("cpu", device))
    np.testing.assert_allclose(
        problem.weights(there.parameters), problem.weights(here.parameters), rtol=1e-6
    )


def test_a_device_that_is_not_there_is_named():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(RuntimeError, match="no GPU"):
        DeviceEvidence(_problem()[0], "cuda")
