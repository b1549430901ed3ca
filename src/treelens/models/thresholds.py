"""Checks of targets, and from decision values to probabilities and classes.

The sign of a decision value is the likelier class, so probabilities need a slope and nothing else:
``softmax(slope * decisions)``, fitted to held-out predictions.

A class of 3 % is hardly ever the likelier one, and a model that names the likelier class then
never names it, however well it ranks. So with two classes, one of them rare, the threshold on its
probability is chosen on held-out predictions.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from treelens._sklearn_compat import check_sample_weight
from treelens.evaluation.metrics import rarer_code
from treelens.graphs.convert import check_kind

# A class is rare with less than this part of an even share.
_RARE = 0.5
_KINDS = ("recall", "precision", "cost")
# Thresholds whose Matthews correlation is nearly the best are as good; the lowest finds most.
_NEARLY = 0.99
_SLOPES = (1e-2, 1e3)
_NOT_NUMBERS = (
    "y contains values that are not numbers: a regressor needs one number per graph. For classes, "
    "use GraphClassifier."
)


def fit_slope(decisions: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    """Return the slope that makes held-out classes most probable.

    ``decisions`` are (n, n_outputs), one output for two classes; ``codes`` and ``weights`` (n,).
    """
    n_classes = max(2, decisions.shape[1])
    # As Platt (1999): where the classes separate, no finite slope would be the best. A class of n
    # graphs is certain to (n + 1) / (n + 2) only.
    counts = np.bincount(codes, minlength=n_classes)
    certain = ((counts + 1.0) / (counts + 2.0))[codes]  # (n,)
    wanted = np.tile(((1.0 - certain) / (n_classes - 1))[:, None], n_classes)
    wanted[np.arange(len(codes)), codes] = certain

    def log_loss(log_slope: float) -> float:
        probability = calibrated(decisions, float(np.exp(log_slope)))
        missed = -(wanted * np.log(np.maximum(probability, 1e-300))).sum(axis=1)
        return float(np.average(missed, weights=weights))

    bounds = np.log(_SLOPES)
    return float(np.exp(optimize.minimize_scalar(log_loss, bounds=bounds, method="bounded").x))


def calibrated(decisions: np.ndarray, slope: float) -> np.ndarray:
    """Return class probabilities, shape (n, n_classes)."""
    if decisions.shape[1] == 1:
        decisions = np.hstack([-0.5 * decisions, 0.5 * decisions])
    likelihood = np.exp(slope * (decisions - decisions.max(axis=1, keepdims=True)))
    return likelihood / likelihood.sum(axis=1, keepdims=True)


class Threshold(NamedTuple):
    """Name the class ``code`` where its probability is at least ``value``."""

    value: float
    code: int

    def validate(self) -> None:
        if not 0.0 < self.value <= 1.0 or self.code not in (0, 1):
            raise ValueError("a threshold is above 0 and at most 1, of the class 0 or 1")

    def name(self, probabilities: np.ndarray) -> np.ndarray:
        """Classes 0 and 1 from probabilities (n, 2): shape (n,)."""
        named = probabilities[:, self.code] >= self.value
        return np.where(named, self.code, 1 - self.code)


def has_rare_class(codes: np.ndarray) -> bool:
    """Whether some class has less than half of an even share: of two classes, below 25 %."""
    counts = np.bincount(codes)
    return bool(counts.min() < _RARE * len(codes) / len(counts))


def choose_threshold(asked: Any, probabilities: np.ndarray, codes: np.ndarray) -> Threshold | None:
    """Return the threshold that was asked for, from held-out probabilities.

    Parameters
    ----------
    asked : float or str
        ``"auto"``: where one of two classes is rare (below 25 %) the one with the largest Matthews
        correlation, else None. A number between 0 and 1: that. ``"recall=0.9"``: the highest that
        finds nine tenths of the rarer class. ``"precision=0.8"``: the lowest with eight of ten
        named rightly. ``"cost=10"``: the cheapest if missing one costs as much as ten false alarms.
    probabilities, codes : ndarray, shape (n, n_classes) and (n,)

    Returns
    -------
    Threshold or None
        On the probability of the rarer class; None: the most probable class is named.

    Examples
    --------
    >>> chances = np.array([[0.9, 0.1], [0.7, 0.3], [0.95, 0.05], [0.8, 0.2]])
    >>> choose_threshold("recall=1", chances, np.array([0, 1, 0, 1])).value
    0.2
    """
    kind, number = parse_threshold(asked)
    if probabilities.shape[1] != 2:
        if kind not in ("auto", "number") or (kind == "number" and number != 0.5):
            raise ValueError(
                f"threshold={asked!r} is for two classes, and there are {probabilities.shape[1]}: "
                "leave it out, or learn one class against the others."
            )
        return None
    if kind == "auto" and not has_rare_class(codes):
        return None
    code = rarer_code(codes)
    if kind == "number":
        return None if number == 0.5 else Threshold(number, code)
    value = _best(kind, number, probabilities[:, code], codes == code)
    return None if value is None else Threshold(value, code)


def parse_threshold(asked: Any) -> tuple[str, float]:
    """Return what a threshold asks for: ``("recall", 0.9)``, ``("number", 0.5)``, ..."""
    if isinstance(asked, str) and asked == "auto":
        return "auto", 0.0
    kind, _, text = asked.rpartition("=") if isinstance(asked, str) else ("", "", asked)
    try:
        number = float(text)
    except (TypeError, ValueError):
        number = -1.0
    most = float("inf") if kind == "cost" else 1.0
    if (kind and kind not in _KINDS) or not 0.0 < number <= most or number == float("inf"):
        raise ValueError(
            f"threshold must be 'auto', a number between 0 and 1, 'recall=0.9', 'precision=0.8' or "
            f"'cost=10'; got {asked!r}."
        )
    return kind or "number", number


def _best(kind: str, number: float, chance: np.ndarray, true: np.ndarray) -> float | None:
    """The threshold among the probabilities said; None where nothing can be told apart."""
    order = np.argsort(-chance, kind="stable")
    # A threshold names all graphs of its probability, so only the last of equals counts.
    ends = np.append(np.flatnonzero(np.diff(chance[order])), len(order) - 1)
    hits = np.cumsum(true[order])[ends].astype(float)
    named = ends + 1.0
    n, n_true, values = float(len(true)), float(true.sum()), chance[order][ends]
    if not 0 < n_true < n:
        return None
    if kind == "recall":
        return float(values[np.argmax(hits >= number * n_true)])
    if kind == "precision":
        enough = np.flatnonzero(hits >= number * named)
        return float(values[enough[-1] if len(enough) else 0])
    if kind == "cost":
        return float(values[np.argmin(number * (n_true - hits) + (named - hits))])
    spread = np.sqrt(named * (n - named) * n_true * (n - n_true))
    correlation = np.divide(n * hits - named * n_true, spread, out=np.zeros(len(ends)),
                            where=spread > 0)  # fmt: skip
    best = float(correlation.max())
    return float(values[np.flatnonzero(correlation >= _NEARLY * best)[-1]]) if best > 0 else None


def check_numbers(y: Any, n_graphs: int) -> np.ndarray:
    """Return regression targets as floats."""
    if y is None:
        raise ValueError("A regressor needs values: call fit(graphs, y).")
    check_kind(y)
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        found = first_no_number(np.asarray(y, dtype=object)) if np.ndim(y) == 1 else None
        if found is None:
            raise ValueError(_NOT_NUMBERS) from None
        raise ValueError(f"{found[1]}, at position {found[0]}: correct or drop it.") from None
    if values.shape != (n_graphs,):
        raise ValueError(
            f"There are {n_graphs} graphs but {values.size} values in y, of shape {values.shape}: "
            "give one each, one-dimensional."
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(
            f"y holds NaN or infinity for {len(wrong)} graphs, the first at position {wrong[0]}: "
            "drop those graphs or give them a value."
        )
    largest, spread = float(np.abs(values).max(initial=0.0)), float(np.ptp(values))
    if largest > 1e100 or 0.0 < spread < 1e-100:
        raise ValueError(
            f"The values of y reach {largest:.3g} and differ by {spread:.3g}: rescale them, their "
            "squares overflow or underflow."
        )
    return values


def first_no_number(y: np.ndarray) -> tuple[int, str] | None:
    """Return the position of the first value that is not a finite number, and a message.

    None where all are numbers; a ``ValueError`` where they are texts and none is a number.
    """
    import pandas as pd

    numbers = pd.to_numeric(pd.Series(y), errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if not len(wrong):
        return None
    values = y.tolist()
    if len(wrong) == len(y) and any(isinstance(v, str) and v.strip() for v in values):
        raise ValueError(_NOT_NUMBERS)
    return int(wrong[0]), f"y holds {values[wrong[0]]!r}, which is no number"


def check_weights(sample_weight: Any, n_graphs: int) -> np.ndarray:
    """Sample weights scaled to a mean of one; a ``ValueError`` describes what is wrong."""
    if n_graphs < 2:
        raise ValueError("There is 1 graph: a Gaussian process needs at least 2 to learn from.")
    weights = check_sample_weight(sample_weight, np.empty((n_graphs, 1)), dtype=np.float64)
    if not (weights > 0).all():
        raise ValueError("sample_weight must be above 0 everywhere: drop graphs of no weight.")
    if weights.max() / weights.min() > 1e6:
        warnings.warn("sample_weight spans more than six powers of ten.", UserWarning, stacklevel=3)
    return weights / weights.mean()


def class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """One weight per training graph from ``None``, ``"balanced"`` or a dict by class."""
    if class_weight is None:
        return np.ones(len(codes))
    if isinstance(class_weight, str):
        counts = np.bincount(codes, minlength=len(classes))
        return (len(codes) / (len(classes) * counts.clip(1)))[codes]
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        names = ", ".join(sorted(map(repr, unknown)))
        raise ValueError(f"class_weight names classes that are not in y: {names}.")
    weights = np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])
    if not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError(f"class_weight must be finite numbers above 0, got {class_weight!r}.")
    return weights[codes]


def warn_if_one_class(held_out: np.ndarray, classes: np.ndarray) -> None:
    """Warn where one class was predicted for all held-out graphs; ``held_out`` are codes."""
    if len(np.unique(held_out)) == 1:
        warnings.warn(
            f"The model predicts the class {classes.tolist()[held_out[0]]!r} for every held-out "
            "graph, so its accuracy is the share of that class. Its decision values may still "
            "rank graphs (see the ROC AUC); class_weight='balanced' weights rare classes up.",
            UserWarning,
            stacklevel=4,
        )
