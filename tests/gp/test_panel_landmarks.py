"""Panels through landmarks: against dense sums over landmarks, refits, and exact panels."""

import numpy as np
import pytest

from naive import panel as naive
from treelens.gp.panel import Cells, CellTable
from treelens.gp.panel_landmarks import CellKernel, through_landmarks
from treelens.gp.panel_posterior import ExactPanel
from treelens.kernels.rbf import Rbf
from treelens.patterns.histograms import GraphViews

N, N_NEW, N_ENDPOINTS = 12, 3, 3


@pytest.fixture
def cells():
    """Values with gaps, known noise and weights; two cells have limits where these are asked."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N, N_ENDPOINTS))
    values[rng.uniform(size=values.shape) < 0.35] = np.nan
    values[2] = np.nan
    factors, known = rng.uniform(0.5, 2.0, (2, *values.shape))
    return Cells.of(CellTable(values, factors, 0.1 * known, np.zeros(values.shape, dtype=int)))


@pytest.fixture
def process():
    """Kernels of two views among all graphs, new ones last, and what endpoints share of them."""
    rng = np.random.default_rng(1)
    views = GraphViews((rng.normal(size=(N + N_NEW, 2)), rng.normal(size=(N + N_NEW, 1))))
    loadings = rng.normal(size=(2, N_ENDPOINTS, 2))
    shared = np.array([own @ own.T + 0.3 * np.eye(N_ENDPOINTS) for own in loadings])
    return CellKernel((Rbf(1.2), Rbf(0.7)), shared), views


def _pairs(cells):
    return list(zip(cells.graphs.tolist(), cells.endpoints.tolist(), strict=True))


def _among(process):
    kernel, views = process
    return [each.matrix(own, own, 1) for each, own in zip(kernel.kernels, views, strict=True)]


def _rows(process):
    return [kernel[N:, :N] for kernel in _among(process)]


def test_predictions_are_sums_over_landmarks(process, cells):
    kernel, views = process
    noise = cells.noise(np.array([0.2, 0.1, 0.3]))
    landmarks = np.arange(0, len(noise), 3)
    found = through_landmarks(kernel, views, cells, noise, landmarks)
    posterior, pairs = found.posterior, _pairs(cells)
    wanted = [(g, t) for g in range(N, N + N_NEW) for t in range(N_ENDPOINTS)]
    given = _among(process), kernel.shared
    some = [pairs[k] for k in landmarks]
    mean, covariance = naive.predict_through(*given, some, pairs, cells.values, noise, wanted)
    np.testing.assert_allclose(posterior.mean(_rows(process)).ravel(), mean, atol=1e-5)
    between = posterior.covariance(_rows(process))
    for k in range(N_NEW):
        block = covariance[3 * k : 3 * k + 3, 3 * k : 3 * k + 3]
        np.testing.assert_allclose(between[k], block, atol=1e-5)
    # without a group of cells, which are no landmarks of theirs either
    groups = cells.graphs // 2
    for own in found.left_out_blocks(groups):
        kept = np.setdiff1d(np.arange(len(pairs)), own.members)
        some = [pairs[k] for k in np.intersect1d(landmarks, kept)]
        measured = [pairs[k] for k in kept], cells.values[kept], noise[kept]
        mean, left = naive.predict_through(*given, some, *measured, [pairs[k] for k in own.members])
        np.testing.assert_allclose(own.mean, mean, atol=1e-5)
        np.testing.assert_allclose(own.covariance, left + np.diag(own.noise), atol=1e-5)
        np.testing.assert_array_equal(own.noise, noise[own.members])


@pytest.mark.parametrize("n_limits", [0, 5])
def test_with_all_cells_for_landmarks_it_is_exact(process, cells, n_limits):
    kernel, views = process
    cells.limits[:n_limits] = 2 * (np.arange(n_limits) % 2) - 1
    noise = cells.noise(np.array([0.2, 0.1, 0.3]))
    found = through_landmarks(kernel, views, cells, noise, np.arange(len(noise)))
    among = [own[:N, :N] for own in _among(process)]
    exact = ExactPanel.fit(among, kernel.shared, noise, cells)
    np.testing.assert_allclose(found.given.values, exact.given.values, atol=1e-4)
    rows, posterior = _rows(process), found.posterior
    np.testing.assert_allclose(posterior.mean(rows), exact.mean(rows), atol=1e-4)
    np.testing.assert_allclose(posterior.covariance(rows), exact.covariance(rows), atol=1e-4)
    blocks = zip(
        found.left_out_blocks(cells.graphs), exact.left_out_blocks(cells.graphs), strict=True
    )
    for ours, theirs in blocks:
        np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-3)
        np.testing.assert_allclose(ours.quiet, theirs.quiet, atol=1e-3)
