"""The bound through landmarks: its definition, the exact evidence, finite differences."""

import numpy as np
import pytest

from gp.test_evidence import _parameters, _problem
from naive import evidence as naive
from treelens.gp import evidence, sparse_evidence
from treelens.gp.evidence import evidence_objective
from treelens.gp.sparse_evidence import LANDMARK_JITTER, LandmarkProblem, landmark_bound

pytestmark = pytest.mark.interpreted

SPREADS = (evidence.LOGIT_SPREAD, evidence.SCALE_SPREAD)
LANDMARKS = np.array([0, 2, 5, 6, 11])  # graph 2 has no pattern at all


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(sparse_evidence, "BLOCK", 4)  # so that a test has several of them


@pytest.mark.parametrize("n_columns", [1, 3])
def test_value_agrees_with_its_twin(n_columns):
    problem, counts = _problem(n_columns=n_columns)
    parameters = _parameters(problem)
    value, _ = landmark_bound(LandmarkProblem(problem, LANDMARKS), parameters)
    expected = naive.landmark_bound(
        problem, parameters, counts, LANDMARKS, SPREADS, LANDMARK_JITTER
    )
    assert value == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("learned", ["uniform", "depths", "branches"])
@pytest.mark.parametrize("n_columns", [1, 2])
def test_gradient_agrees_with_finite_differences(learned, n_columns):
    problem, _ = _problem(n_columns=n_columns)
    sparse, parameters = LandmarkProblem(problem, LANDMARKS), _parameters(problem)
    _, gradient = landmark_bound(sparse, parameters, learned)
    vector = parameters.vector(problem.n_free(learned))
    assert gradient.shape == vector.shape
    step = 1e-5
    for k, unit in enumerate(np.eye(len(vector))):
        above, below = (
            landmark_bound(sparse, parameters.replaced(vector + sign * step * unit), learned)[0]
            for sign in (1, -1)
        )
        assert gradient[k] == pytest.approx((above - below) / (2 * step), abs=1e-6, rel=1e-6)


def test_every_graph_a_landmark_is_the_exact_evidence():
    problem, _ = _problem()
    parameters = _parameters(problem)
    value, gradient = landmark_bound(LandmarkProblem(problem, np.arange(14)), parameters)
    exact, slopes = evidence_objective(problem, parameters)
    assert value == pytest.approx(exact, rel=1e-5)
    np.testing.assert_allclose(gradient, slopes, atol=1e-4)


def test_more_landmarks_never_loosen_the_bound():
    problem, _ = _problem()
    parameters = _parameters(problem)
    exact = evidence_objective(problem, parameters)[0]
    values = [
        landmark_bound(LandmarkProblem(problem, np.arange(m)), parameters)[0] for m in (3, 6, 9, 12)
    ]
    assert (np.diff(values) < 0).all()
    assert values[-1] > exact


def test_any_number_of_threads_gives_the_same_bits():
    results = []
    for n_jobs in (1, 2, 3):
        problem, _ = _problem(n=40, n_jobs=n_jobs)
        sparse = LandmarkProblem(problem, np.arange(0, 40, 3))
        results.append(landmark_bound(sparse, _parameters(problem)))
    for value, gradient in results[1:]:
        assert value == results[0][0]
        assert (gradient == results[0][1]).all()
