"""What a Gaussian process says of its training graphs left out one at a time, as scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treelens.evaluation.metrics import number_scores
from treelens.gp.fitting import FittedEvidence, Targets
from treelens.gp.posterior import LeaveOneOut
from treelens.models.calibration import calibrated
from treelens.models.thresholds import Threshold, choose_threshold

# With fewer graphs, or a smaller gain in nats, no difference is claimed: the weights were learned
# from these same graphs.
_FEW = 20
_SMALLEST_GAIN = 0.01


@dataclass(frozen=True, eq=False)
class LeftOutNumbers:
    """Predictions of each training value from all the others.

    Weights and scales were learned from all of them, so the scores flatter a little.

    Attributes
    ----------
    predictions, std : ndarray, shape (n_graphs,)
    rmse, r2 : float
    nlpd : float
        Mean of minus the log predictive density.
    coverage : float
        Fraction of values within the 90 % interval.
    """

    predictions: np.ndarray
    std: np.ndarray
    rmse: float
    r2: float
    nlpd: float
    coverage: float


@dataclass(frozen=True, eq=False)
class LeftOutClasses:
    """Predictions of each training class from all the other graphs.

    Attributes
    ----------
    decisions : ndarray, shape (n_graphs,) or (n_graphs, n_classes)
    probabilities : ndarray, shape (n_graphs, n_classes)
    predictions : ndarray, shape (n_graphs,)
    accuracy : float
    log_loss : float
    threshold : Threshold or None
        What a rare class is named by; None: the most probable class is named.
    """

    decisions: np.ndarray
    probabilities: np.ndarray
    predictions: np.ndarray
    accuracy: float
    log_loss: float
    threshold: Threshold | None = None


@dataclass(frozen=True)
class LearningGain:
    """Learned against uniform weights, by leave-one-out predictive density.

    Attributes
    ----------
    difference : float
        Mean over graphs of the gain in log predictive density (nats); positive: learning helped.
    standard_error : float
        Of that mean.
    learned, uniform : float
        The two means.
    sentence : str
        The same in words.
    """

    difference: float
    standard_error: float
    learned: float
    uniform: float
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def left_out_numbers(left_out: LeaveOneOut, targets: Targets, values: np.ndarray) -> LeftOutNumbers:
    """Leave-one-out predictions in the units of the values, and their scores."""
    mean = targets.offset[0] + targets.scale * left_out.mean[:, 0]
    return scored_numbers(mean, targets.scale * np.sqrt(left_out.variance), values)


def scored_numbers(mean: np.ndarray, std: np.ndarray, values: np.ndarray) -> LeftOutNumbers:
    """Predictions of left-out values with their scores."""
    found = number_scores(values, mean, std)
    rmse, nlpd, coverage = (float(found[name] or 0.0) for name in ("rmse", "nlpd", "coverage"))
    return LeftOutNumbers(mean, std, rmse, float(found["r2"] or 0.0), nlpd, coverage)


def left_out_classes(
    decisions: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
    slope: float,
    asked: Any = "auto",
) -> LeftOutClasses:
    """Leave-one-out classes and probabilities, their scores, and the threshold asked for."""
    threshold = choose_threshold(asked, calibrated(decisions, slope), codes)
    return scored_classes(decisions, codes, classes, slope, threshold)


def scored_classes(
    decisions: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
    slope: float,
    threshold: Threshold | None,
) -> LeftOutClasses:
    """The same with a threshold that is known."""
    probabilities = calibrated(decisions, slope)
    predicted = probabilities.argmax(axis=1) if threshold is None else threshold.name(probabilities)
    own = probabilities[np.arange(len(codes)), codes]
    return LeftOutClasses(
        decisions[:, 0] if decisions.shape[1] == 1 else decisions,
        probabilities,
        classes[predicted],
        float(np.mean(predicted == codes)),
        max(0.0, -float(np.mean(np.log(np.maximum(own, 1e-300))))),
        threshold,
    )


def density_gain(fitted: FittedEvidence, targets: Targets, learned: str) -> LearningGain:
    """Compare the densities that learned and uniform weights give to what was left out."""
    values = targets.select(fitted.compared_on).values
    ours, uniform = (_log_densities(left_out, values) for left_out in fitted.compared)
    gain = ours - uniform
    error = float(np.std(gain, ddof=1) / np.sqrt(len(gain)))
    mean = float(gain.mean())
    return LearningGain(
        mean, error, float(ours.mean()), float(uniform.mean()),
        _sentence(mean, error, len(gain), learned),
    )  # fmt: skip


def _log_densities(left_out: LeaveOneOut, values: np.ndarray) -> np.ndarray:
    """Log predictive density of each graph's targets, their columns' mean: shape (n,)."""
    variance = left_out.variance[:, None]
    densities = -0.5 * ((values - left_out.mean) ** 2 / variance + np.log(2 * np.pi * variance))
    return densities.mean(axis=1)


def _sentence(mean: float, error: float, n: int, learned: str) -> str:
    if learned == "uniform":
        return "The weights are uniform: nothing was learned."
    size = f"{abs(mean):.3f} ± {error:.3f} nats a graph"
    if n < _FEW:
        return f"{n} graphs are too few to tell whether learned weights are better ({size})."
    if abs(mean) < max(2.0 * error, _SMALLEST_GAIN):
        return f"Learned and uniform weights predict left-out graphs about equally well ({size})."
    if mean > 0:
        return f"Learned weights predict left-out graphs better than uniform ones, by {size}."
    return f"Learned weights predict left-out graphs worse than uniform ones, by {size}."
