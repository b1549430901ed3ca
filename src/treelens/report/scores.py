"""Scores of a model with the data of their charts, and checks of the model and the graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest, norm

from treelens.evaluation import metrics
from treelens.evaluation.metrics import NINETY
from treelens.gp.fitting import REFINE_MANY
from treelens.gp.model import FittedGP
from treelens.kernels.weighted import nearest_graphs
from treelens.models.predictions import predicted_codes
from treelens.models.thresholds import Threshold
from treelens.patterns.features import select_features
from treelens.report.formats import counted, percent
from treelens.report.predicted import PredictedGraphs, histogram_keys

# Nominal coverages of the intervals in a calibration chart.
NOMINAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_MOST_POINTS = 800
_MOST_CURVE_POINTS = 200
_N_BINS = 10
_N_THRESHOLDS = 100  # one for every per cent
_MOST_COMPARED = 400
_UNUSUAL = 0.05  # of the training graphs
_NOMINAL, _MARGIN = 0.9, 0.02


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
    right, true, named = (
        x.tolist() for x in (np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0))
    )
    per_class = [
        {
            "class": str(label),
            "n": n_true,
            "recall": right[k] / n_true if n_true else None,
            "precision": right[k] / named[k] if named[k] else None,
        }
        for k, (label, n_true) in enumerate(zip(classes.tolist(), true, strict=True))
    ]
    scores = {
        "n_graphs": n,
        "n_right": n_right,
        **found,
        "accuracy_interval": wilson_interval(n_right, n),
        "majority_share": float(shares.max()),
        "reference_log_loss": -float((present * np.log(present)).sum()),
        "confusion": confusion.tolist(),
        "per_class": per_class,
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


# --- checks -----------------------------------------------------------------------------------


def checks_of(
    model: Any,
    given: PredictedGraphs | None,
    validation: dict[str, Any] | None,
    scores: dict[str, Any] | None,
    noun: str,
) -> list[dict[str, Any]]:
    """Return sentences with a ``level``, "fine", "notice" or "alarm", the most serious first."""
    found = list(_model_checks(model, noun))
    if validation is not None:
        if validation.get("names_one_class"):
            text = f"In validation every training {noun} is put into the same class: the model "
            found.append(("alarm", text + "does not separate the classes."))
        found += coverage_check(validation, f"training {noun}s in leave-one-out")
    if scores is not None:
        found += coverage_check(scores, "the test set")
    if given is not None:
        found += _graph_checks(model, given, noun)
    order = ("alarm", "notice", "fine")
    rows = [{"level": level, "text": text} for level, text in found]
    return sorted(rows, key=lambda row: order.index(row["level"]))  # the sort is stable


def _model_checks(model: Any, noun: str) -> Iterator[tuple[str, str]]:
    is_gp = isinstance(model, FittedGP)
    search = model.record if is_gp else model.choice.learned
    if search is not None and search.converged:
        yield "fine", "The search for the weights converged."
    elif is_gp and len(search.history) >= REFINE_MANY:
        yield "fine", f"The search for the weights made all of its {len(search.history)} steps."
    elif search is not None:
        text = "The search for the weights stopped before it converged: more "
        text += f"{'max_steps' if is_gp else 'iterations'} may change weights and predictions."
        yield "alarm", text
    if model.training.n_in_all is not None:
        text = (
            f"The model was fitted to {model.training.n_in_all:,} {noun}s in blocks. It keeps a "
            f"sample of {len(model.training.targets):,} of them, which validation scores and "
            f"neighbours come from; the other training {noun}s cannot be told from new ones."
        )
        yield "notice", text


def _graph_checks(model: Any, given: PredictedGraphs, noun: str) -> Iterator[tuple[str, str]]:
    n_all = len(given)

    def share(n: int) -> str:
        part = "under 1 %" if 0 < n < 0.01 * n_all else percent(n / n_all, 0)
        return f"{n:,} of the {counted(n_all, noun)} ({part})"

    def unusual(which: np.ndarray, text: str) -> tuple[str, str]:
        """Twice as many unusual graphs as in training are worth a notice."""
        n = int(which.sum())
        level = "notice" if n > 2 * _UNUSUAL * n_all else "fine"
        text = text.replace("{share}", share(n))
        if n == 1:
            text = text.replace(") are ", ") is ").replace(") have ", ") has ")
        return "alarm" if n > 0.3 * n_all else level, text

    n = int(given.in_training.sum())
    if not n:
        yield "fine", f"None of the {noun}s is a training {noun}."
    else:
        text = f"{share(n)} {given.trained_words}."
        if given.truth is not None:
            text += f" {'It is' if n == 1 else 'They are'} left out of the test scores."
        yield "alarm" if given.truth is not None and n > 0.1 * n_all else "notice", text
    if given.in_domain is not None:
        yield unusual(
            ~given.in_domain,
            f"{{share}} are outside the domain of applicability: less similar to any training "
            f"{noun}, or with a larger expected error, than nearly all training {noun}s.",
        )
    else:
        train = model.training_graphs
        chosen = np.random.default_rng(0).permutation(train.pairs.n_graphs)[:_MOST_COMPARED]
        near = nearest_graphs(select_features(train, chosen), train, model.weights, 1, chosen)
        limit = float(np.quantile(near.similarity[:, 0], _UNUSUAL))
        yield unusual(
            given.similarity < limit,
            f"{{share}} are less similar to any training {noun} than 95 % of the training {noun}s "
            f"are to another one (similarity below {limit:.2f}).",
        )
    limit = model.training.usual_out_of_vocabulary
    yield unusual(
        given.predictions.out_of_vocabulary > limit,
        f"In {{share}} more than {percent(limit, 0)} of the patterns do not occur in the training "
        f"{noun}s.",
    )
    if given.classes is None:
        yield unusual(
            given.std > np.quantile(model.record.left_out.std, 1.0 - _UNUSUAL),
            f"{{share}} have wider intervals than 95 % of the training {noun}s in leave-one-out.",
        )
    elif given.truth is not None:
        groups: dict[Any, list[int]] = defaultdict(list)
        keys = histogram_keys(given.predictions.graphs.histograms)
        for key, code in zip(keys, given.truth.tolist(), strict=True):
            groups[key].append(code)
        conflicts = [codes for codes in groups.values() if len(set(codes)) > 1]
        lost = sum(len(codes) - int(np.bincount(codes).max()) for codes in conflicts)
        text = f"No two {noun}s with the same patterns are in different classes."
        if conflicts:
            text = f"{share(sum(map(len, conflicts)))} have the same patterns as one of another "
            text += f"class: no weights can reach more than {percent(1.0 - lost / n_all)} accuracy."
        yield "notice" if conflicts else "fine", text


def coverage_check(scores: dict[str, Any], what: str) -> list[tuple[str, str]]:
    """Return whether 90 % intervals hold what they promise; nothing for classes."""
    if "coverage_interval" not in scores:
        return []
    low, high = scores["coverage_interval"]
    text = f"contain {percent(scores['coverage'], 0)} of the measured values of {what}"
    if high < _NOMINAL - _MARGIN:
        return [("alarm", f"The 90 % intervals are too narrow: they {text}.")]
    if low > _NOMINAL + _MARGIN:
        return [("notice", f"The 90 % intervals are wider than necessary: they {text}.")]
    return [("fine", f"The 90 % intervals {text}.")]
