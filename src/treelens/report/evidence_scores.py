"""How good predictions with error bars are: errors, coverage, calibration, reliability."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from treelens.evaluation import metrics
from treelens.evaluation.metrics import NINETY
from treelens.gp.model import FittedGP
from treelens.models.predictions import predicted_codes
from treelens.report.said import SaidOfGraphs
from treelens.report.scores import score_decisions, wilson_interval
from treelens.report.threshold_counts import threshold_counts

# Shares of the measurements that an interval may promise to hold.
NOMINAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_MOST_POINTS = 800
_N_BINS = 10


def left_out_scores(model: FittedGP) -> dict[str, Any]:
    """Scores of every training graph predicted from all the others."""
    assert model.record is not None
    assert model.training is not None
    found, targets = model.record.left_out, model.training.targets
    if model.classes is None:
        return number_scores(targets, found.predictions, found.std, float(targets.mean()))
    decisions = found.decisions.reshape(len(targets), -1)
    named = np.searchsorted(model.classes, found.predictions)
    counts = threshold_counts(targets, found.probabilities, model.classes, model.threshold)
    scores = class_scores(targets, decisions, found.probabilities, model.classes, named)
    return scores | {"thresholds": counts}


def given_scores(model: FittedGP, given: SaidOfGraphs) -> dict[str, Any] | None:
    """Scores on the graphs given that training did not hold: what it holds is no test.

    None where targets are not known, or training held all graphs.
    """
    new = np.flatnonzero(~given.same_as_training)
    if given.truth is None or not len(new):
        return None
    truth, predicted = given.truth[new], given.predicted[new]
    if model.classes is None:
        assert model.training is not None
        reference = float(model.training.targets.mean())
        found = number_scores(truth, predicted, given.std[new], reference)
        found["points"]["index"] = new[found["points"]["index"]]
        return found
    assert given.probabilities is not None
    said = given.probabilities[new]
    scores = class_scores(truth, given.said.mean[new], said, model.classes, predicted)
    return scores | {"thresholds": threshold_counts(truth, said, model.classes, model.threshold)}


# --- numbers ----------------------------------------------------------------------------------


def number_scores(
    values: np.ndarray, mean: np.ndarray, std: np.ndarray, reference: float
) -> dict[str, Any]:
    """Scores of predicted numbers and their error bars.

    Parameters
    ----------
    values, mean, std : ndarray, shape (n,)
        Measured and predicted values, and the standard deviations of new measurements.
    reference : float
        What somebody without a model would say: the mean of the training values.

    Examples
    --------
    >>> one = np.ones(3)
    >>> found = number_scores(np.array([0.0, 1.0, 2.0]), np.array([0.5, 1.0, 1.5]), one, 1.0)
    >>> round(found["rmse"], 3), round(found["r2"], 3), found["coverage"]
    (0.408, 0.75, 1.0)
    """
    error = mean - values
    n_covered = int((np.abs(error) <= NINETY * std).sum())
    return {
        "n_graphs": len(values),
        **metrics.number_scores(values, mean, std),
        "reference_rmse": float(np.sqrt(np.mean((values - reference) ** 2))),
        "coverage_interval": wilson_interval(n_covered, len(values)),
        "median_half_width": float(np.median(NINETY * std)),
        "calibration": calibration_of_intervals(error / std),
        "points": _points(values, mean, std),
    }


def calibration_of_intervals(scaled_errors: np.ndarray) -> dict[str, Any]:
    """Which share of the measurements lies within intervals that promise some share.

    Examples
    --------
    >>> float(calibration_of_intervals(np.array([0.0, 3.0]))["observed"][0])
    0.5
    """
    reach = norm.ppf(0.5 + 0.5 * np.array(NOMINAL))
    inside = np.abs(scaled_errors)[:, None] <= reach
    return {"nominal": list(NOMINAL), "observed": inside.mean(axis=0)}


def _points(values: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, Any]:
    """What a scatter shows; of many a sample by chance, lest it look better or worse."""
    kept = np.sort(np.random.default_rng(0).permutation(len(values))[:_MOST_POINTS])
    return {
        "n_all": len(values),
        "index": kept,
        "measured": values[kept],
        "predicted": mean[kept],
        "half_width": NINETY * std[kept],
    }


# --- classes ----------------------------------------------------------------------------------


def class_scores(
    codes: np.ndarray,
    decisions: np.ndarray,
    probabilities: np.ndarray,
    classes: np.ndarray,
    predicted: np.ndarray | None = None,
) -> dict[str, Any]:
    """Scores of classes and probabilities; see :func:`treelens.report.scores.score_decisions`."""
    named = predicted_codes(decisions) if predicted is None else predicted
    found = metrics.class_scores(codes, named, probabilities)
    shares = np.bincount(codes, minlength=len(classes)) / len(codes)
    present = shares[shares > 0]
    return {
        **score_decisions(codes, decisions, classes, predicted),
        **{name: found[name] for name in ("mcc", "pr_auc", "log_loss", "names_one_class")},
        "reference_log_loss": -float((present * np.log(present)).sum()),
        "reliability": reliability(codes, probabilities),
    }


def reliability(codes: np.ndarray, probabilities: np.ndarray) -> list[dict[str, Any]]:
    """How often what was called so probable came true, by tenths of probability.

    With two classes the probability of the second, with more that of the class predicted.

    Examples
    --------
    >>> found = reliability(np.array([1, 0]), np.array([[0.06, 0.94], [0.02, 0.98]]))
    >>> found[0]["n"], found[0]["observed"]
    (2, 0.5)
    """
    if probabilities.shape[1] == 2:
        said, true = probabilities[:, 1], codes == 1
    else:
        said, true = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    place = np.minimum((said * _N_BINS).astype(int), _N_BINS - 1)
    bins = []
    for k in np.unique(place).tolist():
        here = place == k
        n, n_true = int(here.sum()), int(true[here].sum())
        bins.append(
            {
                "low": k / _N_BINS,
                "high": (k + 1) / _N_BINS,
                "n": n,
                "said": float(said[here].mean()),
                "observed": n_true / n,
                "observed_interval": wilson_interval(n_true, n),
            }
        )
    return bins
