"""From decision values to probabilities, and from these to classes.

The sign of a decision value is the likelier class, so probabilities need a slope and nothing else:
``softmax(slope * decisions)``, fitted to held-out predictions.

A class of 3 % is hardly ever the likelier one, and a model that names the likelier class then
never names it, however well it ranks. So with two classes, one of them rare, the threshold on its
probability is chosen on held-out predictions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from treelens.evaluation.metrics import rarer_code

# A class is rare with less than this part of an even share.
_RARE = 0.5
_KINDS = ("recall", "precision", "cost")
# Thresholds whose Matthews correlation is nearly the best are as good; the lowest finds most.
_NEARLY = 0.99
_SLOPES = (1e-2, 1e3)


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
    probabilities : ndarray, shape (n, n_classes)
    codes : ndarray of int, shape (n,)

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
    n, n_true = float(len(true)), float(true.sum())
    values = chance[order][ends]
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
