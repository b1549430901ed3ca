"""A model of several endpoints as plain data: who goes along, and scores in every way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.estimators.panel import GraphPanel
from treelens.estimators.panel_answers import cells_for, endpoint_scores
from treelens.evaluation.splits import Split
from treelens.gp.panel_model import PanelEndpoint
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import noun_of
from treelens.targets import Targets

if TYPE_CHECKING:
    from treelens.chem.molecule_table import MoleculeTable
    from treelens.estimators.panel_fitting import PanelEstimator


def fitted_summary(model: PanelEstimator, table: MoleculeTable) -> dict[str, Any]:
    """Return a fit to the several targets of a table as plain data."""
    return {
        "method": "gp",
        "task": "several",
        "data": {
            "source": table.source,
            "n_graphs": len(table.graphs),
            "n_left_out": table.n_rows - len(table.graphs),
        },
        **endpoint_facts(model),
    }


def endpoint_facts(model: Any) -> dict[str, Any]:
    """Return what a model of several endpoints is about: each with its scores, and who goes along.

    Scores are by leave-one-out: ``new`` of molecules of which nothing was measured, ``gap`` of
    cells beside others, ``single`` of a process of the endpoint by itself.
    """
    left_out, fitted = model.loo_, model.model_
    endpoints = []
    for end in fitted.endpoints:
        scores = {kind: _known(left_out.loc[(kind, end.name)]) for kind in ("new", "gap", "single")}
        endpoints.append(
            {
                "endpoint": end.name,
                "unit": end.record.unit,
                "transform": end.record.transform,
                "classes": None if end.classes is None else end.classes.astype(str).tolist(),
                "n": scores["new"].pop("n"),
                "alone": float(model.alone_[end.name]),
                **scores,
                "shares": model.shares_[end.name].to_dict(),
                "noise": float(model.noise_[end.name]),
            }
        )
    return {
        "noun": noun_of(model.recipe_),
        "endpoints": endpoints,
        "correlations": model.correlations_.to_dict(),
        "converged": bool(fitted.record.converged),
        "n_steps": fitted.record.history.n_rows,
    }


def _known(scores: pd.Series) -> dict[str, Any]:
    found = scores.dropna().to_dict()
    return {str(name): int(x) if name == "n" else float(x) for name, x in found.items()}


# --- test parts ---


def scores_of_split(
    graphs: GraphCollection, y: Targets, split: Split, settings: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the scores of each endpoint on one test part, by the names of endpoints.

    ``new``: nothing of a test molecule is known; ``gap``: each cell of it is predicted from its
    others; ``single``: by a model of the endpoint alone.
    """
    train, test = split
    model = GraphPanel(**settings, progress=False).fit(graphs[train], y[train])
    training = model.model_.training
    truth = cells_for(model.model_, y[test], len(test))
    new, gap = (model._decide_panel(graphs[test], True, known) for known in (None, y[test]))
    rows = {}
    for k, end in enumerate(model.model_.endpoints):
        alone = single_model(end, settings, graphs[train], training.endpoint(k))
        own = alone._decide(graphs[test], variance=True)
        fitted, own_end = alone.model_, end
        if end.classes is not None:
            own_end = replace(end, slope=fitted.slope, threshold=fitted.threshold)
        rows[end.name] = {
            "n": int((~np.isnan(truth[:, k])).sum()),
            "new": endpoint_scores(end, truth[:, k], new.mean[:, k], _std(new.variance, k)),
            "gap": endpoint_scores(end, truth[:, k], gap.mean[:, k], _std(gap.variance, k)),
            "single": endpoint_scores(
                own_end, truth[:, k], own.mean[:, 0], _std(own.variance[:, None], 0)
            ),
        }
    return rows


def _std(variance: Any, column: int) -> np.ndarray:
    std: np.ndarray = np.sqrt(variance[:, column])
    return std


def single_model(
    end: PanelEndpoint, settings: dict[str, Any], graphs: GraphCollection, learned: Targets
) -> Any:
    """Return the model of one endpoint by itself, fitted to values on the scale that is learned."""
    has = np.flatnonzero(learned.measured)
    kind = GraphRegressor if end.classes is None else GraphClassifier
    known = learned[has]
    y = known if end.classes is None else known.values.astype(int)
    return kind(**settings, progress=False).fit(graphs[has], y)


def mean_over_splits(folds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means over folds, weighted by their cells, of scores that are known in them."""
    found: dict[str, Any] = {"n": sum(fold["n"] for fold in folds)}
    for kind in ("new", "gap", "single"):
        names = dict.fromkeys(name for fold in folds for name in fold[kind] if name != "n")
        means = {}
        for name in names:
            pairs = [(fold[kind].get(name), fold["n"]) for fold in folds]
            known = [(x, n) for x, n in pairs if x is not None]
            if known:
                values, sizes = zip(*known, strict=True)
                means[name] = float(np.average(values, weights=sizes))
        found[kind] = means
    return found


def summary_of_splits(
    graphs: GraphCollection, parts: list[dict[str, dict[str, Any]]]
) -> dict[str, Any]:
    """Return the scores of each endpoint over several test parts, with what they are of."""
    endpoints = [
        {"endpoint": name, **mean_over_splits([part[name] for part in parts])} for name in parts[0]
    ]
    return {"noun": noun_of(graphs.recipe), "n_graphs": len(graphs), "endpoints": endpoints}
