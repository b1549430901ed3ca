"""The table of :func:`treelens.advise` as one HTML page with drawings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from treelens.chem.molecules import smiles_to_collection
from treelens.decisions.advise import BETTER, HIGHER
from treelens.estimators.profile import IN_PROFILE
from treelens.explain.draw import Style, draw_graph
from treelens.report.render import templates
from treelens.storage.files import whole_file


def write_advice(table: pd.DataFrame, path: str | Path) -> Path:
    """Write the table of :func:`treelens.advise` with a drawing of every molecule."""
    lead = table.attrs["lead"]
    records: list[dict[Any, Any]] = table.to_dict("records")
    rows = [_row(row, lead) for row in records]
    page = (
        templates("decisions")
        .get_template("advice.html")
        .render(
            lead=lead,
            facts=[end["text"] for end in lead["endpoints"]],
            drawing=_drawing(lead["smiles"]),
            rows=rows,
            ends=[_title(end) for end in lead["endpoints"]],
            in_profile=IN_PROFILE in table,
            ranked_by=table.attrs["ranked_by"],
            wanted=table.attrs["wanted"],
            n_tried=table.attrs["n_tried"],
            helps=table.attrs["only_better"],
        )
    )
    with whole_file(path) as file:
        file.write(page.encode("utf-8"))
    return Path(path)


def _title(end: dict[str, Any]) -> dict[str, str | None]:
    unit = end["unit"] if end["unit"] and end["unit"] not in (end["endpoint"] or "") else None
    name = (end["endpoint"] or "value") + (f" ({unit})" if unit else "")
    return {"name": name, "scale": end["scale"]}


def _row(row: dict[str, Any], lead: dict[str, Any]) -> dict[str, Any]:
    """Return a row with a drawing and a cell for each endpoint."""
    several = len(lead["endpoints"]) > 1
    cells = []
    for end in lead["endpoints"]:
        prefix = f"{end['endpoint']}_" if several else ""
        better = row.get(f"{prefix}{BETTER}")
        mean = row[f"{prefix}pair_mean"]
        opposite = mean * row[f"{prefix}difference"] < 0
        cells.append(
            {
                "chance": row[f"{prefix}{HIGHER}"] if better is None else better,
                "is_better": better is not None,
                "difference": row[f"{prefix}difference"],
                "std": row[f"{prefix}std"],
                "pair_mean": mean,
                "n_pairs": row[f"{prefix}n_pairs"],
                "opposite": opposite,
                "shown": _shown(row, prefix),
            }
        )
    return {**row, "drawing": _drawing(row["smiles"]), "cells": cells}


def _shown(row: dict[str, Any], prefix: str) -> str:
    """Return the prediction of the new molecule."""
    value = row.get(f"{prefix}prediction")
    if value is not None:
        return f"{value:.3g}"
    start = f"{prefix}probability_"
    known = {start + name for name in ("better", "higher")} | {IN_PROFILE}
    name = next(name for name in row if name.startswith(start) and name not in known)
    return f"{name.removeprefix(start)} {100 * row[name]:.0f} %"


def _drawing(smiles: str) -> Markup:
    style = Style(230, 150, legend=False, title=smiles)
    return Markup(draw_graph(smiles_to_collection([smiles])[0], style=style))
