"""What a Gaussian process says of the graphs that a report is about, computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from treelens.evaluation.metrics import NINETY
from treelens.explain.names import LabelNames, with_label_names
from treelens.gp.domain import Domain, Neighbourhood, expected_error
from treelens.gp.model import FittedGP, feature_blocks
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.kernels.nearest import nearest_graphs
from treelens.models.predictions import Predictions, predicted_codes
from treelens.models.targets import check_numbers
from treelens.models.thresholds import Threshold
from treelens.report.given import codes_of, graph_name, least_certain, surest_of_the_wrong

# A similarity of one up to rounding: the same counts of all patterns.
_THE_SAME = 1.0 - 1e-9


@dataclass(frozen=True)
class PlaceInDomain:
    """Where graphs lie in a model's domain of applicability.

    Attributes
    ----------
    domain : Domain
    around : Neighbourhood
    expected : ndarray, shape (n_graphs,)
        The error to expect, in the units of the targets.
    inside : ndarray of bool, shape (n_graphs,)
    """

    domain: Domain
    around: Neighbourhood
    expected: np.ndarray
    inside: np.ndarray


@dataclass(frozen=True)
class SaidOfGraphs:
    """Graphs, their targets where known, and the model's predictions.

    Attributes
    ----------
    graphs : GraphCollection
    shown : GraphCollection
        The same graphs with the labels that people are to see.
    truth : ndarray, shape (n_graphs,), or None
        Values, or classes as positions in ``classes``.
    said : Predictions
    classes : ndarray or None
        None where numbers are predicted.
    probabilities : ndarray, shape (n_graphs, n_classes), or None
    threshold : Threshold or None
        What a rare class is named by.
    domain : PlaceInDomain or None
        None where the domain of applicability is not known.
    """

    graphs: GraphCollection
    shown: GraphCollection
    truth: np.ndarray | None
    said: Predictions
    classes: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    threshold: Threshold | None = None
    domain: PlaceInDomain | None = None

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def similarity(self) -> np.ndarray:
        """Learned Tanimoto similarity to the most similar training graph, from 0 to 1."""
        assert self.said.similarity is not None
        return self.said.similarity

    @cached_property
    def std(self) -> np.ndarray:
        assert self.said.variance is not None
        return np.sqrt(self.said.variance)

    @cached_property
    def predicted(self) -> np.ndarray:
        """Values, or classes as positions in ``classes``."""
        if self.classes is None:
            return self.said.mean[:, 0]
        if self.threshold is None or self.probabilities is None:
            return predicted_codes(self.said.mean)
        return self.threshold.name(self.probabilities)

    @cached_property
    def same_as_training(self) -> np.ndarray:
        """Which graphs have exactly the pattern counts of a training graph, landmark or not."""
        return (self.similarity >= _THE_SAME) & (self.said.out_of_vocabulary == 0)

    @cached_property
    def most_wrong(self) -> np.ndarray:
        """Positions, the largest errors first; of classes only wrong ones, the surest first."""
        if self.probabilities is not None:
            return surest_of_the_wrong(self.probabilities, self.predicted, self.truth)
        if self.truth is None:
            return np.empty(0, dtype=np.int64)
        return np.argsort(-np.abs(self.truth - self.predicted), kind="stable")

    @cached_property
    def most_uncertain(self) -> np.ndarray:
        """Positions, the widest intervals or the closest calls first."""
        if self.probabilities is not None:
            return least_certain(self.probabilities)
        return np.argsort(-self.std, kind="stable")

    @cached_property
    def most_typical(self) -> np.ndarray:
        """Positions, those most like a training graph (but not one of them) first."""
        order = np.argsort(-self.similarity, kind="stable")
        return order[~self.same_as_training[order]]

    def facts(self, index: int) -> dict[str, Any]:
        """What there is to say about one prediction."""
        about = {
            "index": index,
            "name": graph_name(self.graphs, index),
            "n_nodes": self.graphs.sizes[index],
            "similarity": self.similarity[index],
            "out_of_vocabulary": self.said.out_of_vocabulary[index],
            "in_domain": None if self.domain is None else bool(self.domain.inside[index]),
        }
        return about | (self._number(index) if self.classes is None else self._class(index))

    def _number(self, index: int) -> dict[str, Any]:
        mean, std = float(self.predicted[index]), float(self.std[index])
        facts = {
            "predicted": mean,
            "std": std,
            "interval": [mean - NINETY * std, mean + NINETY * std],
            "measured": None,
            "error": None,
        }
        if self.truth is not None:
            facts |= {"measured": self.truth[index], "error": mean - float(self.truth[index])}
        return facts

    def _class(self, index: int) -> dict[str, Any]:
        assert self.classes is not None
        assert self.probabilities is not None
        code = int(self.predicted[index])
        truth = None if self.truth is None else str(self.classes[self.truth[index]])
        return {
            "predicted": str(self.classes[code]),
            "probability": self.probabilities[index, code],
            "class": truth,
        }


def said_of(
    model: FittedGP,
    X: Any,
    y: Any,
    names: str | LabelNames | None = None,
    n_jobs: int = 1,
    make_domain: Callable[[], Domain] | None = None,
) -> SaidOfGraphs | None:
    """Graphs as the model sees them, each refined once; None where none are given."""
    if X is None:
        if y is not None:
            raise ValueError("y was given without X: give the graphs that these belong to.")
        return None
    graphs = check_graphs(X, model.recipe)
    shown = graphs if names is None else with_label_names(graphs, names)
    truth = None if y is None else _checked_truth(model, y, len(graphs))
    said = model.decide(graphs, variance=True, n_jobs=n_jobs)
    place = None if make_domain is None else _place_in(make_domain(), said, n_jobs)
    similarity = _similarity(model, said, n_jobs) if place is None else place.around.similarity
    said = replace(said, similarity=similarity)
    return SaidOfGraphs(
        graphs, shown, truth, said, model.classes, said.probabilities, model.threshold, place
    )


def _similarity(model: FittedGP, said: Predictions, n_jobs: int) -> np.ndarray:
    """The learned Tanimoto similarity to the nearest training graph, shape (n_graphs,)."""
    blocks = feature_blocks(said.graphs.features, len(said.decisions))
    train = model.training_graphs
    near = [nearest_graphs(block, train, model.weights, 1, n_jobs=n_jobs) for block in blocks]
    return np.concatenate([x.similarity[:, 0] for x in near])


def _place_in(domain: Domain, said: Predictions, n_jobs: int) -> PlaceInDomain:
    assert said.variance is not None
    around = domain.around(said.graphs.features, n_jobs)
    expected = expected_error(np.sqrt(said.variance), around)
    return PlaceInDomain(domain, around, expected, domain.holds(expected, around))


def _checked_truth(model: FittedGP, y: Any, n_graphs: int) -> np.ndarray:
    if model.classes is None:
        return check_numbers(y, n_graphs)
    return codes_of(y, model.classes, n_graphs)
