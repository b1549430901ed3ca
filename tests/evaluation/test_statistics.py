"""Tests of differences: against scipy, worked examples, and what must hold for any scores."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from treelens.evaluation.statistics import (
    bootstrap_interval,
    compare_means,
    compare_ranks,
    corrected_t_test,
    holm,
    size_ratio,
)

# --- two methods ------------------------------------------------------------------------------


def test_without_a_ratio_it_is_the_paired_t_test(rng):
    first, second = rng.normal(0.1, 1.0, 12), rng.normal(0.0, 1.0, 12)
    found, expected = corrected_t_test(first, second, level=0.9), stats.ttest_rel(first, second)
    assert found.difference == pytest.approx(first.mean() - second.mean())
    assert found.difference / found.standard_error == pytest.approx(expected.statistic, rel=1e-10)
    assert found.degrees_of_freedom == expected.df
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-10)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(0.9)), rel=1e-10)
    assert corrected_t_test(second, first).p_value == pytest.approx(found.p_value, rel=1e-10)


def test_the_correction_widens_the_error(rng):
    """Nadeau and Bengio: the variance of the mean is (1/n + n_test/n_train) times the spread."""
    first, second = rng.normal(0.1, 1.0, 10), rng.normal(0.0, 1.0, 10)
    plain, corrected = (corrected_t_test(first, second, ratio) for ratio in (0.0, 1 / 9))
    assert corrected.standard_error / plain.standard_error == pytest.approx(np.sqrt(1 + 10 / 9))
    assert plain.p_value < corrected.p_value
    assert corrected.interval[0] < plain.interval[0] < plain.interval[1] < corrected.interval[1]


def test_the_ratio_is_that_of_all_folds_however_unequal():
    assert size_ratio([320, 152, 52, 67, 51], [322, 490, 590, 575, 591]) == 1 / 4
    assert size_ratio([20], [80]) == 1 / 4


def test_where_there_is_no_spread_nothing_is_claimed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert corrected_t_test([0.9], [0.8], 0.25)[1:] == (None, 0, None, None)
        same = corrected_t_test([0.9, 0.8, 0.7], [0.9, 0.8, 0.7], 0.25)
        assert same == (0.0, 0.0, 2, 1.0, None)
        moved = corrected_t_test([0.9, 0.8, 0.7], [0.8, 0.7, 0.6], 0.25)  # 0.1 but for rounding
        assert moved[1:] == (0.0, 2, 1.0, None)
        assert moved.difference == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0.9, np.nan], [0.8, 0.7], "must be finite"),
        ([0.9, 0.8], [0.8], r"got 2 methods with \[1, 2\] scores"),
        ([], [], "1 splits or more"),
    ],
)
def test_what_cannot_be_compared(first, second, message):
    with pytest.raises(ValueError, match=message):
        corrected_t_test(first, second, 0.25)


def test_equal_methods_are_found_to_differ_no_more_often_than_the_level_says():
    """Ten random splits of 60 graphs of which one method's errors are no fewer than the other's.

    Training parts overlap: the fitted "model" of a method is the mean of its training values, so
    that scores of splits depend on each other as those of real models do.
    """
    rng = np.random.default_rng(0)
    n, n_test, n_splits, n_trials = 60, 15, 10, 400
    found = {0.0: 0, n_test / (n - n_test): 0}
    for _ in range(n_trials):
        values = rng.normal(size=(2, n))
        scores = []
        for _ in range(n_splits):
            order = rng.permutation(n)
            test, train = order[:n_test], order[n_test:]
            away = values[:, test] - values[:, train].mean(axis=1, keepdims=True)
            scores.append((away**2).mean(axis=1))
        for ratio in found:
            found[ratio] += corrected_t_test(*np.transpose(scores), ratio).p_value < 0.05
    plain, corrected = (count / n_trials for count in found.values())
    assert corrected <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / n_trials)
    assert plain > 0.15  # why there is a correction


# --- several tests ----------------------------------------------------------------------------

P_VALUES = st.lists(st.none() | st.floats(0.0, 1.0), max_size=12)


def test_holm_against_the_definition():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.02, None, 0.5]) == [0.04, None, 0.5]  # a test that was not made does not count
    assert holm([]) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, 1.2])


@given(P_VALUES, st.randoms(use_true_random=False))
def test_holm_of_any_table(p_values, random):
    adjusted = holm(p_values)
    known = sorted((p, q) for p, q in zip(p_values, adjusted, strict=True) if p is not None)
    assert all(p <= q <= 1.0 for p, q in known)
    assert [q for _, q in known] == sorted(q for _, q in known)
    assert [q is None for q in adjusted] == [p is None for p in p_values]
    order = list(range(len(p_values)))
    random.shuffle(order)
    assert holm([p_values[k] for k in order]) == [adjusted[k] for k in order]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm_finds_at_least_what_bonferroni_finds(p_values):
    for p, q in zip(p_values, holm(p_values), strict=True):
        assert q <= min(1.0, len(p_values) * p) + 1e-15


# --- many methods: ranks ----------------------------------------------------------------------

# Ranks of four variants of C4.5 on fourteen data sets: Table 6 of Demšar (2006).
DEMSAR = {
    "C4.5": [4, 1, 4, 4, 4, 1, 3, 2.5, 4, 2.5, 4, 3, 4, 3],
    "C4.5+m": [3, 2, 1, 1, 2, 2.5, 2, 2.5, 3, 2.5, 2.5, 2, 1, 1],
    "C4.5+cf": [2, 3, 2, 3, 3, 4, 4, 4, 2, 2.5, 1, 4, 2, 4],
    "C4.5+m+cf": [1, 4, 3, 2, 1, 2.5, 1, 1, 1, 2.5, 2.5, 1, 3, 2],
}


def test_the_worked_example_of_demsar():
    five, ten = (compare_ranks(DEMSAR, greater_is_better=False, level=x) for x in (0.05, 0.1))
    assert {m: round(x, 3) for m, x in five.centers.items()} == {
        "C4.5+m+cf": 1.964,
        "C4.5+m": 2.0,
        "C4.5+cf": 2.893,
        "C4.5": 3.143,
    }
    assert next(iter(five.centers)) == "C4.5+m+cf"
    assert five.critical_difference == pytest.approx(1.25, abs=0.005)
    assert ten.critical_difference == pytest.approx(1.12, abs=0.005)
    assert five.groups == [("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")]
    assert ten.groups == [("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5")]
    assert ten.ties == ten.groups[0]
    assert 0.05 < five.p_value_between("C4.5", "C4.5+m+cf") < 0.1
    assert five.p_value == pytest.approx(stats.friedmanchisquare(*DEMSAR.values()).pvalue)


def test_equal_scores_share_ranks_and_greater_may_be_better(rng):
    scores = {name: np.round(rng.uniform(size=9), 1).tolist() for name in "abcde"}
    found = compare_ranks(scores)
    ranks = stats.rankdata(-np.array(list(scores.values())), axis=0).mean(axis=1)
    assert found.centers == pytest.approx(dict(zip("abcde", ranks, strict=True)))
    assert list(found.centers.values()) == sorted(ranks)
    assert found.p_value == pytest.approx(stats.friedmanchisquare(*scores.values()).pvalue)
    turned = compare_ranks({m: [-x for x in own] for m, own in scores.items()}, False)
    assert turned == found


def test_two_methods_and_none_that_differ():
    six = {"auto": [0.1] * 6, "forest": [0.2] * 6}
    found = compare_ranks(six, greater_is_better=False)
    assert found.critical_difference == pytest.approx(1.96 * np.sqrt(2 * 3 / (6 * 6)), abs=1e-3)
    assert found.groups == [("auto",), ("forest",)]
    equal = compare_ranks({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [1.0, 2.0]})
    assert equal.p_value == 1.0
    assert equal.ties == ("a", "b", "c")
    with pytest.raises(ValueError, match="2 methods or more"):
        compare_ranks({"a": [1.0, 2.0]})


# --- many methods: means ----------------------------------------------------------------------


@pytest.fixture
def folds(rng):
    """Scores of four methods on eight splits, some of which are harder for all."""
    hard = rng.normal(0.0, 5.0, 8)
    return {m: (hard + k + rng.normal(0.0, 1.0, 8)).tolist() for k, m in enumerate("abcd")}


def least_squares_anova(table):
    """F and the residual variance of score = split + method, from two linear regressions."""
    n, k = table.shape
    split, method = np.divmod(np.arange(n * k), k)
    columns = np.eye(n)[split], np.eye(k)[method][:, 1:]
    sums = [
        np.linalg.lstsq(design, table.ravel(), rcond=None)[1][0]
        for design in (columns[0], np.hstack(columns))
    ]
    variance = sums[1] / ((n - 1) * (k - 1))
    return (sums[0] - sums[1]) / (k - 1) / variance, variance


def test_repeated_measures_against_regressions_and_tukeys_range(folds):
    table = np.array(list(folds.values())).T
    f, variance = least_squares_anova(table)
    found = compare_means(folds)
    assert found.p_value == pytest.approx(stats.f.sf(f, 3, 21))
    assert found.critical_difference == pytest.approx(
        stats.studentized_range.ppf(0.95, 4, 21) * np.sqrt(variance / 8)
    )
    assert list(found.centers) == [list("abcd")[k] for k in np.argsort(-table.mean(axis=0))]
    # Tukey's test of scipy is of independent groups: of scores without the splits it has the same
    # sum of squares, and counts more degrees of freedom.
    apart = stats.tukey_hsd(*(table - table.mean(axis=1, keepdims=True)).T)
    half = apart.confidence_interval().high[0, 1] - apart.statistic[0, 1]
    assert half / stats.studentized_range.ppf(0.95, 4, 28) * np.sqrt(28 / 21) == pytest.approx(
        found.critical_difference / stats.studentized_range.ppf(0.95, 4, 21)
    )


@pytest.mark.parametrize("ratio", [0.0, 0.25])
def test_with_two_methods_it_is_the_corrected_t_test(folds, ratio):
    two = {m: folds[m] for m in "ab"}
    found, test = compare_means(two, test_to_train=ratio), corrected_t_test(*two.values(), ratio)
    assert found.p_value == pytest.approx(test.p_value)
    assert found.p_value_between("b", "a") == pytest.approx(test.p_value, rel=1e-5)
    half = (test.interval[1] - test.interval[0]) / 2
    assert found.critical_difference == pytest.approx(half, rel=1e-5)


def test_what_all_splits_share_does_not_matter(folds, rng):
    moved = {m: (np.array(own) + 100 * np.arange(8)).tolist() for m, own in folds.items()}
    one, other = compare_means(folds), compare_means(moved)
    assert other.critical_difference == pytest.approx(one.critical_difference)
    assert other.groups == one.groups


def test_groups_hold_all_pairs_that_are_not_apart(folds):
    """On a chain of methods each is level with its neighbours, and the ends differ."""
    found = compare_means(folds, greater_is_better=False)
    names = list(found.centers)
    level = {(a, b) for a in names for b in names if found.p_value_between(a, b) >= 0.05 and a != b}
    assert level == {(a, b) for group in found.groups for a in group for b in group if a != b}
    assert 0 < len(level) < 12
    assert not any(set(a) < set(b) for a in found.groups for b in found.groups)
    assert {m for group in found.groups for m in group} == set("abcd")


def test_without_a_spread_between_splits_nothing_can_be_told_apart():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare_means({"a": [0.5, 0.7, 0.6], "b": [0.6, 0.8, 0.7]})
    assert (found.p_value, found.p_value_between("a", "b")) == (1.0, 1.0)
    assert found.ties == ("b", "a")
    with pytest.raises(ValueError, match="2 splits or more"):
        compare_means({"a": [0.5], "b": [0.6]})


# --- one test set -----------------------------------------------------------------------------


def test_percentiles_of_a_mean_are_those_of_its_distribution(rng):
    """The bootstrap distribution of a mean is normal but for little: its error is known."""
    values = rng.normal(3.0, 2.0, 200)
    low, high = bootstrap_interval(lambda at: values[at].mean(), 200, n_resamples=4000)
    half = 1.96 * values.std() / np.sqrt(200)
    assert [low, high] == pytest.approx([values.mean() - half, values.mean() + half], abs=0.03)
    assert bootstrap_interval(lambda at: values[at].mean(), 200, n_resamples=4000) == (low, high)
    narrow = bootstrap_interval(lambda at: values[at].mean(), 200, level=0.5)
    assert low < narrow[0] < narrow[1] < high


def test_a_paired_difference_is_surer_than_its_parts(rng):
    """Two methods that make nearly the same errors."""
    shared = rng.normal(size=100)
    errors = [shared, shared + 0.2 + 0.01 * rng.normal(size=100)]
    means = [lambda at, own=own: own[at].mean() for own in errors]
    low, high = bootstrap_interval(lambda at: means[1](at) - means[0](at), 100)
    assert 0.19 < low < high < 0.21
    apart = [bootstrap_interval(mean, 100) for mean in means]
    assert apart[0][1] > apart[1][0]  # the intervals of the two overlap


def test_scores_that_are_rarely_defined_have_no_interval():
    truth = np.array([1] + [0] * 29)

    def area(at):
        return float(truth[at].mean()) if truth[at].any() else None

    found = bootstrap_interval(area, len(truth))  # defined on two of three test sets
    assert found is not None
    assert found[0] > 0.0
    assert bootstrap_interval(lambda at: None, 10) is None
