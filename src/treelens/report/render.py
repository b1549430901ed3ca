"""From the summary of a model to one HTML page: numbers, drawings, charts, downloads."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from treelens.chem.molecules import of_mol_block
from treelens.explain.contributions import color_limit
from treelens.explain.draw import LEGEND_HEIGHT, Style, TreeNode, draw_graph, tree_scene
from treelens.explain.fragment_search import Occurrence
from treelens.explain.scene import Scene
from treelens.graphs.collection import Graph
from treelens.json_values import plain
from treelens.report.predicted import similarity_in_words
from treelens.storage.files import csv_text

_MINUS = "\N{MINUS SIGN}"
_MOST_DECIMALS = 6
_LARGEST_PLAIN = 1e9
Range = tuple[float, float]
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 10.0, 38.0
_SQUARE = (360.0, 340.0)
_PARITY = (540.0, 500.0)
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


def render(summary: Mapping[str, Any]) -> str:
    """Return the page of a summary."""
    units, noun = Units.of(summary["model"]["training_values"]), summary["noun"]
    # Contributions are on the scale that was learned, which values may not be.
    numbers = summary["model"]["training_values"] is not None
    effects = Units.of({"std": summary["model"]["spread"]}) if numbers else units
    script, predictions = asset("report", "report.js"), summary["predictions"]
    # The page's security policy allows this script and no other.
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    cards = summary["cards"]["rows"] if summary["cards"] else []
    limit = color_limit([row["contributions"] for row in cards], summary["model"]["spread"])
    scores = summary["scores"] or summary["validation"] or {}
    listed = islice(zip(*(predictions or {}).values(), strict=True), MOST_LISTED)
    template = templates("report").get_template("report.html")
    return template.render(
        **summary,
        units=units,
        effects=effects,
        style=Markup(asset("report", "report.css")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        symbols=_SYMBOLS,
        prediction_rows=[dict(zip(predictions, row, strict=True)) for row in listed],
        page_data={"thresholds": scores.get("thresholds")},
        charts={name: charts_of(summary[name], units, noun) for name in ("scores", "validation")},
        draw=Drawings(effects, noun, limit),
        alike=partial(similarity_in_words, alone=summary["model"]["alone"]),
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
        place = marked = data["highlight"]
        if marked is not None:
            place = Occurrence(**{**marked, "edges": tuple(map(tuple, marked["edges"]))})
        style = Style(*size, legend=False, title=_capital(title), limit=self.limit)
        return Markup(draw_graph(_graph(data), contributions, highlight=place, style=style))


def _graph(data: Mapping[str, Any]) -> Graph:
    ends, labels = data["edges"], data["edge_labels"]
    edges = tuple(zip(ends[::2], ends[1::2], strict=True))
    about = dict(data["molecule"] or {})
    if "mol" in about:
        about["mol"] = of_mol_block(about["mol"])
    return Graph(
        data["labels"],
        edges,
        labels,
        data=about,
        directed=data["directed"],
        node_attributes=data["coordinates"] or {},
    )


def _legend(cards: list[dict[str, Any]], limit: float) -> Markup | None:
    """Draw the colour scale of the cards."""
    if not cards or not limit:
        return None
    toward = {row["toward"] for row in cards}
    style = Style(_CARD[0], toward=toward.pop() if len(toward) == 1 else "the class")
    marks = style.legend_at(0.0, limit)
    return Markup(Scene(_CARD[0], LEGEND_HEIGHT, "Colour scale", marks).to_svg())


_FRAGMENT_COLUMNS = (
    "rank",
    "name",
    "smarts",
    "pattern",
    "depth",
    "class_label",
    "effect",
    "error",
    "support",
    "mean_with",
    "mean_without",
)


def _downloads(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return data addresses of the tables as CSV."""
    fragments = [
        {name: row[name] for name in _FRAGMENT_COLUMNS if row[name] is not None}
        | {f"support {label}": n for label, n, *_ in row["by_class"] or []}
        | {name: "; ".join(row[name]) for name in ("confounders", "examples")}
        for row in (summary["fragments"] or {"rows": []})["rows"]
    ]
    addresses = {}
    for name, table in {"predictions": summary["predictions"], "fragments": fragments}.items():
        if not table:
            continue
        # The byte order mark makes spreadsheets read UTF-8.
        text = csv_text(pd.DataFrame(table), index=False).encode("utf-8-sig")
        data = base64.b64encode(text).decode("ascii")
        addresses[name] = f"data:text/csv;charset=utf-8;base64,{data}"
    return addresses


@cache
def templates(room: str) -> Environment:
    """Return the templates of a room, kept once compiled: that takes longer than rendering."""
    environment = Environment(
        loader=FunctionLoader(partial(asset, room)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "number": number, "counted": counted}
    environment.filters["capitalize_first"] = _capital
    # tojson escapes <, > and &, so that no label can end the script element.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def asset(room: str, name: str) -> str:
    return resources.files(f"treelens.{room}").joinpath("templates", name).read_text("utf-8")


# --- values and numbers --------------------------------------------------------------------------


def plain_summary(value: object) -> Any:
    """Return numbers, texts, lists and dictionaries with text keys; NaN and infinity become None.

    Lone surrogates, which cannot be encoded as UTF-8, become their visible code; values that JSON
    has no type for, such as a class that is a date, become their text.
    """
    return plain(value, text=_encodable, other=str)


def _encodable(value: str) -> str:
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction as per cent."""
    return "–" if value is None else f"{100 * value:.{digits}f}\N{NARROW NO-BREAK SPACE}%"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with few significant digits and separated thousands."""
    if value is None:
        return "–"
    if float(value).is_integer() and abs(value) < 1e15:
        text = f"{int(value):,}"
    else:
        text = f"{value:,.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"
    return text.replace("-", _MINUS)


def counted(n: int, noun: str) -> str:
    """Return a number of things: "1 molecule", "2,000 molecules"."""
    return f"{number(n)} {noun}" if n == 1 else f"{number(n)} {noun}s"


@dataclass(frozen=True)
class Units:
    """Writes numbers in the units of the target, with fixed decimals or, beyond six, in powers."""

    decimals: int = 2

    @classmethod
    def of(cls, spread: Mapping[str, float] | None) -> Units:
        """Three digits of the standard deviation of the training values, or two decimals."""
        if spread is None or not spread["std"] > 0:
            return cls()
        return cls(2 - int(np.floor(np.log10(spread["std"]))))

    def __call__(self, value: float | None, more: int = 0) -> str:
        """Return the text of a number, with ``more`` decimals than usual."""
        if value is None:
            return "–"
        plain = self.decimals <= _MOST_DECIMALS and abs(value) < _LARGEST_PLAIN
        text = f"{value:,.{max(self.decimals + more, 0)}f}" if plain else f"{value:.{3 + more}g}"
        if not float(text.replace(",", "")):
            text = text.lstrip("-")
        return text.replace("-", _MINUS)

    def signed(self, value: float | None, more: int = 0) -> str:
        """Return the text of a number with its sign."""
        text = self(value, more)
        return text if value is None or text.startswith(_MINUS) else "+" + text

    def rest(self, whole: float, *parts: float) -> str:
        """Return the whole without some parts, all as they are written, so that sums come out."""
        decimals = max(self.decimals, 0)
        return self.signed(round(whole, decimals) - sum(round(x, decimals) for x in parts))


# --- charts -----------------------------------------------------------------------------------


class Chart:
    """Lines, and dots with vertical intervals, on two axes of the same range; in pixels."""

    def __init__(
        self, values: Range = (0.0, 1.0), size: Range = _SQUARE, radius: float = 4.0
    ) -> None:
        self.size, self.radius, self._range = size, radius, values
        # Left, top, right and bottom of the plotting area.
        self.box = _LEFT, _TOP, size[0] - _RIGHT, size[1] - _BOTTOM
        self.x_ticks = [(self.x(value), text) for value, text in ticks(values)]
        self.y_ticks = [(self.y(value), text) for value, text in ticks(values)]
        self.lines: list[str] = []  # path data
        # x, y, top and bottom of the interval, kind, text
        self.dots: list[tuple[float, float, float, float, str, str]] = []

    def x(self, value: float) -> float:
        return round(self.box[0] + (self.box[2] - self.box[0]) * self._share(value), 1)

    def y(self, value: float) -> float:
        return round(self.box[3] - (self.box[3] - self.box[1]) * self._share(value), 1)

    def _share(self, value: float) -> float:
        low, high = self._range
        return (value - low) / max(high - low, 1e-12)

    def add_line(self, xs: Iterable[float], ys: Iterable[float]) -> None:
        points = (f"{self.x(x)} {self.y(y)}" for x, y in zip(xs, ys, strict=True))
        self.lines.append("M" + "L".join(points))

    def add_dot(self, x: float, y: float, interval: Range, text: str, kind: str = "") -> None:
        """Add a dot; its interval is cut where the range ends."""
        low, high = max(interval[0], self._range[0]), min(interval[1], self._range[1])
        self.dots.append((self.x(x), self.y(y), self.y(high), self.y(low), kind, text))


def ticks(values: Range, most: int = 5) -> list[tuple[float, str]]:
    """Return round numbers within a range, with their texts."""
    low, high = values
    span = max(high - low, 1e-12)
    power = 10.0 ** np.floor(np.log10(span / most))
    step = next(f * power for f in (1, 2, 2.5, 5, 10, 20) if span / (f * power) <= most)
    first = np.ceil(low / step - 1e-9)
    count = int(np.floor(high / step + 1e-9) - first) + 1
    places = [float((first + k) * step) for k in range(count)]
    return [(place, f"{place + 0.0:.6g}") for place in places]


def charts_of(scores: Mapping[str, Any] | None, units: Units, noun: str) -> dict[str, Any] | None:
    """Return the charts of the scores of one set of graphs."""
    if scores is None:
        return None
    if "points" in scores:
        calibration = Chart()
        for x, y in zip(*(scores["calibration"][k] for k in ("nominal", "observed")), strict=True):
            calibration.add_dot(x, y, (y, y), f"{x:.0%} intervals contain {y:.1%}")
        return {"parity": _parity(scores["points"], units, noun), "calibration": calibration}
    roc, reliability = Chart(radius=2.5), Chart()
    for curve in scores["roc"]:
        roc.add_line(curve["false_positive_rate"], curve["true_positive_rate"])
    for part in scores["reliability"] or []:
        text = (
            f"{part['n']} {noun}s with a probability of {part['low']:.0%} to {part['high']:.0%}: "
            f"{part['observed']:.0%} observed"
        )
        reliability.add_dot(part["predicted"], part["observed"], part["observed_interval"], text)
    return {
        "roc": roc if roc.lines else None,
        "reliability": None if scores["reliability"] is None else reliability,
    }


def _parity(points: Mapping[str, Any], units: Units, noun: str) -> Chart:
    """Return predicted against measured values with their 90 % intervals."""
    ends = [*points["measured"], *points["predicted"]]
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low) or 1.0
    chart = Chart((low - room, high + room), _PARITY, radius=2.5)
    columns = (points[name] for name in ("index", "measured", "predicted", "half_width"))
    for index, measured, predicted, half in zip(*columns, strict=True):
        text = f"{noun} {index}: measured {units(measured)}, predicted {units(predicted)}"
        kind = "" if abs(predicted - measured) <= half else "outside"
        interval = (predicted - half, predicted + half)
        chart.add_dot(measured, predicted, interval, f"{text} ± {units(half)}", kind)
    return chart
