"""Factors, marginal likelihood, conditioning and predicting on a device agree with the CPU."""

import numpy as np
import pytest

import treelens as tl
from devices import SIMULATED, THERE, needs_device, small_blocks  # noqa: F401
from gp.test_evidence import _parameters, _problem
from treelens.gp import device
from treelens.gp.device import DeviceEvidence, condition_on_device
from treelens.gp.evidence import Evidence
from treelens.gp.posterior import NotPositiveDefiniteError
from treelens.gp.search import maximise_evidence
from treelens.kernels.device import Device

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
needs_real_device = pytest.mark.skipif(
    SIMULATED or not THERE, reason="no GPU here; a simulated one takes too long"
)
DEVICE = Device.open("cuda") if THERE else Device("none", np)
N = 7 if SIMULATED else 60
SIZE = 6 if SIMULATED else 3000  # on a real device more than one block


def _matrix(n, seed=0):
    roots = np.random.default_rng(seed).normal(size=(n, n))
    return roots @ roots.T + np.eye(n)


@pytest.mark.parametrize("n", [1, 6, 7, 8, 30])
def test_factor_solution_and_inverse(n, monkeypatch):
    monkeypatch.setattr(device, "BLOCK", 7)
    matrix, right = _matrix(n), np.random.default_rng(1).normal(size=(n, 2))
    held = DEVICE.put(matrix + np.tril(np.full((n, n), 5.0), -1))  # not read below the diagonal
    factor = device.factor_on_device(held, DEVICE.arrays)
    upper = np.triu(DEVICE.get(factor))
    np.testing.assert_allclose(upper.T @ upper, matrix, rtol=1e-10, atol=1e-10)
    solution = device.solve_on_device(factor, DEVICE.put(right), DEVICE.arrays)
    np.testing.assert_allclose(DEVICE.get(solution), np.linalg.solve(matrix, right), atol=1e-10)
    half = device.half_solve_on_device(factor, DEVICE.put(right), DEVICE.arrays)
    forms = np.einsum("ip,ij,jp->p", right, np.linalg.inv(matrix), right)
    np.testing.assert_allclose((DEVICE.get(half) ** 2).sum(axis=0), forms, rtol=1e-10)
    inverse = DEVICE.get(device.invert_on_device(factor, DEVICE.arrays))
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix), atol=1e-12)


def test_a_matrix_without_a_factor_is_refused(monkeypatch):
    monkeypatch.setattr(device, "BLOCK", 7)
    matrix = _matrix(20)
    matrix[15, 15] = -1.0
    with pytest.raises(NotPositiveDefiniteError, match="noise is too small"):
        device.factor_on_device(DEVICE.put(matrix), DEVICE.arrays)


@needs_device
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("learned", "n_columns"), [("uniform", 1), ("depths", 3), ("branches", 1), ("branches", 3)]
)
def test_value_and_gradient_agree_with_the_lists(learned, n_columns):
    problem, _ = _problem(n=SIZE, n_columns=n_columns)
    parameters = _parameters(problem)
    value, gradient = Evidence(problem)(parameters, learned)
    on_device = DeviceEvidence(problem, "cuda")(parameters, learned)
    assert on_device[0] == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(on_device[1], gradient, atol=1e-8, rtol=1e-8)


@needs_real_device
def test_evaluations_do_not_depend_on_the_one_before():
    problem, _ = _problem(n=SIZE)
    first, second = _parameters(problem), _parameters(problem, seed=2)
    evidence = DeviceEvidence(problem, "cuda")
    once = evidence(first, "branches")
    evidence(second, "branches")
    again = evidence(first, "branches")
    assert once[0] == again[0]
    np.testing.assert_array_equal(once[1], again[1])


@needs_real_device
def test_the_search_ends_in_the_same_place():
    problem, _ = _problem(n=40)
    here, there = (
        maximise_evidence(problem, "branches", device=where) for where in ("cpu", "cuda")
    )
    np.testing.assert_allclose(
        *(problem.terms[0].weights(found.parameters.terms[0]) for found in (there, here)), rtol=1e-6
    )


def test_an_unknown_device_is_an_error():
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda'"):
        DeviceEvidence(_problem()[0], "tpu")


def _chains(n):
    lengths = 1 + np.arange(n) % 5
    graphs = tl.as_graph_collection(
        [([(i, i + 1) for i in range(k)], dict.fromkeys(range(k + 1), "C")) for k in lengths]
    )
    return graphs, lengths + 0.1 * np.sin(np.arange(n))


@pytest.fixture(scope="module")
def fitted():
    graphs, y = _chains(N)
    model = tl.GraphRegressor(1, "uniform", views=[tl.WLPatterns()], max_steps=3)
    return model.fit(graphs, y)


@needs_device
@pytest.mark.usefixtures("small_blocks")
def test_predictions_agree(fitted):
    graphs, _ = _chains(4)
    here = fitted.model_.decide(graphs, variance=True)
    there = fitted.model_.decide(graphs, variance=True, device="cuda")
    for name in ("mean", "variance"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-8)


@needs_device
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_kinds", [None, 5], ids=["different graphs", "copies"])
def test_the_posterior_agrees(fitted, n_kinds):
    model = fitted.model_
    noise = model.noise / model.sample_weights
    targets = (model.training.targets[:, None] - model.target_offset) / model.target_scale
    copies = None if n_kinds is None else np.arange(len(noise)) % n_kinds
    posterior, left_out = condition_on_device(
        model.basis_graphs.patterns, model.patterns_term, noise, targets, "cuda", copies
    )
    np.testing.assert_allclose(posterior.coefficients, model.posterior.coefficients, rtol=1e-7)
    expected = model.posterior.leave_one_out(targets, copies=copies)
    np.testing.assert_allclose(left_out.mean, expected.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(left_out.variance, expected.variance, rtol=1e-7)


@pytest.mark.skipif(THERE, reason="there is a device here")
def test_a_model_of_a_device_predicts_where_there_is_none(fitted):
    graphs, _ = _chains(4)
    expected = fitted.predict(graphs)
    moved = tl.GraphRegressor(device="cuda")
    moved.model_ = fitted.model_
    np.testing.assert_array_equal(moved.predict(graphs), expected)
