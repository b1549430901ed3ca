"""The evidence, its gradient and the search: twins, finite differences, an independent process."""

from dataclasses import replace

import numpy as np
import pytest

from naive import evidence as naive
from treelens.gp import levels
from treelens.gp.evidence import (
    USUAL_NOISE,
    Evidence,
    EvidenceParameters,
    EvidenceProblem,
    with_enough_digits,
)
from treelens.gp.levels import LevelSums, PatternHierarchy
from treelens.gp.posterior import JITTER, NotPositiveDefiniteError
from treelens.gp.terms import LOGIT_SPREAD, CountedTerm, NumbersTerm, TermParameters
from treelens.patterns.histograms import PairFeatures, PatternHistograms

pytestmark = pytest.mark.interpreted


def _problem(seed=0, n=14, n_columns=1, n_jobs=1, strength=20.0):
    """Random counts over a random forest of three levels; a graph without patterns among them."""
    rng = np.random.default_rng(seed)
    sizes = [3, 5, 6]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    parents = np.concatenate(
        [np.full(3, -1), rng.integers(0, 3, size=5), 3 + rng.integers(0, 5, size=6)]
    )
    counts = rng.poisson(1.0, size=(n, sum(sizes)))
    counts[2] = 0
    pattern, graph = np.nonzero(counts.T)
    histograms = PatternHistograms(
        np.concatenate([[0], np.cumsum((counts > 0).sum(axis=0))]).astype(np.int64),
        graph.astype(np.int32),
        counts.T[pattern, graph].astype(np.int32),
        offsets.astype(np.int64),
        np.arange(3),
        np.full(n, 10),
        np.zeros((n, 3), dtype=np.int64),
        np.ones(3),
    )
    targets = rng.normal(size=(n, n_columns))
    hierarchy = PatternHierarchy(offsets, parents, np.arange(3), np.ones(3), sum(sizes))
    problem = EvidenceProblem(
        (CountedTerm(PairFeatures.of_counts(histograms), hierarchy, strength),),
        targets - targets.mean(axis=0),
        rng.uniform(0.5, 2.0, size=n),
        n_jobs,
    )
    return problem, counts


def _with_patterns(problem, **changes):
    """The problem with another term for the patterns."""
    return replace(problem, terms=(replace(problem.terms[0], **changes), *problem.terms[1:]))


def _parameters(problem, seed=1):
    rng, hierarchy = np.random.default_rng(seed), problem.terms[0].hierarchy
    free = np.arange(hierarchy.n_patterns) < hierarchy.n_free
    patterns = TermParameters(
        np.log([1.3, 0.2, 1.0, 1.7]) + 0.1 * rng.normal(size=4),
        rng.normal(size=hierarchy.n_groups),
        np.where(free, rng.normal(size=hierarchy.n_patterns), 0.0),
    )
    numbers = TermParameters(np.log([1.4, 0.8]), np.empty(0), np.empty(0))
    return EvidenceParameters((patterns, numbers)[: len(problem.terms)], np.log(0.3))


@pytest.mark.parametrize("learned", ["uniform", "depths", "branches"])
@pytest.mark.parametrize("shared", [False, True])
def test_float32_gives_the_same_but_for_rounding(learned, shared):
    problem, _ = _problem(n=60, n_columns=2)
    if shared:
        (term,) = problem.terms
        sums = LevelSums.of(term.features, term.hierarchy.group_of)
        problem = _with_patterns(problem, levels=sums)
    problem = replace(
        problem, terms=(*problem.terms, NumbersTerm(np.random.default_rng(3).normal(size=(60, 3))))
    )
    parameters = _parameters(problem)
    exact, rounded = (
        Evidence(problem, dtype)(parameters, learned) for dtype in (float, np.float32)
    )
    assert rounded[0] != exact[0]
    assert rounded[0] == pytest.approx(exact[0], abs=1e-3)
    np.testing.assert_allclose(rounded[1], exact[1], atol=1e-3)
    value = Evidence(problem, np.float32).value(parameters)
    assert value == pytest.approx(exact[0], abs=1e-3)
    np.testing.assert_allclose(
        problem.kernel_matrix(parameters, np.float32), problem.kernel_matrix(parameters), atol=1e-5
    )


def test_little_noise_few_graphs_or_heavy_weights_are_not_rounded():
    problem, _ = _problem(n=250)
    parameters = problem.start
    assert problem.dtype_for(parameters) is np.float32
    assert problem.dtype_for(parameters._replace(log_noise=np.log(1e-5))) is np.float64
    heavy = replace(problem, noise_factors=np.where(np.arange(250) == 3, 1e-5, 1.0))
    assert heavy.dtype_for(parameters) is np.float64
    assert _problem(n=60)[0].dtype_for(parameters) is np.float64


def test_a_matrix_that_rounding_leaves_without_full_rank_is_taken_in_float64():
    tried = []

    def work(dtype):
        tried.append(dtype)
        if dtype is not np.float64:
            raise NotPositiveDefiniteError
        return 3

    assert with_enough_digits(work, np.float32) == 3
    assert tried == [np.float32, np.float64]


def test_patterns_of_no_graph_change_nothing():
    """Evidence of a part of the patterns, which hold all that occur, is that of all of them."""
    problem, counts = _problem()
    hierarchy = problem.terms[0].hierarchy
    kept = np.ones(hierarchy.n_patterns, dtype=bool)
    kept[[6, 10]] = False
    kept &= ~np.isin(hierarchy.parents, np.flatnonzero(~kept))
    without = counts * kept  # the others occur nowhere
    pattern, graph = np.nonzero(without.T)
    offsets = np.concatenate([[0], np.cumsum((without > 0).sum(axis=0))]).astype(np.int64)
    histograms = PatternHistograms(
        offsets,
        graph.astype(np.int32),
        without.T[pattern, graph].astype(np.int32),
        hierarchy.level_offsets.astype(np.int64),
        np.arange(3),
        np.full(len(counts), 10),
        np.zeros((len(counts), 3), dtype=np.int64),
        np.ones(3),
    )
    whole = _with_patterns(problem, features=PairFeatures.of_counts(histograms))
    part = _with_patterns(
        problem,
        features=PairFeatures.of_counts(histograms.select_patterns(kept)),
        hierarchy=hierarchy.restricted(kept),
    )
    few = _parameters(part)
    many = few.widened([kept])
    for one, other in zip(many.restricted([kept]).terms[0], few.terms[0], strict=True):
        np.testing.assert_array_equal(one, other)
    weights = whole.terms[0].weights(many.terms[0])
    np.testing.assert_allclose(weights[kept], part.terms[0].weights(few.terms[0]))
    (value, gradient), (expected, slopes) = (
        Evidence(part)(few, "branches"),
        Evidence(whole)(many, "branches"),
    )
    assert value == pytest.approx(expected, rel=1e-12)
    n_fixed = problem.n_scales + hierarchy.n_groups
    np.testing.assert_allclose(gradient[:n_fixed], slopes[:n_fixed])
    np.testing.assert_allclose(gradient[n_fixed:], slopes[n_fixed:][kept])
    assert (slopes[n_fixed:][~kept] == 0.0).all()


def _with_cells(n=14, n_columns=1):
    """The second and the third level share a weight, and their patterns do not deviate."""
    problem, counts = _problem(n=n, n_columns=n_columns)
    before = problem.terms[0].hierarchy
    parents = np.where(before.parents < 3, -1, before.parents)  # cells refine only cells
    hierarchy = PatternHierarchy(
        before.level_offsets, parents, np.array([0, 1, 1]), np.array([1.0, 0.5, 0.5]), 3
    )
    return _with_patterns(problem, hierarchy=hierarchy), counts


def _with_covariates(n=14, n_columns=1):
    problem, counts = _problem(n=n, n_columns=n_columns)
    numbers = NumbersTerm(np.random.default_rng(7).normal(size=(n, 3)))
    return replace(problem, terms=(*problem.terms, numbers)), counts


@pytest.mark.parametrize("learned", ["uniform", "depths", "branches"])
@pytest.mark.parametrize("shared", [False, True])
def test_two_views_of_patterns_by_finite_differences(learned, shared):
    """The evidence of both is that of the sum of their kernels, and slopes are those of all."""
    first, other = _problem()[0], _problem(seed=5)[0]
    terms = (first.terms[0], other.terms[0])
    if shared:  # sums by levels that are known before the search
        sums = [LevelSums.of(each.features, each.hierarchy.group_of) for each in terms]
        terms = tuple(replace(t, levels=s) for t, s in zip(terms, sums, strict=True))
    problem = replace(first, terms=terms)
    own = [_parameters(each).terms[0] for each in (first, other)]
    parameters = EvidenceParameters(tuple(own), np.log(0.3))
    if learned == "depths":
        still = (each._replace(deviations=0.0 * each.deviations) for each in own)
        parameters = parameters._replace(terms=tuple(still))
    value, gradient = Evidence(problem)(parameters, learned)
    matrix = sum(
        replace(first, terms=(term,)).kernel_matrix(EvidenceParameters((each,), 0.0))
        for term, each in zip(problem.terms, parameters.terms, strict=True)
    )
    np.testing.assert_allclose(problem.kernel_matrix(parameters), matrix, rtol=1e-12)
    matrix += np.diag(parameters.noise * problem.noise_factors)
    fit = problem.targets[:, 0] @ np.linalg.solve(matrix, problem.targets[:, 0])
    expected = 0.5 * (fit + np.linalg.slogdet(matrix)[1]) + problem.prior_value(parameters)
    assert value == pytest.approx(expected, rel=1e-6)
    vector, step = problem.vector(parameters, learned), 1e-5
    for k, shift in enumerate(step * np.eye(len(vector))):
        ahead, behind = (
            Evidence(problem)(problem.replaced(parameters, vector + move, learned), learned)[0]
            for move in (shift, -shift)
        )
        assert gradient[k] == pytest.approx((ahead - behind) / (2 * step), abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("learned", ["uniform", "depths", "branches"])
@pytest.mark.parametrize(
    ("kind", "n_columns"),
    [("plain", 1), ("plain", 3), ("covariates", 1), ("covariates", 2), ("cells", 1), ("lists", 1)],
)
def test_value_by_the_twin_and_gradient_by_finite_differences(
    kind, n_columns, learned, monkeypatch
):
    """Cells with a matrix per level, and with lists where these take too much memory."""
    if kind == "lists":
        monkeypatch.setattr(levels, "_MOST_BYTES", 0)
    made = {"plain": _problem, "covariates": _with_covariates}.get(kind, _with_cells)
    problem, counts = made(n_columns=n_columns)
    parameters = _parameters(problem)
    if learned == "depths":
        still = parameters.terms[0]._replace(deviations=0.0 * parameters.terms[0].deviations)
        parameters = parameters._replace(terms=(still, *parameters.terms[1:]))
    value, gradient = Evidence(problem)(parameters, learned)
    expected = naive.objective(problem, parameters, counts, LOGIT_SPREAD, USUAL_NOISE, JITTER)
    assert value == pytest.approx(expected, rel=1e-10)
    vector, step = problem.vector(parameters, learned), 1e-5
    assert gradient.shape == vector.shape
    if kind in ("cells", "lists"):
        n_levels, n_free = (learned != "uniform") * 2, (learned == "branches") * 3
        assert len(vector) == problem.n_scales + n_levels + n_free
    for k, shift in enumerate(step * np.eye(len(vector))):
        ahead, behind = (
            Evidence(problem)(problem.replaced(parameters, vector + move, learned), learned)[0]
            for move in (shift, -shift)
        )
        assert gradient[k] == pytest.approx((ahead - behind) / (2 * step), abs=1e-6, rel=1e-6)
