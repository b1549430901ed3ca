"""The choice of weights: parts, held-out predictions, and the rule that prefers the simpler."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from strategies import random_collection
from treelens.gp.choice import (
    Candidate,
    fit_learned,
    fit_uniform,
    parts_of_graphs,
    preferred,
    tenths_by_rank,
)
from treelens.gp.data import CountedView, TrainingData
from treelens.gp.fitting import uniform_candidate
from treelens.gp.posterior import ScaledTargets, class_columns
from treelens.patterns.forest import PatternForest


@pytest.fixture(scope="module")
def data():
    graphs = random_collection(np.random.default_rng(0), 60, max_nodes=10)
    forest, colors = PatternForest.fit(graphs, 2, ("labels",))
    histograms = forest.count(colors)
    values = histograms.to_sparse()[:, [3]].toarray().ravel()  # how often a graph has one pattern
    values = values + 0.1 * np.random.default_rng(1).normal(size=60)
    targets = ScaledTargets.standardized(values[:, None], np.ones(60), None)
    return TrainingData((CountedView(forest, histograms),), targets)


def _keys(n):
    return np.random.default_rng(0).permutation(n)


@pytest.mark.parametrize(("n", "n_parts"), [(60, 4), (600, 2), (4000, 1)])
def test_parts_share_no_graph_and_keep_the_groups(n, n_parts):
    positions, groups = np.arange(100, 100 + n), np.arange(n) % 10
    parts = parts_of_graphs(positions, groups, _keys(n))
    assert len(parts) == n_parts
    for part in parts:
        assert not set(part.fitted) & set(part.compared)
        assert set(part.fitted) | set(part.compared) <= set(positions)
        counts = np.bincount(groups[part.fitted - 100], minlength=10)
        assert counts.max() - counts.min() <= 1 + len(part.fitted) // 40
    compared = np.concatenate([part.compared for part in parts])
    assert len(set(compared)) == len(compared)
    if n == 60:
        assert len(compared) == n


@pytest.mark.parametrize(("n", "n_kinds"), [(60, 20), (600, 200), (40, 2), (40, 1)])
def test_replicates_are_never_on_both_sides(n, n_kinds):
    """Nor is a part without graphs to fit; of one kind there is nothing to compare on."""
    copies = np.random.default_rng(0).integers(n_kinds, size=n)
    for part in parts_of_graphs(np.arange(n), np.zeros(n, int), _keys(n), copies):
        assert not set(copies[part.fitted]) & set(copies[part.compared])
        assert len(part.fitted) > 0
        assert (len(part.compared) > 0) == (n_kinds > 1)


def test_a_problem_is_about_the_patterns_of_its_graphs_up_to_a_depth(data):
    problem, (present,) = data.problem(np.arange(20), depth=1)
    forest = data.views[0].source
    assert problem.terms[0].n_patterns == present.sum()
    depths = np.repeat(forest.level_depths, np.diff(forest.level_offsets))
    assert depths[present].max() == 1
    assert (data.views[0].histograms.select_graphs(np.arange(20)).support[present] > 0).all()


def test_leave_one_out_agrees_with_refits(data):
    problem, present = data.problem(np.arange(60))
    parameters = problem.start.widened(present)
    positions = np.arange(0, 60, 3)
    left_out = data.leave_one_out(parameters, None, positions)
    matrix = problem.kernel_matrix(parameters)
    for k, graph in enumerate(positions):
        others = positions[data.copies[positions] != data.copies[graph]]
        noisy = matrix[np.ix_(others, others)] + parameters.noise * np.eye(len(others))
        row = matrix[graph, others]
        mean = row @ np.linalg.solve(noisy, data.targets.values[others])
        variance = matrix[graph, graph] - row @ np.linalg.solve(noisy, row) + parameters.noise
        np.testing.assert_allclose(left_out.mean[k], mean, atol=1e-6)
        assert left_out.variance[k] == pytest.approx(variance, rel=1e-6)


@pytest.mark.parametrize("log_noise", [-9.0, -6.5, -4.0])
def test_noise_that_was_found_too_small_grows_threefold_while_that_is_more_likely(data, log_noise):
    """Found on part of the graphs, it can be far too small for those outside."""
    problem, present = data.problem(np.arange(60))
    parameters = problem.start.widened(present)._replace(log_noise=log_noise)
    matrix, positions = problem.kernel_matrix(parameters), np.arange(0, 60, 2)
    among, values = matrix[np.ix_(positions, positions)], data.targets.values[positions, 0]

    def evidence(noise):
        return stats.multivariate_normal.logpdf(values, cov=among + noise * np.eye(30))

    noise = parameters.noise
    while 3.0 * noise < 1.0 and evidence(3.0 * noise) > evidence(noise):
        noise *= 3.0
    copies = None if data.copies is None else data.copies[positions]
    found = data.leave_one_out(parameters, None, positions)
    for k in range(0, 30, 7):
        others = np.arange(30) != k
        if copies is not None:
            others = copies != copies[k]
        noisy = among[np.ix_(others, others)] + noise * np.eye(others.sum())
        mean = among[k, others] @ np.linalg.solve(noisy, values[others])
        assert found.mean[k, 0] == pytest.approx(mean, abs=1e-6)
    assert (noise > parameters.noise) == (log_noise < -5)


def test_tenths_have_equal_numbers_of_neighbouring_values():
    values = np.random.default_rng(0).permutation(np.arange(30.0)) ** 2
    tenths = tenths_by_rank(values)
    for k, value in enumerate(np.sqrt(values)):
        assert tenths[k] == int(value) // 3
    # equal values are in one group, whatever their order
    assert tenths_by_rank(np.array([5.0, 5.0, 1.0, 5.0])).tolist() == [2, 2, 0, 2]


def test_a_limit_that_holds_is_no_error_and_one_that_does_not_is(data):
    signs = np.array([1, -1, 0])[np.arange(60) % 3]
    limited = replace(data, targets=replace(data.targets, limits=signs))
    parts = parts_of_graphs(np.arange(60), np.zeros(60, int), _keys(60))
    candidate = fit_uniform(limited, parts, [1])
    row, outcomes = 0, set()
    for part, fit in zip(parts, candidate.fits, strict=True):
        mean = limited.leave_one_out(fit.parameters, 1, part.compared, part.fitted).mean[:, 0]
        for k, graph in enumerate(part.compared.tolist()):
            predicted, value = mean[k], data.targets.values[graph, 0]
            error = {1: max(value - predicted, 0.0), -1: max(predicted - value, 0.0)}.get(
                signs[graph], abs(value - predicted)
            )
            assert candidate.squared_errors[row] == pytest.approx(error**2, rel=1e-9, abs=1e-12)
            outcomes.add((int(signs[graph]), error > 0))
            row += 1
    assert len(outcomes) == 5  # limits of both kinds that hold and that do not


def all_candidates(data, parts, depths):
    uniform = fit_uniform(data, parts, depths)
    return [uniform, *fit_learned(data, parts, uniform, depths[-1], "branches")]


def test_candidates_see_nothing_of_the_graphs_that_they_are_compared_on(data):
    """Other targets of those graphs change scores, and no parameter."""
    parts = parts_of_graphs(np.arange(60), np.zeros(60, int), _keys(60))[:1]
    values = data.targets.values.copy()
    values[parts[0].compared] += 5.0
    other = TrainingData(
        data.views,
        ScaledTargets(values, data.targets.offset, data.targets.scale, data.targets.weights),
    )
    one, two = (all_candidates(d, parts, [0, 1, 2]) for d in (data, other))
    for a, b in zip(one, two, strict=True):
        assert (a.weights, a.depth) == (b.weights, b.depth)
        assert a.start.log_noise == b.start.log_noise
        for left, right in zip(a.start.terms[0], b.start.terms[0], strict=True):
            np.testing.assert_array_equal(left, right)
        assert a.scores.mean() > b.scores.mean()


def test_classes_are_scored_by_their_log_probability(data):
    codes = (data.targets.values[:, 0] > 0).astype(int)
    targets = ScaledTargets.standardized(class_columns(codes, 2), np.ones(60), 1.0)
    of_classes = TrainingData(data.views, targets, codes)
    parts = parts_of_graphs(np.arange(60), codes, _keys(60))
    candidate = fit_uniform(of_classes, parts, [1])
    assert (candidate.scores <= 0).all()
    assert candidate.scores.mean() > np.log(0.5)


def test_single_labels_are_taken_only_where_they_are_clearly_ahead(data):
    """Otherwise a default fit would have nothing to say of structure, for a gain within noise."""
    parts = parts_of_graphs(np.arange(60), np.zeros(60, int), _keys(60))
    counts = data.views[0].histograms.to_sparse()[:, :3].toarray()  # labels alone decide
    values = (counts @ [1.0, -2.0, 3.0])[:, None] + np.random.default_rng(0).normal(size=(60, 1))
    for noise, expected in ((0.0, 0), (1.0, 1)):
        mixed = noise * np.random.default_rng(1).normal(size=(60, 1)) + (1 - noise) * values
        targets = ScaledTargets.standardized(mixed, np.ones(60), None)
        given = TrainingData(data.views, targets)
        assert fit_uniform(given, parts, [0, 1, 2]).depth == 0
        for only_depth in (False, True):
            found = uniform_candidate(given, parts, [0, 1, 2], only_depth)
            assert min(found.depth, 1) == expected
    assert uniform_candidate(given, parts, [0], False).depth == 0  # as it was asked for


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ((0.0, 0.0), "uniform"),
        ((0.5, 0.5), "depths"),
        ((0.5, 0.9), "branches"),
        ((-0.5, 0.4), "branches"),
        ((0.02, 0.02), "uniform"),
    ],
)
def test_a_richer_candidate_needs_a_gain_beyond_its_standard_error(gains, expected):
    noise = np.random.default_rng(0).normal(size=(3, 400))
    base = -np.ones(400)
    scores = [base, base + gains[0] + noise[1], base + gains[1] + noise[2]]
    kinds = ("uniform", "depths", "branches")
    candidates = [Candidate(k, 2, [], s) for k, s in zip(kinds, scores, strict=True)]
    assert preferred(candidates).weights == expected


@pytest.mark.parametrize(
    ("density", "error", "expected"),
    [
        (0.5, -0.5, "depths"),
        (0.5, 0.5, "uniform"),
        (0.0, -0.5, "depths"),
        (-0.5, -0.5, "uniform"),
        (0.0, 0.0, "uniform"),
    ],
)
def test_of_numbers_neither_density_nor_squared_error_may_get_worse(density, error, expected):
    noise = np.random.default_rng(0).normal(size=400)
    noise -= noise.mean()
    uniform = Candidate("uniform", 2, [], -np.ones(400), np.ones(400))
    depths = Candidate("depths", 2, [], density - 1.0 + noise, 1.0 + error + noise)
    assert preferred([uniform, depths]).weights == expected
