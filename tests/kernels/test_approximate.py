"""Explicit features against the exact kernels, and compiled loops against their twins."""

from __future__ import annotations

import numpy as np
import pytest

from naive import approximate as naive
from treelens.kernels import _compiled_approximate as compiled
from treelens.kernels.approximate import NystroemFeatures, UnaryFeatures
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS, UNARY_KERNELS
from treelens.kernels.weighted import WeightedKernel

GAMMA = 2.0


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


# --- compiled loops against their twins ---------------------------------------------------------


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
