"""The graphs that a report is about: predictions, neighbours, domain, and scores with charts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binomtest, norm

from treelens.evaluation import metrics
from treelens.evaluation.metrics import NINETY
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.kinds import kind_of_facts
from treelens.kernels.weighted import nearest_graphs
from treelens.maps import TargetMap
from treelens.models.domain import Domain, compared_alone, expected_error
from treelens.models.fitted import FittedModel, reported_values
from treelens.models.predictions import (
    Predictions,
    Threshold,
    known_graphs,
    smiles_of,
)
from treelens.targets import Targets, positive_code

if TYPE_CHECKING:
    from treelens.estimators.base import FittedEstimator

_FEWEST_NEW = 0.1  # of the graphs must be new for a test set; below, they are the training table
# Nominal coverages of the intervals in a calibration chart.
NOMINAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_MOST_POINTS = 800
_MOST_CURVE_POINTS = 200
_N_BINS = 10
_N_THRESHOLDS = 100  # one for every per cent


def similarity_in_words(similarity: float, alone: str | None = None) -> str:
    """Return a similarity as people read it; ``alone`` is what :func:`compared_alone` returns.

    Examples
    --------
    >>> similarity_in_words(0.834), similarity_in_words(0.999), similarity_in_words(1.0)
    ('0.83', '0.99', '1.00')
    >>> similarity_in_words(0.834, "atoms"), similarity_in_words(1.0, "atoms")
    ('0.83 by atoms alone', 'same atoms')
    """
    same = similarity > 1.0 - 1e-9
    text = "1.00" if same else f"{min(similarity, 0.99):.2f}"  # 1.00: the same patterns, no less
    if alone is None:
        return text
    return f"same {alone}" if same else f"{text} by {alone} alone"


@dataclass(frozen=True, eq=False)
class PredictedGraphs:
    """Graphs, their targets where known, and the predictions of a model."""

    graphs: GraphCollection
    truth: np.ndarray | None  # (n_graphs,) values, or classes as positions in ``classes``
    predictions: Predictions
    classes: np.ndarray | None  # None where numbers are predicted
    nearest: np.ndarray  # (n_graphs,) position of the most similar training graph
    similarity: np.ndarray  # (n_graphs,) the learned Tanimoto similarity to it, from 0 to 1
    in_training: np.ndarray  # (n_graphs,) the same molecule, or pattern counts without SMILES
    domain: Domain | None = None  # None for a model without a domain of applicability
    expected_error: np.ndarray | None = None
    in_domain: np.ndarray | None = None
    by_smiles: bool = False  # whether training graphs are found by SMILES
    limits: np.ndarray | None = None  # (n_graphs,) as in Targets; None: all values are exact
    alone: str | None = None  # what the model compares, as compared_alone says
    scale: TargetMap | None = None  # that predictions are on, where results are not

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def probabilities(self) -> np.ndarray:
        assert self.predictions.probabilities is not None
        return self.predictions.probabilities

    @cached_property
    def learned_std(self) -> np.ndarray:
        """Standard deviations on the scale of the predictions."""
        assert self.predictions.variance is not None
        return np.sqrt(self.predictions.variance)

    @cached_property
    def std(self) -> np.ndarray:
        return self._deviations(self.learned_std)

    def _deviations(self, std: np.ndarray) -> np.ndarray:
        """Return standard deviations as results show them."""
        return std if self.scale is None else self.scale.inverse_std(self._mean, std)

    @property
    def _mean(self) -> np.ndarray:
        return self.predictions.mean[:, 0]

    @cached_property
    def bounds(self) -> np.ndarray:
        """Bounds of the 90 % intervals, shape (2, n_graphs)."""
        half = NINETY * self.learned_std
        found = np.array([self._mean - half, self._mean + half])
        return found if self.scale is None else self.scale.inverse(found)

    @cached_property
    def predicted(self) -> np.ndarray:
        """Values, or classes as positions in ``classes``."""
        if self.classes is not None:
            return self.predictions.predicted_codes
        if self.scale is None:
            return self._mean
        return self.scale.inverse_mean(self._mean, self.learned_std)

    @property
    def _limits(self) -> np.ndarray:
        """1 where a value is a lower limit, -1 where it is an upper one: (n_graphs,)."""
        return np.zeros(len(self), dtype=np.int64) if self.limits is None else self.limits

    @cached_property
    def test(self) -> np.ndarray:
        """Positions of the graphs that scores are computed on: measured, and not trained on.

        Empty without targets, and where nearly all graphs were trained on: what is left of a
        training table (rows that were dropped before the fit) is not a test set.
        """
        new = np.flatnonzero(~self.in_training & (self._limits == 0))
        if self.truth is None or len(new) < _FEWEST_NEW * len(self):
            return new[:0]
        return new

    @property
    def most_wrong(self) -> np.ndarray:
        """Positions by error, the largest first; of classes the wrong ones, the surest first."""
        if self.truth is None:
            return np.empty(0, dtype=np.int64)
        if self.classes is None:
            error = np.where(self._limits == 0, np.abs(self.truth - self.predicted), 0.0)
            return np.argsort(-error, kind="stable")
        wrong = np.flatnonzero(self.predicted != self.truth)
        return wrong[np.argsort(self.probabilities[wrong, self.truth[wrong]], kind="stable")]

    @property
    def most_uncertain(self) -> np.ndarray:
        """Positions by width of the interval, or by how close the two likeliest classes are."""
        if self.classes is None:
            return np.argsort(-self.std, kind="stable")
        two = np.sort(self.probabilities, axis=1)[:, -2:]
        return np.argsort(two[:, 1] - two[:, 0], kind="stable")

    @property
    def most_similar(self) -> np.ndarray:
        """Positions by similarity to a training graph, without training graphs themselves."""
        order = np.argsort(-self.similarity, kind="stable")
        return order[~self.in_training[order]]

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The predictions as a table, by column."""
        columns: dict[str, Any] = {
            "index": np.arange(len(self)),
            "name": [graph_name(self.graphs, i) for i in range(len(self))],
        }
        if self.classes is None:
            mean, (lower, upper) = self.predicted, self.bounds
            columns |= {"predicted": mean, "std": self.std, "lower_90": lower, "upper_90": upper}
            if self.truth is not None:
                columns |= {"measured": self.truth, "error": mean - self.truth}
                if self._limits.any():
                    columns["limit"] = [("", ">", "<")[k] for k in self._limits]
        else:
            codes, labels = self.predicted, [str(label) for label in self.classes.tolist()]
            own = self.probabilities[np.arange(len(codes)), codes]
            columns["predicted"] = [labels[code] for code in codes.tolist()]
            columns |= {"probability": own, "probability_wrong": 1.0 - own}
            if self.truth is not None:
                columns["class"] = [labels[code] for code in self.truth.tolist()]
        columns |= {
            "similarity": self.similarity,
            "nearest": self.nearest,
            "in_training": self.in_training,
            "unseen_patterns": self.predictions.out_of_vocabulary,
            "n_nodes": self.graphs.sizes,
        }
        if self.in_domain is not None and self.expected_error is not None:
            expected = self._deviations(self.expected_error)
            columns |= {"in_domain": self.in_domain, "expected_error": expected}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in columns.items()}

    @property
    def noun(self) -> str:
        return _noun_of(self.graphs)

    @property
    def trained_words(self) -> str:
        """What is known of the graphs that are ``in_training``, after their number."""
        one = self.in_training.sum() == 1
        if self.by_smiles:
            return "was trained on" if one else "were trained on"
        return f"{'has' if one else 'have'} the patterns of a training {self.noun}"

    def row(self, index: int) -> dict[str, Any]:
        """Return one prediction."""
        return {name: values[index] for name, values in self.columns.items()}


def predict_graphs(estimator: FittedEstimator, X: object, y: object) -> PredictedGraphs | None:
    """Return predictions of the graphs of a report, None without graphs."""
    if X is None:
        if y is not None:
            raise ValueError("y was given without X: give the graphs that these belong to.")
        return None
    model, n_jobs = estimator.model_, estimator._n_jobs()
    graphs = check_graphs(X, model.recipe)
    targets = None if y is None else Targets.of(y, len(graphs))
    found = model.decide(graphs, variance=model.has_variance, n_jobs=n_jobs)
    domain, expected, inside = model.domain(n_jobs), None, None
    if domain is not None and found.variance is not None:
        around = domain.around(found.graphs.patterns.features, n_jobs)
        nearest, similarity = around.nearest, around.similarity
        expected = expected_error(np.sqrt(found.variance), around)
        inside = domain.holds(expected, around)
    else:
        trained = model.training_graphs.patterns
        parts = [
            nearest_graphs(block.patterns, trained, 1, n_jobs=n_jobs)
            for block in found.graphs.features.blocks()
        ]
        nearest = np.concatenate([part.positions[:, 0] for part in parts])
        similarity = np.concatenate([part.similarity[:, 0] for part in parts])
    return PredictedGraphs(
        graphs,
        None if targets is None else reported_values(model, targets),
        found,
        model.classes,
        nearest,
        similarity,
        known_graphs(model, graphs, found.graphs)[0],
        domain,
        expected,
        inside,
        bool(model.training.smiles and smiles_of(graphs)),
        None if targets is None else targets.limits,
        compared_alone(model, _noun_of(graphs)),
        model.training.record.hidden,
    )


def _noun_of(graphs: GraphCollection) -> str:
    return kind_of_facts(graphs.graph_data).noun


def graph_name(graphs: GraphCollection, index: int) -> str | None:
    """Return the name of a graph, else its SMILES, else None."""
    if graphs.names is not None and graphs.names[index] is not None:
        return str(graphs.names[index])
    smiles = graphs.graph_data.get("smiles")
    return None if smiles is None or smiles[index] is None else str(smiles[index])


# --- scores -----------------------------------------------------------------------------------


def validation_scores(model: FittedModel) -> dict[str, Any] | None:
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
        return method | number_scores(values, found.predicted, found.std, reference, exact, scale)
    known, chances, ranking = found.known, found.probabilities, found.decisions
    return method | class_scores(
        training.targets[known],
        found.predicted[known],
        None if chances is None else chances[known],
        classes,
        model.threshold,
        ranking=None if ranking is None else ranking[known],
    )


def scores_of_test_set(model: FittedModel, given: PredictedGraphs | None) -> dict[str, Any] | None:
    """Return scores on the graphs that were not trained on; None where there are none."""
    if given is None or given.truth is None or not len(given.test):
        return None
    new, truth, predicted = given.test, given.truth, given.predicted
    if model.classes is None:
        reference, mean = float(model.training.reported.mean()), given.predictions.mean[:, 0]
        return number_scores(truth, mean, given.learned_std, reference, new, given.scale)
    chances, threshold = given.probabilities[new], given.predictions.threshold
    return class_scores(truth[new], predicted[new], chances, model.classes, threshold)


def number_scores(
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


def class_scores(
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
    found = metrics.class_scores(codes, predicted, columns)
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
        return (len(values) - np.searchsorted(np.sort(values), steps, side="left")).tolist()

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
