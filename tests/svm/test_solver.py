"""The support vector machine on a ready matrix, against its twin, against LIBSVM and by proof."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils.multiclass import _ovr_decision_function

from naive import svm as naive
from treelens.models.predictions import class_weights, predicted_codes
from treelens.svm import _compiled
from treelens.svm import solver as machine
from treelens.svm.solver import (
    calibrated_probabilities,
    decisions_of,
    fit_calibration,
    fit_svm_path,
    margins_of,
)

CS = [0.1, 1.0, 10.0, 100.0]
# Both solvers stop at a violation of 1e-3: decision values, up to 5 here, may differ a little.
CLOSE = {"rtol": 2e-3, "atol": 5e-3}


def kernel_of(n: int, seed: int, n_features: int = 12, scale: float = 1.0) -> np.ndarray:
    """A positive semi-definite matrix with a diagonal that varies."""
    features = np.random.default_rng(seed).normal(size=(n, n_features))
    return scale * (features @ features.T) / n_features


def problem(n: int = 60, n_classes: int = 2, seed: int = 0, scale: float = 1.0):
    """A kernel matrix and classes that it tells apart in part."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    features = rng.normal(size=(n, 12)) + rng.normal(size=(n_classes, 12))[codes]
    return scale * (features @ features.T) / 12, codes


def fit_svm(kernel, codes, n_classes, C, weights):
    return fit_svm_path(kernel, codes, n_classes, [C], weights)[0]


def cost(kernel: np.ndarray, C: float) -> float:
    return C / np.diagonal(kernel).mean()


# --- the compiled loop ----------------------------------------------------------------------


@pytest.mark.interpreted
@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 14),
    rank=st.integers(1, 6),
    most_steps=st.sampled_from([0, 1, 3, 300]),
    C=st.sampled_from([0.1, 1.0, 50.0]),
)
def test_the_compiled_loop_equals_its_twin(seed, n, rank, most_steps, C):
    rng = np.random.default_rng(seed)
    kernel = kernel_of(n, seed, rank)
    y = rng.choice([-1.0, 1.0], size=n)
    bound = C * rng.uniform(0.5, 2.0, size=n)
    low, high = np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)
    beta, f = np.zeros(n), -y
    expected = naive.solve_svm(kernel, low, high, 1e-3, most_steps, beta, f)
    steps = _compiled.solve_svm(kernel, low, high, 1e-3, most_steps, beta, f)
    assert steps == expected[0]
    np.testing.assert_allclose(beta, expected[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(f, expected[2], rtol=1e-9, atol=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), C=st.sampled_from(CS))
def test_the_solution_is_feasible_and_proves_itself(seed, n, C):
    """Bounds hold exactly, the gradient is the gradient, and the duality gap is small."""
    rng = np.random.default_rng(seed)
    kernel = kernel_of(n, seed)
    codes = np.append(rng.integers(2, size=n - 2), [0, 1])
    weights = rng.uniform(0.5, 2.0, size=n)
    fitted = fit_svm(kernel, codes, 2, C, weights)
    beta, y = fitted.coefficients[0], np.where(codes == 1, 1.0, -1.0)
    bound = cost(kernel, C) * weights
    assert (beta * y >= 0).all()
    assert (beta * y <= bound).all()
    assert abs(beta.sum()) <= 1e-9 * bound.sum()
    gap = naive.duality_gap(kernel, y, bound, beta, float(fitted.intercepts[0]))
    assert -1e-9 * bound.sum() <= gap <= 1e-3 * bound.sum()


# --- against LIBSVM -------------------------------------------------------------------------


EVEN = np.arange(60) % 2
RARE, SINGLE = (np.arange(60) % 5 == 0).astype(int), (np.arange(60) == 7).astype(int)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("codes", "class_weight", "scale", "C"),
    [
        *((EVEN, None, scale, C) for scale in (1.0, 1e-6, 1e6) for C in CS),
        *((RARE, weight, 1.0, 1.0) for weight in ("balanced", {0: 1.0, 1: 5.0}, {1: 0.2})),
        *((SINGLE, None, 1.0, C) for C in CS),  # a class with one member
    ],
)
def test_decisions_are_those_of_svc(codes, class_weight, scale, C):
    kernel, _ = problem(seed=3, scale=scale)
    weights = class_weights(class_weight, np.array([0, 1]), codes)
    ours = fit_svm(kernel, codes, 2, C, weights).decide(kernel)[:, 0]
    rival = SVC(kernel="precomputed", C=cost(kernel, C), class_weight=class_weight)
    expected = rival.fit(kernel, codes).decision_function(kernel)
    np.testing.assert_allclose(ours, expected, **CLOSE)


# --- several classes -----------------------------------------------------------------------------


@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_several_classes_are_one_against_one(n_classes, C):
    kernel, codes = problem(105, n_classes, seed=1)
    train, new = np.arange(70), np.arange(70, 105)
    inner, outer = kernel[np.ix_(train, train)], kernel[np.ix_(new, train)]
    fitted = fit_svm(inner, codes[train], n_classes, C, np.ones(70))
    rival = SVC(kernel="precomputed", C=cost(inner, C), decision_function_shape="ovo")
    expected = rival.fit(inner, codes[train]).decision_function(outer)
    assert fitted.coefficients.shape == (n_classes * (n_classes - 1) // 2, 70)
    # Ours are positive for the second class of a pair, LIBSVM's for the first.
    np.testing.assert_allclose(fitted.outputs(outer), -expected, rtol=0.02, atol=0.02)


# --- C, and paths of C ----------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_path_equals_cold_starts(n_classes):
    kernel, codes = problem(n_classes=n_classes, seed=4)
    path = fit_svm_path(kernel, codes, n_classes, CS, np.ones(60))
    for C, warm in zip(CS, path, strict=True):
        cold = fit_svm(kernel, codes, n_classes, C, np.ones(60))
        np.testing.assert_allclose(warm.decide(kernel), cold.decide(kernel), **CLOSE)
    assert not np.shares_memory(path[0].coefficients, path[1].coefficients)


# --- degenerate matrices --------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("C", [0.1, 1000.0])
def test_graphs_that_are_all_alike_or_all_unlike(C):
    """The most frequent class for everyone; training graphs learned by heart."""
    codes = np.array([0] * 4 + [1] * 9)
    for value in (0.0, 1.0, 1e-30):
        kernel = np.full((13, 13), value)
        decisions = fit_svm(kernel, codes, 2, C, np.ones(13)).decide(kernel)
        assert np.isfinite(decisions).all()
        np.testing.assert_array_equal(predicted_codes(decisions), 1)
    fitted = fit_svm(np.eye(12), np.arange(12) // 6, 2, 10.0, np.ones(12))
    np.testing.assert_array_equal(predicted_codes(fitted.decide(np.eye(12))), np.arange(12) // 6)
    assert len(fitted.support) == 12


def test_a_class_that_is_absent_from_training_is_never_predicted():
    kernel, codes = problem(30, n_classes=2)
    for n_classes in (3, 5):
        fitted = fit_svm(kernel, codes, n_classes, 1.0, np.ones(30))
        outputs = fitted.outputs(kernel)[:, 1]  # the first class against the absent third
        np.testing.assert_array_equal(outputs, -1.0)
        assert set(predicted_codes(fitted.decide(kernel))) <= {0, 1}


def test_too_few_steps_warn(monkeypatch):
    monkeypatch.setattr(machine, "_MOST_STEPS", 3)
    kernel, codes = problem()
    with pytest.warns(ConvergenceWarning, match="in 3 iterations"):
        fit_svm(kernel, codes, 2, 10.0, np.ones(60))


# --- weights of classes, probabilities -------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration_recovers_known_probabilities(n_classes):
    """Labels drawn with logistic probabilities of the decision values."""
    rng = np.random.default_rng(0)
    n_outputs = 1 if n_classes == 2 else n_classes
    n = 6000
    decisions = rng.normal(size=(n, n_outputs))
    logits = np.column_stack([np.zeros(n), decisions[:, 0]]) if n_outputs == 1 else decisions
    true = np.exp(2 * logits) / np.exp(2 * logits).sum(axis=1, keepdims=True)
    codes = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    estimated = calibrated_probabilities(decisions, *fit_calibration(decisions, codes))
    assert estimated.shape == (n, n_classes)
    np.testing.assert_allclose(estimated.sum(axis=1), 1.0)
    assert np.abs(estimated - true).mean() < 0.01


# --- votes and margins ------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [3, 5])
def test_margins_and_votes_are_those_counted_one_by_one(n_classes, rng):
    pairs = list(combinations(range(n_classes), 2))
    outputs = rng.normal(size=(20, len(pairs)))
    sums, votes = np.zeros((2, 20, n_classes))
    for graph, row in enumerate(outputs):
        for (first, second), value in zip(pairs, row, strict=True):
            sums[graph, first] -= value
            sums[graph, second] += value
            votes[graph, second if value > 0 else first] += 1
    np.testing.assert_allclose(margins_of(outputs), sums / (n_classes - 1))
    values = decisions_of(outputs)
    np.testing.assert_array_equal(np.rint(values), votes)
    np.testing.assert_array_less(np.abs(values - votes), 1 / 3)
    expected = _ovr_decision_function(outputs > 0, outputs, n_classes)
    np.testing.assert_allclose(values, expected)
