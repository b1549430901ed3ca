"""The evidence on a device agrees with that of the compiled lists."""

import numpy as np
import pytest

from devices import SIMULATED, THERE, needs_device, small_blocks  # noqa: F401
from gp.test_evidence import _parameters, _problem
from treelens.gp.evidence import evidence_objective
from treelens.gp.evidence_device import DeviceEvidence
from treelens.gp.search import maximise_evidence

pytestmark = pytest.mark.interpreted
needs_real_device = pytest.mark.skipif(
    SIMULATED or not THERE, reason="no GPU here; a simulated one takes too long"
)
SIZE = 6 if SIMULATED else 3000  # on a real device more than one block


@needs_device
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("learned", "n_columns"), [("uniform", 1), ("depths", 3), ("branches", 1), ("branches", 3)]
)
def test_value_and_gradient_agree_with_the_lists(learned, n_columns):
    problem, _ = _problem(n=SIZE, n_columns=n_columns)
    parameters = _parameters(problem)
    value, gradient = evidence_objective(problem, parameters, learned)
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
        problem.weights(there.parameters), problem.weights(here.parameters), rtol=1e-6
    )


@pytest.mark.skipif(THERE, reason="there is a device here")
def test_a_device_that_is_not_there_is_named():
    with pytest.raises((ImportError, RuntimeError), match=r"needs CuPy|no GPU"):
        DeviceEvidence(_problem()[0], "cuda")


def test_an_unknown_device_is_an_error():
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda'"):
        DeviceEvidence(_problem()[0], "tpu")
