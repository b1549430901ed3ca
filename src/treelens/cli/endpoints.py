"""What the commands do with several endpoints: fit, info, predictions and evaluation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from treelens.cli import options
from treelens.cli.console import (
    Output,
    percent,
    score_text,
    score_title,
    shortened,
    show_next_steps,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from treelens.chem.molecule_table import MoleculeTable
    from treelens.evaluation.splits import Split
    from treelens.graphs.collection import GraphCollection

_SHOWN = ("rmse", "r2", "coverage", "roc_auc", "accuracy")
_SHORT_TITLES = {"coverage": "in 90 %"}  # of narrow columns
_LONGEST_NAME = 18  # of an endpoint, for tables of 80 columns
_MOST_CORRELATED = 9  # endpoints of which a table of correlations fits on a line


# --- fit and info ---------------------------------------------------------------------------------


def show_endpoints(output: Output, result: dict[str, Any]) -> None:
    """Print a fit of several endpoints for people."""
    data = result["data"]
    n = sum(each["n"] for each in result["endpoints"])
    output.line(
        f"{data['source']}: {data['n_graphs']} {result['noun']}, {len(result['endpoints'])} "
        f"endpoints, {n} measured cells"
    )
    show_endpoint_facts(output, result)
    output.line(f"Time: {result['seconds']:.1f} s")
    show_next_steps(output, result)


def show_endpoint_facts(output: Output, result: dict[str, Any]) -> None:
    """Print scores of endpoints, correlations between them, and remarks."""
    names = [name for name in _SHOWN if any(name in each["new"] for each in result["endpoints"])]
    rows = [_row(each, names) for each in result["endpoints"]]
    main = [_SHORT_TITLES.get(name) or score_title(name) for name in names]
    columns = ["endpoint", "n", *main, "gap", "by itself", "own share"]
    title = f"Leave-one-out predictions (all endpoints of each of the {result['noun']} left out)"
    output.table(columns, rows, title)
    output.line(
        f"n: {result['noun']} with a value; gap: R2 (ROC AUC of classes) of an empty cell, given "
        "the other measurements of its molecule; by itself: that of a model of the endpoint "
        "alone; own share: its share of predictions; in 90 %: values within their interval."
    )
    if len(result["correlations"]) <= _MOST_CORRELATED:
        _show_correlations(output, result["correlations"])
    if not result["converged"]:
        output.line(
            f"The search did not converge in {result['n_steps']} steps: predictions may improve "
            "with more (max_steps in Python)."
        )


def _row(each: dict[str, Any], names: Sequence[str]) -> list[Any]:
    name = "r2" if each["classes"] is None else "roc_auc"
    cells = [
        score_text(score, each["new"][score]) if score in each["new"] else "" for score in names
    ]
    gap, single = (each[kind].get(name) for kind in ("gap", "single"))
    ends = ["" if x is None else score_text(name, x) for x in (gap, single)]
    short = shortened(each["endpoint"], _LONGEST_NAME)
    return [short, each["n"], *cells, *ends, percent(each["alone"])]


def _show_correlations(output: Output, table: dict[str, dict[str, float]]) -> None:
    names = list(table)
    numbers = [str(k) for k in range(1, len(names) + 1)]
    rows = [
        [f"{k} {shortened(name, _LONGEST_NAME)}", *(f"{table[x][name]:+.1f}" for x in names)]
        for k, name in zip(numbers, names, strict=True)
    ]
    output.table(["", *numbers], rows, "Correlations between endpoints, noise left out")


# --- predict --------------------------------------------------------------------------------------


def show_predicted(output: Output, endpoints: Sequence[dict[str, Any]]) -> None:
    """Print what was predicted of each endpoint on one line."""
    for each in endpoints:
        found = each["predicted"]
        if set(found) == {"smallest", "largest"}:
            words = "nothing"
            if found["smallest"] is not None:
                words = "from {smallest:.4g} to {largest:.4g}".format(**found)
        else:
            words = ", ".join(f"{name} {n}" for name, n in found.items()) or "nothing"
        scores = [
            f"{score_title(name)}: {score_text(name, each[name])}."
            for name in _SHOWN
            if name in each
        ]
        known = f" {each['n']} measured. {' '.join(scores)}" if each["n"] else ""
        output.progress(f"{each['endpoint']}: predicted {words}.{known}")


# --- explain and fragments ------------------------------------------------------------------------


def check_of_panel(model: Any, target: str | None, endpoint: str | None) -> None:
    """Raise where --target or --endpoint does not suit a model of several endpoints."""
    if target is not None:
        raise ValueError(
            "--target: the model has several endpoints, whose columns are found by their names. "
            "Leave it out; --endpoint NAME looks at one of them."
        )
    if endpoint is not None:
        model.endpoint(endpoint)  # or an error that names them


def read_measured(
    output: Output, data: str, model: Any, reading: dict[str, Any]
) -> tuple[GraphCollection, pd.DataFrame | None]:
    """Return the graphs of DATA and the cells that are known of them; None without any."""
    from treelens.chem.measured_cells import measured_cells

    table = options.read_data(data, model=model, **reading)
    notes = list[str]()
    known = measured_cells(model.model_, table, notes)
    output.note(*table.notes, *notes)
    return table.graphs, known if known.notna().any(axis=None) else None


def with_value(
    graphs: GraphCollection, cells: pd.DataFrame | None, endpoint: str
) -> tuple[GraphCollection, Any]:
    """Return the graphs with a value of an endpoint, and these; all graphs where none has one."""
    if cells is None or not cells[endpoint].notna().any():
        return graphs, None
    known = cells[endpoint].notna().to_numpy()
    return graphs[known], cells[endpoint][known].to_numpy()


# --- evaluate -------------------------------------------------------------------------------------


def evaluate_endpoints(
    output: Output, table: MoleculeTable, settings: dict[str, Any], splits: Sequence[Split]
) -> dict[str, Any]:
    """Return scores of each endpoint on molecules that are left out whole, and on gaps in them."""
    from treelens.estimators import panel_summary

    assert table.targets is not None
    parts = []
    for number, split in enumerate(splits, start=1):
        start = time.perf_counter()
        parts.append(panel_summary.scores_of_split(table.graphs, table.targets, split, settings))
        output.progress(f"part {number} of {len(splits)}: {time.perf_counter() - start:.0f} s")
    found = panel_summary.summary_of_splits(table.graphs, parts)
    return {"source": table.source, "n_splits": len(splits), **found}


def show_evaluated(output: Output, result: dict[str, Any]) -> None:
    """Print the scores of each endpoint: single model, panel of new molecules, panel of gaps."""
    rows = []
    for each in result["endpoints"]:
        names = ("rmse", "r2") if "rmse" in each["new"] else ("roc_auc", "accuracy")
        for name in names:
            scores = (each[kind].get(name) for kind in ("single", "new", "gap"))
            cells = ["" if x is None else score_text(name, x) for x in scores]
            rows.append([each["endpoint"], each["n"], score_title(name), *cells])
    n = result["n_splits"]
    title = (
        f"{result['source']}: {result['n_graphs']} {result['noun']}, "
        f"{f'{n} test parts' if n > 1 else 'one test part'}, split by {result['split']}"
    )
    output.table(["endpoint", "cells", "score", "by itself", "together", "gap"], rows, title)
    output.line(
        "by itself: a model of the endpoint alone; together: all endpoints in one model, molecules "
        "left out whole; gap: the same model, each cell predicted from the others of its molecule. "
        "Means over test parts, weighted by their cells. --json prints all scores."
    )
