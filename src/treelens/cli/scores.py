"""Scores of predictions, the same in every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def number_scores(truth: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """RMSE, R2, mean negative log predictive density, share within the 90 % interval.

    Examples
    --------
    >>> import numpy as np
    >>> scores = number_scores(np.array([0.0, 2.0]), np.array([0.0, 1.0]), np.ones(2))
    >>> round(scores["rmse"], 3), scores["r2"], scores["coverage"]
    (0.707, 0.5, 1.0)
    """
    from treelens.models.leave_one_out import scored_numbers

    scored = scored_numbers(mean, std, truth)
    return {name: getattr(scored, name) for name in ("rmse", "r2", "nlpd", "coverage")}


def class_scores(
    truth: np.ndarray, probabilities: np.ndarray, classes: np.ndarray
) -> dict[str, float | None]:
    """Accuracy, log loss, and with two classes, both of them present, the area under the ROC curve.

    Classes are compared as texts: a file may hold them as another kind than the model does. A
    class that the model does not know is never right, and has no log loss.
    """
    import numpy as np
    from sklearn.metrics import roc_auc_score

    names, said = classes.astype(str), truth.astype(str)
    predicted = names[probabilities.argmax(axis=1)]
    known = np.isin(said, names)
    order = np.argsort(names)  # as texts, which need not be the order of the classes
    codes = order[np.searchsorted(names, said[known], sorter=order)]
    own = probabilities[known, codes]
    auc = None
    if len(classes) == 2 and known.all() and len(np.unique(said)) == 2:
        auc = float(roc_auc_score(said == names[1], probabilities[:, 1]))
    return {
        "accuracy": float(np.mean(predicted == said)),
        "log_loss": float(-np.mean(np.log(np.maximum(own, 1e-300)))) if known.all() else None,
        "roc_auc": auc,
    }


def class_sizes(y: Any) -> dict[str, int]:
    """How many graphs each class has."""
    import numpy as np

    classes, counts = np.unique(y, return_counts=True)
    return {str(c): n for c, n in zip(classes.tolist(), counts.tolist(), strict=True)}
