"""Scores of a model, on a test set and in its own validation, with the data of their charts."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest, norm

from treelens.evaluation import metrics
from treelens.evaluation.metrics import NINETY
from treelens.gp.model import FittedGP
from treelens.models.predictions import predicted_codes
from treelens.models.thresholds import Threshold
from treelens.report.predicted import PredictedGraphs

# Nominal coverages of the intervals in a calibration chart.
NOMINAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_MOST_POINTS = 800
_MOST_CURVE_POINTS = 200
_N_BINS = 10
_N_THRESHOLDS = 100  # one for every per cent


def validation_scores(model: Any) -> dict[str, Any] | None:
    """Return scores on the training graphs, each predicted without itself, with the ``method``.

    Of a Gaussian process by leave-one-out, of an SVM in the cross-validation that chose its
    settings; None where that kept no decision values.
    """
    targets, classes = model.training.targets, model.classes
    if not isinstance(model, FittedGP):
        return _cross_validated(model)
    assert model.record is not None
    assert model.training is not None
    found, method = model.record.left_out, {"method": "leave-one-out"}
    if classes is None:
        some = np.arange(len(targets))[model.training.exact]  # a limit is nothing to compare with
        scores = number_scores(
            targets[some], found.predictions[some], found.std[some], float(targets[some].mean())
        )
        scores["points"]["index"] = some[scores["points"]["index"]]
        return method | scores
    named = np.searchsorted(classes, found.predictions)
    return method | class_scores(targets, named, found.probabilities, classes, model.threshold)


def _cross_validated(model: Any) -> dict[str, Any] | None:
    best, kept = model.choice.best_params, model.choice.cv_results.decisions
    chosen = [c for c in kept if all(best[name] == x for name, x in c._asdict().items())]
    decisions = kept[chosen[0]] if chosen else np.empty((0, 1))
    known = np.isfinite(decisions).all(axis=1)  # a splitter need not cover every graph
    if not known.any():
        return None
    decisions, codes = decisions[known], model.training.targets[known]
    probabilities = None
    if decisions.shape[1] == 1:  # of more classes, a model file has votes but no margins
        coefficients, intercepts = model.calibration
        second = expit(decisions @ coefficients.T + intercepts)
        probabilities = np.hstack([1.0 - second, second])
    named = predicted_codes(decisions)
    scores = class_scores(codes, named, probabilities, model.classes, ranking=decisions)
    return {"method": "cross-validation"} | scores


def scores_of_test_set(model: Any, given: PredictedGraphs | None) -> dict[str, Any] | None:
    """Return scores on the graphs that were not trained on; None where there are none."""
    if given is None or given.truth is None or not len(given.test):
        return None
    new = given.test
    truth, predicted = given.truth[new], given.predicted[new]
    if model.classes is None:
        reference = float(model.training.targets.mean())
        found = number_scores(truth, predicted, given.std[new], reference)
        found["points"]["index"] = new[found["points"]["index"]]
        return found
    probabilities = given.probabilities[new]
    threshold = given.predictions.threshold
    return class_scores(truth, predicted, probabilities, model.classes, threshold)


# --- numbers ----------------------------------------------------------------------------------


def number_scores(
    values: np.ndarray, mean: np.ndarray, std: np.ndarray, reference: float
) -> dict[str, Any]:
    """Return scores of predicted numbers and intervals; ``reference`` is the training mean."""
    error, n = mean - values, len(values)
    reach = norm.ppf(0.5 + 0.5 * np.array(NOMINAL))
    inside = np.abs(error / std)[:, None] <= reach  # (n, n_nominal)
    # A random sample: a part of the points must not look better or worse than all.
    kept = np.sort(np.random.default_rng(0).permutation(n)[:_MOST_POINTS])
    return {
        "n_graphs": n,
        **metrics.number_scores(values, mean, std),
        "reference_rmse": float(np.sqrt(np.mean((values - reference) ** 2))),
        "coverage_interval": wilson_interval(int((np.abs(error) <= NINETY * std).sum()), n),
        "median_half_width": float(np.median(NINETY * std)),
        "calibration": {"nominal": list(NOMINAL), "observed": inside.mean(axis=0)},
        "points": {
            "n_all": n,
            "index": kept,
            "measured": values[kept],
            "predicted": mean[kept],
            "half_width": NINETY * std[kept],
        },
    }


# --- classes ----------------------------------------------------------------------------------


def class_scores(
    codes: np.ndarray,
    predicted: np.ndarray,
    probabilities: np.ndarray | None,
    classes: np.ndarray,
    threshold: Threshold | None = None,
    *,
    ranking: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return scores of predicted classes and of their probabilities.

    Without probabilities, areas under curves come from ``ranking`` (n, n_classes), and there is no
    log loss, reliability or threshold.
    """
    n, n_classes = len(codes), len(classes)
    columns = ranking if probabilities is None else probabilities
    assert columns is not None
    found = metrics.class_scores(codes, predicted, columns)
    confusion = np.bincount(codes * n_classes + predicted, minlength=n_classes**2)
    confusion = confusion.reshape(n_classes, n_classes)
    n_right, shares = int(np.trace(confusion)), confusion.sum(axis=1) / n
    present = shares[shares > 0]
    scores = {
        "n_graphs": n,
        "n_right": n_right,
        **found,
        "accuracy_interval": wilson_interval(n_right, n),
        "majority_share": float(shares.max()),
        "reference_log_loss": -float((present * np.log(present)).sum()),
        "confusion": confusion.tolist(),
        "per_class": _per_class(confusion, classes),
        "roc": _roc_curves(codes, columns, classes),
        "reliability": None,
        "thresholds": None,
        "accuracy_likeliest": None,
        "sure": None,
    }
    if probabilities is None:
        return scores | {"log_loss": None}
    if threshold is not None:
        scores["accuracy_likeliest"] = float(np.mean(probabilities.argmax(axis=1) == codes))
    return scores | {
        "sure": metrics.sure_predictions(codes, predicted, probabilities),
        "reliability": reliability(codes, probabilities),
        "thresholds": threshold_counts(codes, probabilities, classes, threshold),
    }


def _per_class(confusion: np.ndarray, classes: np.ndarray) -> list[dict[str, Any]]:
    """Return recall and precision of each class, None where there is nothing to divide by."""
    right, true, named = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    return [
        {
            "class": str(label),
            "n": int(true[k]),
            "recall": right[k] / true[k] if true[k] else None,
            "precision": right[k] / named[k] if named[k] else None,
        }
        for k, label in enumerate(classes.tolist())
    ]


def _roc_curves(codes: np.ndarray, columns: np.ndarray, classes: np.ndarray) -> list[dict]:
    """Return one curve for two classes, of the second; else one for each class."""
    from sklearn.metrics import roc_auc_score, roc_curve

    curves = []
    for code in [1] if len(classes) == 2 else range(len(classes)):
        truth, column = codes == code, columns[:, min(code, columns.shape[1] - 1)]
        if truth.all() or not truth.any():
            continue
        false_rate, true_rate, _ = roc_curve(truth, column)
        n = len(false_rate)
        kept = np.unique(np.linspace(0, n - 1, min(n, _MOST_CURVE_POINTS)).astype(int))
        curves.append(
            {
                "class": str(classes[code]),
                "auc": float(roc_auc_score(truth, column)),
                "false_positive_rate": false_rate[kept],
                "true_positive_rate": true_rate[kept],
            }
        )
    return curves


def reliability(codes: np.ndarray, probabilities: np.ndarray) -> list[dict[str, Any]]:
    """Return observed frequencies by tenths of predicted probability.

    With two classes of the second, with more of the predicted class.
    """
    if probabilities.shape[1] == 2:
        predicted, true = probabilities[:, 1], codes == 1
    else:
        predicted, true = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    place = np.minimum((predicted * _N_BINS).astype(int), _N_BINS - 1)
    bins = []
    for k in np.unique(place).tolist():
        here = place == k
        n, n_true = int(here.sum()), int(true[here].sum())
        bins.append(
            {
                "low": k / _N_BINS,
                "high": (k + 1) / _N_BINS,
                "n": n,
                "predicted": float(predicted[here].mean()),
                "observed": n_true / n,
                "observed_interval": wilson_interval(n_true, n),
            }
        )
    return bins


def threshold_counts(
    codes: np.ndarray, probabilities: np.ndarray, classes: np.ndarray, threshold: Threshold | None
) -> dict[str, Any] | None:
    """Return true and false positives (``found``, ``alarms``) at thresholds of 0, 1, ... 100 %.

    ``at`` is the model's own threshold. None unless there are two classes.
    """
    if len(classes) != 2:
        return None
    code, value = (1, 0.5) if threshold is None else (threshold.code, threshold.value)
    positive, probability = codes == code, probabilities[:, code]
    steps = np.arange(_N_THRESHOLDS + 1) / _N_THRESHOLDS

    def at_least(values: np.ndarray) -> list[int]:
        return (len(values) - np.searchsorted(np.sort(values), steps, side="left")).tolist()

    return {
        "positive": str(classes[code]),
        "negative": str(classes[1 - code]),
        "at": round(_N_THRESHOLDS * value),
        "n_positive": int(positive.sum()),
        "n_negative": int((~positive).sum()),
        "found": at_least(probability[positive]),
        "alarms": at_least(probability[~positive]),
    }


def wilson_interval(n_right: int, n: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a proportion (Wilson 1927)."""
    low, high = binomtest(n_right, n).proportion_ci(0.95, method="wilson")
    return float(low), float(high)
