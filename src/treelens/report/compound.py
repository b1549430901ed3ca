"""The card of one molecule: prediction, atom map, neighbours, domain, groups, and a difference."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.explain.group_names import groups_of
from treelens.graphs.collection import GraphCollection
from treelens.graphs.molecules import molecule_of
from treelens.parallel import one_blas_thread
from treelens.report.cards import card_section, domain_sentence
from treelens.report.formats import Units
from treelens.report.predicted import PredictedGraphs, predict_graphs
from treelens.report.render import Drawings

_MOST_GROUPS = 8


def compound_card(estimator: Any, graphs: GraphCollection) -> dict[str, Any]:
    """Return what a chemist reads about one molecule, with drawings as SVG; text is escaped.

    Parameters
    ----------
    estimator : fitted GraphRegressor, GraphClassifier or GraphSVC
        Of molecules.
    graphs : GraphCollection
        Of the molecule, or of two: the molecule, and another one to compare it with.

    Returns
    -------
    dict
        The row of the molecule in the report's cards (numbers are on the learned scale), without
        its patterns, and ``svg``, ``domain``, ``groups`` (name, number of occurrences, what their
        atoms add), ``difference`` (None without another molecule).
    """
    given = predict_graphs(estimator, graphs, None)
    assert given is not None
    with one_blas_thread():
        row = card_section(estimator, given, chosen={0: "all"})["rows"][0]
    values = np.array(row["contributions"])
    targets = estimator.model_.training.targets
    units = Units.of({"std": float(targets.std())} if given.classes is None else None)
    draw = Drawings(units, "molecule", float(np.abs(values).max(initial=0.0)))
    card = {name: row[name] for name in row if name not in ("drawing", "patterns", "kind")}
    card["neighbors"] = [
        {name: near[name] for name in near if name != "drawing"} | {"svg": draw.training(near)}
        for near in row["neighbors"]
    ]
    return card | {
        "svg": draw.card(row),
        "domain": domain_sentence(given, 0, "molecule"),
        "groups": _groups(given, values),
        "difference": None if len(graphs) < 2 else _difference(given),
    }


def _groups(given: PredictedGraphs, values: np.ndarray) -> list[dict[str, Any]]:
    """The well-known groups of the first molecule, those that add most first."""
    rows = []
    for name, places in groups_of(molecule_of(given.graphs[0])):
        atoms = sorted({atom for place in places for atom in place})
        rows.append({"name": name, "n": len(places), "effect": float(values[atoms].sum())})
    return sorted(rows, key=lambda row: -abs(row["effect"]))[:_MOST_GROUPS]


def _difference(given: PredictedGraphs) -> dict[str, Any]:
    """How the first prediction differs from the second, on the learned scale."""
    if given.classes is None:
        return {"predicted": float(given.predicted[0] - given.predicted[1])}
    chances = given.probabilities[0] - given.probabilities[1]
    names = [str(label) for label in given.classes]
    return {"probabilities": dict(zip(names, chances.tolist(), strict=True))}
