"""The graphs that a report is about: predictions, neighbours, domain, and scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

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
    known_graphs,
    smiles_of,
)
from treelens.models.scores import scores_of_classes, scores_of_numbers
from treelens.targets import Targets

if TYPE_CHECKING:
    from treelens.estimators.base import FittedEstimator

_FEWEST_NEW = 0.1  # of the graphs must be new for a test set; below, they are the training table


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


def scores_of_test_set(model: FittedModel, given: PredictedGraphs | None) -> dict[str, Any] | None:
    """Return scores on the graphs that were not trained on; None where there are none."""
    if given is None or given.truth is None or not len(given.test):
        return None
    new, truth, predicted = given.test, given.truth, given.predicted
    if model.classes is None:
        reference, mean = float(model.training.reported.mean()), given.predictions.mean[:, 0]
        return scores_of_numbers(truth, mean, given.learned_std, reference, new, given.scale)
    chances, threshold = given.probabilities[new], given.predictions.threshold
    return scores_of_classes(truth[new], predicted[new], chances, model.classes, threshold)
