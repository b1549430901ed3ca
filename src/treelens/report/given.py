"""The graphs a report is about, with everything the model says about them, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from treelens.explain.names import LabelNames, with_label_names
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.models.predictions import Predictions
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import NodeColors
from treelens.svm.model import FittedSVM


@dataclass(frozen=True)
class GivenGraphs:
    """Graphs, their true classes where known, and the model's view of them.

    Attributes
    ----------
    graphs : GraphCollection
    shown : GraphCollection
        The same graphs with the labels that people are to see.
    codes : ndarray of int, shape (n_graphs,), or None
        True classes as positions in ``classes``.
    classes : ndarray
    said : Predictions
    """

    graphs: GraphCollection
    shown: GraphCollection
    codes: np.ndarray | None
    classes: np.ndarray
    said: Predictions

    @property
    def histograms(self) -> PatternHistograms:
        return self.said.graphs.histograms

    @property
    def colors(self) -> NodeColors:
        return self.said.graphs.colors

    @property
    def decisions(self) -> np.ndarray:
        return self.said.decisions

    @property
    def probabilities(self) -> np.ndarray:
        assert self.said.probabilities is not None
        return self.said.probabilities

    @cached_property
    def predicted(self) -> np.ndarray:
        """Classes as positions in ``classes``."""
        return self.said.predicted_codes

    def __len__(self) -> int:
        return len(self.graphs)

    @cached_property
    def most_uncertain(self) -> np.ndarray:
        return least_certain(self.probabilities)

    @cached_property
    def most_wrong(self) -> np.ndarray:
        return surest_of_the_wrong(self.probabilities, self.predicted, self.codes)

    def name_of(self, index: int) -> str | None:
        return graph_name(self.graphs, index)


def graph_name(graphs: GraphCollection, index: int) -> str | None:
    """What the data calls a graph: its name, else its SMILES."""
    if graphs.names is not None and graphs.names[index] is not None:
        return str(graphs.names[index])
    smiles = graphs.graph_data.get("smiles")
    return None if smiles is None or smiles[index] is None else str(smiles[index])


def least_certain(probabilities: np.ndarray) -> np.ndarray:
    """Positions, those first whose two likeliest classes are nearest to each other."""
    two = np.sort(probabilities, axis=1)[:, -2:]
    return np.argsort(two[:, 1] - two[:, 0], kind="stable")


def surest_of_the_wrong(
    probabilities: np.ndarray, predicted: np.ndarray, codes: np.ndarray | None
) -> np.ndarray:
    """Positions of wrong predictions, the least likely true class first."""
    if codes is None:
        return np.empty(0, dtype=np.int64)
    wrong = np.flatnonzero(predicted != codes)
    return wrong[np.argsort(probabilities[wrong, codes[wrong]], kind="stable")]


def look_at(
    model: FittedSVM,
    X: Any,
    y: Any,
    names: str | LabelNames | None = None,
    n_jobs: int = 1,
) -> GivenGraphs | None:
    """Graphs as the model sees them, each refined once; None where none are given."""
    if X is None:
        if y is not None:
            raise ValueError("y was given without X: give the graphs that these classes belong to.")
        return None
    graphs = check_graphs(X, model.recipe)
    codes = None if y is None else codes_of(y, model.classes, len(graphs))
    shown = graphs if names is None else with_label_names(graphs, names)
    return GivenGraphs(graphs, shown, codes, model.classes, model.decide(graphs, n_jobs=n_jobs))


def codes_of(y: Any, classes: np.ndarray, n_graphs: int) -> np.ndarray:
    """True classes as positions in ``classes``; a file may have read 1 where the model has "1"."""
    y = np.asarray(y)
    if y.shape != (n_graphs,):
        raise ValueError(
            f"y must hold one class for each of the {n_graphs} graphs; got the shape {y.shape}."
        )
    position = {str(label): code for code, label in enumerate(classes.tolist())}
    position.update({label: code for code, label in enumerate(classes.tolist())})
    codes = [position.get(label, position.get(str(label), -1)) for label in y.tolist()]
    if -1 in codes:
        place = codes.index(-1)
        raise ValueError(
            f"y[{place}] is {y.tolist()[place]!r}, a class that the model never learned: its "
            f"classes are {classes.tolist()}. Leave such graphs out, or leave out y."
        )
    return np.array(codes, dtype=np.int64)


def facts_of(given: GivenGraphs, positions: np.ndarray) -> list[dict[str, Any]]:
    """What there is to say about some predictions, in the order given."""
    unseen = given.said.out_of_vocabulary
    return [
        {
            "index": i,
            "name": given.name_of(i),
            "class": None if given.codes is None else str(given.classes[given.codes[i]]),
            "predicted": str(given.classes[given.predicted[i]]),
            "probability": given.probabilities[i, given.predicted[i]],
            "out_of_vocabulary": unseen[i],
            "n_nodes": given.graphs.sizes[i],
        }
        for i in positions.tolist()
    ]
