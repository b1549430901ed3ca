"""From the summary of a panel to one HTML page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from treelens.explain.contributions import color_limit
from treelens.explain.scene import shortened
from treelens.report.render import Drawings, Units, asset, templates
from treelens.storage.files import csv_text

_LONGEST_NAME = 28  # of an endpoint in a table


def render_panel(summary: Mapping[str, Any]) -> str:
    """Return the page of the summary of a panel."""
    script = asset("report", "report.js")
    # The page's security policy allows this script and no other.
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    cards = summary["cards"] or []
    drawings = {}
    for place, each in enumerate(summary["endpoints"]):
        values = [card["endpoints"][place]["contributions"] for card in cards]
        limit = color_limit(values, each["effects"])
        units = Units.of({"std": each["effects"]} if each["classes"] is None else None)
        drawings[each["endpoint"]] = Drawings(units, summary["noun"], limit)
    template = templates("report").get_template("panel.html")
    return template.render(
        **summary,
        style=Markup(asset("report", "report.css") + asset("report", "panel.css")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        page_data={"thresholds": None},
        draw=drawings,
        units={each["endpoint"]: _units(each, "spread") for each in summary["endpoints"]},
        score_units={each["endpoint"]: _units(each, "always") for each in summary["endpoints"]},
        short=lambda name: shortened(name, _LONGEST_NAME),
        predictions_file=_download(summary["predictions"]),
    )


def _units(each: Mapping[str, Any], name: str) -> Units:
    return Units.of(None if each["classes"] is not None else {"std": each[name]})


def _download(predictions: Mapping[str, Any] | None) -> str | None:
    """Return the data address of all predictions as CSV."""
    if predictions is None:
        return None
    # The byte order mark makes spreadsheets read UTF-8.
    text = csv_text(pd.DataFrame(predictions), index=False).encode("utf-8-sig")
    return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text).decode('ascii')}"
