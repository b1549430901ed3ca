"""Stages of learning: halves of the graphs, depths, and scores of held-out graphs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from strategies import random_collection
from treelens.gp.choice import fit_learned, fit_uniform, halves_of_graphs, tenths_by_rank
from treelens.gp.data import CountedView, TrainingData
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


def _halves(n, groups=None):
    return halves_of_graphs(np.arange(n), np.zeros(n, int) if groups is None else groups, _keys(n))


@pytest.mark.parametrize("n", [60, 601, 4000])
def test_halves_share_no_graph_and_keep_the_groups(n):
    positions, groups = np.arange(100, 100 + n), np.arange(n) % 10
    fitted, compared = halves_of_graphs(positions, groups, _keys(n))
    assert len(fitted) == len(compared) == min(n // 2, 600)
    assert len(set(fitted) | set(compared)) == 2 * len(fitted)
    assert set(fitted) | set(compared) <= set(positions)
    counts = np.bincount(groups[fitted - 100], minlength=10)
    assert counts.max() - counts.min() <= 2


@pytest.mark.parametrize(("n", "n_kinds"), [(60, 20), (600, 200), (40, 1)])
def test_replicates_are_never_on_both_sides(n, n_kinds):
    """Of one kind there is nothing to compare on."""
    copies = np.random.default_rng(0).integers(n_kinds, size=n)
    part = halves_of_graphs(np.arange(n), np.zeros(n, int), _keys(n), copies)
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


def test_stages_see_nothing_of_the_graphs_that_they_are_compared_on(data):
    """Other targets of those graphs change scores, and no parameter."""
    part = _halves(60)
    values = data.targets.values.copy()
    values[part.compared] += 5.0
    other = replace(data, targets=replace(data.targets, values=values))
    uniform = [fit_uniform(each, part, [0, 1, 2]) for each in (data, other)]
    learned = [
        fit_learned(each, part, start, "branches")
        for each, start in zip((data, other), uniform, strict=True)
    ]
    for one, two in (uniform, learned):
        assert one.depth == two.depth
        assert one.search.parameters.log_noise == two.search.parameters.log_noise
        pairs = zip(one.search.parameters.terms[0], two.search.parameters.terms[0], strict=True)
        for left, right in pairs:
            np.testing.assert_array_equal(left, right)
        assert one.scores.mean() > two.scores.mean()
    gain, error = learned[0].gain_over(uniform[0])
    differences = learned[0].scores - uniform[0].scores
    assert gain == pytest.approx(differences.mean())
    assert error == pytest.approx(stats.sem(differences))


def test_sums_by_groups_stay_right_without_deeper_patterns(data):
    """Sums that were shared by fits to parts are those that would be computed again."""
    positions = np.arange(0, 60, 2)
    for depth in (0, 1, 2):
        shared, plain = (d.truncated(depth) for d in (data.sharing(positions), data))
        assert shared.depth == plain.depth == depth
        (one, _), (other, _) = (d.problem(positions[3:]) for d in (shared, plain))
        rng = np.random.default_rng(depth)
        start = one.start
        logits = rng.normal(size=one.terms[0].n_groups)
        terms = tuple(own._replace(level_logits=logits) for own in start.terms)
        at = start._replace(terms=terms)
        np.testing.assert_allclose(one.kernel_matrix(at), other.kernel_matrix(at), rtol=1e-6)


def test_classes_are_scored_by_their_log_probability(data):
    codes = (data.targets.values[:, 0] > 0).astype(int)
    targets = ScaledTargets.standardized(class_columns(codes, 2), np.ones(60), 1.0)
    of_classes = TrainingData(data.views, targets, codes)
    found = fit_uniform(of_classes, _halves(60, codes), [1])
    assert (found.scores <= 0).all()
    assert found.scores.mean() > np.log(0.5)


def test_single_labels_are_used_only_where_they_are_asked_for(data):
    """Otherwise a default fit could have nothing to say of structure."""
    counts = data.views[0].histograms.to_sparse()[:, :3].toarray()  # labels alone decide
    targets = ScaledTargets.standardized((counts @ [1.0, -2.0, 3.0])[:, None], np.ones(60), None)
    given = replace(data, targets=targets)
    assert fit_uniform(given, _halves(60), [0, 1, 2]).depth == 1
    assert fit_uniform(given, _halves(60), [0]).depth == 0
