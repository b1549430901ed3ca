"""From the summary of a model to one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from treelens.explain.draw import LEGEND_HEIGHT, Style, TreeNode, draw_graph, tree_scene
from treelens.explain.fragment_search import Occurrence
from treelens.explain.scene import Scene
from treelens.graphs.collection import Graph
from treelens.report.formats import Units, charts_of, counted, number, percent
from treelens.report.summary import summarize
from treelens.storage.files import checked_target, csv_text, whole_file

MOST_LISTED = 300  # rows of the table of predictions; the download has more
_CARD, _FRAGMENT, _NEIGHBOR, _PAIR = (330, 230), (210, 130), (150, 110), (250, 170)
_N_STRONGEST = 3  # nodes that the text of a drawing names
_LONGEST_NAME = 60
# One symbol for each class, as path data of about 12 by 12; more classes repeat them.
_SYMBOLS = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
    "M-4.5 -4.5H4.5V4.5H-4.5Z",
    "M0 -5.5L5.5 4.5H-5.5Z",
    "M0 -6L6 0L0 6L-6 0Z",
    "M0 5.5L5.5 -4.5H-5.5Z",
    "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "M-5.5 -3H5.5V3H-5.5Z",
)


def write_report(
    model: Any, path: str | Path, X: Any = None, y: Any = None, *, names: str | None = None
) -> Path:
    """Write the report on a fitted model as one HTML file that needs nothing else."""
    target = checked_target(path)  # before the work begins
    page = render(summarize(model, X, y, names=names))
    with whole_file(target) as file:
        file.write(page.encode("utf-8"))
    return Path(path)


def render(summary: Mapping[str, Any]) -> str:
    """Return the page of a summary."""
    units, noun = Units.of(summary["model"]["training_values"]), summary["noun"]
    script, predictions = report_asset("report.js"), summary["predictions"]
    # The page's security policy allows this script and no other.
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    cards = summary["cards"]["rows"] if summary["cards"] else []
    limit = max((abs(x) for row in cards for x in row["contributions"]), default=0.0)
    scores = summary["scores"] or summary["validation"] or {}
    rows = []
    if predictions is not None:
        columns = [values[:MOST_LISTED] for values in predictions.values()]
        rows = [dict(zip(predictions, row, strict=True)) for row in zip(*columns, strict=True)]
    template = _environment().get_template("report.html")
    return template.render(
        **summary,
        units=units,
        style=Markup(report_asset("report.css")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        symbols=_SYMBOLS,
        prediction_rows=rows,
        page_data={"thresholds": scores.get("thresholds")},
        charts={name: charts_of(summary[name], units, noun) for name in ("scores", "validation")},
        draw=Drawings(units, noun, limit),
        legend=_legend(cards, limit),
        downloads=_downloads(summary),
    )


class Drawings:
    """Draws graphs of a summary as SVG, each with a text for screen readers; text is escaped."""

    def __init__(self, units: Units, noun: str, limit: float) -> None:
        self.units, self.noun, self.limit = units, noun, limit

    def card(self, row: Mapping[str, Any]) -> Markup | None:
        """Draw a graph coloured by contribution."""
        if row["drawing"] is None:
            return None
        labels, values = row["drawing"]["labels"], row["contributions"]
        strongest = sorted(range(len(values)), key=lambda k: -abs(values[k]))[:_N_STRONGEST]
        words = ", ".join(f"{labels[k]} {k} {self.units.signed(values[k])}" for k in strongest)
        name = "" if row["name"] is None else f" ({row['name'][:_LONGEST_NAME]})"
        title = f"{self.noun} {row['index']}{name}, coloured by contribution; strongest: {words}"
        return self._draw(row["drawing"], _CARD, title, np.array(values))

    def fragment(self, row: Mapping[str, Any]) -> Markup | None:
        """Draw a fragment, highlighted in a graph that has it."""
        title = (
            f"Fragment {row['rank']}: {row['title'][:_LONGEST_NAME]}; "
            f"effect {self.units.signed(row['effect'])}"
        )
        return self._draw(row["drawing"], _FRAGMENT, title)

    def training(self, row: Mapping[str, Any], small: bool = True) -> Markup | None:
        """Draw a training graph with its value or class."""
        target = row["class"] if "class" in row else row["sign"] + self.units(row["value"])
        name = str(row["index"] if row["name"] is None else row["name"])[:_LONGEST_NAME]
        title = f"Training {self.noun} {name}, {target}"
        return self._draw(row["drawing"], _NEIGHBOR if small else _PAIR, title)

    def tree(self, row: Mapping[str, Any]) -> Markup:
        """Draw the tree of a pattern."""
        nodes = [TreeNode(**node) for node in row["drawing"]]
        return Markup(tree_scene(nodes, f"pattern {row['text']}").to_svg())

    def _draw(
        self,
        data: Mapping[str, Any] | None,
        size: tuple[int, int],
        title: str,
        contributions: np.ndarray | None = None,
    ) -> Markup | None:
        if data is None:
            return None
        title = _capital(title)
        place, marked = None, data["highlight"]
        if marked is not None:
            edges = tuple((u, v) for u, v in marked["edges"])
            place = Occurrence(marked["root"], tuple(marked["nodes"]), edges)
        style = Style(*size, legend=False, title=title, limit=self.limit)
        return Markup(draw_graph(_graph(data), contributions, highlight=place, style=style))


def _graph(data: Mapping[str, Any]) -> Graph:
    ends, labels = data["edges"], data["edge_labels"]
    edges = tuple(zip(ends[::2], ends[1::2], strict=True))
    about = dict(data["molecule"] or {})
    if "mol" in about:
        from rdkit import Chem

        about["mol"] = Chem.MolFromMolBlock(about["mol"], removeHs=False)
    edge_labels = None if labels is None else tuple(labels)
    return Graph(
        tuple(data["labels"]), edges, edge_labels, data=about, directed=bool(data["directed"]),
        node_attributes=data["coordinates"] or {},
    )  # fmt: skip


def _legend(cards: list[dict[str, Any]], limit: float) -> Markup | None:
    """Draw the colour scale of the cards."""
    if not cards or not limit:
        return None
    toward = {row["toward"] for row in cards}
    style = Style(_CARD[0], toward=toward.pop() if len(toward) == 1 else "the class")
    marks = style.legend_at(0.0, limit)
    return Markup(Scene(_CARD[0], LEGEND_HEIGHT, "Colour scale", marks).to_svg())


_FRAGMENT_COLUMNS = (
    "rank", "name", "smarts", "pattern", "depth", "class_label", "effect", "error", "support",
    "mean_with", "mean_without",
)  # fmt: skip


def _downloads(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return data addresses of the tables as CSV."""
    tables: dict[str, Any] = {}
    if summary["predictions"] is not None:
        tables["predictions"] = summary["predictions"]
    if summary["fragments"] is not None:
        tables["fragments"] = [
            {name: row[name] for name in _FRAGMENT_COLUMNS if row[name] is not None}
            | {f"support {label}": n for label, n, *_ in row["by_class"] or []}
            | {name: "; ".join(row[name]) for name in ("confounders", "examples")}
            for row in summary["fragments"]["rows"]
        ]
    addresses = {}
    for name, table in tables.items():
        # The byte order mark makes spreadsheets read UTF-8.
        text = csv_text(pd.DataFrame(table), index=False).encode("utf-8-sig")
        data = base64.b64encode(text).decode("ascii")
        addresses[name] = f"data:text/csv;charset=utf-8;base64,{data}"
    return addresses


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Return the templates, kept once compiled: compiling takes longer than rendering."""
    environment = Environment(
        loader=FunctionLoader(report_asset), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"percent": percent, "number": number, "counted": counted}
    environment.filters["capitalize_first"] = _capital
    # tojson escapes <, > and &, so that no label can end the script element.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def report_asset(name: str) -> str:
    return resources.files("treelens.report").joinpath("templates", name).read_text("utf-8")
