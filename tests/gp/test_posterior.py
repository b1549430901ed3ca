"""Posteriors against scikit-learn and refits, and scores of left-out graphs."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from treelens.gp import posterior
from treelens.gp.choice import PartFit
from treelens.gp.fitting import learning_gain
from treelens.gp.posterior import (
    JITTER,
    ExactPosterior,
    ScaledTargets,
    class_columns,
    left_out_classes,
)


class Precomputed(Kernel):
    """A kernel of scikit-learn's that looks its values up; inputs are positions."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __call__(self, X, Y=None, eval_gradient=False):
        rows = X[:, 0].astype(int)
        columns = rows if Y is None else Y[:, 0].astype(int)
        return self.matrix[np.ix_(rows, columns)]

    def diag(self, X):
        return np.diagonal(self.matrix)[X[:, 0].astype(int)]

    def is_stationary(self):
        return False


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(70, 3))
    distance = np.abs(points[:, None] - points[None]).sum(axis=2)
    kernel = 1.5 * np.exp(-0.4 * distance)
    return kernel, rng.uniform(0.05, 0.3, size=70), rng.normal(size=(70, 2))


@pytest.mark.interpreted
def test_mean_and_variance_agree_with_scikit_learn(problem):
    kernel, noise, targets = problem
    train, new = np.arange(60), np.arange(60, 70)
    ours = ExactPosterior.fit(kernel[:60, :60].copy(), noise[:60], targets[:60])
    rows = kernel[new][:, train]
    alpha = noise[:60] + JITTER * np.diagonal(kernel)[:60]
    theirs = GaussianProcessRegressor(Precomputed(kernel), alpha=alpha, optimizer=None)
    theirs.fit(train[:, None], targets[:60])
    mean, std = theirs.predict(new[:, None], return_std=True)
    np.testing.assert_allclose(rows @ ours.coefficients, mean, atol=1e-8)
    np.testing.assert_allclose(1.5 - ours.reduction(rows), std[:, 0] ** 2, atol=1e-8)


def test_variances_of_many_graphs_are_those_of_the_dense_formula(monkeypatch):
    """Most of the work is in float32; where that is not enough, it is done again."""
    for name, value in (("_LARGE", 0), ("_MANY", 10), ("_LEADING", 16), ("_PANEL", 24)):
        monkeypatch.setattr(posterior, name, value)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(260, 6))
    points[200:230] = points[:30]  # copies of training graphs: next to no variance is left
    distance = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    kernel = 3.0 + np.exp(-0.3 * distance)  # much in common
    train, new = slice(0, 200), slice(200, 260)
    noise = np.full(200, 1e-4)
    ours = ExactPosterior.fit(kernel[train, train].copy(), noise, np.zeros((200, 1)))
    rows = kernel[new, train]
    covariance = kernel[train, train] + np.diag(noise + JITTER * 4.0)
    left = 4.0 - np.einsum("ij,ji->i", rows, np.linalg.solve(covariance, rows.T))
    found = ours.reduction(rows, prior=4.0)
    np.testing.assert_allclose(np.sqrt(4.0 - found), np.sqrt(left), rtol=5e-6)
    again = np.abs(found - ours.reduction(rows)) < 1e-13
    assert again[:30].all()
    assert again[30:].mean() < 0.2


def test_leave_one_out_equals_refits(problem):
    kernel, noise, targets = problem
    found = ExactPosterior.fit(kernel[:60, :60].copy(), noise[:60], targets[:60]).leave_one_out(
        targets[:60]
    )
    for i in range(60):
        rest = np.delete(np.arange(60), i)
        other = ExactPosterior.fit(kernel[np.ix_(rest, rest)].copy(), noise[rest], targets[rest])
        row = kernel[[i]][:, rest]
        np.testing.assert_allclose(row @ other.coefficients, found.mean[[i]], atol=1e-8)
        # the graph's own jitter belongs to the closed form, too
        variance = 1.5 * (1 + JITTER) - other.reduction(row)[0] + noise[i]
        assert found.variance[i] == pytest.approx(variance, abs=1e-8)


def test_replicates_are_left_out_together(problem):
    """As a posterior without any of them predicts each."""
    kernel, noise, targets = problem
    copies = np.arange(len(noise))
    copies[[3, 5, 9]] = 3
    left_out = ExactPosterior.fit(kernel.copy(), noise, targets).leave_one_out(targets, 1, copies)
    others = np.delete(np.arange(len(noise)), [3, 5, 9])
    noisy = kernel[np.ix_(others, others)] + np.diag(noise[others])
    for graph in (3, 5, 9):
        row = kernel[graph, others]
        mean = row @ np.linalg.solve(noisy, targets[others])
        variance = kernel[graph, graph] + noise[graph] - row @ np.linalg.solve(noisy, row)
        np.testing.assert_allclose(left_out.mean[graph], mean, atol=1e-6)
        assert left_out.variance[graph] == pytest.approx(variance, rel=1e-6)


def test_the_last_graphs_are_left_out_from_the_last_block_of_the_factor(problem):
    kernel, noise, targets = problem
    copies = np.arange(len(noise))
    copies[[50, 53, 60]] = 50
    posterior = ExactPosterior.fit(kernel.copy(), noise, targets)
    for given in (None, copies):
        expected = posterior.leave_one_out(targets, 1, given)
        found = posterior.leave_one_out(targets, 1, given, first=45)
        np.testing.assert_allclose(found.mean, expected.mean[45:], atol=1e-10)
        np.testing.assert_allclose(found.variance, expected.variance[45:], atol=1e-10)


def test_numbers_come_to_mean_zero_and_unit_size_and_back(rng):
    raw, weights = rng.normal(5.0, 3.0, size=(40, 1)), rng.uniform(0.5, 2.0, 40)
    targets = ScaledTargets.standardized(raw, weights, None)
    assert np.average(targets.values[:, 0], weights=weights) == pytest.approx(0.0, abs=1e-12)
    assert np.average(targets.values[:, 0] ** 2, weights=weights) == pytest.approx(1.0)
    np.testing.assert_allclose(targets.offset + targets.scale * targets.values, raw)
    classes = ScaledTargets.standardized(np.array([[1.0], [1.0], [-1.0]]), np.ones(3), 1.0)
    assert classes.scale == 1.0  # given: they keep it
    np.testing.assert_allclose(classes.values[:, 0], [2 / 3, 2 / 3, -4 / 3])


@pytest.mark.parametrize("value", [0.0, 7.5, 1e12])
def test_constant_targets_have_no_spread_that_rounding_could_make(value):
    raw = np.full((3, 1), value) * (1 + np.array([[0.0], [1e-16], [-1e-16]]))
    targets = ScaledTargets.standardized(raw, np.array([0.1, 0.2, 0.7]), None)
    assert targets.scale == 1.0
    assert not targets.values.any()


@pytest.mark.parametrize("n_classes", [3, 5])
def test_several_classes_are_corners_of_a_simplex(n_classes):
    """Columns of a graph sum to zero, and any two classes are equally far apart."""
    assert class_columns(np.array([0, 1, 0]), 2).tolist() == [[-1.0], [1.0], [-1.0]]
    columns = class_columns(np.arange(n_classes), n_classes)
    np.testing.assert_allclose(columns.sum(axis=1), 0.0, atol=1e-12)
    distances = np.linalg.norm(columns[:, None] - columns, axis=2)
    apart = distances[~np.eye(n_classes, dtype=bool)]
    np.testing.assert_allclose(apart, apart[0])
    assert (columns.argmax(axis=1) == np.arange(n_classes)).all()


def test_scores_of_classes(rng):
    classes, codes = np.array(["a", "b", "c"]), rng.integers(3, size=60)
    found = left_out_classes(rng.normal(size=(60, 3)), codes, classes, 2.0)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    assert found.accuracy == metrics.accuracy_score(classes[codes], found.predictions)
    assert found.log_loss == pytest.approx(metrics.log_loss(codes, found.probabilities))


@pytest.mark.parametrize(
    ("n", "shift", "used", "words"),
    [
        (200, 1.0, "branches", "better than uniform"),
        (200, -1.0, "depths", "worse than uniform"),
        (200, 0.0, "branches", "about equally well"),
        (200, 0.0, "uniform", "no weights were learned"),
        (0, 0.0, "branches", "too few"),
    ],
)
def test_the_gain_is_a_difference_of_scores(rng, n, shift, used, words):
    uniform, learned = rng.normal(size=(2, n)) - 2.0
    learned = uniform + shift + 0.1 * (learned - learned.mean() if n else learned)
    baseline = PartFit("uniform", 1, None, uniform)
    in_use = baseline if used == "uniform" else PartFit(used, 1, None, learned)
    gain = learning_gain(in_use, baseline)
    if n and used != "uniform":
        assert gain.difference == pytest.approx((learned - uniform).mean())
        assert set(gain.compared) == {"uniform", used}
    assert gain.learned - gain.uniform == pytest.approx(gain.difference)
    assert words in str(gain)
