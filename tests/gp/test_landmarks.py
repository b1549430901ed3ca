"""Draws of training graphs, memory, and the posterior through landmarks."""

from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from strategies import random_collection
from treelens.gp import fitting
from treelens.gp import landmarks as landmarks_module
from treelens.gp.choice import draw_by_group, draw_rare, sample_for
from treelens.gp.fitting import available_bytes, check_memory, landmarks_for
from treelens.gp.landmarks import (
    LandmarkFit,
    LandmarkSums,
    block_sums,
    choose_landmarks,
    factor_landmarks,
    posterior_through_landmarks,
)
from treelens.gp.posterior import solve_upper
from treelens.kernels.base import SumKernel, Term
from treelens.kernels.mixture import TanimotoL1
from treelens.patterns.histograms import Features, GraphViews, PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

N, N_NEW = 60, 10


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(N + N_NEW, 3))
    distance = np.abs(points[:, None] - points[None]).sum(axis=2)
    kernel = 1.5 * np.exp(-0.4 * distance)
    return kernel, rng.uniform(0.05, 0.3, size=N), rng.normal(size=(N, 2))


def _through(kernel, landmarks, noise, targets, size=25):
    """Conditioned in blocks of ``size`` graphs."""
    factor = factor_landmarks(kernel[np.ix_(landmarks, landmarks)].copy())
    blocks = [slice(start, min(start + size, N)) for start in range(0, N, size)]
    projected = [
        (where, solve_upper(factor, kernel[where][:, landmarks].T, transposed=True))
        for where in blocks
    ]
    added = (block_sums(half, noise[where], targets[where]) for where, half in projected)
    sums = LandmarkSums.added(factor, added, targets.shape[1])
    fit = LandmarkFit(SimpleNamespace(variance=1.5), None, noise, targets)
    return fit.conditioned(sums, landmarks, projected)


@pytest.mark.interpreted
def test_the_mean_and_what_is_left_out_are_those_of_the_covariance_they_stand_for(problem):
    kernel, noise, targets = problem
    landmarks = np.arange(0, N, 4)
    through, left_out = _through(kernel, landmarks, noise, targets)
    among, cross = kernel[np.ix_(landmarks, landmarks)], kernel[:, landmarks]
    rough = cross @ np.linalg.solve(among, cross.T)  # (n + n_new, n + n_new)
    covariance = rough[:N, :N] + np.diag(noise)
    mean = rough[N:, :N] @ np.linalg.solve(covariance, targets)
    np.testing.assert_allclose(cross[N:] @ through.coefficients, mean, atol=1e-5)
    told = np.diagonal(rough[N:, :N] @ np.linalg.solve(covariance, rough[:N, N:]))
    np.testing.assert_allclose(through.reduction(cross[N:]), told, atol=1e-5)
    for i in (0, 5, 8, 59):  # refits without one graph; 0 and 8 are landmarks, too
        others = landmarks[landmarks != i]
        cross = kernel[:N, others]
        rough = cross @ np.linalg.solve(kernel[np.ix_(others, others)], cross.T)
        rest = np.delete(np.arange(N), i)
        covariance = (rough + np.diag(noise))[np.ix_(rest, rest)]
        mean = rough[i, rest] @ np.linalg.solve(covariance, targets[rest])
        told = rough[i, rest] @ np.linalg.solve(covariance, rough[rest, i])
        np.testing.assert_allclose(left_out.mean[i], mean, atol=1e-5)
        assert left_out.variance[i] == pytest.approx(1.5 - told + noise[i], abs=1e-5)


def _graphs(n=150):
    """Random graphs; few of them hold what decides the target."""
    graphs = random_collection(np.random.default_rng(1), n, max_nodes=12)
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))
    pairs = PairFeatures.of_counts(histograms)
    kernel = SumKernel((Term(TanimotoL1(2.0, 0.05, 0.5), 1.0),))
    return kernel, GraphViews((Features.of(pairs),))


def _doubt(kernel, landmarks, noise, targets):
    """Squared error times squared open variance, from whole matrices."""
    through = np.linalg.solve(kernel[np.ix_(landmarks, landmarks)], kernel[landmarks])
    told = kernel[:, landmarks] @ through
    mean = told @ np.linalg.solve(told + noise * np.eye(len(kernel)), targets)
    return (targets - mean)[:, 0] ** 2 * (np.diagonal(kernel) - np.diagonal(told)) ** 2


def test_hard_landmarks_are_added_in_rounds_where_the_mean_is_wrong_and_nothing_is_near():
    kernel, graphs = _graphs()
    targets = np.random.default_rng(2).normal(size=(150, 1))
    fit = LandmarkFit(kernel, graphs, np.full(150, 0.1), targets)
    expected = first = np.arange(0, 150, 15)
    matrix = kernel.matrix(graphs, graphs)
    for _ in range(3):
        doubt = _doubt(matrix, expected, 0.1, targets)
        doubt[expected] = -1
        expected = np.sort(np.append(expected, np.argsort(-doubt)[:10]))
    chosen = choose_landmarks(fit, first, 40).landmarks
    assert np.sort(chosen).tolist() == expected.tolist()
    assert choose_landmarks(fit, first, len(first)).landmarks.tolist() == first.tolist()


def test_each_group_has_its_share_of_the_landmarks_those_in_doubt():
    kernel, graphs = _graphs()
    rng = np.random.default_rng(2)
    groups = np.repeat([0, 1, 2], [10, 60, 80])
    sizes = np.array([0.01, 1.0, 30.0])[groups]  # of which the last would have all landmarks
    targets = sizes[:, None] * rng.normal(size=(150, 1))
    fit = LandmarkFit(kernel, graphs, np.full(150, 0.1), targets)
    first = np.arange(0, 150, 15)
    without = np.bincount(groups[choose_landmarks(fit, first, 20).landmarks], minlength=3)
    added = choose_landmarks(fit, first, 70, groups).landmarks[len(first) :]
    counts = np.bincount(groups[added], minlength=3)
    assert without.tolist() == [1, 4, 15]
    np.testing.assert_allclose(counts / [10, 60, 80], 60 / 150, atol=0.05)
    doubt = _doubt(kernel.matrix(graphs, graphs), first, 0.1, targets)
    doubt[first] = -1.0
    largest = [np.flatnonzero(groups == k)[doubt[groups == k].argmax()] for k in range(3)]
    found = choose_landmarks(fit, first, len(first) + 8 * 3, groups).landmarks
    assert set(largest[1:]) <= set(found.tolist())
    every = choose_landmarks(fit, first, 150, groups).landmarks
    assert np.sort(every).tolist() == list(range(150))


@pytest.mark.parametrize("n_columns", [1, 2])
def test_landmarks_added_in_rounds_give_the_posterior_of_all_at_once(n_columns, monkeypatch):
    kernel, graphs = _graphs()
    rng = np.random.default_rng(4)
    targets, noise = rng.normal(size=(150, n_columns)), rng.uniform(0.05, 0.2, size=150)
    fit, first = LandmarkFit(kernel, graphs, noise, targets), np.arange(0, 150, 15)
    positions, posterior, left_out = posterior_through_landmarks(fit, first, 41)
    assert len(positions) == 41
    assert set(first) <= set(positions)
    at_once, expected = fit.through(positions)
    rows = kernel.matrix(graphs, graphs)[:, positions]
    mean = rows @ posterior.coefficients
    np.testing.assert_allclose(mean, rows @ at_once.coefficients, atol=1e-6)
    np.testing.assert_allclose(posterior.reduction(rows), at_once.reduction(rows), atol=1e-6)
    np.testing.assert_allclose(left_out.mean, expected.mean, atol=1e-5)
    np.testing.assert_allclose(left_out.variance, expected.variance, atol=1e-5)
    monkeypatch.setattr(landmarks_module, "MOST_KEPT", 41 * 90)  # too few for all graphs
    some, posterior, left_out = posterior_through_landmarks(fit, first, 41)
    assert set(first) <= set(some)
    assert len(some) == 41
    np.testing.assert_allclose(left_out.mean, fit.through(some)[1].mean)


def test_groups_keep_their_shares():
    assert draw_by_group(np.zeros(5, int), 5, _keys(5)).tolist() == [0, 1, 2, 3, 4]
    groups = np.repeat([0, 1, 2], [600, 300, 100])
    drawn = draw_by_group(groups, 100, _keys(1000))
    assert len(np.unique(drawn)) == 100
    assert np.abs(np.bincount(groups[drawn]) - [60, 30, 10]).max() <= 1
    assert (draw_by_group(groups, 100, _keys(1000, seed=4)) != drawn).any()
    order = np.random.default_rng(5).permutation(1000)
    again = draw_by_group(groups[order], 100, _keys(1000)[order])
    assert sorted(order[again]) == drawn.tolist()


def _keys(n, seed=3):
    return np.random.default_rng(seed).permutation(n).astype(np.uint64)


def test_landmarks_only_beyond_the_exact_size():
    groups = np.zeros(50, int)
    assert landmarks_for(groups, 50, 10, _keys(50)) is None
    plan = landmarks_for(groups, 49, 10, _keys(50))
    assert (plan.n_landmarks, len(plan.first)) == (10, 2)
    assert len(landmarks_for(groups, 49, 10, _keys(50), rare=True).first) == 5
    assert landmarks_for(groups, 49, 80, _keys(50)).n_landmarks == 50


def test_a_draw_of_the_rare_has_it_whole_and_three_times_as_many_others():
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat([0, 1, 2], [3000, 150, 120]))
    drawn = draw_rare(codes, 3000, _keys(len(codes), 0))
    assert np.bincount(codes[drawn]).tolist() == [360, 150, 120]
    assert (np.diff(drawn) > 0).all()
    assert (drawn == draw_rare(codes, 3000, _keys(len(codes), 0))).all()
    assert (drawn != draw_rare(codes, 3000, _keys(len(codes), 1))).any()
    assert np.bincount(codes[draw_rare(codes, 90, _keys(len(codes), 0))]).tolist() == [30, 30, 30]
    few = np.repeat([0, 1], [500, 5])  # too few to learn scales from: the others fill up
    assert np.bincount(few[draw_rare(few, 3000, _keys(len(few), 0))]).tolist() == [195, 5]


def test_scales_of_the_rare_are_fitted_in_proportion():
    codes = np.repeat([0, 1], [950, 50])
    plain, rare = (sample_for(codes, is_rare, 400, _keys(len(codes))) for is_rare in (False, True))
    assert plain.scales is None
    assert (plain.noise == np.arange(1000)).all()  # amplitude and noise, of all that are affordable
    assert (rare.noise == np.arange(1000)).all()
    assert sample_for(codes, False, 1000, _keys(len(codes))).noise is None  # weights are of all
    assert np.bincount(codes[plain.weights]).tolist() == [380, 20]
    assert np.bincount(codes[rare.weights]).tolist() == [150, 50]
    assert np.bincount(codes[rare.scales]).tolist() == [380, 20]
    assert rare.largest == 1000
    many = np.repeat([0, 1], [9000, 1000])
    more = sample_for(many, False, 400, _keys(len(many))).noise
    assert np.bincount(many[more]).tolist() == [3600, 400]


def test_a_fit_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(fitting, "available_bytes", lambda: 2**30)
    check_memory(1_000, 1_000, None)
    check_memory(20_000, 3_000, 1_000)
    with pytest.raises(MemoryError, match=r"about 8.9 GiB, and 1.0 GiB .* exact_size"):
        check_memory(20_000, 3_000, None)


def test_the_limit_of_a_container_counts(tmp_path):
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    free = psutil.virtual_memory().available
    assert available_bytes(tmp_path) == pytest.approx(free, rel=0.2)
    (tmp_path / "memory.max").write_text("5000\n")
    assert available_bytes(tmp_path) == 4000
