"""What two models predict for the same graphs, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from treelens.graphs.collection import GraphCollection
from treelens.models.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd


class Side(NamedTuple):
    """One of two models, the graphs as it reads them, and what it says of them."""

    model: Any
    graphs: GraphCollection
    said: Predictions
    predictions: np.ndarray  # (n_graphs,) classes or numbers

    @classmethod
    def of(cls, model: Any, graphs: GraphCollection) -> Side:
        said = model._decide(graphs)
        classes = model._decision.classes
        named = said.decisions[:, 0] if classes is None else classes[said.predicted_codes]
        return cls(model, graphs, said, named)


def agreement_of(a: Side, b: Side, y: np.ndarray | None) -> dict[str, Any]:
    """How far two models say the same; see :class:`Comparison`."""
    classes = a.model._decision.classes
    found: dict[str, Any] = {"n_graphs": len(a.graphs)}
    if classes is None:
        apart = b.predictions - a.predictions
        found["correlation"] = _correlation(a.predictions, b.predictions)
        found["rms_difference"] = float(np.sqrt(np.mean(apart**2)))
        found["mean_difference"] = float(apart.mean())
    else:
        found["same"] = float((a.predictions == b.predictions).mean())
        found["kappa"] = _kappa(a.said.predicted_codes, b.said.predicted_codes, len(classes))
        found["mean_difference"] = float(_probability_gap(a, b).mean())
        if len(classes) == 2:
            one, other = a.said.decisions[:, 0], b.said.decisions[:, 0]
            found["rank_correlation"] = _correlation(one, other, ranks=True)
    if y is not None:
        found["score_a"], found["score_b"] = (_score(x.predictions, y, classes) for x in (a, b))
    return found


def _correlation(one: np.ndarray, other: np.ndarray, ranks: bool = False) -> float | None:
    """None where one of them does not vary."""
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(spearmanr(one, other)[0] if ranks else np.corrcoef(one, other)[0, 1])


def _kappa(one: np.ndarray, other: np.ndarray, n_classes: int) -> float | None:
    """Cohen's: agreement beyond what the classes' frequencies give; None where that is all."""
    shares = [np.bincount(x, minlength=n_classes) / len(x) for x in (one, other)]
    chance = float(shares[0] @ shares[1])
    return None if chance == 1.0 else float(((one == other).mean() - chance) / (1.0 - chance))


def _probability_gap(a: Side, b: Side) -> np.ndarray:
    """How far apart class probabilities are, from 0 to 1: (n_graphs,)."""
    assert a.said.probabilities is not None
    assert b.said.probabilities is not None
    return 0.5 * np.abs(a.said.probabilities - b.said.probabilities).sum(axis=1)


def _score(said: np.ndarray, y: np.ndarray, classes: np.ndarray | None) -> float:
    if classes is None:
        return float(np.sqrt(np.mean((said - y.astype(float)) ** 2)))
    return float((said.astype(str) == y.astype(str)).mean())  # a file may hold 1 as "1"


def graph_table(
    a: Side, b: Side, y: np.ndarray | None, class_label: Any = None
) -> pd.DataFrame:  # fmt: skip
    """What both models say of each graph, those first that they disagree on most."""
    import pandas as pd

    columns: dict[str, Any] = {"name": _names(a.graphs), "a": a.predictions, "b": b.predictions}
    if a.model._decision.classes is None:
        columns["difference"] = b.predictions - a.predictions
    else:
        columns |= _probability_columns(a, b, class_label)
    if y is not None:
        columns["truth"] = y
    table = pd.DataFrame(columns)
    order = np.argsort(-np.abs(table["difference"].to_numpy()), kind="stable")
    table.index.name = "graph"
    return table.iloc[order]


def _probability_columns(a: Side, b: Side, class_label: Any) -> dict[str, Any]:
    """What the models give a class, and b less a: of the one that is asked about, where one is."""
    assert a.said.probabilities is not None
    assert b.said.probabilities is not None
    classes = a.model._decision.classes
    apart = b.said.probabilities - a.said.probabilities  # (n_graphs, n_classes)
    every = np.arange(len(apart))
    if class_label is None and len(classes) > 2:
        code = np.abs(apart).argmax(axis=1)
        of_a, of_b = a.said.predicted_codes, b.said.predicted_codes
        told = {"class_label": classes[code]}
    else:
        asked = 1 if class_label is None else int(np.flatnonzero(classes == class_label)[0])
        code = of_a = of_b = np.full(len(apart), asked)
        told = {}
    return {
        "probability_a": a.said.probabilities[every, of_a],
        "probability_b": b.said.probabilities[every, of_b],
        "difference": apart[every, code],
        **told,
    }


def _names(graphs: GraphCollection) -> list[Any]:
    smiles = graphs.graph_data.get("smiles")
    if graphs.names is not None:
        return list(graphs.names)
    return [f"graph {k}" for k in range(len(graphs))] if smiles is None else list(smiles)
