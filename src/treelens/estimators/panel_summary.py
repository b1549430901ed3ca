"""A model of several endpoints as plain data: who goes along, and scores in every way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from treelens.estimators.evidence import GraphClassifier, GraphRegressor
from treelens.estimators.panel import GraphPanel
from treelens.estimators.panel_answers import cells_for, endpoint_scores, learned_cells
from treelens.evaluation.metrics import NINETY
from treelens.evaluation.splits import Split
from treelens.gp.panel_model import PanelEndpoint
from treelens.graphs.collection import GraphCollection
from treelens.graphs.recipe import noun_of
from treelens.targets import Targets


def fitted_summary(model: Any, table: Any) -> dict[str, Any]:
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
        "n_steps": len(fitted.record.history),
    }


def _known(scores: pd.Series) -> dict[str, Any]:
    found = scores.dropna().to_dict()
    return {str(name): int(x) if name == "n" else float(x) for name, x in found.items()}


# --- predictions of a table ---


def predicted_summary(model: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """Return what was predicted of each endpoint, and scores where it was measured."""
    readable = rows["out_of_vocabulary"].notna().to_numpy()
    found = rows[readable]
    unseen = found["out_of_vocabulary"].astype(float)
    endpoints, outside = [], np.zeros(len(found), dtype=bool)
    for end in model.model_.endpoints:
        own = found.filter(like=f"{end.name}_").copy()
        own.columns = [name.removeprefix(f"{end.name}_") for name in own.columns]
        outside |= (own["in_domain"].astype(str) != "True").to_numpy()
        endpoints.append({"endpoint": end.name, **_predicted(end, own)})
        has = own["measured"].notna().to_numpy()
        truth = learned_cells(end, own["measured"].to_numpy(dtype=object), has)
        mean, std = _on_learned_scale(end, own)
        scores = endpoint_scores(end, truth, mean, std)
        endpoints[-1] |= {name: x for name, x in scores.items() if x is not None}
    return {
        "mean_out_of_vocabulary": float(unseen.mean() if len(found) else 0),
        "n_outside": int(outside.sum()),
        "endpoints": endpoints,
    }


def _predicted(end: Any, own: pd.DataFrame) -> dict[str, Any]:
    if end.classes is not None:
        classes, counts = np.unique(own["class"].astype(str), return_counts=True)
        return {"predicted": dict(zip(classes.tolist(), counts.tolist(), strict=True))}
    values = own["prediction"].astype(float)
    ends = [float(values.min()), float(values.max())] if len(values) else [None, None]
    return {"predicted": dict(zip(("smallest", "largest"), ends, strict=True))}


def _on_learned_scale(end: Any, own: pd.DataFrame) -> tuple[np.ndarray, np.ndarray | None]:
    if end.classes is not None:
        return own["decision"].to_numpy(dtype=float), None
    names = ("median" if "median" in own else "prediction", "lower_90", "upper_90")
    found = [own[name].to_numpy(dtype=float) for name in names]
    if (scale := end.record.scale) is not None:
        found = [scale.forward(values) for values in found]
    return found[0], (found[2] - found[1]) / (2.0 * NINETY)


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
    return np.sqrt(variance[:, column])


def single_model(
    end: PanelEndpoint, settings: dict[str, Any], graphs: Any, learned: Targets
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
