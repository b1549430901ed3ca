"""What other thresholds on a class's probability would find, and what they would cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.models.thresholds import Threshold

N_STEPS = 100  # a threshold for every percent


def threshold_counts(
    codes: np.ndarray, probabilities: np.ndarray, classes: np.ndarray, threshold: Threshold | None
) -> dict[str, Any] | None:
    """How many graphs of either class are called positive at every threshold, in percent.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        True classes.
    probabilities : ndarray, shape (n, n_classes)
        Of predictions that were held out.
    classes : ndarray
    threshold : Threshold or None
        What the model names its rarer class by; None: the second class is named from 0.5 on.

    Returns
    -------
    dict or None
        ``positive`` and ``negative`` (class names), ``at`` (the model's own threshold, in percent),
        ``n_positive``, ``n_negative``, and for thresholds of 0, 1, ... 100 %: ``found`` (positives
        at or above it) and ``alarms`` (negatives there). None unless there are two classes.

    Examples
    --------
    >>> chances = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    >>> counts = threshold_counts(np.array([0, 0, 1]), chances, np.array(["no", "yes"]), None)
    >>> [(counts["found"][t], counts["alarms"][t]) for t in (0, 50, 70, 90)]
    [(1, 2), (1, 1), (1, 0), (0, 0)]
    """
    if len(classes) != 2:
        return None
    code, value = (1, 0.5) if threshold is None else (threshold.code, threshold.value)
    is_positive, said = codes == code, probabilities[:, code]
    steps = np.arange(N_STEPS + 1) / N_STEPS
    return {
        "positive": str(classes[code]),
        "negative": str(classes[1 - code]),
        "at": round(N_STEPS * value),
        "n_positive": int(is_positive.sum()),
        "n_negative": int((~is_positive).sum()),
        "found": _at_least(said[is_positive], steps),
        "alarms": _at_least(said[~is_positive], steps),
    }


def _at_least(values: np.ndarray, steps: np.ndarray) -> list[int]:
    """How many of the values reach each step."""
    return (len(values) - np.searchsorted(np.sort(values), steps, side="left")).tolist()
