"""How often a model is right: scores, confusion matrix and ROC curves as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
    roc_curve,
)

from treelens.models.predictions import predicted_codes
from treelens.svm.model import FittedSVM
from treelens.svm.search import Candidate

_MOST_CURVE_POINTS = 200


def score_decisions(
    codes: np.ndarray,
    decisions: np.ndarray,
    classes: np.ndarray,
    predicted: np.ndarray | None = None,
) -> dict:
    """Scores of decision values against true classes.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        True classes as positions in ``classes``.
    decisions : ndarray, shape (n, n_outputs)
    classes : ndarray
    predicted : ndarray of int, shape (n,), optional
        Where the largest decision value does not name the class.

    Examples
    --------
    >>> found = score_decisions(
    ...     np.array([0, 1, 1]), np.array([[-1.0], [2.0], [-0.5]]), np.array(["a", "b"])
    ... )
    >>> round(found["accuracy"], 3), found["confusion"]
    (0.667, [[1, 0], [1, 1]])
    """
    predicted = predicted_codes(decisions) if predicted is None else predicted
    labels = np.arange(len(classes))
    counts = np.bincount(codes, minlength=len(classes))
    present = np.flatnonzero(counts)
    curves = roc_curves(codes, decisions, classes)
    return {
        **(share_right(codes, predicted) or {}),
        "balanced_accuracy": _recall_mean(codes, predicted, present),
        "majority_share": counts.max() / len(codes),
        "roc_auc": float(np.mean([c["auc"] for c in curves])) if curves else None,
        "confusion": confusion_matrix(codes, predicted, labels=labels).tolist(),
        "per_class": _per_class(codes, predicted, classes),
        "roc": curves,
    }


def share_right(codes: np.ndarray, predicted: np.ndarray) -> dict[str, Any] | None:
    """Accuracy with its interval; None without graphs."""
    if not len(codes):
        return None
    n_right = int((predicted == codes).sum())
    return {
        "n_graphs": len(codes),
        "n_right": n_right,
        "accuracy": accuracy_score(codes, predicted),
        "accuracy_interval": wilson_interval(n_right, len(codes)),
    }


def held_out_scores(model: FittedSVM) -> dict | None:
    """Scores on the training graphs, each decided by models that had not seen it.

    They come from the inner cross-validation of the chosen setting, so they are slightly too
    good: the setting was chosen by them. None where the search kept no decision values.
    """
    best: Any = model.choice.best_params
    chosen = Candidate(**{name: best[name] for name in Candidate._fields})
    decisions = model.choice.cv_results.decisions.get(chosen)
    if decisions is None:
        return None
    known = np.isfinite(decisions).all(axis=1)  # a splitter need not cover every graph
    if not known.any():
        return None
    return score_decisions(model.training.targets[known], decisions[known], model.classes)


def roc_curves(codes: np.ndarray, decisions: np.ndarray, classes: np.ndarray) -> list[dict]:
    """One curve for two classes (the second against the first), else one for each class."""
    two = decisions.shape[1] == 1
    curves = []
    for column, code in enumerate([1] if two else range(len(classes))):
        truth = codes == code
        if truth.all() or not truth.any():
            continue
        false_rate, true_rate, _ = roc_curve(truth, decisions[:, column])
        kept = _thinned(len(false_rate))
        curves.append(
            {
                "class": str(classes[code]),
                "auc": float(roc_auc_score(truth, decisions[:, column])),
                "false_positive_rate": false_rate[kept],
                "true_positive_rate": true_rate[kept],
            }
        )
    return curves


def wilson_interval(n_right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Where the true share of right answers may lie (Wilson 1927).

    Examples
    --------
    >>> low, high = wilson_interval(9, 10)
    >>> round(low, 2), round(high, 2)
    (0.6, 0.98)
    """
    z = float(norm.ppf(0.5 + confidence / 2))
    share, spread = n_right / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z * np.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def _recall_mean(codes: np.ndarray, predicted: np.ndarray, present: np.ndarray) -> float | None:
    """Balanced accuracy over the classes that occur; a single class has no balance."""
    return float(balanced_accuracy_score(codes, predicted)) if len(present) > 1 else None


def _per_class(codes: np.ndarray, predicted: np.ndarray, classes: np.ndarray) -> list[dict]:
    precision, recall, f1, support = precision_recall_fscore_support(
        codes, predicted, labels=np.arange(len(classes)), zero_division=0.0
    )
    columns: dict[str, Any] = {"precision": precision, "recall": recall, "f1": f1, "n": support}
    return [
        {"class": str(label), **{name: values[code] for name, values in columns.items()}}
        for code, label in enumerate(classes.tolist())
    ]


def _thinned(n: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, _MOST_CURVE_POINTS)).astype(int))
