"""Scores of predictions, with what charts of them show: of held-out graphs, or of new ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import binomtest, norm

from treelens.evaluation import metrics
from treelens.evaluation.metrics import NINETY
from treelens.maps import TargetMap
from treelens.models.fitted import FittedModel
from treelens.models.predictions import Threshold
from treelens.targets import positive_code

# Nominal coverages of the intervals in a calibration chart.
NOMINAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_MOST_POINTS = 800
_MOST_CURVE_POINTS = 200
_N_BINS = 10
_N_THRESHOLDS = 100  # one for every per cent


def held_out_scores(model: FittedModel) -> dict[str, Any] | None:
    """Return scores on the training graphs, each predicted without itself, with the ``method``."""
    found, training, classes = model.held_out, model.training, model.classes
    if found is None:
        return None
    method = {"method": found.method}
    if classes is None:
        assert found.std is not None
        exact = training.exact  # a limit is nothing to compare with
        values, scale = training.reported, training.record.hidden
        reference = float(values[exact].mean())
        return method | scores_of_numbers(
            values, found.predicted, found.std, reference, exact, scale
        )
    known, chances, ranking = found.known, found.probabilities, found.decisions
    return method | scores_of_classes(
        training.targets[known],
        found.predicted[known],
        None if chances is None else chances[known],
        classes,
        model.threshold,
        ranking=None if ranking is None else ranking[known],
    )


def scores_of_numbers(
    values: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray,
    reference: float,
    some: slice | np.ndarray = slice(None),
    scale: TargetMap | None = None,
) -> dict[str, Any]:
    """Return scores of predicted numbers and intervals; ``reference`` is the training mean.

    With a ``scale``, predictions are on it, and the values and all results are not.
    """
    index, values, mean, std = np.arange(len(values))[some], values[some], mean[some], std[some]
    error, n = mean - (values if scale is None else scale.forward(values)), len(values)
    center, half = mean, NINETY * std
    if scale is not None:
        center = scale.inverse_mean(mean, std)
        half = 0.5 * (scale.inverse(mean + half) - scale.inverse(mean - half))
    reach = norm.ppf(0.5 + 0.5 * np.array(NOMINAL))
    inside = np.abs(error / std)[:, None] <= reach  # (n, n_nominal)
    # A random sample: a part of the points must not look better or worse than all.
    kept = np.sort(np.random.default_rng(0).permutation(n)[:_MOST_POINTS])
    return {
        "n_graphs": n,
        **metrics.number_scores(values, mean, std, scale),
        "reference_rmse": float(np.sqrt(np.mean((values - reference) ** 2))),
        "coverage_interval": wilson_interval(int((np.abs(error) <= NINETY * std).sum()), n),
        "median_half_width": float(np.median(half)),
        "calibration": {"nominal": list(NOMINAL), "observed": inside.mean(axis=0)},
        "points": {
            "n_all": n,
            "index": index[kept],
            "measured": values[kept],
            "predicted": center[kept],
            "half_width": half[kept],
        },
    }


def scores_of_classes(
    codes: np.ndarray,
    predicted: np.ndarray,
    probabilities: np.ndarray | None,
    classes: np.ndarray,
    threshold: Threshold | None = None,
    *,
    ranking: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return scores of classes; without probabilities, areas under curves by a ``ranking``."""
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    n, labels = len(codes), np.arange(len(classes))
    columns = ranking if probabilities is None else probabilities
    assert columns is not None
    found = metrics.class_scores(codes, predicted, columns, positive_code(classes))
    confusion = confusion_matrix(codes, predicted, labels=labels)
    precision, recall, _, counts = precision_recall_fscore_support(
        codes, predicted, labels=labels, zero_division=np.nan
    )
    n_right, present = int(np.trace(confusion)), counts[counts > 0] / n
    per_class = [
        {"class": str(label), "n": counts[k], "recall": recall[k], "precision": precision[k]}
        for k, label in enumerate(classes.tolist())
    ]
    more = dict[str, Any].fromkeys(("reliability", "thresholds", "accuracy_likeliest", "sure"))
    if probabilities is None:
        more["log_loss"] = None
    else:
        more["sure"] = metrics.sure_predictions(codes, predicted, probabilities)
        more["reliability"] = list(reliability(codes, probabilities, positive_code(classes)))
        more["thresholds"] = threshold_counts(codes, probabilities, classes, threshold)
        if threshold is not None:
            more["accuracy_likeliest"] = float(np.mean(probabilities.argmax(axis=1) == codes))
    return {
        "n_graphs": n,
        "n_right": n_right,
        **found,
        "accuracy_interval": wilson_interval(n_right, n),
        "majority_share": float(present.max()),
        "reference_log_loss": -float((present * np.log(present)).sum()),
        "confusion": confusion.tolist(),
        "per_class": per_class,
        "roc": list(_roc_curves(codes, columns, classes)),
        **more,
    }


def _roc_curves(
    codes: np.ndarray, columns: np.ndarray, classes: np.ndarray
) -> Iterator[dict[str, Any]]:
    """Yield one curve for two classes, of the positive one; else one for each class."""
    from sklearn.metrics import auc, roc_curve

    positive = positive_code(classes)
    for code in range(len(classes)) if positive is None else [positive]:
        truth, column = codes == code, columns[:, min(code, columns.shape[1] - 1)]
        if truth.all() or not truth.any():
            continue
        false_rate, true_rate, _ = roc_curve(truth, column)
        n = len(false_rate)
        kept = np.unique(np.linspace(0, n - 1, min(n, _MOST_CURVE_POINTS)).astype(int))
        yield {
            "class": str(classes[code]),
            "auc": float(auc(false_rate, true_rate)),
            "false_positive_rate": false_rate[kept],
            "true_positive_rate": true_rate[kept],
        }


def reliability(
    codes: np.ndarray, probabilities: np.ndarray, code: int | None
) -> Iterator[dict[str, Any]]:
    """Yield observed frequencies by tenths of probability, of one class or of the likeliest."""
    if code is not None:
        predicted, true = probabilities[:, code], codes == code
    else:
        predicted, true = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    place = np.minimum((predicted * _N_BINS).astype(int), _N_BINS - 1)
    for k in np.unique(place).tolist():
        here = place == k
        n, n_true = int(here.sum()), int(true[here].sum())
        yield {
            "low": k / _N_BINS,
            "high": (k + 1) / _N_BINS,
            "n": n,
            "predicted": float(predicted[here].mean()),
            "observed": n_true / n,
            "observed_interval": wilson_interval(n_true, n),
        }


def threshold_counts(
    codes: np.ndarray, probabilities: np.ndarray, classes: np.ndarray, threshold: Threshold | None
) -> dict[str, Any] | None:
    """Return true and false positives at thresholds of 0, 1, ... 100 %; None of many classes."""
    code = positive_code(classes)
    if code is None:
        return None
    value = 0.5
    if threshold is not None:
        code, value = threshold.code, threshold.value
    positive, probability = codes == code, probabilities[:, code]
    steps = np.arange(_N_THRESHOLDS + 1) / _N_THRESHOLDS

    def at_least(values: np.ndarray) -> list[int]:
        counts: list[int] = (len(values) - np.searchsorted(np.sort(values), steps)).tolist()
        return counts

    return {
        "positive": str(classes[code]),
        "negative": str(classes[1 - code]),
        "at": round(_N_THRESHOLDS * value),  # the model's own
        "n_positive": int(positive.sum()),
        "n_negative": int((~positive).sum()),
        "found": at_least(probability[positive]),
        "alarms": at_least(probability[~positive]),
    }


def wilson_interval(n_right: int, n: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a proportion (Wilson 1927)."""
    low, high = binomtest(n_right, n).proportion_ci(0.95, method="wilson")
    return float(low), float(high)
