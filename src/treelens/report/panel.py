"""The content of the report on a model of several endpoints, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

import treelens
from treelens.estimators.panel_answers import cells_for, endpoint_scores, values_of
from treelens.estimators.panel_summary import endpoint_facts
from treelens.estimators.panel_table import Surroundings, panel_table
from treelens.explain.contributions import explain, usual_spread
from treelens.explain.effects import KnownInverses
from treelens.gp.panel_model import FittedPanel, PanelPredictions
from treelens.graphs.collection import GraphCollection
from treelens.models.predictions import known_graphs
from treelens.parallel import one_blas_thread
from treelens.report.predicted import graph_name
from treelens.report.render import plain_summary
from treelens.report.sections import drawing_data, fragment_section

MOST_CARDS = 8
_N_FRAGMENTS = 5  # of each endpoint
_FEWEST_NEW = 0.1  # of the graphs must be new for test scores
_DIGITS = 6  # of contributions


@dataclass(frozen=True, eq=False)
class Batch:
    """The graphs of a report, what is predicted of them from structure alone, and what is known."""

    model: FittedPanel
    graphs: GraphCollection
    found: PanelPredictions
    near: Surroundings
    truth: np.ndarray | None  # (n_graphs, n_endpoints) on the scales that are learned, NaN in gaps
    n_jobs: int

    @classmethod
    def of(cls, estimator: Any, X: object, y: object) -> Batch | None:
        """Return the predictions of graphs; None without graphs."""
        if X is None:
            if y is not None:
                raise ValueError("y was given without X: give the graphs that these belong to.")
            return None
        graphs = estimator._new_graphs(X)
        found = estimator._decide_panel(graphs, True)
        model = estimator.model_
        truth = None if y is None else cells_for(model, y, len(graphs))
        near = estimator._surroundings(found)
        return cls(model, graphs, found, near, truth, estimator._n_jobs())

    @cached_property
    def in_training(self) -> np.ndarray:
        return known_graphs(self.model, self.graphs, self.found.graphs)[0]

    @cached_property
    def test(self) -> np.ndarray:
        """Positions of the graphs that are scored: those that were not trained on."""
        new = np.flatnonzero(~self.in_training)
        few = len(new) < _FEWEST_NEW * len(self.graphs)
        return new[:0] if self.truth is None or few else new

    @cached_property
    def table(self) -> pd.DataFrame:
        """Predictions, intervals and domain of all endpoints."""
        table = panel_table(self.model, self.found, self.near, self.truth)
        names = [graph_name(self.graphs, k) for k in range(len(self.graphs))]
        table.insert(0, "name", pd.Series(names, dtype=object))
        return table.assign(in_training=self.in_training)

    @cached_property
    def given_siblings(self) -> PanelPredictions:
        """Predictions of the graphs that are scored, each cell from the others of its graph."""
        assert self.truth is not None
        truth = self.truth[self.test]
        graphs = self.graphs[self.test]
        return self.model.decide(graphs, variance=True, measured=truth, n_jobs=self.n_jobs)

    def scores(self, column: int) -> dict[str, Any] | None:
        """Return scores of an endpoint on new graphs, from structure and from siblings as well."""
        if self.truth is None or np.isnan(self.truth[self.test, column]).all():
            return None
        end = self.model.endpoints[column]
        truth = self.truth[self.test, column]
        found = self.given_siblings
        assert found.variance is not None
        assert self.found.variance is not None
        new = self.found.mean[self.test, column], np.sqrt(self.found.variance[self.test, column])
        gap = found.mean[:, column], np.sqrt(found.variance[:, column])
        return {
            "new": endpoint_scores(end, truth, *new),
            "gap": endpoint_scores(end, truth, *gap),
        }

    def expected(self, column: int) -> dict[str, Any]:
        """Return what is to be expected of an endpoint before it is measured."""
        left_out = self.model.record.left_out.new[:, column]
        errors = self.model.measured[:, column] - left_out
        errors = errors[~np.isnan(errors)]
        promised = float(np.sqrt(np.mean(errors**2)))
        size = float(np.sqrt(np.mean(self.near.expected[:, column] ** 2)))
        name = self.model.endpoint_names[column]
        in_units = self.table.filter(regex=f"^{_literal(name)}_expected_error").iloc[:, 0]
        return {
            "expected_error": float(np.sqrt(np.mean(in_units.to_numpy(dtype=float) ** 2))),
            "against_leave_one_out": size / promised if promised > 0 else None,
            "outside": float(1.0 - self.near.inside[:, column].mean()),
        }


def _literal(name: str) -> str:
    return "".join(f"\\{letter}" if not letter.isalnum() else letter for letter in name)


def summarize_panel(estimator: Any, X: object = None, y: object = None) -> dict[str, Any]:
    """Return everything that the report of a panel shows, as data that ``json.dumps`` takes.

    The keys are ``treelens`` (version), ``kind`` ("several"), ``noun``, ``model``, ``endpoints``
    (each with its scores left out, what sharing gains, scores on new graphs and what is to be
    expected of the graphs), ``correlations``, ``helps``, ``fragments`` by endpoint and, None
    without graphs, ``data``, ``cards`` and ``predictions``.
    """
    batch = Batch.of(estimator, X, y)
    facts = endpoint_facts(estimator)
    helps = _helps(estimator)
    model = estimator.model_  # with all that variances need, which was just computed
    with one_blas_thread():
        endpoints = [
            {**each, **_more(model, column, batch)}
            for column, each in enumerate(facts.pop("endpoints"))
        ]
        inverses: KnownInverses = {}
        fragments = {
            name: fragment_section(estimator.endpoint(name), None, _N_FRAGMENTS, inverses)
            for name in model.endpoint_names
        }
        cards = None if batch is None else [_card(batch, k) for k in _chosen(batch)]
    known = model.training.targets
    found = {
        "treelens": treelens.__version__,
        "kind": "several",
        **facts,
        "noun": facts["noun"].removesuffix("s"),
        "model": {
            "estimator": type(estimator).__name__,
            "n_training_graphs": len(known),
            "n_cells": int((~np.isnan(known)).sum()),
            "recipe": None if model.recipe is None else str(model.recipe),
            "views": model.shares(),
            "n_patterns": len(model.weights),
        },
        "endpoints": endpoints,
        "helps": helps,
        "fragments": fragments,
        "data": None if batch is None else _data(batch),
        "cards": cards,
        "predictions": None if batch is None else batch.table.to_dict("list"),
    }
    return plain_summary(found)


def _more(model: FittedPanel, column: int, batch: Batch | None) -> dict[str, Any]:
    """Return what the report says of an endpoint beyond how it was fitted."""
    own = model.endpoint(column)
    reported = own.training.reported
    scale = own.training.record.scale
    spread = None
    if own.classes is None:
        always = float(reported.std())
        values = own.training.targets if scale is None else scale.inverse(own.training.targets)
        spread = float(values.std())
    else:
        always = float(np.bincount(reported, minlength=2).max() / len(reported))
    return {
        "spread": spread,  # of the values in their units; None of classes
        "always": always,  # the RMSE of the mean, or the accuracy of the most frequent class
        "effects": usual_spread(own),
        "scale": None if scale is None else scale.in_words,
        "test": None if batch is None else batch.scores(column),
        "batch": None if batch is None else batch.expected(column),
    }


def _helps(estimator: Any) -> dict[str, dict[str, float]] | None:
    try:
        found: dict[str, dict[str, float]] = estimator.helps_.to_dict()
    except AttributeError:  # through landmarks
        return None
    return found


def _data(batch: Batch) -> dict[str, Any]:
    return {
        "n_graphs": len(batch.graphs),
        "n_in_training": int(batch.in_training.sum()),
        "n_test": len(batch.test),
        "n_inside_all": int(batch.near.inside.all(axis=1).sum()),
        "has_truth": batch.truth is not None,
    }


# --- molecules ------------------------------------------------------------------------------------


def _chosen(batch: Batch) -> list[int]:
    """Return the graphs to draw: all of a few, else the worst and the least similar ones."""
    n = len(batch.graphs)
    if n <= MOST_CARDS:
        return list(range(n))
    similarity = np.max([own.similarity for own in batch.near.around], axis=0)
    orders = [np.argsort(similarity, kind="stable")]
    if batch.truth is not None:
        error = np.abs(batch.truth - batch.found.mean) / batch.model.scale
        counts = (~np.isnan(error)).sum(axis=1)
        mean = np.where(counts > 0, np.nansum(error, axis=1) / np.maximum(counts, 1), -1.0)
        orders.insert(0, np.argsort(-mean, kind="stable"))
    chosen: dict[int, None] = {}
    for k, order in enumerate(orders, start=1):
        fresh = [i for i in order.tolist() if i not in chosen]
        chosen |= dict.fromkeys(fresh[: MOST_CARDS * k // len(orders) - len(chosen)])
    return list(chosen)


def _card(batch: Batch, index: int) -> dict[str, Any]:
    """Return one graph with all endpoints, each explained."""
    row = batch.table.iloc[index]
    training = batch.model.training
    nearest = int(row["nearest"])
    return {
        "index": index,
        "name": graph_name(batch.graphs, index),
        "drawing": drawing_data(batch.graphs[index]),
        "similarity": row["similarity"],
        "nearest": training.called(nearest) or f"training graph {nearest}",
        "in_training": bool(row["in_training"]),
        "endpoints": [_cell(batch, index, k, row) for k in range(len(batch.model.endpoints))],
    }


def _cell(batch: Batch, index: int, column: int, row: pd.Series) -> dict[str, Any]:
    own = batch.model.endpoint(column)
    found = explain(
        own,
        batch.graphs,
        n_neighbors=0,
        found=own.predictions_of(batch.found),
        index=index,
    )
    end = batch.model.endpoints[column]
    names = ["prediction", "lower_90", "upper_90"]
    if end.classes is not None:
        names = ["class", "probability"]
    measured = None
    if batch.truth is not None and not np.isnan(batch.truth[index, column]):
        measured = values_of(batch.model, batch.truth[[index]])[0, column]
    return {
        "endpoint": end.name,
        **{name: row[f"{end.name}_{name}"] for name in names},
        "in_domain": bool(batch.near.inside[index, column]),
        "measured": measured if end.classes is None or measured is None else str(measured),
        "toward": None if found.class_label is None else str(found.class_label),
        "base": float(f"{found.base:.{_DIGITS}g}"),
        "decision": float(f"{found.decision:.{_DIGITS}g}"),
        "contributions": [float(f"{x:.{_DIGITS}g}") for x in found.node_contributions.tolist()],
    }
