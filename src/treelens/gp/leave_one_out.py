"""What a Gaussian process says of its training graphs left out one at a time, as scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treelens.evaluation.metrics import NINETY, number_scores
from treelens.gp.choice import FEWEST, Candidate
from treelens.gp.fitting import FittedEvidence
from treelens.gp.model import FittedGP
from treelens.gp.posterior import ExactPosterior, LeaveOneOut, Targets
from treelens.models.thresholds import Threshold, calibrated, choose_threshold

# With a smaller gain in nats no difference is claimed: the weights were learned from these graphs.
_SMALLEST_GAIN = 0.01
_FEWEST_GROUPS = 10  # that a quantile of their errors is taken from


@dataclass(frozen=True, eq=False)
class LeftOutNumbers:
    """Predictions of each training value from all the others, and their scores.

    Weights and scales were learned from all of them, so the scores flatter a little. They are of
    exact values: a limit is no measurement to compare with.
    """

    predictions: np.ndarray  # (n_graphs,)
    std: np.ndarray  # (n_graphs,)
    rmse: float
    r2: float
    nlpd: float  # mean of minus the log predictive density
    coverage: float  # fraction of values within the 90 % interval


@dataclass(frozen=True, eq=False)
class LeftOutGroups:
    """Predictions of each training value from the graphs of all other groups, and their scores.

    Groups (scaffolds) are left out whole, so that errors are those of new chemistry; a graph
    without a group is left out alone, and not scored.
    """

    predictions: np.ndarray  # (n_graphs,)
    std: np.ndarray  # (n_graphs,)
    n_groups: int
    rmse: float
    coverage: float  # fraction of values within the 90 % interval
    factor: float  # of standard deviations, for nine of ten values to be within; at least 1


@dataclass(frozen=True, eq=False)
class LeftOutClasses:
    """Predictions of each training class from all the other graphs, and their scores."""

    decisions: np.ndarray  # (n_graphs,) or (n_graphs, n_classes)
    probabilities: np.ndarray  # (n_graphs, n_classes)
    predictions: np.ndarray  # (n_graphs,)
    accuracy: float
    log_loss: float
    threshold: Threshold | None = None  # None: the most probable class is named


@dataclass(frozen=True)
class LearningGain:
    """Learned against uniform weights at the best depth, on graphs that neither was fitted to.

    Scores are means over graphs of the log predictive density (of classes, of the log probability),
    in nats: learned weights predict better where the difference is positive.
    """

    difference: float
    standard_error: float  # of the difference
    learned: float
    uniform: float
    sentence: str  # the comparison in words
    compared: dict[str, float]  # the mean of every kind of weights that was fitted

    def __str__(self) -> str:
        return self.sentence


def left_out_numbers(left_out: LeaveOneOut, targets: Targets, values: np.ndarray) -> LeftOutNumbers:
    """Leave-one-out predictions in the units of the values, and their scores."""
    mean = targets.offset[0] + targets.scale * left_out.mean[:, 0]
    std = targets.scale * np.sqrt(left_out.variance)
    exact = slice(None) if targets.limits is None else targets.limits == 0
    found = number_scores(values[exact], mean[exact], std[exact])
    names = ("rmse", "r2", "nlpd", "coverage")
    return LeftOutNumbers(mean, std, *(float(found[name] or 0.0) for name in names))


def left_out_groups(model: FittedGP, groups: np.ndarray, n_jobs: int = 1) -> LeftOutGroups:
    """Leave whole groups of training graphs out, in closed form: a block of the inverse each.

    ``groups`` (n_graphs,) has a text for each, equal for graphs of one group, empty without one.
    """
    assert model.training is not None
    posterior, values = model._full_posterior(n_jobs), model.training.targets
    limits = model.training.limits
    if not isinstance(posterior, ExactPosterior):
        raise ValueError(
            "Groups are left out of an exact posterior only, and this model predicts through "
            "landmarks: use intervals='posterior', or fit with a larger exact_size."
        )
    inside = groups != ""
    names, numbers = np.unique(groups[inside], return_inverse=True)
    if len(names) < _FEWEST_GROUPS:
        raise ValueError(
            f"The training graphs have {len(names)} scaffolds, too few to measure errors on new "
            f"ones ({_FEWEST_GROUPS} or more are needed): use intervals='posterior'."
        )
    together = len(names) + np.arange(len(groups))
    together[inside] = numbers
    offset, scale = model.target_offset[0], model.target_scale
    found = posterior.leave_one_out(posterior.targets, n_jobs, together)
    mean, std = offset + scale * found.mean[:, 0], scale * np.sqrt(found.variance)
    scored = inside if limits is None else inside & (limits == 0)
    scores = number_scores(values[scored], mean[scored], std[scored])
    largest = float(np.quantile((np.abs(values - mean) / std)[scored], 0.9))
    rmse, coverage = float(scores["rmse"] or 0.0), float(scores["coverage"] or 0.0)
    return LeftOutGroups(mean, std, len(names), rmse, coverage, max(1.0, largest / NINETY))


def left_out_classes(
    decisions: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
    slope: float,
    asked: Any = "auto",
) -> LeftOutClasses:
    """Leave-one-out classes and probabilities, their scores, and the threshold asked for."""
    probabilities = calibrated(decisions, slope)
    threshold = choose_threshold(asked, probabilities, codes)
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


def learning_gain(fitted: FittedEvidence) -> LearningGain:
    """Compare the learned weights in use, or else the best ones, with uniform weights."""
    alike = [c for c in fitted.candidates if c.descriptors == fitted.chosen.descriptors]
    uniform, learned = alike[0], max(alike[1:], key=_mean_score, default=alike[0])
    if fitted.chosen.weights != "uniform":
        learned = fitted.chosen
    gain, error = learned.gain_over(uniform)
    compared = {
        c.weights + (" with descriptors" if c.descriptors else ""): _mean_score(c)
        for c in fitted.candidates
        if len(c.scores)
    }
    size = f"{gain:+.3f} ± {error:.3f} nats per graph"
    baseline = f"uniform weights at depth {fitted.candidates[0].depth}"
    used = {
        "uniform": baseline, "depths": "one weight per depth", "branches": "a weight per pattern"
    }[fitted.chosen.weights]  # fmt: skip
    if all(candidate.weights == "uniform" for candidate in fitted.candidates):
        sentence = f"Used: {used}; no weights were learned."
    elif len(uniform.scores) < FEWEST:
        n = len(uniform.scores)
        sentence = f"Used: {used}; {n} graphs are too few to compare weights ({size})."
    else:
        verdict = f"learned weights and {baseline} predict about equally well"
        if abs(gain) >= max(2.0 * error, _SMALLEST_GAIN):
            better = "better" if gain > 0 else "worse"
            verdict = f"learned weights predict {better} than {baseline}"
        sentence = f"Used: {used}. On held-out graphs {verdict} ({size})."
    return LearningGain(gain, error, _mean_score(learned), _mean_score(uniform), sentence, compared)


def _mean_score(candidate: Candidate) -> float:
    return float(candidate.scores.mean()) if len(candidate.scores) else 0.0
