"""Is one method better than another? Two paired one-sided tests on the rows of a table.

The paper's test takes the means of the repetitions as independent. They are not: all repetitions
share the same graphs, so it finds significance too easily. The corrected resampled test of Nadeau
and Bengio (2003) works on the folds and allows for training sets that overlap; it errs, if
anything, on the careful side. Tables show both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy import stats

from treelens.evaluation.validation import corrected_paired_test

# (repetition, fold) -> accuracy
Folds = Mapping[tuple[int, int], float]


class Comparison(NamedTuple):
    """One method against another, on the folds that both have.

    Attributes
    ----------
    difference : float
        Mean over folds of the first minus the second, in the unit of the scores.
    p_repetitions : float or None
        Paired one-sided t-test over the means of repetitions; None with fewer than two.
    p_corrected : float or None
        Nadeau and Bengio's test over folds; None with fewer than two.
    n_repetitions, n_folds : int
        How many both have in full.
    """

    difference: float
    p_repetitions: float | None
    p_corrected: float | None
    n_repetitions: int
    n_folds: int


def paired_t_test(differences: np.ndarray) -> float:
    """One-sided p-value of a mean above zero.

    Examples
    --------
    >>> round(paired_t_test(np.array([1.0, 2.0, 3.0])), 4)
    0.0371
    """
    differences = np.asarray(differences, dtype=float)
    n, mean = len(differences), float(np.mean(differences))
    error = float(np.std(differences, ddof=1)) / np.sqrt(n)
    if error == 0.0:
        return 0.5 if mean == 0 else float(mean < 0)
    return float(stats.t.sf(mean / error, n - 1))


def compare(first: Folds, second: Folds, n_outer: int) -> Comparison:
    """Test whether the first method is better than the second.

    Parameters
    ----------
    first, second : mapping of (repetition, fold) to score
    n_outer : int
        Folds of a repetition; a test part is ``1 / (n_outer - 1)`` of its training part.

    Examples
    --------
    >>> ours = {(r, f): 0.8 + 0.01 * r for r in range(3) for f in range(2)}
    >>> theirs = {(r, f): 0.79 for r in range(3) for f in range(2)}
    >>> compare(ours, theirs, n_outer=2).n_repetitions
    3
    """
    shared = sorted(first.keys() & second.keys())
    if not shared:
        raise ValueError("The two methods have no fold in common, so there is nothing to compare.")
    differences = np.array([first[key] - second[key] for key in shared])  # (n_folds,)
    repetitions = np.array([repetition for repetition, _ in shared])
    complete = [r for r in np.unique(repetitions) if (repetitions == r).sum() == n_outer]
    means = np.array([differences[repetitions == r].mean() for r in complete])
    return Comparison(
        float(differences.mean()),
        paired_t_test(means) if len(means) > 1 else None,
        corrected_paired_test(differences, 1 / (n_outer - 1))[2] if len(shared) > 1 else None,
        len(complete),
        len(shared),
    )
