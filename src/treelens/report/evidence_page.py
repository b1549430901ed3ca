"""From the summary of a Gaussian process to one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from treelens.explain.names import LabelNames
from treelens.gp.model import FittedGP
from treelens.report.charts import Chart, Spot, line_chart, scatter_chart
from treelens.report.downloads import downloads_of
from treelens.report.drawings import (
    draw_example,
    draw_fragment,
    draw_legend,
    draw_neighbor,
    draw_side,
)
from treelens.report.evidence_summary import summarize_evidence
from treelens.report.held import Held
from treelens.report.render import drawing_data, fill_template, roc_chart, write_page
from treelens.report.units import Units

_SCRIPTS = ("drawing.js", "table.js", "sortable.js", "threshold.js")
_STAGES = {
    "uniform": "scales of the kernel",
    "depths": "weights of levels",
    "branches": "weights of branches",
}


def write_evidence_report(
    model: FittedGP,
    path: str | Path,
    X: Any = None,
    y: Any = None,
    *,
    names: str | LabelNames | None = None,
    n_jobs: int = 1,
    held: Held | None = None,
) -> Path:
    """Write the report on a Gaussian process: one HTML file, whole or not at all.

    Parameters
    ----------
    model : FittedGP
        ``model_`` of a fitted ``GraphRegressor`` or ``GraphClassifier``.
    path : str or Path
    X, y, names, n_jobs, held : optional
        See :func:`treelens.report.summarize_evidence`.

    Returns
    -------
    Path
        Where it was written.
    """
    return write_page(
        path,
        lambda: render_evidence(
            summarize_evidence(model, X, y, names=names, n_jobs=n_jobs, held=held)
        ),
    )


def render_evidence(summary: Mapping[str, Any]) -> str:
    """The page of a summary."""
    in_units = Units.of(summary["model"]["training_values"])
    rows = [] if summary["examples"] is None else summary["examples"]["rows"]
    fragments = [] if summary["fragments"] is None else summary["fragments"]["rows"]
    pairs = [] if summary["pairs"] is None else summary["pairs"]["rows"]
    limit = max((abs(x) for row in rows for x in row["contributions"]), default=0.0)
    return fill_template(
        "evidence.html",
        _SCRIPTS,
        summary,
        filters={"units": in_units, "change": in_units.signed, "rest": in_units.rest},
        page_data={**drawing_data(summary), "thresholds": _thresholds(summary)},
        charts=charts_of(summary),
        drawings=[draw_example(row, limit, in_units) for row in rows],
        neighbor_drawings=[[draw_neighbor(x, in_units) for x in row["neighbors"]] for row in rows],
        pair_drawings=[[draw_side(x, in_units) for x in row["sides"]] for row in pairs],
        fragment_drawings={row["rank"]: draw_fragment(row, in_units) for row in fragments},
        legend=draw_legend(rows, limit),
        downloads=downloads_of(summary),
    )


def _thresholds(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the slider of thresholds shows: the test set, or else graphs left out."""
    if summary["kind"] == "numbers":
        return None
    return (summary["scores"] or summary["left_out"])["thresholds"]


# --- charts -----------------------------------------------------------------------------------


def charts_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """All charts of the page, for the test set and for leave-one-out."""
    charts: dict[str, Any] = {"learning": _learning_chart(summary["learning"]["history"])}
    for name in ("scores", "left_out"):
        found = summary[name]
        if found is None:
            charts[name] = None
        elif summary["kind"] == "numbers":
            in_units = Units.of(summary["model"]["training_values"])
            charts[name] = {
                "scatter": _scatter(found["points"], in_units),
                "calibration": _calibration(found["calibration"]),
            }
        else:
            charts[name] = {
                "roc": roc_chart(found),
                "reliability": _reliability(found["reliability"]),
            }
    return charts


def _scatter(points: Mapping[str, Any], in_units: Units) -> Chart:
    """Predicted against measured values with their 90 % intervals."""
    columns = (points[name] for name in ("index", "measured", "predicted", "half_width"))
    spots = [
        Spot(
            measured, predicted, predicted - half, predicted + half,
            f"graph {index}: measured {in_units(measured)}, predicted {in_units(predicted)} "
            f"± {in_units(half)}",
            "" if abs(predicted - measured) <= half else "outside",
        )
        for index, measured, predicted, half in zip(*columns, strict=True)
    ]  # fmt: skip
    ends = [*points["measured"], *points["predicted"]]
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low) or 1.0
    return scatter_chart(spots, (low - room, high + room), radius=2.2)


def _calibration(found: Mapping[str, Any]) -> Chart:
    """Observed against promised share of measurements within an interval."""
    spots = [
        Spot(nominal, seen, seen, seen, f"{nominal:.0%} intervals hold {seen:.1%}")
        for nominal, seen in zip(found["nominal"], found["observed"], strict=True)
    ]
    return scatter_chart(spots, (0.0, 1.0), radius=4.0)


def _reliability(bins: list[dict[str, Any]]) -> Chart:
    """How often what was called so probable came true."""
    spots = [
        Spot(
            part["said"],
            part["observed"],
            low,
            high,
            f"{part['n']} graphs called {part['low']:.0%} to {part['high']:.0%} probable: "
            f"{part['observed']:.0%} true",
        )
        for part in bins
        for low, high in [part["observed_interval"]]
    ]
    return scatter_chart(spots, (0.0, 1.0), radius=4.0)


def _learning_chart(history: Mapping[str, Any]) -> dict[str, Any] | None:
    """The evidence after every step, a line for each stage."""
    values = history["evidence"]
    if len(values) < 2:
        return None
    lines, stages = [], []
    steps = list(enumerate(history["stage"]))
    for stage, members in groupby(steps, key=lambda step: step[1]):
        places = [place for place, _ in members]
        lines.append((places, [values[place] for place in places]))
        stages.append(_STAGES.get(stage, stage))
    # The first steps climb a long way: what came after would be flat beside them.
    low = float(np.quantile(values, 0.1))
    high = max(values)
    room = 0.05 * (high - low) or 1.0
    lines = [_above(line, low - room) for line in lines]
    chart = line_chart(lines, (0.0, len(values) - 1.0), (low - room, high + room), (420.0, 260.0))
    return {"chart": chart, "stages": stages, "cut": min(values) < low - room}


def _above(line: tuple[list[int], list[float]], floor: float) -> tuple[list[int], list[float]]:
    kept = [(x, y) for x, y in zip(*line, strict=True) if y >= floor] or [(line[0][-1], floor)]
    return [x for x, _ in kept], [y for _, y in kept]
