"""Scores of predictions, the same in every command; see :mod:`treelens.evaluation.metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def class_scores(
    truth: np.ndarray,
    probabilities: np.ndarray,
    classes: np.ndarray,
    predicted: np.ndarray | None = None,
    positive: Any = None,
) -> dict[str, Any]:
    """All scores of :func:`treelens.evaluation.metrics.class_scores`, from classes as they are.

    Parameters
    ----------
    truth : ndarray, shape (n,)
        Compared as texts: a file may hold classes as another kind than the model does. A class
        that the model does not know is never right.
    probabilities : ndarray, shape (n, n_classes)
    classes : ndarray
    predicted : ndarray, shape (n,), optional
        By default the most probable classes.
    positive : optional
        Of two classes the one that recall, precision and PR AUC are about: the rarer by default.
    """
    import numpy as np

    from treelens.evaluation.metrics import class_scores
    from treelens.evaluation.validation import codes_among

    named = probabilities.argmax(axis=1) if predicted is None else codes_among(predicted, classes)
    code = None if positive is None else int(codes_among(np.array([positive]), classes)[0])
    return class_scores(codes_among(truth, classes), named, probabilities, code)


def score_sentences(scores: dict[str, Any]) -> list[str]:
    """Scores that are known, in words: ``["RMSE: 0.5.", "R2: 0.812."]``."""
    from treelens.cli.console import percent
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES

    shares = ("accuracy", "balanced_accuracy", "recall", "precision", "coverage")
    words = {"coverage": "Within the 90 % interval", "accuracy": "Accuracy",
             "balanced_accuracy": "Balanced accuracy", "recall": "Recall", "roc_auc": "ROC AUC",
             "precision": "Precision", "log_loss": "Log loss"}  # fmt: skip
    told = []
    for name, (title, _) in {**CLASS_SCORES, **NUMBER_SCORES}.items():
        value = scores.get(name)
        if value is not None:
            digits = ".4g" if name in ("rmse", "mae") else ".3f"
            shown = percent(value) if name in shares else f"{value:{digits}}"
            told.append(f"{words.get(name, title)}: {shown}.")
    return told


def class_sizes(y: Any) -> dict[str, int]:
    """How many graphs each class has."""
    import numpy as np

    classes, counts = np.unique(y, return_counts=True)
    return {str(c): n for c, n in zip(classes.tolist(), counts.tolist(), strict=True)}
