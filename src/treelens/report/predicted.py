"""The graphs that a report is about: predictions, neighbours, domain, each computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from treelens.evaluation.metrics import NINETY
from treelens.explain.decode import with_label_names
from treelens.explain.draw import is_molecule
from treelens.explain.effects import inverse_covariance, training_copies
from treelens.gp.domain import Domain, expected_error
from treelens.gp.evidence import JITTER
from treelens.gp.model import FittedGP, feature_blocks
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.targets import LIMITS
from treelens.kernels.weighted import nearest_graphs
from treelens.models.predictions import Predictions
from treelens.models.targets import check_numbers
from treelens.models.training import known_graphs, smiles_of
from treelens.patterns.features import select_features
from treelens.patterns.histograms import PatternHistograms

_MANY = 1 / 3  # of the training graphs, for the inverse of their covariance to pay
_BLOCK = 2048  # graphs whose kernel rows are in memory at a time
_FEWEST_NEW = 0.1  # of the graphs must be new for a test set; below, they are the training table


@dataclass(frozen=True, eq=False)
class PredictedGraphs:
    """Graphs, their targets where known, and the predictions of a model."""

    graphs: GraphCollection
    shown: GraphCollection  # the same graphs with label names instead of codes
    truth: np.ndarray | None  # (n_graphs,) values, or classes as positions in ``classes``
    predictions: Predictions
    classes: np.ndarray | None  # None where numbers are predicted
    nearest: np.ndarray  # (n_graphs,) position of the most similar training graph
    similarity: np.ndarray  # (n_graphs,) the learned Tanimoto similarity to it, from 0 to 1
    in_training: np.ndarray  # (n_graphs,) the same molecule, or pattern counts without SMILES
    domain: Domain | None = None  # None for a model without a domain of applicability
    expected_error: np.ndarray | None = None
    in_domain: np.ndarray | None = None
    inverse: np.ndarray | None = None  # the inverse covariance of the training graphs, if at hand
    by_smiles: bool = False  # whether training graphs are found by SMILES

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def probabilities(self) -> np.ndarray:
        assert self.predictions.probabilities is not None
        return self.predictions.probabilities

    @cached_property
    def std(self) -> np.ndarray:
        assert self.predictions.variance is not None
        return np.sqrt(self.predictions.variance)

    @cached_property
    def predicted(self) -> np.ndarray:
        """Values, or classes as positions in ``classes``."""
        if self.classes is None:
            return self.predictions.mean[:, 0]
        return self.predictions.predicted_codes

    @property
    def _limits(self) -> np.ndarray:
        """1 where a value is a lower limit, -1 where it is an upper one: (n_graphs,)."""
        limits = self.graphs.graph_data.get(LIMITS)
        return np.zeros(len(self), dtype=np.int64) if limits is None else limits

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
            mean, half = self.predicted, NINETY * self.std
            columns |= {"predicted": mean, "std": self.std}
            columns |= {"lower_90": mean - half, "upper_90": mean + half}
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
            columns |= {"in_domain": self.in_domain, "expected_error": self.expected_error}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in columns.items()}

    @property
    def noun(self) -> str:
        return "molecule" if is_molecule(self.graphs[0]) else "graph"

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


def predict_graphs(
    estimator: Any, X: Any, y: Any, names: str | None = None
) -> PredictedGraphs | None:
    """Return predictions of the graphs of a report, None without graphs."""
    if X is None:
        if y is not None:
            raise ValueError("y was given without X: give the graphs that these belong to.")
        return None
    model, n_jobs = estimator.model_, estimator._n_jobs()
    graphs, truth = check_graphs(X, model.recipe), None
    if y is not None and model.classes is None:
        truth = check_numbers(y, len(graphs))
    elif y is not None:
        truth = class_codes(y, model.classes, len(graphs))
    domain, expected, inside, inverse = None, None, None, None
    found: Any
    if isinstance(model, FittedGP):
        found, inverse = _with_variances(model, graphs, n_jobs)
        domain = estimator.domain_
        around = domain.around(found.graphs.features, n_jobs)
        nearest, similarity = around.nearest, around.similarity
        expected = expected_error(np.sqrt(found.variance), around)
        inside = domain.holds(expected, around)
    else:
        found = model.decide(graphs, n_jobs=n_jobs)
        parts = [
            nearest_graphs(block, model.training_graphs, model.weights, 1, n_jobs=n_jobs)
            for block in feature_blocks(found.graphs.features, len(graphs))
        ]
        nearest = np.concatenate([part.positions[:, 0] for part in parts])
        similarity = np.concatenate([part.similarity[:, 0] for part in parts])
    return PredictedGraphs(
        graphs, with_label_names(graphs, names), truth, found, model.classes, nearest, similarity,
        known_graphs(model, graphs, found.graphs)[0], domain, expected, inside, inverse,
        bool(model.training.smiles and smiles_of(graphs)),
    )  # fmt: skip


def _with_variances(
    model: FittedGP, graphs: GraphCollection, n_jobs: int
) -> tuple[Predictions, np.ndarray | None]:
    """Return predictions with variances; the inverse covariance where many graphs were trained on.

    Of a training graph with noise ``d`` the latent variance is ``d - d^2 inv(A)_gg``: the inverse
    serves the fragments as well, and solving for all graphs would take as long again.
    """
    training, least = model.training, _MANY * len(model.basis_indices)
    assert training is not None
    if len(graphs) < least or model.sample_weights is None or training.limits is not None:
        return model.decide(graphs, variance=True, n_jobs=n_jobs), None
    found, variance = model.decide(graphs, n_jobs=n_jobs), np.empty(len(graphs))
    copies = training_copies(model.expansion, found.graphs)
    known, inverse = np.array([len(group) > 0 for group in copies]), None
    if known.sum() < least:
        known[:] = False
    else:
        inverse = inverse_covariance(model.expansion, n_jobs)
        noise = model.noise / model.sample_weights + JITTER * model.kernel.variance
        left = noise - noise**2 * np.asarray(inverse).diagonal()
        first = [group[0] for group in copies if group]
        variance[known] = model.variances(model.kernel.variance - left[first])
    new = np.flatnonzero(~known)
    for start in range(0, len(new), _BLOCK):
        part = new[start : start + _BLOCK]
        rows = model.kernel_rows(select_features(found.graphs.features, part), n_jobs)
        variance[part] = model.variances(model._full_posterior(n_jobs).reduction(rows, n_jobs))
    return replace(found, variance=variance), inverse


def class_codes(y: Any, classes: np.ndarray, n_graphs: int) -> np.ndarray:
    """Return classes as positions in ``classes``; the text "1" stands for the class 1."""
    y = np.asarray(y)
    if y.shape != (n_graphs,):
        raise ValueError(
            f"y must have one class for each of the {n_graphs} graphs; got the shape {y.shape}."
        )
    position: dict[Any, int] = {str(label): code for code, label in enumerate(classes.tolist())}
    position |= {label: code for code, label in enumerate(classes.tolist())}
    codes = [position.get(label, position.get(str(label), -1)) for label in y.tolist()]
    if -1 in codes:
        place = codes.index(-1)
        raise ValueError(
            f"y[{place}] is {y.tolist()[place]!r}, which is none of the classes of the model, "
            f"{classes.tolist()}. Leave out such graphs, or leave out y."
        )
    return np.array(codes, dtype=np.int64)


def graph_name(graphs: GraphCollection, index: int) -> str | None:
    """Return the name of a graph, else its SMILES, else None."""
    if graphs.names is not None and graphs.names[index] is not None:
        return str(graphs.names[index])
    smiles = graphs.graph_data.get("smiles")
    return None if smiles is None or smiles[index] is None else str(smiles[index])


def histogram_keys(histograms: PatternHistograms) -> list[Any]:
    """Return one key per graph, equal for equal pattern counts; an unseen pattern equals none."""
    table = histograms.to_sparse("counts", dtype=np.int32)  # (n_graphs, n_patterns)
    indices = table.indices.astype(np.int32)  # scipy chooses a width by the size of the table
    unseen = np.asarray(histograms.unseen.any(axis=1)).tolist()
    spans = zip(table.indptr[:-1].tolist(), table.indptr[1:].tolist(), strict=True)
    return [
        position if unseen[position] else (indices[a:b].tobytes(), table.data[a:b].tobytes())
        for position, (a, b) in enumerate(spans)
    ]
