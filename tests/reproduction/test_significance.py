"""The tests against values worked out by hand and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.significance import compare, paired_t_test
from scipy import stats

# Two repetitions of two folds; differences 0.02, 0.04, 0.00, 0.02.
OURS = {(0, 0): 0.82, (0, 1): 0.94, (1, 0): 0.80, (1, 1): 0.92}
THEIRS = {(0, 0): 0.80, (0, 1): 0.90, (1, 0): 0.80, (1, 1): 0.90}


def test_paired_t_test_by_hand():
    # mean 2, standard deviation 1, so t = 2 / (1 / sqrt 3) = sqrt 12; with 2 degrees of freedom
    # the upper tail of t is 1/2 - t / (2 sqrt(2 + t^2)).
    t = np.sqrt(12.0)
    expected = 0.5 - t / (2 * np.sqrt(2 + t * t))
    assert paired_t_test(np.array([1.0, 2.0, 3.0])) == pytest.approx(expected, abs=1e-12)


def test_paired_t_test_is_scipys(rng):
    a, b = rng.normal(0.1, 1, 10), rng.normal(0, 1, 10)
    expected = stats.ttest_rel(a, b, alternative="greater").pvalue
    assert paired_t_test(a - b) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("value", "expected"), [(0.0, 0.5), (0.1, 0.0), (-0.1, 1.0)])
def test_without_variance_the_sign_decides(value, expected):
    assert paired_t_test(np.full(5, value)) == expected


def test_compare_by_hand():
    result = compare(OURS, THEIRS, n_outer=2)
    assert result.difference == pytest.approx(0.02)
    # Means of repetitions 0.03 and 0.01: t = 0.02 / (0.0141421 / sqrt 2) = 2 with one degree of
    # freedom, whose upper tail is 1/2 - arctan(t) / pi.
    assert result.p_repetitions == pytest.approx(0.5 - np.arctan(2.0) / np.pi, abs=1e-9)
    # Folds: variance 0.0008 / 3; a test part is as large as its training part (ratio 1), so the
    # squared error is (1/4 + 1) * 0.0008 / 3 and t = 0.02 / sqrt(0.001 / 3) = 1.0954451.
    t = 0.02 / np.sqrt(1.25 * 0.0008 / 3)
    assert result.p_corrected == pytest.approx(stats.t.sf(t, 3), abs=1e-9)
    assert (result.n_repetitions, result.n_folds) == (2, 4)


def test_correction_makes_the_test_more_careful():
    result = compare(OURS, THEIRS, n_outer=2)
    uncorrected = stats.ttest_1samp([0.02, 0.04, 0.0, 0.02], 0, alternative="greater").pvalue
    assert result.p_corrected > uncorrected


def test_only_folds_in_common_count():
    theirs = {key: value for key, value in THEIRS.items() if key != (1, 1)}
    result = compare(OURS, theirs, n_outer=2)
    assert (result.n_repetitions, result.n_folds) == (1, 3)
    assert result.p_repetitions is None


def test_nothing_in_common_is_an_error():
    with pytest.raises(ValueError, match="no fold in common"):
        compare({(0, 0): 1.0}, {(1, 0): 1.0}, n_outer=2)
