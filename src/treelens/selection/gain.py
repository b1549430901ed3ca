"""Did learning help? The paired difference of the best learned and the best uniform candidate."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from treelens.models.tried import SearchResult


def learning_gain(result: SearchResult) -> dict[str, Any] | None:
    """Compare learned with uniform weights on the splits of the inner validation.

    The test is the corrected resampled t-test of Nadeau and Bengio (2003), which allows for
    training sets that overlap; its p-value is one-sided (learning is better). Both candidates were
    chosen on these same splits, so it describes the choice rather than proving a gain.

    Returns
    -------
    dict or None
        None when one of the two kinds was not tried to the end.
    """
    learned = result.best(lambda c: c.weight_radius > 0)
    uniform = result.best(lambda c: c.weight_radius == 0)
    if learned is None or uniform is None:
        return None
    difference = np.subtract(result.scores[learned], result.scores[uniform])
    mean, error, p_value = corrected_paired_test(difference, result.test_to_train)
    return {
        "difference": mean,
        "standard_error": error,
        "p_value": p_value,
        "learned_score": result.mean(learned),
        "uniform_score": result.mean(uniform),
        "learned_candidate": learned._asdict(),
        "uniform_candidate": uniform._asdict(),
    }


def corrected_paired_test(
    differences: np.ndarray, test_to_train: float
) -> tuple[float, float, float]:
    """Mean, corrected standard error and one-sided p-value of paired differences.

    Parameters
    ----------
    differences : ndarray
        One per split of a (repeated) cross-validation.
    test_to_train : float
        Size of a test part divided by the size of its training part.

    Examples
    --------
    >>> mean, error, p = corrected_paired_test(np.array([0.02, 0.01, 0.03, 0.02]), 1 / 3)
    >>> round(mean, 3), p < 0.05
    (0.02, True)
    """
    n = len(differences)
    mean = float(np.mean(differences))
    variance = float(np.var(differences, ddof=1)) if n > 1 else 0.0
    error = float(np.sqrt((1.0 / n + test_to_train) * variance))
    if error == 0.0:  # one split, or equal differences: no spread to judge the mean by
        return mean, 0.0, 0.5
    return mean, error, float(stats.t.sf(mean / error, n - 1))
