"""The tables of a report as CSV that its page carries in itself: no network, no script."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from treelens.report.said import SaidOfGraphs
from treelens.storage.csv_text import csv_text

MOST_PREDICTIONS = 20_000  # rows beyond these would swell the page; the command line writes all


def prediction_columns(given: SaidOfGraphs) -> dict[str, Any]:
    """Columns of what is said of each graph given, one entry a graph."""
    kept = slice(0, MOST_PREDICTIONS)
    facts = [given.facts(i) for i in range(len(given))[kept]]
    columns: dict[str, Any] = {
        name: [row[name] for row in facts] for name in facts[0] if name != "interval"
    }
    if given.classes is None:
        columns["lower_90"] = [row["interval"][0] for row in facts]
        columns["upper_90"] = [row["interval"][1] for row in facts]
    columns["known_from_training"] = given.same_as_training[kept]
    if given.domain is not None:
        columns["expected_error"] = given.domain.expected[kept]
        columns["nearest_training_graph"] = given.domain.around.nearest[kept]
    return columns


def fragments_csv(summary: Mapping[str, Any]) -> str:
    """The table of fragments."""
    return _csv([_flat(row) for row in summary["fragments"]["rows"]])


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A fragment as one line: no picture, a column for each class."""
    columns = ("rank", "name", "smarts", "pattern", "depth", "class_label", "effect", "error")
    flat = {name: row[name] for name in columns}
    flat["support"] = row["support"]
    flat |= {f"support {label}": n for label, n in row["by_class"] or []}
    flat["mean_value"] = row["mean_value"]
    flat["examples"] = "; ".join(row["examples"])
    return {name: value for name, value in flat.items() if value is not None}


def downloads_of(summary: Mapping[str, Any]) -> dict[str, str | None]:
    """Addresses that hold the tables themselves; None where there is no table."""
    predictions = summary["predictions"]
    return {
        "fragments": _address(fragments_csv(summary)) if summary["fragments"] else None,
        "predictions": None if predictions is None else _address(_csv(predictions)),
    }


def _csv(table: Any) -> str:
    import pandas as pd

    return csv_text(pd.DataFrame(table), index=False)


def _address(text: str) -> str:
    # The mark in front tells spreadsheets that this is UTF-8.
    data = base64.b64encode(text.encode("utf-8-sig")).decode("ascii")
    return f"data:text/csv;charset=utf-8;base64,{data}"
