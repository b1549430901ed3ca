"""The card of one molecule: prediction, atom map, neighbours, domain, groups, and a difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from treelens.explain.fragments import measured_with_and_without
from treelens.explain.smarts import group_queries, groups_of
from treelens.graphs.collection import GraphCollection
from treelens.graphs.molecules import molecule_of
from treelens.graphs.recipe import learned_transform
from treelens.parallel import one_blas_thread
from treelens.report.formats import Units
from treelens.report.predicted import PredictedGraphs, predict_graphs
from treelens.report.render import Drawings
from treelens.report.sections import card_section

_MOST_GROUPS = 8


def compound_card(
    estimator: Any, graphs: GraphCollection, evidence: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what a chemist reads about one molecule, with drawings as SVG; text is escaped.

    That is its row in the report's cards (numbers are on the learned scale), ``svg``, ``groups``
    (name, number of occurrences, what their atoms add) and ``difference``. ``graphs`` may have
    another molecule to compare it with; ``evidence`` is of :func:`group_evidence`.
    """
    given = predict_graphs(estimator, graphs, None)
    assert given is not None
    with one_blas_thread():
        (row,) = card_section(estimator, given, chosen={0: "all"})
    values = np.array(row["contributions"])
    targets = estimator.model_.training.targets
    units = Units.of({"std": float(targets.std())} if given.classes is None else None)
    draw = Drawings(units, "molecule", float(np.abs(values).max(initial=0.0)))
    groups: list[dict[str, Any]] = []
    for name, places in groups_of(molecule_of(given.graphs[0])):
        atoms = sorted({atom for place in places for atom in place})
        groups.append({"name": name, "n": len(places), "effect": float(values[atoms].sum())})
    groups = sorted(groups, key=lambda group: -abs(group["effect"]))[:_MOST_GROUPS]
    for group in groups:
        group["measured"] = (evidence or {}).get(group["name"])
    card = {name: row[name] for name in row if name not in ("drawing", "patterns", "kind")}
    card["neighbors"] = [
        {name: near[name] for name in near if name != "drawing"} | {"svg": draw.training(near)}
        for near in row["neighbors"]
    ]
    return card | {
        "svg": draw.card(row),
        "groups": groups,
        "difference": None if len(graphs) < 2 else _difference(estimator, given),
    }


def _difference(estimator: Any, given: PredictedGraphs) -> dict[str, Any]:
    """How the first prediction differs from the second; the deviation is that of the difference."""
    if given.classes is None:
        mean, cov = estimator.predict(
            given.graphs, return_cov=True, include_noise=False, learned_scale=True
        )
        variance = max(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1], 0.0)
        return {"predicted": float(mean[0] - mean[1]), "std": float(np.sqrt(variance))}
    chances = given.probabilities[0] - given.probabilities[1]
    names = [str(label) for label in given.classes]
    return {"probabilities": dict(zip(names, chances.tolist(), strict=True))}


def group_evidence(estimator: Any) -> dict[str, dict[str, Any]]:
    """Return what was measured of training molecules with and without well-known groups, by name.

    Groups that all or none have are left out; so are all where the training SMILES are not known.
    """
    training, classes = estimator.model_.training, estimator.model_.classes
    scale, known = learned_transform(estimator.model_.recipe), dict[str, dict[str, Any]]()
    if training.smiles is None:
        return known
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdSubstructLibrary

    holders = rdSubstructLibrary.MolHolder(), rdSubstructLibrary.PatternHolder()
    library, rows = rdSubstructLibrary.SubstructLibrary(*holders), []
    with rdBase.BlockLogs():
        for row, text in enumerate(training.smiles):
            if text and (molecule := Chem.MolFromSmiles(text)) is not None:
                library.AddMol(molecule)
                rows.append(row)
    for name, query in group_queries().items():
        found = library.GetMatches(query, numThreads=1, maxResults=-1)
        has = np.array(rows, dtype=np.int64)[list(found)]
        if not 0 < len(has) < len(training.targets):
            continue
        n_classes = None if classes is None else len(classes)
        values: Any = measured_with_and_without(has, training.targets, n_classes)
        if classes is not None:
            values = [dict(zip(map(str, classes), x, strict=True)) for x in values]
        elif scale is not None:  # means of logarithms: geometric means
            values = scale.inverse(np.array(values)).tolist()
        known[name] = {"n": len(has), "with": values[0], "without": values[1]}
    return known
