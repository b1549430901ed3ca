"""Scores of predictions, over :mod:`sklearn.metrics`: the same in commands, tables and reports."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from treelens.maps import TargetMap

NINETY = 1.6448536269514722  # standard deviations on either side of a 90 % interval

# Score -> (title in a table, whether greater is better).
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
    truth: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray | None = None,
    scale: TargetMap | None = None,
) -> dict[str, float | None]:
    """Scores of predicted numbers and of their standard deviations, shape (n,) each.

    With a ``scale``, ``mean`` and ``std`` are on it, and scores are in the units of ``truth``:
    squared errors are those of means in these units, absolute errors those of medians, densities
    carry the slope of the map, and intervals go through it.

    Returns
    -------
    dict
        ``rmse``, ``mae``, ``r2`` (None where the truth is constant), ``nlpd`` (mean negative log
        predictive density) and ``coverage`` (share within the 90 % interval); the last two are
        None without ``std``, which are of new measurements, noise included.

    Examples
    --------
    >>> found = number_scores(np.array([0.0, 2.0]), np.array([0.0, 1.0]), np.ones(2))
    >>> round(found["rmse"], 3), found["mae"], found["r2"], found["coverage"]
    (0.707, 0.5, 0.5, 1.0)
    """
    from sklearn.metrics import r2_score

    expected = middle = mean
    if scale is not None:
        middle = scale.inverse(mean)
        expected = middle if std is None else scale.inverse_mean(mean, std)
    scores: dict[str, float | None] = {
        "rmse": float(np.sqrt(np.mean((truth - expected) ** 2))),
        "mae": float(np.mean(np.abs(truth - middle))),
        "r2": float(r2_score(truth, expected)) if np.ptp(truth) > 0 else None,
        "nlpd": None,
        "coverage": None,
    }
    if std is not None:
        error = (truth if scale is None else scale.forward(truth)) - mean
        density = (error / std) ** 2 + np.log(2.0 * np.pi * std**2)
        slope = 0.0 if scale is None else float(np.mean(np.log(scale.slope(truth))))
        scores["nlpd"] = float(0.5 * np.mean(density)) - slope
        scores["coverage"] = float(np.mean(np.abs(error) <= NINETY * std))
    return scores


def class_scores(
    codes: np.ndarray,
    predicted: np.ndarray,
    probabilities: np.ndarray,
    positive: int | None = None,
    only: str | None = None,
) -> dict[str, Any]:
    """Scores of predicted classes and of their probabilities.

    Parameters
    ----------
    codes, predicted : ndarray of int, shape (n,)
        True and predicted classes as columns of ``probabilities``; -1 among the true ones is a
        class that the model does not know.
    probabilities : ndarray, shape (n, n_classes)
    positive : int, optional
        With two classes, the one of recall, precision and PR AUC; by default the second.
    only : str, optional
        The one score that is needed: those that take long are None but for it.

    Returns
    -------
    dict
        ``accuracy``, ``balanced_accuracy``, ``mcc`` (Matthews' correlation), ``recall``,
        ``precision``, ``roc_auc``, ``pr_auc`` (average precision), ``log_loss``, and
        ``names_one_class``: whether one class was predicted for all graphs. With more than two
        classes areas are means over the classes. Undefined scores (an area with one class present,
        the log loss with an unknown class) are None.

    Examples
    --------
    >>> chances = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    >>> found = class_scores(np.array([0, 1, 1]), np.array([0, 0, 1]), chances, positive=1)
    >>> round(found["mcc"], 2), found["recall"], found["precision"], found["roc_auc"]
    (0.5, 0.5, 1.0, 1.0)
    """
    from sklearn import metrics

    n_classes, present = probabilities.shape[1], np.unique(codes)
    if n_classes == 2 and positive is None:
        positive = 1
    scores: dict[str, Any] = dict.fromkeys(CLASS_SCORES)
    scores["accuracy"] = float(np.mean(predicted == codes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class is missing among the true or predicted ones
        if only in (None, "mcc"):
            scores["mcc"] = float(metrics.matthews_corrcoef(codes, predicted))
        if only in (None, "balanced_accuracy") and len(present) > 1:
            scores["balanced_accuracy"] = float(metrics.balanced_accuracy_score(codes, predicted))
    if n_classes == 2:
        named, true = predicted == positive, codes == positive
        hits = (named & true).sum()
        scores["recall"] = float(hits / true.sum()) if true.any() else None
        scores["precision"] = float(hits / named.sum()) if named.any() else None
    if (codes >= 0).all():
        own = probabilities[np.arange(len(codes)), codes]
        scores["log_loss"] = float(-np.mean(np.log(np.maximum(own, 1e-300))))
        columns = range(n_classes) if positive is None else [positive]
        defined = [k for k in columns if 0 < (codes == k).sum() < len(codes)]
        areas = {"roc_auc": metrics.roc_auc_score, "pr_auc": metrics.average_precision_score}
        for name, area in areas.items() if defined else ():
            if only in (None, name):
                own = [area(codes == k, probabilities[:, k]) for k in defined]
                scores[name] = float(np.mean(own))
    return {**scores, "names_one_class": len(np.unique(predicted)) == 1 < len(present)}


def sure_predictions(
    codes: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray, least: float = 0.9
) -> dict[str, Any] | None:
    """How often predictions of a high probability are right; None where there are none."""
    sure = probabilities[np.arange(len(codes)), predicted] >= least
    if not sure.any():
        return None
    right = float(np.mean(codes[sure] == predicted[sure]))
    return {"least": least, "n": int(sure.sum()), "share": float(sure.mean()), "accuracy": right}


def rarer_code(codes: np.ndarray) -> int:
    """Of the classes 0 and 1 the rarer one; the second where both are as frequent."""
    return int((codes == 1).sum() <= (codes == 0).sum())


def codes_among(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Positions among classes, compared as strings; -1 for a value that is not there."""
    places = {str(name): code for code, name in enumerate(classes.tolist())}
    return np.array([places.get(str(value), -1) for value in values.tolist()], dtype=np.int64)
