"""Did learning help? The paired difference of the best learned and the best uniform candidate."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.evaluation.validation import corrected_paired_test
from treelens.svm.search_result import SearchResult


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
