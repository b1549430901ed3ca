"""Random bins against the exact kernels, their path of growth, and compiled loops' twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from naive import approximate as naive
from treelens.graphs.synthetic import make_random_graphs
from treelens.kernels import _compiled_approximate as compiled
from treelens.kernels import approximate, binning
from treelens.kernels.approximate import (
    UnaryFeatures,
    as_narrow_as_they_fit,
    entry_ends,
)
from treelens.kernels.binning import RandomBinning, buckets_for, row_offsets
from treelens.kernels.table import RANDOM_KERNELS
from treelens.patterns.features import Features, PatternExtractor
from treelens.patterns.histograms import SparseRows
from treelens.patterns.vocabulary import PatternVocabulary

GAMMA = 2.0


def near_kernel(case, kernel: str, n_grids: int, seed: int, n_buckets: int = 2**14) -> np.ndarray:
    bins = RandomBinning(n_grids, seed, kernel, GAMMA, case.offset, case.weights, n_buckets)
    return (bins.transform(case.everything) @ bins.transform(case.training).T).toarray()


def off_diagonal_error(near: np.ndarray, case) -> float:
    off_diagonal = ~np.eye(*near.shape, dtype=bool)  # a graph with itself is exact
    return float(np.sqrt(np.mean((near - case.kernel)[off_diagonal] ** 2)))


@pytest.mark.parametrize("kernel", RANDOM_KERNELS)
def test_the_error_falls_with_the_root_of_the_number(make_case, kernel):
    case, sizes = make_case(kernel), np.array([32, 128, 512, 2048])
    errors = [
        np.mean([off_diagonal_error(near_kernel(case, kernel, n, seed), case) for seed in range(6)])
        for n in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.08)
    # Offsets dealt out evenly: well below the error of grids that know nothing of each other.
    independent = np.sqrt(np.mean(case.kernel * (1 - case.kernel).clip(0)) / sizes[-1])
    assert errors[-1] < 0.75 * independent


@pytest.mark.parametrize("kernel", RANDOM_KERNELS)
def test_bins_are_unbiased_for_graphs_with_unseen_patterns_too(make_case, kernel):
    case = make_case(kernel)
    unseen = case.everything.diagonal - case.everything.pairs.diagonal(case.weights)
    assert unseen[40:].max() > 0
    many = np.array([near_kernel(case, kernel, 48, seed) for seed in range(150)])
    errors, spread = many.mean(axis=0) - case.kernel, many.std(axis=0) / np.sqrt(len(many))
    scores = errors[40:][spread[40:] > 1e-9] / spread[40:][spread[40:] > 1e-9]
    assert np.abs(scores).max() < 5.5
    assert scores.std() < 1.3


def test_too_few_buckets_raise_every_value_by_the_same_known_amount(make_case):
    case = make_case("laplacian")
    near = np.mean([near_kernel(case, "laplacian", 512, seed, n_buckets=4) for seed in range(8)], 0)
    expected = case.kernel + (1 - case.kernel) / 4
    exact = np.isclose(case.everything.diagonal, case.everything.pairs.diagonal(case.weights))
    assert np.abs(near - expected)[exact].mean() < 0.01


def test_a_pattern_of_weight_zero_tells_nothing_apart(make_case):
    case = make_case("laplacian")
    bins = RandomBinning(32, 0, "laplacian", GAMMA, 1.0, np.zeros_like(case.weights), 64)
    assert (bins.columns(case.training) == np.arange(32) * 64).all()


def test_features_have_one_column_per_grid_in_order(make_case):
    case = make_case("wwl")
    bins = RandomBinning(50, 7, "wwl", GAMMA, case.offset, case.weights, 128)
    mapped = bins.transform(case.everything)
    assert mapped.shape == (60, 50 * 128)
    columns = mapped.indices.reshape(60, 50)
    assert (columns // 128 == np.arange(50)).all()
    squares = mapped.power(2).sum(axis=1)
    known = case.everything.pairs.diagonal(case.weights)
    np.testing.assert_allclose(squares, np.exp(GAMMA * (known - case.offset)), rtol=1e-12)


def test_bins_depend_on_the_seed_alone(make_case):
    case = make_case("laplacian")
    bins = RandomBinning(70, 3, "laplacian", GAMMA, 1.0, case.weights, 256)
    many = Features(case.everything.pairs, case.everything.diagonal)
    alone = bins.columns(many)
    np.testing.assert_array_equal(alone, bins.columns(many, n_jobs=3))
    np.testing.assert_array_equal(alone[:40], bins.columns(case.training))
    assert (alone != replace(bins, seed=4).columns(many)).mean() > 0.2


# --- the path of growing amounts -----------------------------------------------------------------


def scaled(features: Features, factor: float, weights: np.ndarray) -> Features:
    """The same graph with all known amounts multiplied, the unseen ones kept."""
    pairs, rows = features.pairs, features.pairs.rows
    rows = SparseRows(rows.offsets, rows.indices, rows.values * factor)
    pairs = replace(pairs, rows=rows, lists=rows.transposed(pairs.n_patterns))
    unseen = features.diagonal - features.pairs.diagonal(weights)
    return Features(pairs, pairs.diagonal(weights) + unseen)


def one_graph(features: Features, i: int) -> Features:
    pairs, entries = features.pairs, slice(*features.pairs.rows.offsets[i : i + 2])
    values, indices = pairs.rows.values[entries], pairs.rows.indices[entries]
    rows = SparseRows(np.array([0, len(values)]), indices, values)
    lists = rows.transposed(pairs.n_patterns)
    single = replace(pairs, rows=rows, lists=lists, scale=pairs.scale[i : i + 1])
    return Features(single, features.diagonal[i : i + 1])


@pytest.mark.parametrize("kernel", RANDOM_KERNELS)
@pytest.mark.parametrize("graph", [0, 45])
def test_contributions_add_up_exactly(make_case, rng, kernel, graph):
    case = make_case(kernel)
    bins = RandomBinning(90, 5, kernel, 8.0, case.offset, case.weights, 64)
    coefficients = rng.normal(size=(2, bins.n_features))
    features = one_graph(case.everything, graph)
    starts, terms = bins.path_terms(features, coefficients)
    np.testing.assert_allclose(
        starts + terms.sum(axis=1), (bins.transform(features) @ coefficients.T)[0], atol=1e-10
    )
    nothing = bins.transform(scaled(features, 0.0, case.weights)) @ coefficients.T
    np.testing.assert_allclose(starts, nothing[0], atol=1e-12)


def test_a_pattern_gets_the_jumps_that_it_makes(make_case, rng):
    """Walk the path in small steps; in metric form every change is one pattern's crossing."""
    case = make_case("laplacian")
    bins = RandomBinning(3, 5, "laplacian", 6.0, case.offset, case.weights, 64)
    coefficients = rng.normal(size=(1, bins.n_features))
    features = one_graph(case.everything, 2)
    _, terms = bins.path_terms(features, coefficients)
    rows = features.pairs.rows
    crossed = np.zeros(len(rows.indices), dtype=bool)
    for entry in range(len(crossed)):
        only = np.zeros(len(crossed))
        only[entry] = rows.values[entry]
        alone = SparseRows(rows.offsets, rows.indices, only)
        single = features._replace(pairs=replace(features.pairs, rows=alone))
        crossed[entry] = (bins.columns(single) % 64).any()
    assert crossed.any()
    assert not crossed.all()
    assert ((terms[0] != 0) == crossed).all()


# --- compiled loops against their twins ---------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("n_grids", [1, 8, 21])
def test_columns_and_crossings_equal_their_twins(make_case, n_grids):
    case = make_case("laplacian")
    bins = RandomBinning(n_grids, 2**40 + 1, "laplacian", 20.0, 1.0, case.weights, 32)
    for i in (0, 50):
        features = one_graph(case.everything, i)
        patterns, amounts = features.pairs.rows.indices, bins.amounts(features)
        row = dict(zip(patterns.tolist(), amounts.tolist(), strict=True))
        expected = naive.bin_columns(row, n_grids, bins.seed, 32)
        assert bins.columns(features)[0].tolist() == expected
        grids, times, entries, changes = bins._crossings(patterns, amounts)
        found = zip(grids, times, patterns[entries], changes.tolist(), strict=True)
        twins = naive.bin_crossings(row, n_grids, bins.seed)
        for mine, twin in zip(found, twins, strict=True):
            assert mine == pytest.approx(twin, rel=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("growth", [0.0, 1.5])
def test_path_terms_equal_their_twin(make_case, rng, growth):
    case = make_case("laplacian")
    bins = RandomBinning(12, 3, "laplacian", 20.0, 1.0, case.weights, 16)
    features = one_graph(case.everything, 1)
    patterns, amounts = features.pairs.rows.indices, bins.amounts(features)
    coefficients = rng.normal(size=bins.n_features)
    jumps, growths = np.zeros(len(patterns)), np.zeros(1)
    crossings = bins._crossings(patterns, amounts)
    compiled.bin_path_terms(*crossings, growth, 16, coefficients, jumps, growths)
    row = dict(zip(patterns.tolist(), amounts.tolist(), strict=True))
    twin_crossings = naive.bin_crossings(row, 12, 3)
    twin, grown = naive.bin_path_terms(twin_crossings, growth, 16, coefficients.tolist())
    np.testing.assert_allclose(jumps, [twin.get(p, 0.0) for p in patterns.tolist()], atol=1e-12)
    assert growths[0] == pytest.approx(grown, abs=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_grids", [1, 2, 7, 64, 1000])
def test_a_pattern_visits_every_grid_once(n_grids):
    for pattern in range(5):
        assert sorted(naive.boundaries(9, pattern, n_grids)) == list(range(n_grids))


def test_offsets_are_exponential_and_widths_gamma():
    drawn = [naive.boundaries(1, pattern, 4)[2] for pattern in range(4000)]
    assert stats.kstest([first for first, _, _ in drawn], "expon").pvalue > 1e-3
    assert stats.kstest([width for _, width, _ in drawn], "gamma", args=(2,)).pvalue > 1e-3
    shares = [first / width for first, width, _ in drawn]
    assert stats.kstest(shares, "uniform").pvalue > 1e-3


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="random bins exist for the kernels laplacian, wwl"):
        RandomBinning(64, 0, "tanimoto", 1.0)
    with pytest.raises(ValueError, match="power of two, got 100"):
        RandomBinning(64, 0, "laplacian", 1.0, n_buckets=100)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        RandomBinning(0, 0, "laplacian", 1.0)
    with pytest.raises(ValueError, match="Use fewer buckets or grids"):
        RandomBinning(2**20, 0, "laplacian", 1.0, n_buckets=2**11)


def test_buckets_follow_the_graphs_up_to_a_limit():
    assert buckets_for(10, 64) == 256
    assert buckets_for(3000, 64) == 2048
    assert buckets_for(10**7, 2048) == 512
    assert buckets_for(10**7, 2**20) == 256


# --- more entries than 32 bits count ----------------------------------------------------------


def test_offsets_do_not_wrap():
    offsets = row_offsets(2**20 + 1, 2048)
    assert offsets.dtype == np.int64
    assert offsets[-1] == 2**31 + 2048
    assert (np.diff(offsets) == 2048).all()
    ends = entry_ends(np.full(5, 2**30, dtype=np.int32))
    assert ends.dtype == np.int64
    assert ends.tolist() == [k * 2**30 for k in range(6)]


def test_offsets_are_narrow_only_where_they_fit():
    small = as_narrow_as_they_fit(np.array([0, 5, 2**31 - 1]))
    assert small.dtype == np.int32
    large = as_narrow_as_they_fit(np.array([0, 2**31 - 1, 2**31, 2**33]))
    assert large.dtype == np.int64
    assert large.tolist() == [0, 2**31 - 1, 2**31, 2**33]


def test_every_map_of_sparse_features_narrows_its_offsets_with_care(monkeypatch):
    """None cuts them to 32 bits by itself."""
    seen = []

    def narrowed(offsets):
        seen.append(offsets.dtype)
        return as_narrow_as_they_fit(offsets)

    for module in (approximate, binning):
        monkeypatch.setattr(module, "as_narrow_as_they_fit", narrowed)
    graphs = make_random_graphs(5, random_state=0)
    vocabulary = PatternVocabulary.fit(graphs, 2)[0]
    for kind, kernel in (("optimal-assignment", "wl-oa"), ("subtree", "wl-subtree")):
        features = PatternExtractor(vocabulary, 0, kind).features(graphs)
        UnaryFeatures.fit(features, kernel, None).transform(features)
    bins = RandomBinning(16, 0, "laplacian", 1.0)
    bins.transform(PatternExtractor(vocabulary, 0, "wasserstein").features(graphs))
    assert seen == [np.int64] * 3
