"""From a summary to one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment, FunctionLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from treelens.explain.decode import TreeNode
from treelens.explain.draw import tree_scene
from treelens.explain.names import LabelNames
from treelens.explain.scene import AGAINST, FOR, HIGHLIGHT, NEUTRAL
from treelens.report.charts import Chart, bar_chart, line_chart
from treelens.report.plain import percent
from treelens.report.summary import summarize
from treelens.storage.files import checked_target, whole_file
from treelens.svm.model import FittedSVM

_SCRIPTS = ("drawing.js", "panel.js", "map.js", "table.js")
_MINUS = "\N{MINUS SIGN}"
# One sign for each class, as path data of about 12 by 12; classes beyond these repeat them.
_SHAPES = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
    "M-4.5 -4.5H4.5V4.5H-4.5Z",
    "M0 -5.5L5.5 4.5H-5.5Z",
    "M0 -6L6 0L0 6L-6 0Z",
    "M0 5.5L5.5 -4.5H-5.5Z",
    "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "M-5.5 -3H5.5V3H-5.5Z",
)


def write_report(
    model: FittedSVM,
    path: str | Path,
    X: Any = None,
    y: Any = None,
    *,
    names: str | LabelNames | None = None,
    n_jobs: int = 1,
) -> Path:
    """Write the report on a model: one HTML file, whole or not at all.

    Parameters
    ----------
    model : FittedSVM
        ``model_`` of a fitted ``GraphSVC``.
    path : str or Path
    X, y, names, n_jobs : optional
        See :func:`treelens.report.summarize`.

    Returns
    -------
    Path
        Where it was written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphSVC("wwl", 2, 0, 1.0, 10.0).fit(graphs, y)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "report.html")
    >>> write_report(model.model_, path, graphs, y).read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    return write_page(path, lambda: render(summarize(model, X, y, names=names, n_jobs=n_jobs)))


def write_page(path: str | Path, make_page: Callable[[], str]) -> Path:
    """Write a page, whole or not at all; a place that cannot be written is refused at once."""
    target = checked_target(path)
    page = make_page()
    with whole_file(target) as file:
        file.write(page.encode("utf-8"))
    return Path(path)


def render(summary: Mapping[str, Any]) -> str:
    """The page of a summary."""
    return fill_template(
        "report.html", _SCRIPTS, summary, page_data=page_data(summary), charts=charts_of(summary)
    )


def fill_template(
    template: str,
    scripts: Sequence[str],
    summary: Mapping[str, Any],
    filters: Mapping[str, Callable[..., str]] | None = None,
    **parts: Any,
) -> str:
    """A whole page: the template with the summary, its patterns drawn, style and scripts."""
    script = "\n".join(_asset(name) for name in scripts)
    environment = _environment()
    environment.filters.update(filters or {})
    return environment.get_template(template).render(
        **summary,
        style=Markup(_asset("report.css")),
        script=Markup(script),
        script_hash=_hash(script),
        shapes=_SHAPES,
        trees={row["id"]: tree_drawing(row) for row in summary["patterns"]["rows"]},
        **parts,
    )  # fmt: skip


def page_data(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the scripts of the page need."""
    graphs = summary["graphs"]
    return {
        "classes": summary["model"]["classes"],
        "shapes": _SHAPES,
        "map": summary["map"],
        "graphs": [] if graphs is None else graphs["rows"],
        "pattern_texts": summary["pattern_texts"],
        **drawing_data(summary),
    }


def drawing_data(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the scripts need to draw patterns where they occur."""
    return {
        "occurrences": {
            row["id"]: row["occurrence"] for row in summary["patterns"]["rows"] if row["occurrence"]
        },
        "colors": {"for": FOR, "against": AGAINST, "neutral": NEUTRAL, "highlight": HIGHLIGHT},
    }


def charts_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """All charts of the page; None or empty where there is nothing to draw."""
    edges = summary["weights"]["bin_edges"]
    data = summary["data"]
    return {
        "roc": {name: roc_chart(summary[name]) for name in ("held_out", "scores")},
        "weights": [
            bar_chart(edges, depth["counts"]) for depth in summary["weights"]["depths"]
        ],
        "learning": _learning_curve(summary["learning"]["curve"]),
        "unseen": None
        if data is None or not data["unseen"]["most"]
        else bar_chart(data["unseen"]["bin_edges"], data["unseen"]["counts"]),
    }  # fmt: skip


def tree_drawing(row: Mapping[str, Any]) -> Markup:
    """The SVG of a pattern's tree; the scene escapes the labels."""
    tree, nodes = row["tree"], []
    layers: list[int] = []
    columns = (tree[name] for name in ("parents", "labels", "edge_labels", "cut"))
    for parent, label, edge_label, cut in zip(*columns, strict=True):
        layers.append(0 if parent < 0 else layers[parent] + 1)
        nodes.append(TreeNode(parent, layers[-1], label, edge_label, cut))
    return Markup(tree_scene(nodes, f"pattern {row['text']}").to_svg())


def roc_chart(scores: Mapping[str, Any] | None) -> Chart | None:
    if scores is None or not scores["roc"]:
        return None
    lines = [(c["false_positive_rate"], c["true_positive_rate"]) for c in scores["roc"]]
    return line_chart(lines, (0.0, 1.0), (0.0, 1.0))


def _learning_curve(curve: Mapping[str, Any] | None) -> Chart | None:
    if curve is None or len(curve["objective"]) < 2:
        return None
    values = curve["objective"]
    low, high = min(values), max(values)
    room = 0.05 * (high - low) or 1.0
    steps = list(range(len(values)))
    return line_chart([(steps, values)], (0.0, steps[-1]), (low - room, high + room))


# --- Jinja ------------------------------------------------------------------------------------


class _CompiledOnce(BytecodeCache):
    """Keeps compiled templates while the process lives: compiling takes longer than filling in."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._code:
            bucket.bytecode_from_string(self._code[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _CompiledOnce()


def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, bytecode_cache=_COMPILED,
    )  # fmt: skip
    environment.filters.update(
        percent=percent, number=number, signed=signed, leading_classes=leading_classes
    )
    # tojson writes <, > and & as escapes, so that no label can end the script element.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _asset(name: str) -> str:
    return resources.files("treelens.report").joinpath("templates", name).read_text("utf-8")


def _hash(script: str) -> str:
    """What the page's security policy lets run: this script and no other."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def number(value: float | None, digits: int = 3) -> str:
    """A number as people write it: few digits, thousands apart."""
    if value is None:
        return "–"
    if float(value).is_integer() and abs(value) < 1e15:
        text = f"{int(value):,}"
    else:
        text = f"{value:,.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"
    return text.replace("-", _MINUS)


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign."""
    return f"{value:+.{digits}f}".replace("-", _MINUS)


def leading_classes(frequencies: Sequence[float], most: int = 6) -> list[tuple[int, float]]:
    """The classes with the largest values, in their own order.

    Examples
    --------
    >>> leading_classes([0.1, 0.5, 0.3], most=2)
    [(1, 0.5), (2, 0.3)]
    """
    order = sorted(range(len(frequencies)), key=lambda code: -frequencies[code])[:most]
    return [(code, frequencies[code]) for code in sorted(order)]
