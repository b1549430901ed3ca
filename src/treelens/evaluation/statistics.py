"""Do methods differ: paired tests over splits, Holm's correction, ties, intervals of one test set.

The training parts of splits of one data set overlap, so that scores over splits are not
independent: a plain t-test finds differences too easily. Nadeau and Bengio (2003) give the variance
that allows for it; tests over splits take the sizes of the parts for that. All tests are two-sided.

References
----------
- Nadeau, Bengio. Inference for the generalization error. Machine Learning 52 (2003).
- Holm. A simple sequentially rejective multiple test procedure. Scand. J. Statist. 6 (1979).
- Demšar. Statistical comparisons of classifiers over multiple data sets. JMLR 7 (2006).
- Ash et al. Practically significant method comparison protocols for machine learning in small
  molecule drug discovery. J. Chem. Inf. Model. (2025).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

_ROUNDING = 1e-12  # a spread below this share of the largest score is that of rounding


# --- two methods ------------------------------------------------------------------------------


class PairedTest(NamedTuple):
    """How far one method is above another on the same splits, and how sure that is.

    One split has no spread: then the error, the p-value and the interval are None. Where the
    difference is the same in all splits the error is 0, the p-value 1 and the interval None, as
    nothing can be said of the spread.
    """

    difference: float  # the mean of the first method's scores minus that of the second's
    standard_error: float | None
    degrees_of_freedom: int
    p_value: float | None
    interval: tuple[float, float] | None


def size_ratio(n_test: Sequence[int], n_train: Sequence[int]) -> float:
    """Size of test parts divided by that of training parts, over all splits.

    With ``k`` folds this is ``1 / (k - 1)`` however unequal the folds are; a single split of them
    may be far from it.

    Examples
    --------
    >>> size_ratio([50, 30, 20], [50, 70, 80])
    0.5
    """
    return float(np.sum(n_test) / np.sum(n_train))


def corrected_t_test(
    first: Sequence[float] | np.ndarray,
    second: Sequence[float] | np.ndarray,
    test_to_train: float = 0.0,
    level: float = 0.95,
) -> PairedTest:
    """Test paired scores over splits: the corrected resampled t-test, two-sided.

    Parameters
    ----------
    first, second : sequence of float, shape (n_splits,)
        Scores of two methods on the same splits.
    test_to_train : float
        Size of the test parts divided by that of the training parts (:func:`size_ratio`); 0 for
        scores that are independent, such as those of different data sets: the paired t-test.
    level : float
        Of the confidence interval.

    Returns
    -------
    PairedTest

    Examples
    --------
    >>> folds, others = [0.82, 0.85, 0.80, 0.88, 0.84], [0.80, 0.84, 0.79, 0.85, 0.83]
    >>> test = corrected_t_test(folds, others, test_to_train=0.25)
    >>> round(test.difference, 3), round(test.standard_error, 4), round(test.p_value, 3)
    (0.016, 0.006, 0.056)
    >>> round(corrected_t_test(folds, others).p_value, 3)  # as if folds were independent
    0.016
    """
    table = _table({"first": first, "second": second})
    apart = table[:, 0] - table[:, 1]
    n, mean = len(apart), float(apart.mean())
    if n == 1:
        return PairedTest(mean, None, 0, None, None)
    spread = float(apart.std(ddof=1))
    if spread <= _ROUNDING * np.abs(table).max():
        return PairedTest(mean, 0.0, n - 1, 1.0, None)
    error = spread * float(np.sqrt(1.0 / n + test_to_train))
    half = float(stats.t.ppf((1.0 + level) / 2.0, n - 1)) * error
    p_value = 2.0 * float(stats.t.sf(abs(mean) / error, n - 1))
    return PairedTest(mean, error, n - 1, p_value, (mean - half, mean + half))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values of several tests, such as the rows of a table, adjusted for their number.

    The chance of one false finding or more among all the tests is at most the level that the
    adjusted values are compared with. None, of a test that could not be made, stays None and does
    not count.

    Examples
    --------
    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = np.array([p for p in p_values if p is not None], dtype=float)
    if not ((known >= 0.0) & (known <= 1.0)).all():
        raise ValueError(f"P-values must lie between 0 and 1, got {known.tolist()}.")
    order = np.argsort(known, kind="stable")
    scaled = np.arange(len(known), 0, -1) * known[order]
    known[order] = np.maximum.accumulate(np.minimum(scaled, 1.0))
    adjusted = iter(known.tolist())
    return [None if p is None else next(adjusted) for p in p_values]


# --- many methods -----------------------------------------------------------------------------


class Comparison(NamedTuple):
    """Several methods on the same splits or data sets, each pair of them tested.

    ``groups`` are the largest sets of methods without a significant difference between any two of
    them, from the best on; they overlap, as being alike is not transitive. Chances of error are
    those of all pairs together.
    """

    centers: dict[str, float]  # mean rank or mean score of every method, the best first
    p_value: float  # of all methods being alike
    standard_error: float  # of a center
    degrees_of_freedom: float
    critical_difference: float  # between two centers, from which on they differ
    groups: list[tuple[str, ...]]

    @property
    def ties(self) -> tuple[str, ...]:
        """The best method and all that cannot be told from it."""
        return self.groups[0]

    def p_value_between(self, first: str, second: str) -> float:
        """The p-value of two methods being alike, adjusted for the number of pairs."""
        away = abs(self.centers[first] - self.centers[second]) / self.standard_error
        return float(stats.studentized_range.sf(away, len(self.centers), self.degrees_of_freedom))


def compare_ranks(
    scores: Mapping[str, Sequence[float]], greater_is_better: bool = True, level: float = 0.05
) -> Comparison:
    """Compare methods over independent data sets by their ranks: Friedman and Nemenyi.

    Parameters
    ----------
    scores : mapping of str to sequence of float
        By method, its score on each data set.
    greater_is_better : bool
    level : float
        Of the tests of all pairs together.

    Returns
    -------
    Comparison
        Of mean ranks, where 1 is the best; equal scores share the mean of their ranks.

    Examples
    --------
    >>> errors = {"a": [1.0, 0.5, 0.7, 0.2], "b": [1.1, 0.6, 0.7, 0.4], "c": [2, 1.5, 1.8, 1.2]}
    >>> found = compare_ranks(errors, greater_is_better=False)
    >>> found.centers
    {'a': 1.125, 'b': 1.875, 'c': 3.0}
    >>> found.groups
    [('a', 'b'), ('b', 'c')]
    """
    table = _table(scores, n_methods=2)
    n, k = table.shape
    ranks = stats.rankdata(-table if greater_is_better else table, axis=1)
    means = ranks.mean(axis=0)
    # scipy.stats.friedmanchisquare, for two methods and for ties in all rows as well.
    spread = float(((ranks - (k + 1) / 2.0) ** 2).sum())
    between = n**2 * float(((means - (k + 1) / 2.0) ** 2).sum())
    p_value = float(stats.chi2.sf((k - 1) * between / spread, k - 1)) if spread > 0.0 else 1.0
    error = float(np.sqrt(k * (k + 1) / (12.0 * n)))
    return _compared(scores, means, p_value, error, np.inf, level, greater_is_better=False)


def compare_means(
    scores: Mapping[str, Sequence[float]],
    greater_is_better: bool = True,
    test_to_train: float = 0.0,
    level: float = 0.05,
) -> Comparison:
    """Compare methods over splits of one data set: repeated measures, Tukey's HSD.

    The analysis of variance and the comparison of all pairs that Ash et al. (2025) recommend, the
    splits being the subjects. With ``test_to_train`` the error of a mean also allows for training
    parts that overlap, as in :func:`corrected_t_test`, whose p-value it has for two methods.

    Parameters
    ----------
    scores : mapping of str to sequence of float
        By method, its score on each split.
    greater_is_better : bool
    test_to_train : float
        Size of the test parts divided by that of the training parts (:func:`size_ratio`); 0 is the
        test of Ash et al.
    level : float
        Of the tests of all pairs together.

    Returns
    -------
    Comparison
        Of mean scores. Without any spread but that between splits nothing can be told apart.

    Notes
    -----
    One variance is taken for the differences of all pairs. A method whose scores vary much more
    than those of others makes all differences look less sure.

    Examples
    --------
    >>> folds = {
    ...     "a": [0.82, 0.85, 0.80, 0.88, 0.84],
    ...     "b": [0.81, 0.85, 0.81, 0.86, 0.84],
    ...     "c": [0.71, 0.75, 0.72, 0.74, 0.73],
    ... }
    >>> found = compare_means(folds, test_to_train=0.25)
    >>> found.ties, round(found.critical_difference, 3)
    (('a', 'b'), 0.03)
    """
    table = _table(scores, n_methods=2, n_splits=2)
    n, k = table.shape
    means = table.mean(axis=0)
    residuals = table - means - table.mean(axis=1, keepdims=True) + table.mean()
    freedom = (n - 1) * (k - 1)
    variance = float((residuals**2).sum()) / freedom
    if variance <= (_ROUNDING * np.abs(table).max()) ** 2:
        return _compared(scores, means, 1.0, np.inf, freedom, level, greater_is_better)
    square = variance * (1.0 / n + test_to_train)
    p_value = float(stats.f.sf(means.var(ddof=1) / square, k - 1, freedom))
    error = float(np.sqrt(square))
    return _compared(scores, means, p_value, error, freedom, level, greater_is_better)


def _compared(
    names: Mapping[str, Sequence[float]],
    means: np.ndarray,
    p_value: float,
    error: float,  # of one mean
    freedom: float,
    level: float,
    greater_is_better: bool,
) -> Comparison:
    """Test all pairs by the studentized range, and group what it does not tell apart."""
    order = np.argsort(-means if greater_is_better else means, kind="stable")
    methods = [list(names)[k] for k in order]
    centers = dict(zip(methods, means[order].tolist(), strict=True))
    critical = float(stats.studentized_range.ppf(1.0 - level, len(centers), freedom)) * error
    groups: list[tuple[str, ...]] = []
    n_reached = 0
    for start, best in enumerate(methods):
        group = [m for m in methods[start:] if abs(centers[m] - centers[best]) < critical]
        if start + len(group) > n_reached:
            groups.append(tuple(group))
            n_reached = start + len(group)
    return Comparison(centers, p_value, error, freedom, critical, groups)


def _table(
    scores: Mapping[str, Sequence[float] | np.ndarray], n_methods: int = 1, n_splits: int = 1
) -> np.ndarray:
    """Return the scores as an array of shape (n_splits, n_methods)."""
    sizes = {len(values) for values in scores.values()}
    if len(sizes) != 1 or len(scores) < n_methods or min(sizes) < n_splits:
        raise ValueError(
            f"Scores of {n_methods} methods or more on the same {n_splits} splits or more are "
            f"needed, got {len(scores)} methods with {sorted(sizes)} scores."
        )
    table = np.array(list(scores.values()), dtype=float).T
    if not np.isfinite(table).all():
        raise ValueError("Scores must be finite: leave out splits where one is not defined.")
    return table


# --- one test set -----------------------------------------------------------------------------


def bootstrap_interval(
    score: Callable[[np.ndarray], float | None],
    n: int,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> tuple[float, float] | None:
    """Interval of a score on one test set: percentiles over test sets drawn with replacement.

    It says how much the score depends on which graphs were tested, not on those trained on.

    Parameters
    ----------
    score : callable
        The score of the test graphs at the given positions, some of them more than once; None
        where it is not defined, as an area with one class. For two methods on the same graphs, the
        difference of their scores.
    n : int
        Number of test graphs.
    level : float
    n_resamples, random_state : int

    Returns
    -------
    (float, float) or None
        None with one graph, and where the score is undefined for half of the test sets drawn.

    Examples
    --------
    >>> error = np.array([0.1, -0.4, 0.3, 0.2, -0.1, 0.5])
    >>> low, high = bootstrap_interval(lambda at: np.mean(np.abs(error[at])), len(error))
    >>> round(low, 2), round(high, 2)
    (0.15, 0.38)
    """
    drawn = bootstrap_scores(score, n, n_resamples=n_resamples, random_state=random_state)
    return percentile_interval(drawn, level)


def bootstrap_scores(
    score: Callable[[np.ndarray], float | None],
    n: int,
    *,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> np.ndarray:
    """Scores of test sets drawn with replacement, NaN where undefined: shape (n_resamples,).

    The same ``n`` and ``random_state`` draw the same test sets, so that the differences of what two
    methods have are those of a paired bootstrap.
    """
    if n < 2:
        return np.full(n_resamples, np.nan)  # one graph has no spread
    rng = np.random.default_rng(random_state)
    drawn = [score(rng.integers(n, size=n)) for _ in range(n_resamples)]
    return np.array(drawn, dtype=float)  # None becomes NaN


def percentile_interval(drawn: np.ndarray, level: float = 0.95) -> tuple[float, float] | None:
    """Percentiles of scores that are defined; None where half of them or more are not."""
    known = drawn[np.isfinite(drawn)]
    if 2 * len(known) <= len(drawn):
        return None
    low, high = np.quantile(known, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)
