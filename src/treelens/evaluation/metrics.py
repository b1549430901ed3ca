"""Scores of predictions: the one place that every command, table and report takes them from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

NINETY = 1.6448536269514722  # standard deviations on either side that hold nine tenths

# Score -> (what a table calls it, whether more is better).
NUMBER_SCORES: Mapping[str, tuple[str, bool]] = {
    "rmse": ("RMSE", False),
    "mae": ("MAE", False),
    "r2": ("R2", True),
    "nlpd": ("NLPD", False),
    "coverage": ("within 90 %", True),
}
CLASS_SCORES: Mapping[str, tuple[str, bool]] = {
    "roc_auc": ("ROC AUC", True),
    "pr_auc": ("PR AUC", True),
    "mcc": ("MCC", True),
    "accuracy": ("accuracy", True),
    "balanced_accuracy": ("balanced", True),
    "recall": ("recall", True),
    "precision": ("precision", True),
    "log_loss": ("log loss", False),
}


def number_scores(
    truth: np.ndarray, mean: np.ndarray, std: np.ndarray | None = None
) -> dict[str, float | None]:
    """Errors of predicted numbers and, with standard deviations, of their error bars.

    Parameters
    ----------
    truth, mean : ndarray, shape (n,)
    std : ndarray, shape (n,), optional
        Of new measurements, noise included.

    Returns
    -------
    dict
        ``rmse``, ``mae``, ``r2`` (None where the truth is constant), ``nlpd`` (mean negative log
        predictive density) and ``coverage`` (share within the 90 % interval); the last two are
        None without ``std``.

    Examples
    --------
    >>> found = number_scores(np.array([0.0, 2.0]), np.array([0.0, 1.0]), np.ones(2))
    >>> round(found["rmse"], 3), found["mae"], found["r2"], found["coverage"]
    (0.707, 0.5, 0.5, 1.0)
    """
    error = truth - mean
    total = float(((truth - truth.mean()) ** 2).sum())
    scores: dict[str, float | None] = {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "r2": 1.0 - float((error**2).sum()) / total if total > 0 else None,
        "nlpd": None,
        "coverage": None,
    }
    if std is not None:
        density = (error / std) ** 2 + np.log(2.0 * np.pi * std**2)
        scores["nlpd"] = float(0.5 * np.mean(density))
        scores["coverage"] = float(np.mean(np.abs(error) <= NINETY * std))
    return scores


def class_scores(
    codes: np.ndarray,
    predicted: np.ndarray,
    probabilities: np.ndarray,
    positive: int | None = None,
) -> dict[str, Any]:
    """How well classes are named, and how well probabilities rank them.

    Parameters
    ----------
    codes, predicted : ndarray of int, shape (n,)
        True and predicted classes as columns of ``probabilities``; -1 among the true ones is a
        class that the model does not know.
    probabilities : ndarray, shape (n, n_classes)
    positive : int, optional
        Of two classes the one that recall, precision and PR AUC are about; by default the rarer
        one, and the second where both are as frequent.

    Returns
    -------
    dict
        ``accuracy``, ``balanced_accuracy``, ``mcc`` (Matthews' correlation), ``recall``,
        ``precision``, ``roc_auc``, ``pr_auc`` (average precision), ``log_loss``, and
        ``names_one_class``: whether every graph was put into the same class. Areas are means over
        the classes where there are more than two. What cannot be told (an area with one class
        present, the log loss with an unknown class) is None.

    Examples
    --------
    >>> chances = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    >>> found = class_scores(np.array([0, 1, 1]), np.array([0, 0, 1]), chances, positive=1)
    >>> round(found["mcc"], 2), found["recall"], found["precision"], found["roc_auc"]
    (0.5, 0.5, 1.0, 1.0)
    """
    n_classes = probabilities.shape[1]
    one = n_classes == 2
    if one and positive is None:
        positive = rarer_code(codes)
    known = codes >= 0
    named, true = predicted == positive, codes == positive
    return {
        "accuracy": float(np.mean(predicted == codes)),
        "balanced_accuracy": _balanced_accuracy(codes, predicted),
        "mcc": matthews(codes, predicted),
        "recall": _ratio((named & true).sum(), true.sum()) if one else None,
        "precision": _ratio((named & true).sum(), named.sum()) if one else None,
        **_areas(codes, probabilities, positive),
        "log_loss": _log_loss(codes, probabilities) if known.all() else None,
        "names_one_class": len(np.unique(predicted)) == 1 < len(np.unique(codes)),
    }


def rarer_code(codes: np.ndarray) -> int:
    """Of the classes 0 and 1 the rarer one; the second where both are as frequent.

    Examples
    --------
    >>> rarer_code(np.array([1, 1, 0])), rarer_code(np.array([0, 1]))
    (0, 1)
    """
    return int((codes == 1).sum() <= (codes == 0).sum())


def matthews(codes: np.ndarray, predicted: np.ndarray) -> float:
    """Matthews' correlation of true and predicted classes; 0 where either is constant.

    Examples
    --------
    >>> matthews(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]))
    1.0
    """
    classes = np.union1d(codes, predicted)
    truth = (codes[:, None] == classes).astype(float)  # (n, n_classes)
    said = (predicted[:, None] == classes).astype(float)
    truth -= truth.mean(axis=0)
    said -= said.mean(axis=0)
    spread = float((truth**2).sum() * (said**2).sum())
    return float((truth * said).sum() / np.sqrt(spread)) if spread > 0 else 0.0


def _balanced_accuracy(codes: np.ndarray, predicted: np.ndarray) -> float | None:
    """Mean share of each class that was found; a single class has no balance."""
    present = np.unique(codes)
    if len(present) < 2:
        return None
    return float(np.mean([np.mean(predicted[codes == code] == code) for code in present]))


def _areas(codes: np.ndarray, probabilities: np.ndarray, positive: int | None) -> dict[str, Any]:
    from sklearn.metrics import average_precision_score, roc_auc_score

    columns = range(probabilities.shape[1]) if positive is None else [positive]
    told = [k for k in columns if 0 < (codes == k).sum() < len(codes)]
    if not told or (codes < 0).any():
        return {"roc_auc": None, "pr_auc": None}
    return {
        name: float(np.mean([score(codes == k, probabilities[:, k]) for k in told]))
        for name, score in (("roc_auc", roc_auc_score), ("pr_auc", average_precision_score))
    }


def _log_loss(codes: np.ndarray, probabilities: np.ndarray) -> float:
    own = probabilities[np.arange(len(codes)), codes]
    return float(-np.mean(np.log(np.maximum(own, 1e-300))))


def _ratio(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None
