"""Class probabilities from decision values, with one number fitted to held-out ones.

The decision values of a Gaussian process on ±1 targets say by their sign which class is the
likelier, so probabilities need a slope and nothing else: ``softmax(slope * decisions)``, and the
most probable class is always the one that is predicted.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

_SLOPES = (1e-2, 1e3)


def fit_slope(decisions: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    """The slope that makes held-out classes most probable.

    Parameters
    ----------
    decisions : ndarray, shape (n, n_outputs)
        Held-out decision values; one output for two classes.
    codes : ndarray of int, shape (n,)
    weights : ndarray, shape (n,)
    """

    n_classes = max(2, decisions.shape[1])
    # As Platt (1999): where the classes separate, no finite slope would be the best. A class of n
    # graphs is certain to (n + 1) / (n + 2) only.
    counts = np.bincount(codes, minlength=n_classes)
    certain = ((counts + 1.0) / (counts + 2.0))[codes]  # (n,)
    wanted = np.tile(((1.0 - certain) / (n_classes - 1))[:, None], n_classes)
    wanted[np.arange(len(codes)), codes] = certain

    def surprise(log_slope: float) -> float:
        probability = calibrated(decisions, float(np.exp(log_slope)))
        missed = -(wanted * np.log(np.maximum(probability, 1e-300))).sum(axis=1)
        return float(np.average(missed, weights=weights))

    low, high = np.log(_SLOPES)
    found = optimize.minimize_scalar(surprise, bounds=(low, high), method="bounded")
    return float(np.exp(found.x))


def calibrated(decisions: np.ndarray, slope: float) -> np.ndarray:
    """Class probabilities, shape (n, n_classes).

    Examples
    --------
    >>> calibrated(np.array([[0.0]]), 2.0)
    array([[0.5, 0.5]])
    """
    if decisions.shape[1] == 1:
        decisions = np.hstack([-0.5 * decisions, 0.5 * decisions])
    logits = slope * (decisions - decisions.max(axis=1, keepdims=True))
    likelihood = np.exp(logits)
    return likelihood / likelihood.sum(axis=1, keepdims=True)
