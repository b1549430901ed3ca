"""Explicit features against the exact kernels, and compiled loops against their twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from naive import approximate as naive
from treelens.kernels import _compiled_approximate as compiled
from treelens.kernels.approximate import (
    NystroemFeatures,
    RandomFourierFeatures,
    UnaryFeatures,
    cauchy_sums,
)
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS, RANDOM_KERNELS, UNARY_KERNELS
from treelens.kernels.weighted import WeightedKernel

GAMMA = 2.0


def random_error(case, kernel: str, n_components: int, seed: int) -> float:
    """Root mean square error of the kernel between all and training graphs."""
    feature_map = RandomFourierFeatures(
        n_components, seed, kernel, GAMMA, case.offset, case.weights
    )
    near = feature_map.transform(case.everything) @ feature_map.transform(case.training).T
    off_diagonal = ~np.eye(*near.shape, dtype=bool)  # a graph with itself is exact
    return float(np.sqrt(np.mean((near - case.kernel)[off_diagonal] ** 2)))


@pytest.mark.parametrize("kernel", RANDOM_KERNELS)
def test_random_feature_error_falls_with_the_root_of_the_number(make_case, kernel):
    case = make_case(kernel)
    sizes = np.array([64, 256, 1024, 4096])
    errors = [np.mean([random_error(case, kernel, n, seed) for seed in range(3)]) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.08)
    assert errors[-1] < 0.02


def test_random_features_are_unbiased_for_graphs_with_unseen_patterns(make_case):
    case = make_case("laplacian")
    assert (case.everything.diagonal - case.everything.pairs.diagonal(case.weights))[40:].max() > 0
    near = np.zeros_like(case.kernel)
    for seed in range(20):
        feature_map = RandomFourierFeatures(
            1024, seed, "laplacian", GAMMA, case.offset, case.weights
        )
        near += feature_map.transform(case.everything) @ feature_map.transform(case.training).T / 20
    assert abs((near - case.kernel)[40:].mean()) < 5e-3


def test_random_features_depend_on_the_seed_alone(make_case):
    case = make_case("laplacian")
    alone = cauchy_sums(case.training.pairs, 70, 3, case.weights)
    threads = cauchy_sums(case.training.pairs, 70, 3, case.weights, n_jobs=3)
    np.testing.assert_array_equal(alone, threads)
    first_rows = cauchy_sums(case.everything.pairs, 70, 3, case.weights)[:40]
    np.testing.assert_array_equal(alone, first_rows)
    assert np.abs(alone - cauchy_sums(case.training.pairs, 70, 4, case.weights)).max() > 0.1


def test_draws_are_cauchy():
    draws = np.empty(20_000)
    compiled.cauchy_draws(5, 12345, 0, len(draws), draws)
    assert stats.kstest(draws, "cauchy").pvalue > 1e-3
    over_patterns = np.empty((5000, 1))
    for pattern, row in enumerate(over_patterns):
        compiled.cauchy_draws(5, pattern, 7, 8, row)
    assert stats.kstest(over_patterns[:, 0], "cauchy").pvalue > 1e-3


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_nystroem_with_all_landmarks_is_exact(make_case, kernel):
    case = make_case(kernel)
    feature_map = NystroemFeatures.fit(
        case.training, WeightedKernel(kernel, case.weights, GAMMA, case.offset)
    )
    near = feature_map.transform(case.everything) @ feature_map.transform(case.training).T
    np.testing.assert_allclose(near, case.kernel, atol=1e-10 * np.abs(case.kernel).max())


@pytest.mark.parametrize("kernel", UNARY_KERNELS)
def test_unary_features_are_exact(make_case, kernel):
    case = make_case(kernel)
    feature_map = UnaryFeatures.fit(case.training, kernel, case.weights)
    near = feature_map.transform(case.everything) @ feature_map.transform(case.training).T
    np.testing.assert_allclose(near.toarray(), case.kernel, rtol=1e-12, atol=1e-12)


def test_unary_features_without_weights_are_exact(make_case):
    case = make_case("wwl-linear")
    feature_map = UnaryFeatures.fit(case.training, "wwl-linear")
    near = feature_map.transform(case.everything) @ feature_map.transform(case.training).T
    exact = pair_sums(case.everything.pairs, case.training.pairs)
    np.testing.assert_allclose(near.toarray(), exact, rtol=1e-12, atol=1e-12)


def test_a_weight_of_zero_leaves_no_unary_feature(make_case):
    case = make_case("wl-oa")
    feature_map = UnaryFeatures.fit(case.training, "wl-oa", np.zeros_like(case.weights))
    assert feature_map.n_components == 0
    assert feature_map.transform(case.everything).shape == (60, 0)


def test_forms_without_features_are_refused():
    with pytest.raises(ValueError, match="laplacian, wwl; got kernel='tanimoto'"):
        RandomFourierFeatures(64, 0, "tanimoto", 1.0)
    with pytest.raises(ValueError, match="even number"):
        RandomFourierFeatures(63, 0, "laplacian", 1.0)


# --- compiled loops against their twins ---------------------------------------------------------


@pytest.mark.interpreted
def test_cauchy_sums_equal_their_twin(make_case):
    pairs = make_case("laplacian").training.pairs
    rows = [
        dict(zip(pairs.rows.indices[a:b].tolist(), pairs.rows.values[a:b].tolist(), strict=True))
        for a, b in zip(pairs.rows.offsets[:4], pairs.rows.offsets[1:5], strict=True)
    ]
    expected = naive.cauchy_sums(rows, 9, seed=11)
    np.testing.assert_allclose(cauchy_sums(pairs, 9, 11)[:4], expected, rtol=1e-13)


@pytest.mark.interpreted
def test_draws_and_projections_equal_their_twins(rng):
    draws = np.empty(5)
    compiled.cauchy_draws(2**62, 77, 3, 8, draws)
    assert draws.tolist() == [naive.cauchy(2**62, 77, j) for j in range(3, 8)]
    patterns, factors = np.array([0, 5, 10**6], dtype=np.int32), rng.normal(size=6)
    result = np.empty(3)
    compiled.cauchy_projections(patterns, 9, factors, result)
    expected = naive.cauchy_projections(patterns.tolist(), 9, factors.tolist())
    np.testing.assert_allclose(result, expected, rtol=1e-13)


@pytest.mark.interpreted
def test_unary_entries_equal_their_twin(rng):
    thresholds = [[1.0, 2.0, 5.0], [], [0.25, 0.5]]
    flat = np.array([t for part in thresholds for t in part])
    offsets = np.array([0, 3, 3, 5])
    indices = np.array([0, 0, 0, 0, 0, 1, 2, 2], dtype=np.int32)
    values = np.array([0.5, 1.0, 3.0, 5.0, 9.0, 2.0, 0.25, 0.3])
    counts = np.empty(len(values), dtype=np.int64)
    compiled.count_unary(indices, values, offsets, flat, counts)
    expected = [naive.unary(x, thresholds[i]) for i, x in zip(indices, values, strict=True)]
    assert counts.tolist() == [len(x) for x in expected]
    ends = np.concatenate([[0], np.cumsum(counts)])
    columns, entries = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1])
    compiled.fill_unary(indices, values, offsets, flat, ends[:-1], columns, entries)
    flat_expected = [
        (offsets[i] + place, x)
        for i, part in zip(indices, expected, strict=True)
        for place, x in part
    ]
    assert list(zip(columns.tolist(), entries.tolist(), strict=True)) == flat_expected
